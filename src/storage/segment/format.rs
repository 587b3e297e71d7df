//! The frame of a segment file: header, section table, footer (format-spec.md 3.1 to 3.3).
//!
//! Invariants: sections follow one another in the file, each at the first multiple of 64 behind the one before, so
//! that none overlaps and no byte belongs to two; the footer's CRC covers the section table, the checksums of all
//! sections and the header's CRC. Decoding trusts no length and allocates only what the bytes at hand can fill.

use crate::error::{Error, Result};

use super::input::Input;

/// First bytes of a segment, and its last. The first has its high bit set and the line ends are of both kinds, so
/// that a transfer as text is noticed (as in PNG).
pub const MAGIC: [u8; 8] = *b"\x89LOM\r\n\x1a\n";
/// The layout that this code writes. Another major version is refused.
pub const MAJOR: u16 = 1;
/// Additions that an older reader of the same major version may ignore.
pub const MINOR: u16 = 0;
/// Incompatible features known to this code: none yet.
pub const INCOMPAT_KNOWN: u32 = 0;
/// Features that forbid only a rewrite to those who do not know them: none yet.
pub const RO_COMPAT_KNOWN: u32 = 0;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
const HEADER_CRC: usize = 60;
/// Every section starts at a multiple of this: a cache line, and wide enough for any vector register.
pub const ALIGNMENT: u64 = 64;
/// Bytes of a section that share one CRC.
pub const CHECK_BYTES: u64 = 64 << 10;
/// Bytes of one entry of the section table.
pub const ENTRY_BYTES: usize = 24;
/// Bytes of the fixed end of the footer, which is the end of the file.
pub const TRAILER_BYTES: usize = 32;
const TRAILER_CRC: usize = 20;
const TRAILER_MAGIC: usize = 24;
/// Bytes of the footer, at most: the checksums of 256 GiB of sections. A stated guess, far above any segment.
pub const FOOTER_BYTES_MAX: usize = 16 << 20;
/// Sections of one segment, at most.
pub const SECTIONS_MAX: usize = 1024;

const _: () = assert!(HEADER_CRC + 4 == HEADER_BYTES);
const _: () = assert!(TRAILER_MAGIC + MAGIC.len() == TRAILER_BYTES);

/// Section flag: the section's bytes carry checksums of their own (text blocks, by the block table), and none in the
/// footer.
pub const OWN_CHECKSUMS: u16 = 1;

/// Bytes of one cell in the cell directory.
pub const CELL_BYTES: usize = 64;
/// Bytes of one entry of the directory of clusters.
pub const CLUSTER_BYTES: usize = 48;
/// Bytes of one tombstone.
pub const TOMBSTONE_BYTES: usize = 72;
/// Bytes of one entry of the block table.
pub const BLOCK_ENTRY_BYTES: usize = 24;
/// Bytes of one body's place.
pub const PLACE_BYTES: usize = 12;
/// Bytes of one passage's length.
pub const PASSAGE_LENGTH_BYTES: usize = 6;
/// Bytes of one user's entry in the directory of lexicons.
pub const LEXICON_BYTES: usize = 32;
/// Flag of a row: it has a vector.
pub const ROW_HAS_VECTOR: u8 = 1;
/// Flag of a row: its text holds an expression of time.
pub const ROW_HAS_TIME: u8 = 2;
/// Flag of a row: it expires, see the column of expiries. Most rows do not, and then that column is not looked at.
pub const ROW_EXPIRES: u8 = 4;

/// The first multiple of [`ALIGNMENT`] at or behind `offset`.
pub fn align(offset: u64) -> Option<u64> {
    offset.checked_next_multiple_of(ALIGNMENT)
}

/// CRCs of a section of `len` bytes.
pub fn checks(len: u64, flags: u16) -> u64 {
    if flags & OWN_CHECKSUMS == 0 { len.div_ceil(CHECK_BYTES) } else { 0 }
}

/// The header's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub segment: u64,
    pub database: [u8; 16],
    /// Flags in `ro_compat` that this code does not know: the segment may be read but not rewritten.
    pub ro_compat: u32,
    /// The CRC that closes the header.
    pub crc: u32,
}

