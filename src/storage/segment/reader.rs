//! Reads a segment.
//!
//! Invariant: every accessor checks the row it is asked for and the checksums of what it reads, so that any bytes give
//! an answer or an error and never a panic.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::cache::TextCache;
use super::clusters::Cluster;
use super::columns::Columns;
use super::format::ROW_HAS_VECTOR;
use super::rows::Rows;
use super::section::Section;
use super::speakers::Speakers;
use super::tables::{self, CodecParameters, Info, Names};
use super::{Cell, RowHead, Tombstone};
use crate::error::{Error, Result};
use crate::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::{RowKind, VectorSpace};
use crate::simd::Rounded;

/// An open segment.
pub struct Segment {
    pub(super) columns: Columns,
    pub(super) info: Info,
    pub(super) cells: Vec<Cell>,
    pub(super) clusters: Vec<Cluster>,
    /// Bytes of one code; `None` when the segment has no codes.
    pub(super) code_bytes: Option<usize>,
    pub(super) vector_bytes: usize,
    pub(super) id: SegmentId,
    pub(super) footer_crc: u32,
    pub(super) unknown_ro_compat: bool,
    pub(super) opened: u64,
    /// Text blocks that were read lately, if the handle keeps any.
    pub(super) cache: Option<Arc<TextCache>>,
    /// Filled at the first look-up of a user's name.
    pub(super) user_names: OnceLock<Vec<(UserNumber, Arc<[u8]>)>>,
    /// The centroids, rounded; filled when they are first compared.
    pub(super) centroids: OnceLock<Rounded>,
    /// Filled at the first look-up of a speaker.
    pub(super) speaker_names: OnceLock<Speakers>,
}

/// Takes the segment's blocks out of the cache: nobody can ask for them any more.
impl Drop for Segment {
    fn drop(&mut self) {
        if let Some(cache) = &self.cache {
            cache.forget(self.opened);
        }
    }
}

impl Segment {
    /// The same segment, whose texts are looked for in `cache` first.
    #[must_use]
    pub fn with_cache(mut self, cache: Option<Arc<TextCache>>) -> Segment {
        self.cache = cache;
        self
    }

