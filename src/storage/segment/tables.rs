//! The small sections: info, cell directory, names, tombstones, codec (format-spec.md 3.4 to 3.8).
//!
//! Invariant: what is decoded here was checked in itself: order, ranges, counts, text encoding. Whether it agrees
//! with the columns is `verify`'s to say.

use std::sync::Arc;

use super::format::{CELL_BYTES, TOMBSTONE_BYTES};
use super::input::Input;
use super::{Cell, Counts, SegmentInput, Tombstone};
use crate::error::Result;
use crate::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::{RowKind, VectorSpace};
use crate::options::{DIMENSION_MAX, NAME_BYTES_MAX, VectorElement};
use crate::simd::codec::Codec;

/// The one kind of code that this version writes: one bit a dimension after a seeded rotation.
const CODEC_ONE_BIT: u32 = 1;
/// Bytes of one code, at most: the largest dimension, rounded up by any rotation, with room to spare.
pub const CODE_BYTES_MAX: usize = 4096;

/// Section `info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    pub rows: u32,
    /// Smallest and largest id; 0, 0 without rows.
    pub ids: (u64, u64),
    pub logs: (LogId, LogId),
    pub space: VectorSpace,
    pub replaces: Vec<SegmentId>,
}

impl Info {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.rows.to_le_bytes());
        out.extend(self.space.dimension.to_le_bytes());
        for number in [self.ids.0, self.ids.1, self.logs.0.get(), self.logs.1.get()] {
            out.extend(number.to_le_bytes());
        }
        out.extend(element_number(self.space.element).to_le_bytes());
        out.extend((self.space.name.len() as u32).to_le_bytes());
        out.extend((self.replaces.len() as u32).to_le_bytes());
        out.extend(0u32.to_le_bytes());
        out.extend(self.replaces.iter().flat_map(|id| id.get().to_le_bytes()));
        out.extend(self.space.name.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8], offset: u64) -> Result<Info> {
        let mut input = Input::new(bytes, offset, "info");
        let (rows, dimension) = (input.u32()?, input.u32()?);
        let ids = (input.u64()?, input.u64()?);
        let logs = (LogId::new(input.u64()?), LogId::new(input.u64()?));
        let element = match input.u32()? {
            0 => VectorElement::F32,
            1 => VectorElement::F16,
            _ => return Err(input.corrupt("names an unknown vector element")),
        };
        let name_bytes = input.u32()? as usize;
        let replaces_count = input.u32()? as usize;
        input.take(4)?;
        if dimension == 0 || dimension as usize > DIMENSION_MAX {
            return Err(input.corrupt("holds an impossible dimension"));
        }
        if ids.0 > ids.1 || logs.0 > logs.1 {
            return Err(input.corrupt("holds a range that ends before it starts"));
        }
        if replaces_count > input.left() / 8 {
            return Err(input.corrupt("holds a count beyond its length"));
        }
        let mut replaces = Vec::with_capacity(replaces_count);
        for _ in 0..replaces_count {
            replaces.push(SegmentId::new(input.u64()?));
        }
        let name = std::str::from_utf8(input.take(name_bytes)?)
            .map_err(|_| input.corrupt("holds a name that is not UTF-8"))?
            .to_owned();
        input.finish()?;
        Ok(Info { rows, ids, logs, space: VectorSpace { name, dimension, element }, replaces })
    }
}

fn element_number(element: VectorElement) -> u32 {
    match element {
        VectorElement::F32 => 0,
        VectorElement::F16 => 1,
    }
}

/// Appends one cell.
pub fn encode_cell(cell: &Cell, out: &mut Vec<u8>) {
    out.extend(cell.user.get().to_le_bytes());
    out.extend([cell.kind as u8, 0, 0, 0]);
    out.extend(cell.cluster.to_le_bytes());
    out.extend(cell.rows.start.to_le_bytes());
    out.extend((cell.rows.end - cell.rows.start).to_le_bytes());
    out.extend(cell.min_time.to_le_bytes());
    out.extend(cell.max_time.to_le_bytes());
    // Reserved: centroid, radius, dominant tags.
    out.extend([0; 24]);
}