impl Header {
    /// The bytes of a header of this version.
    pub fn encode(segment: u64, database: [u8; 16]) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&MAJOR.to_le_bytes());
        bytes[10..12].copy_from_slice(&MINOR.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        // 16..32: the flags of three classes and a reserved field, all zero in this version.
        bytes[32..40].copy_from_slice(&segment.to_le_bytes());
        bytes[40..56].copy_from_slice(&database);
        let crc = crc32fast::hash(&bytes[..HEADER_CRC]);
        bytes[HEADER_CRC..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// The CRC is checked before the version, and holds in every version, so that a flipped bit is never taken for a
    /// newer format.
    ///
    /// # Errors
    /// `Corrupt` when it is no header; `Version` for an unknown major version or incompatible feature.
    pub fn decode(bytes: &[u8]) -> Result<Header> {
        let mut input = Input::new(bytes, 0, "header");
        if input.take(MAGIC.len())? != MAGIC {
            return Err(Error::corrupt("segment magic").at_byte(0));
        }
        let (major, _minor, length) = (input.u16()?, input.u16()?, input.u32()?);
        let (incompat, ro_compat, _compat) = (input.u32()?, input.u32()?, input.u32()?);
        input.take(4)?;
        let segment = input.u64()?;
        let database = input.array()?;
        input.take(4)?;
        let crc = input.u32()?;
        let computed = crc32fast::hash(&bytes[..HEADER_CRC]);
        if crc != computed {
            return Err(checksum("segment header", crc, computed).at_byte(HEADER_CRC as u64));
        }
        if major != MAJOR {
            return Err(Error::version(format!(
                "segment format {major}, this program knows format {MAJOR}"
            ))
            .at_byte(8));
        }
        if incompat & !INCOMPAT_KNOWN != 0 {
            return Err(Error::version(format!(
                "segment needs unknown features {:#010x}",
                incompat & !INCOMPAT_KNOWN
            ))
            .at_byte(16));
        }
        if length as usize != HEADER_BYTES {
            return Err(Error::corrupt("segment header length").at_byte(12));
        }
        Ok(Header { segment, database, ro_compat: ro_compat & !RO_COMPAT_KNOWN, crc })
    }
}

/// One row of the section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of a [`Section`]; others are skipped by readers.
    pub kind: u16,
    pub flags: u16,
    /// Bytes of one item; 0 where items differ.
    pub item_bytes: u32,
    pub offset: u64,
    pub len: u64,
}

/// The footer's contents, all but the checksums, which stay where they are.
#[derive(Debug)]
pub struct Footer {
    /// In the order of the file.
    pub entries: Vec<Entry>,
    /// Where the footer starts.
    pub offset: u64,
    /// Where the checksums start, and how many there are.
    pub checks: (usize, usize),
    /// The CRC that closes the footer.
    pub crc: u32,
}

