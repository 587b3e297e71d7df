//! Builds the bytes of batches, marks included, for one append.

use crate::error::{Error, Result};
use crate::options::BATCH_BYTES_MAX;

use super::format::{FrameHeader, KIND_MARK, MARK_BYTES, Mark, batch_crc};

/// Collects batches that go behind one another into one log.
pub struct BatchWriter {
    bytes: Vec<u8>,
    /// Where `bytes[0]` will lie in the log.
    base: u64,
    salt: u32,
    /// Start of the batch being made, in `bytes`.
    start: usize,
    frames: u32,
    seq: u64,
    durable_seq: u64,
    durable_end: u64,
}

impl BatchWriter {
    /// `base`: where the first batch starts; `seq`: the last sequence number given.
    pub fn new(base: u64, salt: u32, seq: u64, durable_seq: u64, durable_end: u64) -> BatchWriter {
        BatchWriter {
            bytes: Vec::new(),
            base,
            salt,
            start: 0,
            frames: 0,
            seq,
            durable_seq,
            durable_end,
        }
    }

    /// Adds a frame to the batch.
    ///
    /// # Errors
    /// `Limit` when the batch grows beyond [`BATCH_BYTES_MAX`].
    pub fn frame(&mut self, kind: u16, payload: &[u8]) -> Result<()> {
        if self.bytes.len() - self.start + payload.len() > BATCH_BYTES_MAX {
            return Err(Error::limit(format!(
                "batch of more than {BATCH_BYTES_MAX} encoded bytes"
            )));
        }
        self.put(kind, payload);
        self.frames += 1;
        Ok(())
    }

    /// Drops the frames of the batch being made.
    pub fn abandon(&mut self) {
        self.bytes.truncate(self.start);
        self.frames = 0;
    }

    /// Ends the batch with its mark and returns its sequence number; `None` when it has no frames.
    pub fn seal(&mut self, next_id: u64) -> Option<u64> {
        if self.frames == 0 {
            return None;
        }
        let mark = Mark {
            start: self.base + self.start as u64,
            bytes: (self.bytes.len() - self.start) as u64,
            crc: batch_crc(&self.bytes[self.start..], self.salt),
            frames: self.frames,
            durable_seq: self.durable_seq,
            durable_end: self.durable_end,
            next_id,
        };
        self.put(KIND_MARK, &mark.encode());
        self.seq += 1;
        self.start = self.bytes.len();
        self.frames = 0;
        Some(self.seq)
    }

    /// The sealed batches' bytes.
    pub fn sealed(&self) -> &[u8] {
        &self.bytes[..self.start]
    }

    /// Where the sealed batches end in the log.
    pub fn end(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The last sequence number given.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    fn put(&mut self, kind: u16, payload: &[u8]) {
        let mut header =
            FrameHeader { payload_bytes: payload.len() as u32, crc: 0, seq: self.seq + 1, kind };
        header.crc = header.checksum(payload, self.salt);
        self.bytes.extend_from_slice(&header.encode());
        self.bytes.extend_from_slice(payload);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }
}

const _: () = assert!(MARK_BYTES.is_multiple_of(8));