/// Reads the cell directory: cells in strictly ascending order of (user, kind, cluster) that tile `0..rows`.
pub fn decode_cells(bytes: &[u8], offset: u64, rows: u32) -> Result<Vec<Cell>> {
    let mut input = Input::new(bytes, offset, "cell directory");
    let mut cells: Vec<Cell> = Vec::with_capacity(bytes.len() / CELL_BYTES);
    let mut next_row = 0u32;
    while input.left() > 0 {
        let user = UserNumber::new(input.u64()?);
        let kind = RowKind::from_number(input.u8()?)
            .ok_or_else(|| input.corrupt("holds an unknown kind of row"))?;
        input.take(3)?;
        let cluster = input.u32()?;
        let (first, count) = (input.u32()?, input.u32()?);
        let (min_time, max_time) = (input.i64()?, input.i64()?);
        input.take(24)?;
        let end = first.checked_add(count).filter(|end| *end <= rows && count > 0);
        let (Some(end), true) = (end, first == next_row) else {
            return Err(input.corrupt("does not cover each row once"));
        };
        if min_time > max_time {
            return Err(input.corrupt("holds a time range that ends before it starts"));
        }
        if let Some(last) = cells.last()
            && (last.user, last.kind, last.cluster) >= (user, kind, cluster)
        {
            return Err(input.corrupt("is not in order"));
        }
        next_row = end;
        cells.push(Cell { user, kind, cluster, rows: first..end, min_time, max_time });
    }
    if next_row != rows {
        return Err(input.corrupt("does not cover each row once"));
    }
    Ok(cells)
}

/// Users and sessions of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub users: Vec<(UserNumber, Arc<[u8]>)>,
    pub sessions: Vec<(SessionNumber, UserNumber, String)>,
}

/// The bytes of section `names`.
pub fn encode_names(input: &SegmentInput<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((input.users.len() as u32).to_le_bytes());
    out.extend((input.sessions.len() as u32).to_le_bytes());
    for (number, name) in &input.users {
        out.extend(number.get().to_le_bytes());
        out.extend((name.len() as u32).to_le_bytes());
        out.extend_from_slice(name);
    }
    for (number, user, name) in &input.sessions {
        out.extend(number.get().to_le_bytes());
        out.extend(user.get().to_le_bytes());
        out.extend((name.len() as u32).to_le_bytes());
        out.extend(name.as_bytes());
    }
    out
}

/// Reads section `names`.
pub fn decode_names(bytes: &[u8], offset: u64) -> Result<Names> {
    let mut input = Input::new(bytes, offset, "names");
    let user_count = input.count(12)?;
    let session_count = input.count(20)?;
    let mut names = Names {
        users: Vec::with_capacity(user_count),
        sessions: Vec::with_capacity(session_count),
    };
    for _ in 0..user_count {
        let number = UserNumber::new(input.u64()?);
        let name = take_name(&mut input)?;
        if names.users.last().is_some_and(|(last, _)| *last >= number) {
            return Err(input.corrupt("are not in order"));
        }
        names.users.push((number, name.into()));
    }
    for _ in 0..session_count {
        let number = SessionNumber::new(input.u64()?);
        let user = UserNumber::new(input.u64()?);
        let name = std::str::from_utf8(take_name(&mut input)?)
            .map_err(|_| input.corrupt("hold a session that is not UTF-8"))?;
        if names.sessions.last().is_some_and(|(last, ..)| *last >= number) {
            return Err(input.corrupt("are not in order"));
        }
        names.sessions.push((number, user, name.to_owned()));
    }
    input.finish()?;
    Ok(names)
}

fn take_name<'a>(input: &mut Input<'a>) -> Result<&'a [u8]> {
    let length = input.u32()? as usize;
    if length > NAME_BYTES_MAX {
        return Err(input.corrupt("hold a name beyond the limit"));
    }
    input.take(length)
}

