//! A buffered sequential writer that aligns sections and takes their checksums.
//!
//! Invariant: every byte is written once, in order; a 64 KiB block is hashed before it leaves the buffer.

use super::format::{ALIGNMENT, CHECK_BYTES, Entry, Footer, OWN_CHECKSUMS};
use super::section::Section;
use crate::error::{Error, Result};
use crate::storage::vfs::VfsFile;

/// Bytes gathered before a write: a small segment is one write, a large one writes at disk speed.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes the sections of one segment, then its footer.
pub struct SectionWriter<'a> {
    file: &'a dyn VfsFile,
    buffer: Vec<u8>,
    /// Where the buffer's first byte goes in the file.
    flushed: u64,
    /// Where the current 64 KiB start in the buffer; behind it nothing is flushed.
    block_start: usize,
    open: bool,
    entries: Vec<Entry>,
    checks: Vec<u32>,
}

impl<'a> SectionWriter<'a> {
    pub fn new(file: &'a dyn VfsFile) -> SectionWriter<'a> {
        SectionWriter {
            file,
            buffer: Vec::new(),
            flushed: 0,
            block_start: 0,
            open: false,
            entries: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Where the next byte goes.
    pub fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    fn align(&mut self) {
        let position = self.position();
        let padding = position.next_multiple_of(ALIGNMENT) - position;
        self.buffer.resize(self.buffer.len() + padding as usize, 0);
    }

    pub fn begin(&mut self, section: Section, item_bytes: usize, flags: u16) -> Result<()> {
        assert!(!self.open, "sections do not nest");
        self.align();
        self.flush_if_full()?;
        self.block_start = self.buffer.len();
        self.open = true;
        self.entries.push(Entry {
            kind: section as u16,
            flags,
            item_bytes: item_bytes as u32,
            offset: self.position(),
            len: 0,
        });
        Ok(())
    }

    /// Appends bytes to the open section, or before the first one.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = CHECK_BYTES as usize - (self.buffer.len() - self.block_start);
            let (part, rest) = bytes.split_at(bytes.len().min(room));
            self.buffer.extend_from_slice(part);
            bytes = rest;
            if part.len() == room {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        let has_checks = self.entries.last().is_some_and(|entry| entry.flags & OWN_CHECKSUMS == 0);
        if self.open && has_checks {
            self.checks.push(crc32fast::hash(&self.buffer[self.block_start..]));
        }
        self.block_start = self.buffer.len();
        self.flush_if_full()
    }

    pub fn end(&mut self) -> Result<()> {
        if self.block_start < self.buffer.len() {
            self.end_block()?;
        }
        let position = self.position();
        let entry = self.entries.last_mut().expect("a section was begun");
        entry.len = position - entry.offset;
        self.open = false;
        Ok(())
    }

    /// A section whose bytes are at hand.
    pub fn section(&mut self, section: Section, bytes: &[u8]) -> Result<()> {
        self.begin(section, section.item_bytes(), 0)?;
        self.put(bytes)?;
        self.end()
    }

    /// A section of items of `W` bytes.
    pub fn column<const W: usize>(
        &mut self,
        section: Section,
        items: impl Iterator<Item = Result<[u8; W]>>,
    ) -> Result<()> {
        assert!(section.item_bytes() == W, "a column has the width of its section");
        self.begin(section, W, 0)?;
        for item in items {
            self.put(&item?)?;
        }
        self.end()
    }

    /// Writes the footer; bytes of the file and the footer's CRC.
    pub fn finish(mut self, header_crc: u32) -> Result<(u64, u32)> {
        self.align();
        let (footer, crc) = Footer::encode(&self.entries, &self.checks, header_crc);
        self.buffer.extend_from_slice(&footer);
        self.flush()?;
        Ok((self.flushed, crc))
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .write_all_at(self.flushed, &self.buffer)
            .map_err(|error| Error::io("write a segment", error).at_byte(self.flushed))?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        self.block_start = 0;
        Ok(())
    }
}
