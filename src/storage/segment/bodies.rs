//! Reads the bodies of rows out of text blocks.
//!
//! Invariants: a body reads the blocks that hold it and no others; memory grows by what was decompressed, never by
//! what a length claims.

use super::blocks::{self, BLOCK_BYTES, BODY_BYTES_MAX, BlockEntry, BodyPlace};
use super::cache::TextCache;
use super::format::BLOCK_ENTRY_BYTES;
use super::reader::Segment;
use super::section::Section;
use crate::error::{Error, Result};
use crate::model::Body;
use crate::storage::wire;

impl Segment {
    /// Appends the encoded body of one row to `out`. Reads the blocks that hold it and no others, and leaves the cache
    /// alone: this is how all bodies of a segment are read.
    ///
    /// # Errors
    /// `Corrupt`, naming the row's id; `out` may then hold a part of the body.
    pub fn body(&self, row: u32, out: &mut Vec<u8>) -> Result<()> {
        self.append_body(row, None, out).map_err(|error| self.of_row(error, row))
    }

    fn append_body(&self, row: u32, cache: Option<&TextCache>, out: &mut Vec<u8>) -> Result<()> {
        let place = BodyPlace::decode(self.columns.item(Section::BodyPlaces, row)?);
        if place.len as usize > BODY_BYTES_MAX {
            return Err(self.disagree("body length", Section::BodyPlaces));
        }
        let (mut left, mut from) = (place.len as usize, place.offset as usize);
        let mut block = place.block;
        while left > 0 {
            let entry = self.block(block)?;
            let stored = self.stored(&entry)?;
            let key = (self.opened, block);
            let taken = blocks::with_block(key, &entry, stored, cache, |raw| {
                let part = raw.get(from..)?;
                let part = &part[..part.len().min(left)];
                out.extend_from_slice(part);
                Some(part.len())
            })?;
            // Only a body that fills its blocks may go on into the next one.
            let goes_on = |taken| taken == left || (from == 0 && taken == BLOCK_BYTES);
            let taken = taken
                .filter(|taken| goes_on(*taken))
                .ok_or_else(|| self.disagree("body place", Section::BodyPlaces))?;
            left -= taken;
            from = 0;
            // At the highest number the table ends long before, so the next look-up is refused, not repeated.
            block = block.saturating_add(1);
        }
        Ok(())
    }

    /// The body of one row; its blocks come from the cache, or go into it.
    ///
    /// # Errors
    /// As [`Segment::body`], and `Corrupt` when the bytes are no body.
    pub fn body_decoded(&self, row: u32) -> Result<Body> {
        let mut bytes = Vec::new();
        self.append_body(row, self.cache.as_deref(), &mut bytes)
            .map_err(|error| self.of_row(error, row))?;
        self.decode_body(row, &bytes)
    }

    /// The body of `row` from its encoded bytes.
    pub(super) fn decode_body(&self, row: u32, bytes: &[u8]) -> Result<Body> {
        wire::decode(bytes).map_err(|error| self.of_row(error, row))
    }

    /// Adds file and id to an error about one row.
    fn of_row(&self, error: Error, row: u32) -> Error {
        let error = error.in_file(self.path());
        match self.id_of(row) {
            Ok(id) => error.of(id.get()),
            Err(_) => error,
        }
    }

    /// The entry of one text block.
    pub(super) fn block(&self, block: u32) -> Result<BlockEntry> {
        let table = self.columns.require(Section::BlockTable)?;
        let bytes = self.columns.item::<BLOCK_ENTRY_BYTES>(Section::BlockTable, block)?;
        BlockEntry::decode(bytes, table.offset + u64::from(block) * BLOCK_ENTRY_BYTES as u64)
            .map_err(|error| error.in_file(self.path()))
    }

    /// The stored bytes of one text block.
    pub(super) fn stored(&self, entry: &BlockEntry) -> Result<&[u8]> {
        let text = self.columns.require(Section::TextBlocks)?;
        let start = entry.offset.checked_sub(text.offset);
        let range = start.and_then(|start| Some(start..start.checked_add(entry.stored.into())?));
        let range = range.ok_or_else(|| self.disagree("block table", Section::BlockTable))?;
        self.columns.bytes(Section::TextBlocks, range)
    }
}
