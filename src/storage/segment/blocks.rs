//! Text blocks: the encoded bodies of one user's rows, cut into blocks of at most 8 KiB and compressed one by one.
//!
//! Invariants: a block holds bodies of one user only; its stored bytes are compared with their CRC before they are
//! decompressed (zstd decodes many damaged frames without noticing); no dictionary, because one would hold raw text.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use super::cache::{BlockKey, TextCache};
use super::format::{self, BLOCK_ENTRY_BYTES, PLACE_BYTES};
use super::input::Input;
use crate::error::{Error, Result};
use crate::ids::UserNumber;

/// Bytes of a block before compression, at most (design 2.5: 9 to 14 us to read one, against 50 to 70 for 64 KiB).
pub const BLOCK_BYTES: usize = 8 << 10;
/// Bytes of one encoded body, at most: text, metadata, five names and 64 tags at their limits fit.
pub const BODY_BYTES_MAX: usize = 32 << 20;
/// Bytes that a block of several bodies is filled to, at most; only a body that is longer fills a block to
/// [`BLOCK_BYTES`]. A search reads as many blocks as it returns texts, and zstd's work grows with the block.
const BLOCK_FILL_BYTES: usize = 4 << 10;
/// zstd's own default. On talk-like text as fast as level 1 and 2 % smaller (the latency test prints both).
const LEVEL: i32 = 3;
/// Flag of a block: stored as it is, because zstd did not shrink it.
const STORED_RAW: u32 = 1;

/// Where a body lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyPlace {
    /// The block that holds its first byte.
    pub block: u32,
    /// That byte's place in the block, decompressed.
    pub offset: u32,
    pub len: u32,
}

impl BodyPlace {
    pub fn encode(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[0..4].copy_from_slice(&self.block.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: [u8; PLACE_BYTES]) -> BodyPlace {
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        BodyPlace { block: number(0), offset: number(4), len: number(8) }
    }
}

/// One entry of the block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// From the start of the file.
    pub offset: u64,
    /// Bytes in the file.
    pub stored: u32,
    /// Bytes decompressed, 1 to [`BLOCK_BYTES`].
    pub raw: u32,
    /// Of the bytes in the file.
    pub crc: u32,
    pub is_raw: bool,
}

impl BlockEntry {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.offset.to_le_bytes());
        out.extend(self.stored.to_le_bytes());
        out.extend(self.raw.to_le_bytes());
        out.extend(self.crc.to_le_bytes());
        out.extend(if self.is_raw { STORED_RAW } else { 0 }.to_le_bytes());
    }

    /// Reads an entry that lies at `at` in the file.
    pub fn decode(bytes: [u8; BLOCK_ENTRY_BYTES], at: u64) -> Result<BlockEntry> {
        let mut input = Input::new(&bytes, at, "block table");
        let (offset, stored, raw, crc) = (input.u64()?, input.u32()?, input.u32()?, input.u32()?);
        let is_raw = match input.u32()? {
            0 => false,
            STORED_RAW => true,
            _ => return Err(input.corrupt("holds an unknown flag")),
        };
        // A block that zstd does not shrink is stored raw, so the stored length is bounded by the raw one.
        let fits = if is_raw { stored == raw } else { stored > 0 && stored < raw };
        if !(1..=BLOCK_BYTES as u32).contains(&raw) || !fits {
            return Err(input.corrupt("holds an impossible length"));
        }
        Ok(BlockEntry { offset, stored, raw, crc, is_raw })
    }
}

/// Cuts bodies into blocks.
pub struct BlockWriter {
    compressor: Compressor<'static>,
    /// Where the next block will lie in the file.
    offset: u64,
    user: Option<UserNumber>,
    raw: Vec<u8>,
    packed: Vec<u8>,
    blocks: u32,
    table: Vec<u8>,
}

impl BlockWriter {
    /// Blocks that lie in the file from `offset` on.
    pub fn new(offset: u64) -> Result<BlockWriter> {
        let compressor = Compressor::new(LEVEL).map_err(|error| Error::io("compressor", error))?;
        Ok(BlockWriter {
            compressor,
            offset,
            user: None,
            raw: Vec::with_capacity(BLOCK_BYTES),
            packed: Vec::with_capacity(zstd::zstd_safe::compress_bound(BLOCK_BYTES)),
            blocks: 0,
            table: Vec::new(),
        })
    }

