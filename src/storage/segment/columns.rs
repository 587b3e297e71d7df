//! Checked access to the sections of an open segment.
//!
//! Invariant: no byte of a section leaves here before the CRC of its 64 KiB was checked once in the life of this
//! value. A published segment never changes, so once is enough.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::format::{self, CHECK_BYTES, Entry, Footer, OWN_CHECKSUMS};
use super::section::Section;
use crate::error::{Error, Result};
use crate::storage::vfs::Map;

/// Section numbers below this are looked up by number; no known one is above.
const KINDS: usize = 64;

/// Where a section lies.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// From the file's start.
    pub offset: u64,
    pub len: u64,
    /// The place of the section's first CRC among all; `None` when its bytes carry their own.
    first_check: Option<usize>,
}

/// A map, and where the sections lie in it.
pub struct Columns {
    map: Map,
    path: PathBuf,
    entries: Vec<Entry>,
    places: [Option<Place>; KINDS],
    /// Where the CRCs lie in the map. The footer's own CRC was checked over them.
    checks_at: usize,
    footer_at: u64,
    /// One bit a CRC: it was found to hold.
    checked: Box<[AtomicU64]>,
}

impl Columns {
    /// Takes over what [`Footer::decode`] found in `map`.
    pub fn new(map: Map, path: PathBuf, footer: Footer) -> Columns {
        let mut places = [None; KINDS];
        let mut next_check = 0;
        for entry in &footer.entries {
            let own = entry.flags & OWN_CHECKSUMS != 0;
            let first_check = (!own).then_some(next_check);
            next_check += format::checks(entry.len, entry.flags) as usize;
            if let Some(place) = places.get_mut(usize::from(entry.kind)) {
                *place = Some(Place { offset: entry.offset, len: entry.len, first_check });
            }
        }
        let checked = (0..footer.checks.1.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Columns {
            map,
            path,
            entries: footer.entries,
            places,
            checks_at: footer.checks.0,
            footer_at: footer.offset,
            checked,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file.
    pub fn file(&self) -> &[u8] {
        &self.map
    }

    /// The section table, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Where the footer starts.
    pub fn footer_at(&self) -> u64 {
        self.footer_at
    }

    /// Where `section` lies, if the segment has it.
    pub fn place(&self, section: Section) -> Option<Place> {
        self.places[section as usize]
    }

    /// Where `section` lies.
    pub fn require(&self, section: Section) -> Result<Place> {
        self.place(section).ok_or_else(|| {
            self.corrupt(format!("segment has no section of {}", section.name()), self.footer_at)
        })
    }

    /// The whole of `section`.
    pub fn whole(&self, section: Section) -> Result<&[u8]> {
        let len = self.require(section)?.len;
        self.bytes(section, 0..len)
    }

    /// Decodes all of a small section; `decode` gets its bytes and where they lie.
    pub fn decode<T>(
        &self,
        section: Section,
        decode: impl FnOnce(&[u8], u64) -> Result<T>,
    ) -> Result<T> {
        let offset = self.require(section)?.offset;
        decode(self.whole(section)?, offset).map_err(|error| error.in_file(&self.path))
    }

    /// Bytes `range` of `section`, their checksums checked.
    #[inline]
    pub fn bytes(&self, section: Section, range: Range<u64>) -> Result<&[u8]> {
        let place = self.require(section)?;
        if range.start > range.end || range.end > place.len {
            return Err(self.outside(section, &place));
        }
        if let Some(first) = place.first_check
            && range.start < range.end
        {
            for block in range.start / CHECK_BYTES..=(range.end - 1) / CHECK_BYTES {
                self.check(section, &place, first, block)?;
            }
        }
        let (start, end) = (place.offset + range.start, place.offset + range.end);
        Ok(&self.map[start as usize..end as usize])
    }

    /// Items `rows` of a section of items of `W` bytes.
    #[inline]
    pub fn items<const W: usize>(&self, section: Section, rows: Range<u32>) -> Result<&[[u8; W]]> {
        let width = W as u64;
        let range = u64::from(rows.start) * width..u64::from(rows.end) * width;
        Ok(self.bytes(section, range)?.as_chunks::<W>().0)
    }

    /// Item `row` of a section of items of `W` bytes.
    #[inline]
    pub fn item<const W: usize>(&self, section: Section, row: u32) -> Result<[u8; W]> {
        let start = u64::from(row) * W as u64;
        let bytes = self.bytes(section, start..start + W as u64)?;
        Ok(bytes.try_into().expect("as many bytes as asked"))
    }

    #[inline]
    fn check(&self, section: Section, place: &Place, first: usize, block: u64) -> Result<()> {
        let index = first + block as usize;
        let (word, bit) = (&self.checked[index / 64], 1 << (index % 64));
        // Relaxed: the bit stands for bytes that never change, it orders nothing.
        if word.load(Ordering::Relaxed) & bit != 0 {
            return Ok(());
        }
        self.compare(section.name(), place.offset, place.len, index, block)?;
        word.fetch_or(bit, Ordering::Relaxed);
        Ok(())
    }

    /// Compares CRC `index` with 64 KiB number `block` of the section at `offset`.
    #[cold]
    fn compare(&self, name: &str, offset: u64, len: u64, index: usize, block: u64) -> Result<()> {
        let start = offset + block * CHECK_BYTES;
        let end = (start + CHECK_BYTES).min(offset + len);
        let at = self.checks_at + index * 4;
        let stored = self.map[at..at + 4].try_into().expect("four bytes");
        let stored = u32::from_le_bytes(stored);
        let computed = crc32fast::hash(&self.map[start as usize..end as usize]);
        if stored == computed {
            return Ok(());
        }
        let error = format::checksum(&format!("segment {name}"), stored, computed);
        Err(error.in_file(&self.path).at_byte(start))
    }

    /// Checks all of one section anew, known or not: calls `problem` with each block that fails and the error.
    pub fn check_entry(&self, number: usize, mut problem: impl FnMut(u64, Error)) {
        let before = &self.entries[..number];
        let first: u64 = before.iter().map(|entry| format::checks(entry.len, entry.flags)).sum();
        let entry = &self.entries[number];
        let known = Section::ALL.iter().find(|section| **section as u16 == entry.kind);
        let name = known.map_or("unknown section", |section| section.name());
        for block in 0..format::checks(entry.len, entry.flags) {
            let index = (first + block) as usize;
            if let Err(error) = self.compare(name, entry.offset, entry.len, index, block) {
                problem(block, error);
            }
        }
    }

    #[cold]
    fn outside(&self, section: Section, place: &Place) -> Error {
        self.corrupt(
            format!("reference beyond the segment's {} of {} bytes", section.name(), place.len),
            place.offset,
        )
    }

    /// An error about byte `at` of this file.
    #[cold]
    pub fn corrupt(&self, message: impl Into<std::borrow::Cow<'static, str>>, at: u64) -> Error {
        Error::corrupt(message).in_file(&self.path).at_byte(at)
    }
}
