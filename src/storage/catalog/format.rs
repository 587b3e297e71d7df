//! The bytes of catalog values (format-spec.md 4).
//!
//! Invariants: little-endian, hand-coded where a value has a fixed shape; every decoder checks length, order and
//! range before it trusts, and allocates no more than the value's own size. Values that say what lies in segments or
//! logs end in a CRC-32 over their key and the bytes before it, because an ordinary open of redb checks no page.

use crate::error::{Error, Result};
use crate::ids::{LogId, NUMBER_END, SegmentId, SessionNumber, UserNumber};
use crate::model::VectorSpace;
use crate::options::VectorElement;
use crate::storage::segment::Counts;
use crate::storage::wire;

use super::{ManifestRow, Meta, SessionEntry, SessionName};

/// Rows of a segment that one row of `dead` covers. 4,096 gaps take at most 8 KiB, two pages of redb, so a delete
/// rewrites two pages, not the segment's whole list.
pub(super) const DEAD_CHUNK_ROWS: u32 = 4096;

/// Entries of one row of `session_order`: 6 KiB, found by binary search without decoding.
pub(super) const SESSION_CHUNK_ENTRIES: usize = 256;

const ENTRY_BYTES: usize = 24;
const STATE_BYTES: usize = 16;
const MANIFEST_BYTES: usize = 48;

/// The facts of [`Meta`] as they are encoded; generation and applied log have a row of their own.
#[derive(bincode::Encode, bincode::Decode)]
struct MetaFacts {
    database: [u8; 16],
    space_name: String,
    dimension: u32,
    element: u8,
    analyser: String,
    next_segment: u64,
    next_user: u64,
    next_session: u64,
    codec_mean: Option<Vec<f32>>,
    codec_seed: u64,
}

fn seal(key: &[u8], mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = checksum(key, &bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn unseal<'a>(what: &'static str, key: &[u8], bytes: &'a [u8]) -> Result<&'a [u8]> {
    let (body, stored) = bytes.split_last_chunk::<4>().ok_or_else(|| Error::corrupt(what))?;
    let (stored, computed) = (u32::from_le_bytes(*stored), checksum(key, body));
    if stored != computed {
        return Err(Error::corrupt(format!(
            "{what} checksum: stored {stored:#010x}, computed {computed:#010x}"
        )));
    }
    Ok(body)
}

fn checksum(key: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(body);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes were sliced"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes were sliced"))
}

pub(super) fn encode_state(generation: u64, log_applied: LogId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(STATE_BYTES + 4);
    bytes.extend_from_slice(&generation.to_le_bytes());
    bytes.extend_from_slice(&log_applied.get().to_le_bytes());
    seal(&[super::tables::META_STATE], bytes)
}

pub(super) fn decode_state(bytes: &[u8]) -> Result<(u64, LogId)> {
    let body = unseal("publish state", &[super::tables::META_STATE], bytes)?;
    if body.len() != STATE_BYTES {
        return Err(Error::corrupt("publish state length"));
    }
    let (generation, log_applied) = (u64_at(body, 0), u64_at(body, 8));
    if generation.max(log_applied) >= NUMBER_END {
        return Err(Error::corrupt("number in the publish state"));
    }
    Ok((generation, LogId::new(log_applied)))
}

pub(super) fn encode_facts(meta: &Meta) -> Vec<u8> {
    let facts = MetaFacts {
        database: meta.database,
        space_name: meta.space.name.clone(),
        dimension: meta.space.dimension,
        element: match meta.space.element {
            VectorElement::F32 => 0,
            VectorElement::F16 => 1,
        },
        analyser: meta.analyser.clone(),
        next_segment: meta.next_segment,
        next_user: meta.next_user,
        next_session: meta.next_session,
        codec_mean: meta.codec_mean.clone(),
        codec_seed: meta.codec_seed,
    };
    seal(&[super::tables::META_FACTS], wire::encode(&facts))
}