impl Footer {
    /// The bytes of a footer, and its CRC.
    pub fn encode(entries: &[Entry], checks: &[u32], header_crc: u32) -> (Vec<u8>, u32) {
        let length = entries.len() * ENTRY_BYTES + checks.len() * 4 + TRAILER_BYTES;
        let mut bytes = Vec::with_capacity(length);
        for entry in entries {
            bytes.extend(entry.kind.to_le_bytes());
            bytes.extend(entry.flags.to_le_bytes());
            bytes.extend(entry.item_bytes.to_le_bytes());
            bytes.extend(entry.offset.to_le_bytes());
            bytes.extend(entry.len.to_le_bytes());
        }
        bytes.extend(checks.iter().flat_map(|crc| crc.to_le_bytes()));
        bytes.extend((entries.len() as u32).to_le_bytes());
        bytes.extend((checks.len() as u32).to_le_bytes());
        bytes.extend(header_crc.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend((length as u32).to_le_bytes());
        let crc = crc32fast::hash(&bytes);
        bytes.extend(crc.to_le_bytes());
        bytes.extend(MAGIC);
        assert!(bytes.len() == length, "the footer has the length that it states");
        (bytes, crc)
    }

    /// Finds and reads the footer at the end of `file`, and checks that its sections tile the file.
    pub fn decode(file: &[u8], header_crc: u32) -> Result<Footer> {
        let trailer_at = file
            .len()
            .checked_sub(TRAILER_BYTES)
            .filter(|at| *at >= HEADER_BYTES)
            .ok_or_else(|| Error::corrupt("segment is too short").at_byte(file.len() as u64))?;
        let mut trailer = Input::new(&file[trailer_at..], trailer_at as u64, "trailer");
        let (sections, checks) = (trailer.u32()? as usize, trailer.u32()? as usize);
        let header_echo = trailer.u32()?;
        trailer.take(4)?;
        let (length, crc) = (trailer.u32()? as usize, trailer.u32()?);
        if trailer.take(MAGIC.len())? != MAGIC {
            return Err(trailer.corrupt("magic"));
        }
        if !(TRAILER_BYTES..=FOOTER_BYTES_MAX.min(file.len() - HEADER_BYTES)).contains(&length) {
            return Err(trailer.corrupt("holds an impossible footer length"));
        }
        let start = file.len() - length;
        let computed = crc32fast::hash(&file[start..trailer_at + TRAILER_CRC]);
        if crc != computed {
            return Err(checksum("segment footer", crc, computed).at_byte(start as u64));
        }
        if header_echo != header_crc {
            return Err(trailer.corrupt("belongs to another header"));
        }
        let needed = sections
            .checked_mul(ENTRY_BYTES)
            .and_then(|table| table.checked_add(checks.checked_mul(4)?))
            .and_then(|both| both.checked_add(TRAILER_BYTES));
        if needed != Some(length) || sections > SECTIONS_MAX {
            return Err(trailer.corrupt("holds counts that do not fit the footer"));
        }
        let checks_at = start + sections * ENTRY_BYTES;
        let mut table = Input::new(&file[start..checks_at], start as u64, "section table");
        let entries = decode_entries(&mut table, sections, start as u64, checks as u64)?;
        Ok(Footer { entries, offset: start as u64, checks: (checks_at, checks), crc })
    }
}

fn decode_entries(
    table: &mut Input<'_>,
    sections: usize,
    footer: u64,
    checks_stored: u64,
) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::with_capacity(sections);
    let (mut end, mut checks_used) = (HEADER_BYTES as u64, 0u64);
    for _ in 0..sections {
        let entry = Entry {
            kind: table.u16()?,
            flags: table.u16()?,
            item_bytes: table.u32()?,
            offset: table.u64()?,
            len: table.u64()?,
        };
        if align(end) != Some(entry.offset) {
            return Err(table.corrupt("holds an offset that does not follow the section before"));
        }
        end = match entry.offset.checked_add(entry.len) {
            Some(end) if end <= footer => end,
            _ => return Err(table.corrupt("holds a section beyond the footer")),
        };
        if entries.iter().any(|other| other.kind == entry.kind) {
            return Err(table.corrupt("holds a section twice"));
        }
        checks_used += checks(entry.len, entry.flags);
        entries.push(entry);
    }
    if align(end) != Some(footer) {
        return Err(table.corrupt("leaves bytes that belong to no section"));
    }
    if checks_used != checks_stored {
        return Err(table.corrupt("does not use the footer's checksums"));
    }
    Ok(entries)
}

/// The error of a checksum that does not hold.
pub fn checksum(what: &str, stored: u32, computed: u32) -> Error {
    Error::corrupt(format!("{what} checksum: stored {stored:#010x}, computed {computed:#010x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn refit(bytes: &mut [u8; HEADER_BYTES]) {
        let crc = crc32fast::hash(&bytes[..HEADER_CRC]);
        bytes[HEADER_CRC..].copy_from_slice(&crc.to_le_bytes());
    }

    #[test]
    fn a_header_comes_back_and_a_flipped_bit_is_corrupt() {
        let bytes = Header::encode(42, [7; 16]);
        let header = Header::decode(&bytes).unwrap();
        assert_eq!((header.segment, header.database, header.ro_compat), (42, [7; 16], 0));
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&flipped).unwrap_err().kind(), ErrorKind::Corrupt, "{bit}");
        }
    }

    #[test]
    fn unknown_versions_and_features_are_refused_by_name() {
        let mut bytes = Header::encode(42, [7; 16]);
        bytes[8] = 2;
        refit(&mut bytes);
        let error = Header::decode(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(error.to_string().contains("format 2"), "{error}");

        let mut bytes = Header::encode(42, [7; 16]);
        bytes[18] = 4;
        refit(&mut bytes);
        let error = Header::decode(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(error.to_string().contains("0x00040000"), "{error}");
    }

    #[test]
    fn unknown_ro_compat_forbids_only_rewriting_and_unknown_compat_nothing() {
        let mut bytes = Header::encode(42, [7; 16]);
        (bytes[20], bytes[24], bytes[10]) = (1, 1, 9);
        refit(&mut bytes);
        assert_eq!(Header::decode(&bytes).unwrap().ro_compat, 1);
    }
}
