//! Layout of a log file: header, frames, commit marks. format-spec.md, section 2.
//!
//! Every frame starts at a multiple of 8. The checksums of frames are seeded with the log's random salt, so that
//! stored text that happens to look like a frame never parses as one.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ids::{CommitSeq, LogId, NUMBER_END};

pub const MAGIC: [u8; 8] = *b"\x89LOG\r\n\x1a\n";
pub const VERSION_MAJOR: u16 = 1;
pub const HEADER_BYTES: usize = 128;
pub const FRAME_HEADER_BYTES: usize = 24;
/// Payload of a commit mark.
pub const MARK_BYTES: usize = 48;
/// A mark with its frame header: what a batch ends with.
pub const MARK_FRAME_BYTES: usize = FRAME_HEADER_BYTES + MARK_BYTES;
/// A frame's payload, at most: one episode of the largest text, metadata and names, with room.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

pub const KIND_MARK: u16 = 1;
pub const KIND_ROW: u16 = 2;
pub const KIND_END: u16 = 3;

const AT_MAGIC: Range<usize> = 0..8;
const AT_MAJOR: Range<usize> = 8..10;
const AT_HEADER_BYTES: Range<usize> = 12..16;
const AT_LOG: Range<usize> = 16..24;
const AT_PREVIOUS: Range<usize> = 24..32;
const AT_PREVIOUS_END: Range<usize> = 32..40;
const AT_FIRST_SEQ: Range<usize> = 40..48;
const AT_NEXT_ID: Range<usize> = 48..56;
const AT_DATABASE: Range<usize> = 56..72;
const AT_SALT: Range<usize> = 72..76;
const AT_CRC: Range<usize> = 124..128;
const _: () = assert!(AT_CRC.end == HEADER_BYTES);

/// The head of a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHeader {
    pub log: LogId,
    /// The log before this one; 0 for none.
    pub previous: LogId,
    /// Where the log before this one ends: what lies behind is excluded for everyone.
    pub previous_end: u64,
    /// The sequence number of the first batch here.
    pub first_seq: u64,
    /// The first id that no row has when this log begins.
    pub next_id: u64,
    pub database: [u8; 16],
    /// Seeds the checksums of this log.
    pub salt: u32,
}

impl LogHeader {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[AT_MAGIC].copy_from_slice(&MAGIC);
        bytes[AT_MAJOR].copy_from_slice(&VERSION_MAJOR.to_le_bytes());
        bytes[AT_HEADER_BYTES].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        bytes[AT_LOG].copy_from_slice(&self.log.get().to_le_bytes());
        bytes[AT_PREVIOUS].copy_from_slice(&self.previous.get().to_le_bytes());
        bytes[AT_PREVIOUS_END].copy_from_slice(&self.previous_end.to_le_bytes());
        bytes[AT_FIRST_SEQ].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[AT_NEXT_ID].copy_from_slice(&self.next_id.to_le_bytes());
        bytes[AT_DATABASE].copy_from_slice(&self.database);
        bytes[AT_SALT].copy_from_slice(&self.salt.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..AT_CRC.start]);
        bytes[AT_CRC].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// # Errors
    /// `Corrupt` when magic, checksum, length or database do not hold; `Version` for an unknown major version.
    pub fn decode(bytes: &[u8], log: LogId, database: &[u8; 16]) -> Result<LogHeader> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Error::corrupt(format!("log header of {} bytes", bytes.len())));
        };
        if bytes[AT_MAGIC] != MAGIC {
            return Err(Error::corrupt("log magic"));
        }
        let stored = u32_at(bytes, AT_CRC);
        let computed = crc32fast::hash(&bytes[..AT_CRC.start]);
        if stored != computed {
            return Err(Error::corrupt(format!(
                "log header checksum: stored {stored:#010x}, computed {computed:#010x}"
            )));
        }
        let major = u16::from_le_bytes([bytes[8], bytes[9]]);
        if major != VERSION_MAJOR {
            return Err(Error::version(format!(
                "log format {major}, this program reads {VERSION_MAJOR}"
            )));
        }
        let header = LogHeader {
            log: LogId::new(u64_at(bytes, AT_LOG)),
            previous: LogId::new(u64_at(bytes, AT_PREVIOUS)),
            previous_end: u64_at(bytes, AT_PREVIOUS_END),
            first_seq: u64_at(bytes, AT_FIRST_SEQ),
            next_id: u64_at(bytes, AT_NEXT_ID),
            database: bytes[AT_DATABASE].try_into().expect("16 bytes"),
            salt: u32_at(bytes, AT_SALT),
        };
        if u32_at(bytes, AT_HEADER_BYTES) as usize != HEADER_BYTES {
            return Err(Error::corrupt("log header length"));
        }
        if header.log != log || header.previous >= header.log {
            return Err(Error::corrupt("log number in the header"));
        }
        if header.database != *database {
            return Err(Error::corrupt("log of another database"));
        }
        let numbers = [header.log.get(), header.previous_end, header.first_seq, header.next_id];
        if numbers.iter().any(|number| *number >= NUMBER_END) {
            return Err(Error::corrupt("number in a log header"));
        }
        Ok(header)
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    pub payload_bytes: u32,
    pub crc: u32,
    pub seq: u64,
    pub kind: u16,
}