pub(super) fn decode_facts(state: (u64, LogId), bytes: &[u8]) -> Result<Meta> {
    let body = unseal("meta", &[super::tables::META_FACTS], bytes)?;
    let facts: MetaFacts = wire::decode(body)?;
    let element = match facts.element {
        0 => VectorElement::F32,
        1 => VectorElement::F16,
        other => return Err(Error::version(format!("unknown vector element {other}"))),
    };
    let space = VectorSpace { name: facts.space_name, dimension: facts.dimension, element };
    if space.check().is_err()
        || facts.codec_mean.as_ref().is_some_and(|mean| mean.len() != space.dimension as usize)
    {
        return Err(Error::corrupt("meta holds an impossible dimension"));
    }
    if [facts.next_segment, facts.next_user, facts.next_session].iter().any(|n| *n >= NUMBER_END) {
        return Err(Error::corrupt("number in meta"));
    }
    Ok(Meta {
        database: facts.database,
        space,
        analyser: facts.analyser,
        generation: state.0,
        log_applied: state.1,
        next_segment: facts.next_segment,
        next_user: facts.next_user,
        next_session: facts.next_session,
        codec_mean: facts.codec_mean,
        codec_seed: facts.codec_seed,
    })
}

pub(super) fn encode_manifest(row: &ManifestRow) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MANIFEST_BYTES + 4);
    bytes.extend_from_slice(&row.bytes.to_le_bytes());
    for value in [row.footer_crc, row.rows, row.dead_rows, row.deleted_rows, row.dead_version, 0] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes.extend_from_slice(&row.ids.0.to_le_bytes());
    bytes.extend_from_slice(&row.ids.1.to_le_bytes());
    seal(&row.segment.get().to_le_bytes(), bytes)
}

pub(super) fn decode_manifest(segment: u64, bytes: &[u8]) -> Result<ManifestRow> {
    let body = unseal("manifest row", &segment.to_le_bytes(), bytes).map_err(|e| e.of(segment))?;
    if body.len() != MANIFEST_BYTES {
        return Err(Error::corrupt("manifest row length").of(segment));
    }
    let row = ManifestRow {
        segment: SegmentId::new(segment),
        bytes: u64_at(body, 0),
        footer_crc: u32_at(body, 8),
        rows: u32_at(body, 12),
        dead_rows: u32_at(body, 16),
        deleted_rows: u32_at(body, 20),
        dead_version: u32_at(body, 24),
        ids: (u64_at(body, 32), u64_at(body, 40)),
    };
    if row.dead_rows > row.rows
        || row.deleted_rows > row.dead_rows
        || row.ids.0 > row.ids.1
        || row.dead_version == u32::MAX
        || row.ids.1.max(row.bytes).max(segment) >= NUMBER_END
    {
        return Err(Error::corrupt("manifest row contradicts itself").of(segment));
    }
    Ok(row)
}

fn dead_key(segment: u64, chunk: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&segment.to_le_bytes());
    key[8..].copy_from_slice(&chunk.to_le_bytes());
    key
}

/// `rows`: ascending, at least one, all of one chunk. Each is stored as its distance from the row after the last one.
pub(super) fn encode_dead(segment: u64, chunk: u32, rows: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() + 8);
    let mut expected = chunk * DEAD_CHUNK_ROWS;
    for &row in rows {
        assert!(row >= expected && row / DEAD_CHUNK_ROWS == chunk, "dead rows ascend in a chunk");
        let gap = row - expected;
        if gap < 0x80 {
            bytes.push(gap as u8);
        } else {
            bytes.extend_from_slice(&[(gap as u8) | 0x80, (gap >> 7) as u8]);
        }
        expected = row + 1;
    }
    seal(&dead_key(segment, chunk), bytes)
}