    /// Adds a body of `user`; finished blocks go to `put`.
    pub fn push(
        &mut self,
        user: UserNumber,
        body: &[u8],
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<BodyPlace> {
        if body.len() > BODY_BYTES_MAX {
            return Err(Error::limit(format!(
                "encoded body of {} bytes, at most {BODY_BYTES_MAX}",
                body.len()
            )));
        }
        if body.is_empty() {
            return Ok(BodyPlace { block: 0, offset: 0, len: 0 });
        }
        if self.user != Some(user) || body.len() > BLOCK_FILL_BYTES.saturating_sub(self.raw.len()) {
            self.flush(put)?;
            self.user = Some(user);
        }
        let place =
            BodyPlace { block: self.blocks, offset: self.raw.len() as u32, len: body.len() as u32 };
        let mut rest = body;
        loop {
            let (part, behind) = rest.split_at(rest.len().min(BLOCK_BYTES - self.raw.len()));
            self.raw.extend_from_slice(part);
            rest = behind;
            if rest.is_empty() {
                return Ok(place);
            }
            self.flush(put)?;
        }
    }

    /// Ends the last block; returns the block table.
    pub fn finish(mut self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Vec<u8>> {
        self.flush(put)?;
        Ok(self.table)
    }

    fn flush(&mut self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.raw.is_empty() {
            return Ok(());
        }
        self.packed.clear();
        self.compressor
            .compress_to_buffer(&self.raw, &mut self.packed)
            .map_err(|error| Error::io("compress a text block", error))?;
        let is_raw = self.packed.len() >= self.raw.len();
        let stored = if is_raw { &self.raw } else { &self.packed };
        let entry = BlockEntry {
            offset: self.offset,
            stored: stored.len() as u32,
            raw: self.raw.len() as u32,
            crc: crc32fast::hash(stored),
            is_raw,
        };
        put(stored)?;
        entry.encode(&mut self.table);
        self.offset += stored.len() as u64;
        self.blocks = self
            .blocks
            .checked_add(1)
            .ok_or_else(|| Error::limit("segment of more than 4294967295 text blocks"))?;
        self.raw.clear();
        Ok(())
    }
}

/// One decompressor a thread, and the last block that it gave: neighbours in a timeline share blocks.
struct Decoder {
    decompressor: Decompressor<'static>,
    buffer: Box<[u8; BLOCK_BYTES]>,
    /// The open segment and the block that `buffer` holds.
    holds: Option<BlockKey>,
    /// Blocks decompressed by this thread.
    unpacked: u64,
}

thread_local! {
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder {
        decompressor: Decompressor::default(),
        buffer: Box::new([0; BLOCK_BYTES]),
        holds: None,
        unpacked: 0,
    });
}

/// Calls `with` with the contents of block `key.1` of the open segment numbered `key.0`, whose stored bytes are
/// `stored`: those that this thread read last, those in `cache`, or those decompressed now, which go there.
///
/// # Errors
/// `Corrupt` when the bytes do not have the entry's CRC or do not decompress to exactly its length.
pub fn with_block<T>(
    key: BlockKey,
    entry: &BlockEntry,
    stored: &[u8],
    cache: Option<&TextCache>,
    with: impl FnOnce(&[u8]) -> T,
) -> Result<T> {
    DECODER.with_borrow_mut(|decoder| {
        if decoder.holds != Some(key) {
            if let Some(raw) = cache.and_then(|cache| cache.get(key)) {
                return Ok(with(&raw));
            }
            decoder.holds = None;
            unpack(decoder, entry, stored)?;
            decoder.holds = Some(key);
            if let Some(cache) = cache {
                cache.put(key, &decoder.buffer[..entry.raw as usize]);
            }
        }
        Ok(with(&decoder.buffer[..entry.raw as usize]))
    })
}

/// Blocks that this thread has decompressed.
pub fn unpacked() -> u64 {
    DECODER.with_borrow(|decoder| decoder.unpacked)
}

/// Checks the stored bytes of a block.
pub fn check(entry: &BlockEntry, stored: &[u8]) -> Result<()> {
    let computed = crc32fast::hash(stored);
    if computed != entry.crc {
        return Err(format::checksum("text block", entry.crc, computed).at_byte(entry.offset));
    }
    Ok(())
}

fn unpack(decoder: &mut Decoder, entry: &BlockEntry, stored: &[u8]) -> Result<()> {
    check(entry, stored)?;
    decoder.unpacked += 1;
    let raw = &mut decoder.buffer[..entry.raw as usize];
    if entry.is_raw {
        raw.copy_from_slice(stored);
        return Ok(());
    }
    match decoder.decompressor.decompress_to_buffer(stored, raw) {
        Ok(bytes) if bytes == entry.raw as usize => Ok(()),
        _ => {
            Err(Error::corrupt("text block does not decompress to its length")
                .at_byte(entry.offset))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Block contents and places of `bodies`.
    fn cut(bodies: &[(u64, Vec<u8>)]) -> (Vec<BlockEntry>, Vec<Vec<u8>>, Vec<BodyPlace>) {
        let mut stored = Vec::new();
        let mut put = |bytes: &[u8]| {
            stored.push(bytes.to_vec());
            Ok(())
        };
        let mut writer = BlockWriter::new(640).unwrap();
        let places = bodies
            .iter()
            .map(|(user, body)| writer.push(UserNumber::new(*user), body, &mut put).unwrap())
            .collect();
        let table = writer.finish(&mut put).unwrap();
        let entries: Vec<_> = table
            .as_chunks::<BLOCK_ENTRY_BYTES>()
            .0
            .iter()
            .map(|bytes| BlockEntry::decode(*bytes, 0).unwrap())
            .collect();
        (entries, stored, places)
    }

    #[test]
    fn a_block_ends_at_a_user_and_before_a_body_that_does_not_fit() {
        let bodies = [
            (1, vec![b'a'; 3000]),
            (1, vec![b'b'; 1096]),
            (1, vec![b'c'; 1]),
            (2, vec![b'd'; 10]),
            (2, vec![b'e'; 8192]),
            (2, vec![b'f'; 20_000]),
            (2, vec![b'g'; 100]),
            (2, vec![]),
        ];
        let (entries, _, places) = cut(&bodies);
        let lengths: Vec<_> = entries.iter().map(|entry| entry.raw).collect();
        assert_eq!(lengths, [4096, 1, 10, 8192, 8192, 8192, 3716]);
        let starts: Vec<_> = places.iter().map(|place| (place.block, place.offset)).collect();
        assert_eq!(starts, [(0, 0), (0, 3000), (1, 0), (2, 0), (3, 0), (4, 0), (6, 3616), (0, 0)]);
    }

    #[test]
    fn what_does_not_shrink_is_stored_as_it_is() {
        let (entries, stored, _) = cut(&[(1, b"short".to_vec()), (2, vec![7; 4000])]);
        assert!(entries[0].is_raw && stored[0] == b"short");
        assert!(!entries[1].is_raw && stored[1].len() < 100);
        assert_eq!(entries[1].offset, 645);
    }

    #[test]
    fn a_damaged_block_never_reaches_the_decompressor() {
        let (entries, stored, _) = cut(&[(1, b"some text ".repeat(100))]);
        let read = |stored: &[u8], key| {
            with_block((u64::MAX, key), &entries[0], stored, None, <[u8]>::to_vec)
        };
        assert_eq!(read(&stored[0], 0).unwrap(), b"some text ".repeat(100));
        for bit in 0..stored[0].len() * 8 {
            let mut damaged = stored[0].clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = read(&damaged, 1).unwrap_err();
            assert!(error.to_string().contains("checksum"), "{error}");
        }
    }

    #[test]
    fn a_block_that_decompresses_to_another_length_is_corrupt() {
        let (entries, stored, _) = cut(&[(1, b"some text ".repeat(100))]);
        for raw in [999, 1001, 8192] {
            let entry = BlockEntry { raw, ..entries[0] };
            assert!(with_block((u64::MAX, 2), &entry, &stored[0], None, |_| ()).is_err(), "{raw}");
        }
    }
}