impl FrameHeader {
    /// Bytes 8 to 24 of the header: what the checksum covers of it, beside the length.
    fn tail(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.seq.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.kind.to_le_bytes());
        bytes
    }

    pub fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.crc.to_le_bytes());
        bytes[8..].copy_from_slice(&self.tail());
        bytes
    }

    pub fn decode(bytes: &[u8; FRAME_HEADER_BYTES]) -> FrameHeader {
        FrameHeader {
            payload_bytes: u32_at(bytes, 0..4),
            crc: u32_at(bytes, 4..8),
            seq: u64_at(bytes, 8..16),
            kind: u16::from_le_bytes([bytes[16], bytes[17]]),
        }
    }

    /// The checksum of a frame with this head and `payload`, in a log with `salt`.
    pub fn checksum(&self, payload: &[u8], salt: u32) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(salt);
        hasher.update(&self.payload_bytes.to_le_bytes());
        hasher.update(&self.tail());
        hasher.update(payload);
        hasher.finalize()
    }

    /// Bytes from this frame's start to the next one's.
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.payload_bytes as usize)
    }
}

/// Bytes that a frame with this payload takes, padding included.
pub fn frame_bytes(payload_bytes: usize) -> u64 {
    ((FRAME_HEADER_BYTES + payload_bytes) as u64).next_multiple_of(8)
}

/// What ends a batch and makes it count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where the batch's first frame starts.
    pub start: u64,
    /// Bytes of the batch before the mark.
    pub bytes: u64,
    /// Checksum of those bytes, seeded with the salt.
    pub crc: u32,
    /// Frames before the mark.
    pub frames: u32,
    /// The last batch known durable when this one was written.
    pub durable_seq: u64,
    /// Where that batch ends, if it is in this log; otherwise the header's length.
    pub durable_end: u64,
    /// The first id that no row has after this batch.
    pub next_id: u64,
}

impl Mark {
    pub fn encode(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.crc.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.frames.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.durable_seq.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.durable_end.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.next_id.to_le_bytes());
        bytes
    }

    /// `None` when a number in it is one that no writer gives.
    pub fn decode(bytes: &[u8; MARK_BYTES]) -> Option<Mark> {
        let mark = Mark {
            start: u64_at(bytes, 0..8),
            bytes: u64_at(bytes, 8..16),
            crc: u32_at(bytes, 16..20),
            frames: u32_at(bytes, 20..24),
            durable_seq: u64_at(bytes, 24..32),
            durable_end: u64_at(bytes, 32..40),
            next_id: u64_at(bytes, 40..48),
        };
        let numbers = [mark.durable_seq, mark.durable_end, mark.next_id];
        numbers.iter().all(|number| *number < NUMBER_END).then_some(mark)
    }
}

/// The checksum of a batch's bytes.
pub fn batch_crc(bytes: &[u8], salt: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    hasher.update(bytes);
    hasher.finalize()
}

/// A position between two commits: a log, and how far it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub log: LogId,
    pub end: u64,
    pub seq: CommitSeq,
}

fn u32_at(bytes: &[u8], at: Range<usize>) -> u32 {
    u32::from_le_bytes(bytes[at].try_into().expect("a range of four"))
}

fn u64_at(bytes: &[u8], at: Range<usize>) -> u64 {
    u64::from_le_bytes(bytes[at].try_into().expect("a range of eight"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> LogHeader {
        LogHeader {
            log: LogId::new(12),
            previous: LogId::new(11),
            previous_end: 4096,
            first_seq: 77,
            next_id: 1001,
            database: [7; 16],
            salt: 0xdead_beef,
        }
    }

    #[test]
    fn a_header_survives_the_way_to_bytes_and_back() {
        let bytes = header().encode();
        assert_eq!(LogHeader::decode(&bytes, LogId::new(12), &[7; 16]).unwrap(), header());
    }

    #[test]
    fn any_flipped_bit_of_a_header_is_noticed() {
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = header().encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(LogHeader::decode(&bytes, LogId::new(12), &[7; 16]).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_number_from_which_counting_on_would_overflow_is_refused() {
        let fields: [fn(&mut LogHeader) -> &mut u64; 3] =
            [|h| &mut h.previous_end, |h| &mut h.first_seq, |h| &mut h.next_id];
        for field in fields {
            for (number, good) in [(NUMBER_END - 1, true), (NUMBER_END, false), (u64::MAX, false)] {
                let mut header = header();
                *field(&mut header) = number;
                let read = LogHeader::decode(&header.encode(), LogId::new(12), &[7; 16]);
                assert_eq!(read.is_ok(), good, "{number}");
            }
        }
        for word in 3..6 {
            let mut bytes = [0; MARK_BYTES];
            bytes[word * 8..][..8].copy_from_slice(&NUMBER_END.to_le_bytes());
            assert_eq!(Mark::decode(&bytes), None, "word {word}");
        }
    }

    #[test]
    fn a_log_of_another_database_or_number_is_refused() {
        let bytes = header().encode();
        assert!(LogHeader::decode(&bytes, LogId::new(13), &[7; 16]).is_err());
        assert!(LogHeader::decode(&bytes, LogId::new(12), &[8; 16]).is_err());
        assert!(LogHeader::decode(&bytes[..100], LogId::new(12), &[7; 16]).is_err());
    }
}