/// Appends the rows of one chunk to `out`, which holds rows of earlier chunks of the segment at most.
pub(super) fn decode_dead(
    segment: u64,
    chunk: u32,
    bytes: &[u8],
    out: &mut Vec<u32>,
) -> Result<()> {
    let bad = || Error::corrupt("dead rows").of(segment);
    let key = dead_key(segment, chunk);
    let mut rest = unseal("dead rows", &key, bytes).map_err(|error| error.of(segment))?;
    let first = u64::from(chunk) * u64::from(DEAD_CHUNK_ROWS);
    if rest.is_empty() || out.last().is_some_and(|last| u64::from(*last) >= first) {
        return Err(bad());
    }
    let end = first + u64::from(DEAD_CHUNK_ROWS);
    let mut expected = first;
    while let Some((&low, after)) = rest.split_first() {
        let gap = if low < 0x80 {
            rest = after;
            u64::from(low)
        } else {
            let (&high, after) = after.split_first().ok_or_else(bad)?;
            rest = after;
            u64::from(low & 0x7f) | u64::from(high) << 7
        };
        let row = expected + gap;
        if row >= end {
            return Err(bad());
        }
        out.push(u32::try_from(row).map_err(|_| bad())?);
        expected = row + 1;
    }
    Ok(())
}

pub(super) fn encode_session(session: &SessionName) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + session.name.len());
    bytes.extend_from_slice(&session.user.get().to_le_bytes());
    bytes.extend_from_slice(session.name.as_bytes());
    bytes
}

pub(super) fn decode_session(session: u64, bytes: &[u8]) -> Result<SessionName> {
    let (user, name) =
        bytes.split_first_chunk::<8>().ok_or_else(|| Error::corrupt("session row").of(session))?;
    Ok(SessionName {
        user: UserNumber::new(u64::from_le_bytes(*user)),
        session: SessionNumber::new(session),
        name: decode_name(name).map_err(|error| error.of(session))?,
    })
}

pub(super) fn decode_name(bytes: &[u8]) -> Result<String> {
    // The cause is left out: it says where the name stops being text, which is no help.
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Error::corrupt("name is not UTF-8"))
}

/// A chunk of a session's order, read in place.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a>(&'a [u8]);