/// The bytes of section `tombstones`.
pub fn encode_tombstone(tombstone: &Tombstone, out: &mut Vec<u8>) {
    out.extend(tombstone.id.get().to_le_bytes());
    out.extend(tombstone.version.to_le_bytes());
    out.extend(u32::from(tombstone.superseded).to_le_bytes());
    out.extend(tombstone.user.get().to_le_bytes());
    out.extend(tombstone.record_time.to_le_bytes());
    let Counts { rows, vectors, text_bytes, passages, half_terms } = tombstone.counts;
    for count in [rows, vectors, text_bytes, passages, half_terms] {
        out.extend(count.to_le_bytes());
    }
}

/// Reads section `tombstones`: strictly ascending by (id, version), no count positive.
pub fn decode_tombstones(bytes: &[u8], offset: u64) -> Result<Vec<Tombstone>> {
    let mut input = Input::new(bytes, offset, "tombstones");
    let mut tombstones: Vec<Tombstone> = Vec::with_capacity(bytes.len() / TOMBSTONE_BYTES);
    while input.left() > 0 {
        let (id, version) = (EpisodeId::new(input.u64()?), input.u32()?);
        let superseded = match input.u32()? {
            0 => false,
            1 => true,
            _ => return Err(input.corrupt("hold an unknown flag").of(id.get())),
        };
        let user = UserNumber::new(input.u64()?);
        let record_time = input.i64()?;
        let mut numbers = [0; 5];
        for number in &mut numbers {
            *number = input.i64()?;
        }
        let [rows, vectors, text_bytes, passages, half_terms] = numbers;
        let counts = Counts { rows, vectors, text_bytes, passages, half_terms };
        if numbers.iter().any(|number| *number > 0) {
            return Err(input.corrupt("hold a positive count").of(id.get()));
        }
        if tombstones.last().is_some_and(|last| (last.id, last.version) >= (id, version)) {
            return Err(input.corrupt("are not in order").of(id.get()));
        }
        tombstones.push(Tombstone { id, version, user, record_time, superseded, counts });
    }
    Ok(tombstones)
}

/// What the codes of a segment were made with.
#[derive(Clone, Debug, PartialEq)]
pub struct CodecParameters {
    pub seed: u64,
    pub code_bytes: u32,
    /// As many values as the vector space has dimensions.
    pub mean: Vec<f32>,
}

/// The bytes of section `codec`.
pub fn encode_codec(codec: &Codec) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(CODEC_ONE_BIT.to_le_bytes());
    out.extend((codec.dimension() as u32).to_le_bytes());
    out.extend((codec.code_bytes() as u32).to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(codec.seed().to_le_bytes());
    out.extend(codec.mean().iter().flat_map(|value| value.to_le_bytes()));
    out
}

/// Reads section `codec` of a segment whose vectors have `dimension` values.
pub fn decode_codec(bytes: &[u8], offset: u64, dimension: u32) -> Result<CodecParameters> {
    let mut input = Input::new(bytes, offset, "codec");
    if input.u32()? != CODEC_ONE_BIT {
        return Err(input.corrupt("is of an unknown kind"));
    }
    if input.u32()? != dimension {
        return Err(input.corrupt("is of another dimension"));
    }
    let code_bytes = input.u32()?;
    if code_bytes == 0 || code_bytes as usize > CODE_BYTES_MAX {
        return Err(input.corrupt("holds an impossible code length"));
    }
    input.take(4)?;
    let seed = input.u64()?;
    if input.left() != dimension as usize * 4 {
        return Err(input.corrupt("holds a mean of another length"));
    }
    let mut mean = Vec::with_capacity(dimension as usize);
    while input.left() > 0 {
        let value = input.f32()?;
        if !value.is_finite() {
            return Err(input.corrupt("holds a mean that is not finite"));
        }
        mean.push(value);
    }
    input.finish()?;
    Ok(CodecParameters { seed, code_bytes, mean })
}