    /// The segment's id.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        self.columns.path()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.columns.file().len() as u64
    }

    /// The CRC of the footer, as the manifest records it.
    pub fn footer_crc(&self) -> u32 {
        self.footer_crc
    }

    /// Rows, ended ones included.
    pub fn rows(&self) -> u32 {
        self.info.rows
    }

    /// Smallest and largest id; 0, 0 without rows.
    pub fn ids(&self) -> (u64, u64) {
        self.info.ids
    }

    /// First and last log whose rows and tombstones are in here.
    pub fn logs(&self) -> (LogId, LogId) {
        self.info.logs
    }

    /// Segments that this one replaces.
    pub fn replaces(&self) -> &[SegmentId] {
        &self.info.replaces
    }

    /// The vector space of the rows.
    pub fn space(&self) -> &VectorSpace {
        &self.info.space
    }

    /// True when the segment holds features that a rewrite by this program would lose.
    pub fn forbids_rewrite(&self) -> bool {
        self.unknown_ro_compat
    }

    /// The cells, ascending by (user, kind, cluster); together they hold each row once.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The cells of one user and kind.
    pub fn cells_of(&self, user: UserNumber, kind: RowKind) -> &[Cell] {
        let start = self.cells.partition_point(|cell| (cell.user, cell.kind) < (user, kind));
        let count =
            self.cells[start..].partition_point(|cell| (cell.user, cell.kind) == (user, kind));
        &self.cells[start..start + count]
    }

    /// The scalar columns of one row.
    ///
    /// # Errors
    /// `Corrupt` for a row beyond the segment, or a checksum that does not hold.
    pub fn head(&self, row: u32) -> Result<RowHead> {
        let after = self.cells.partition_point(|cell| cell.rows.start <= row);
        let cell = after
            .checked_sub(1)
            .map(|place| &self.cells[place])
            .filter(|cell| cell.rows.contains(&row))
            .ok_or_else(|| self.no_row(row))?;
        let columns = &self.columns;
        Ok(RowHead {
            id: self.id_of(row)?,
            version: self.version(row)?,
            kind: cell.kind,
            user: cell.user,
            cluster: cell.cluster,
            session: SessionNumber::new(u64::from_le_bytes(columns.item(Section::Sessions, row)?)),
            ordinal: u64::from_le_bytes(columns.item(Section::Ordinals, row)?),
            time: self.time(row)?,
            offset_minutes: i16::from_le_bytes(columns.item(Section::Offsets, row)?),
            record_time: i64::from_le_bytes(columns.item(Section::RecordTimes, row)?),
            first_record_time: i64::from_le_bytes(columns.item(Section::FirstRecordTimes, row)?),
            expires: i64::from_le_bytes(columns.item(Section::Expires, row)?),
            has_vector: self.has_vector(row)?,
            text_bytes: u32::from_le_bytes(columns.item(Section::TextBytes, row)?),
            shape: self.shape(row)?,
        })
    }

    /// The rows that hold versions of `id`, ascending by version. Empty when the segment has none.
    ///
    /// A binary search over the contiguous sorted ids: no row is touched but those found.
    pub fn find(&self, id: EpisodeId) -> Result<Rows<'_>> {
        if id.get() < self.info.ids.0 || id.get() > self.info.ids.1 {
            return Ok(Rows { rows: [].iter() });
        }
        let sorted = |place| -> Result<u64> {
            Ok(u64::from_le_bytes(self.columns.item(Section::SortedIds, place)?))
        };
        let first = partition_point(0..self.rows(), |place| Ok(sorted(place)? < id.get()))?;
        let mut end = first;
        while end < self.rows() && sorted(end)? == id.get() {
            end += 1;
        }
        let rows = self.columns.items(Section::IdOrder, first..end)?;
        for row in rows {
            // Also refuses a row beyond the segment, so that what is found can be read.
            if self.id_of(u32::from_le_bytes(*row))? != id {
                return Err(self.disagree("id order", Section::IdOrder).of(id.get()));
            }
        }
        Ok(Rows { rows: rows.iter() })
    }

    /// The row of one version of `id`.
    pub fn row_of(&self, id: EpisodeId, version: u32) -> Result<Option<u32>> {
        let rows = self.find(id)?.rows.as_slice();
        let row = |place: u32| u32::from_le_bytes(rows[place as usize]);
        let count = rows.len() as u32;
        let place = partition_point(0..count, |place| Ok(self.version(row(place))? < version))?;
        if place < count && self.version(row(place))? == version {
            return Ok(Some(row(place)));
        }
        Ok(None)
    }

    /// The id of one row.
    pub fn id_of(&self, row: u32) -> Result<EpisodeId> {
        Ok(EpisodeId::new(u64::from_le_bytes(self.columns.item(Section::Ids, row)?)))
    }

    /// The version of one row.
    pub fn version(&self, row: u32) -> Result<u32> {
        Ok(u32::from_le_bytes(self.columns.item(Section::Versions, row)?))
    }

    /// The time of one row.
    pub fn time(&self, row: u32) -> Result<i64> {
        Ok(i64::from_le_bytes(self.columns.item(Section::Times, row)?))
    }

    /// Whether one row has a vector.
    pub fn has_vector(&self, row: u32) -> Result<bool> {
        Ok(self.columns.item::<1>(Section::Flags, row)?[0] & ROW_HAS_VECTOR != 0)
    }

    /// The ids of `rows`, little-endian `u64`.
    pub fn id_column(&self, rows: Range<u32>) -> Result<&[[u8; 8]]> {
        self.columns.items(Section::Ids, rows)
    }

    /// The times of `rows`, little-endian `i64`.
    pub fn times(&self, rows: Range<u32>) -> Result<&[[u8; 8]]> {
        self.columns.items(Section::Times, rows)
    }

    /// The ordinals of `rows`, little-endian `u64`.
    pub fn ordinals(&self, rows: Range<u32>) -> Result<&[[u8; 8]]> {
        self.columns.items(Section::Ordinals, rows)
    }

    /// The offsets from UTC of `rows`, minutes, little-endian `i16`.
    pub fn offsets(&self, rows: Range<u32>) -> Result<&[[u8; 2]]> {
        self.columns.items(Section::Offsets, rows)
    }

    /// The expiries of `rows`, little-endian `i64`.
    pub fn expiries(&self, rows: Range<u32>) -> Result<&[[u8; 8]]> {
        self.columns.items(Section::Expires, rows)
    }

    /// The session numbers of `rows`, little-endian `u64`.
    pub fn session_column(&self, rows: Range<u32>) -> Result<&[[u8; 8]]> {
        self.columns.items(Section::Sessions, rows)
    }

    /// The flags of `rows`: [`ROW_HAS_VECTOR`], [`super::ROW_HAS_TIME`].
    pub fn flags_column(&self, rows: Range<u32>) -> Result<&[u8]> {
        self.columns.bytes(Section::Flags, u64::from(rows.start)..u64::from(rows.end))
    }

    /// Bytes of one code; `None` when the segment has no codes.
    pub fn code_bytes(&self) -> Option<usize> {
        self.code_bytes
    }

    /// The codes of `rows`, one behind the other; `None` when the segment has none. Zeros for rows without a vector.
    pub fn codes(&self, rows: Range<u32>) -> Result<Option<&[u8]>> {
        let Some(width) = self.code_bytes else { return Ok(None) };
        self.wide(Section::Codes, rows, width).map(Some)
    }

    /// The correction factors of `rows`, little-endian `f32`; `None` when the segment has no codes.
    pub fn factors(&self, rows: Range<u32>) -> Result<Option<&[[u8; 4]]>> {
        if self.code_bytes.is_none() {
            return Ok(None);
        }
        self.columns.items(Section::Factors, rows).map(Some)
    }

    /// What the codes were made with; `None` when the segment has none.
    pub fn codec(&self) -> Result<Option<CodecParameters>> {
        if self.code_bytes.is_none() {
            return Ok(None);
        }
        let dimension = self.info.space.dimension;
        let decode = |bytes: &[u8], at| tables::decode_codec(bytes, at, dimension);
        self.columns.decode(Section::Codec, decode).map(Some)
    }

    /// The stored bytes of the codec: equal bytes mean that codes can be copied from one segment to another.
    pub fn codec_bytes(&self) -> Result<Option<&[u8]>> {
        if self.code_bytes.is_none() {
            return Ok(None);
        }
        self.columns.whole(Section::Codec).map(Some)
    }

    /// The stored bytes of one row's vector, if it has one.
    pub fn vector(&self, row: u32) -> Result<Option<&[u8]>> {
        if !self.has_vector(row)? {
            return Ok(None);
        }
        self.vectors(row..row + 1).map(Some)
    }

    /// The stored vectors of `rows`, one behind the other. Zeros for rows without a vector.
    pub fn vectors(&self, rows: Range<u32>) -> Result<&[u8]> {
        self.wide(Section::Vectors, rows, self.vector_bytes)
    }

    /// The tombstones, ascending by (id, version).
    pub fn tombstones(&self) -> Result<Vec<Tombstone>> {
        self.columns.decode(Section::Tombstones, tables::decode_tombstones)
    }

    /// Users of the rows and tombstones, ascending by number.
    pub fn users(&self) -> Result<Vec<(UserNumber, Arc<[u8]>)>> {
        Ok(self.names()?.users)
    }

    /// The name of one user of the rows; kept after the first call.
    pub fn user_name(&self, user: UserNumber) -> Result<Option<Arc<[u8]>>> {
        let users = match self.user_names.get() {
            Some(users) => users,
            None => {
                let users = self.users()?;
                self.user_names.get_or_init(|| users)
            }
        };
        let place = users.binary_search_by_key(&user, |(number, _)| *number);
        Ok(place.ok().map(|place| users[place].1.clone()))
    }

    /// Sessions of the rows, ascending by number.
    pub fn sessions(&self) -> Result<Vec<(SessionNumber, UserNumber, String)>> {
        Ok(self.names()?.sessions)
    }

    /// Users and sessions, decoded anew at each call.
    pub(super) fn names(&self) -> Result<Names> {
        self.columns.decode(Section::Names, tables::decode_names)
    }

    fn wide(&self, section: Section, rows: Range<u32>, width: usize) -> Result<&[u8]> {
        let width = width as u64;
        self.columns.bytes(section, u64::from(rows.start) * width..u64::from(rows.end) * width)
    }

    #[cold]
    fn no_row(&self, row: u32) -> Error {
        Error::corrupt(format!("row {row} of a segment of {} rows", self.rows()))
            .in_file(self.path())
    }

    /// Sections that contradict each other though their checksums hold.
    #[cold]
    pub(super) fn disagree(&self, what: &str, section: Section) -> Error {
        let at = self.columns.place(section).map_or(0, |place| place.offset);
        self.columns.corrupt(format!("segment {what} contradicts other sections"), at)
    }
}

/// Names no user and no text.
impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("id", &self.id)
            .field("rows", &self.rows())
            .field("ids", &self.ids())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// The first number of `range` for which `before` is false; it must be true for all below and false above.
fn partition_point(range: Range<u32>, mut before: impl FnMut(u32) -> Result<bool>) -> Result<u32> {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