impl<'a> Chunk<'a> {
    /// Checks that `bytes` are whole entries and begin with `first`, the row's key.
    pub(super) fn new(session: u64, first: SessionEntry, bytes: &'a [u8]) -> Result<Chunk<'a>> {
        let chunk = Chunk(bytes);
        if bytes.is_empty()
            || !bytes.len().is_multiple_of(ENTRY_BYTES)
            || chunk.len() > SESSION_CHUNK_ENTRIES
            || chunk.entry(0) != first
        {
            return Err(Error::corrupt("session order").of(session));
        }
        Ok(chunk)
    }

    pub(super) fn len(self) -> usize {
        self.0.len() / ENTRY_BYTES
    }

    pub(super) fn entry(self, index: usize) -> SessionEntry {
        let bytes = &self.0[index * ENTRY_BYTES..(index + 1) * ENTRY_BYTES];
        SessionEntry {
            time: u64_at(bytes, 0).cast_signed(),
            ordinal: u64_at(bytes, 8),
            id: u64_at(bytes, 16),
        }
    }

    /// Number of entries that `is_before` holds for; they come first.
    pub(super) fn partition(self, is_before: impl Fn(SessionEntry) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(self.entry(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Appends all entries, which must ascend.
    pub(super) fn decode(self, session: u64, out: &mut Vec<SessionEntry>) -> Result<()> {
        for index in 0..self.len() {
            let entry = self.entry(index);
            if out.last().is_some_and(|last| *last >= entry) {
                return Err(Error::corrupt("session order does not ascend").of(session));
            }
            out.push(entry);
        }
        Ok(())
    }
}

pub(super) fn encode_chunk(entries: &[SessionEntry]) -> Vec<u8> {
    assert!((1..=SESSION_CHUNK_ENTRIES).contains(&entries.len()), "a chunk holds 1 to 256 entries");
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        bytes.extend_from_slice(&entry.time.to_le_bytes());
        bytes.extend_from_slice(&entry.ordinal.to_le_bytes());
        bytes.extend_from_slice(&entry.id.to_le_bytes());
    }
    bytes
}

pub(super) fn encode_counts(counts: &Counts) -> Vec<u8> {
    wire::encode(counts)
}

pub(super) fn decode_counts(bytes: &[u8]) -> Result<Counts> {
    wire::decode(bytes)
}

pub(super) fn decode_tombstone(id: u64, (version, superseded): (u32, u8)) -> Result<(u32, bool)> {
    match superseded {
        0 => Ok((version, false)),
        1 => Ok((version, true)),
        _ => Err(Error::corrupt("tombstone").of(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> ManifestRow {
        ManifestRow {
            segment: SegmentId::new(42),
            bytes: 1 << 40,
            footer_crc: 0xdead_beef,
            rows: 100_000,
            dead_rows: 7,
            deleted_rows: 5,
            dead_version: 3,
            ids: (5, NUMBER_END - 1),
        }
    }

    #[test]
    fn a_number_that_cannot_be_counted_on_from_is_refused() {
        let rows = [
            ManifestRow { ids: (5, NUMBER_END), ..row() },
            ManifestRow { bytes: u64::MAX, ..row() },
            ManifestRow { dead_version: u32::MAX, ..row() },
        ];
        for row in rows {
            assert!(decode_manifest(42, &encode_manifest(&row)).is_err(), "{row:?}");
        }
        assert!(decode_manifest(NUMBER_END, &encode_manifest(&row())).is_err());
    }

    #[test]
    fn every_flipped_bit_of_a_sealed_value_is_noticed() {
        let manifest = encode_manifest(&row());
        assert_eq!(decode_manifest(42, &manifest).unwrap(), row());
        assert!(decode_manifest(43, &manifest).is_err(), "the key is covered");
        let state = encode_state(9, LogId::new(12));
        assert_eq!(decode_state(&state).unwrap(), (9, LogId::new(12)));
        let rows = [8192, 8193, 8400, 12287];
        let dead = encode_dead(42, 2, &rows);
        let mut out = Vec::new();
        decode_dead(42, 2, &dead, &mut out).unwrap();
        assert_eq!(out, rows);
        for (sealed, decode) in [
            (manifest, (|b| decode_manifest(42, b).is_err()) as fn(&[u8]) -> bool),
            (state, |b| decode_state(b).is_err()),
            (dead, |b| decode_dead(42, 2, b, &mut Vec::new()).is_err()),
        ] {
            for bit in 0..sealed.len() * 8 {
                let mut bad = sealed.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(&bad), "bit {bit}");
            }
            for len in 0..sealed.len() {
                assert!(decode(&sealed[..len]), "length {len}");
            }
        }
    }

    #[test]
    fn a_dead_chunk_holds_every_row_or_one() {
        for rows in [(4096..8192).collect::<Vec<u32>>(), vec![4096], vec![8191]] {
            let mut out = Vec::new();
            decode_dead(1, 1, &encode_dead(1, 1, &rows), &mut out).unwrap();
            assert_eq!(out, rows);
        }
        let last = u32::MAX / DEAD_CHUNK_ROWS;
        let mut out = Vec::new();
        decode_dead(1, last, &encode_dead(1, last, &[u32::MAX - 1]), &mut out).unwrap();
        assert_eq!(out, [u32::MAX - 1]);
    }

    #[test]
    fn dead_rows_beyond_their_chunk_are_refused() {
        let sealed = seal(&dead_key(1, 0), vec![0xff, 0x1f, 0x00]);
        assert!(decode_dead(1, 0, &sealed, &mut Vec::new()).is_err());
        let cut = seal(&dead_key(1, 0), vec![0x80]);
        assert!(decode_dead(1, 0, &cut, &mut Vec::new()).is_err());
    }

    #[test]
    fn chunks_of_another_key_or_length_or_order_are_refused() {
        let entry = |time| SessionEntry { time, ordinal: 0, id: 1 };
        let bytes = encode_chunk(&[entry(-3), entry(4)]);
        assert!(Chunk::new(1, entry(-3), &bytes).is_ok());
        assert!(Chunk::new(1, entry(-2), &bytes).is_err());
        assert!(Chunk::new(1, entry(-3), &bytes[..40]).is_err());
        assert!(Chunk::new(1, entry(-3), &[]).is_err());
        let falling = encode_chunk(&[entry(4), entry(-3)]);
        let chunk = Chunk::new(1, entry(4), &falling).unwrap();
        assert!(chunk.decode(1, &mut Vec::new()).is_err());
    }
}
