//! Reads batches of a log: strictly up to an end that is known, or leniently to the last whole one.
//!
//! Logs are read by position, never mapped: the last one still grows.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::LogId;
use crate::storage::bundle::Bundle;
use crate::storage::vfs::{OpenMode, PlantedBug, VfsFile};

use super::format::{
    FRAME_HEADER_BYTES, FrameHeader, HEADER_BYTES, KIND_MARK, LogHeader, MARK_BYTES,
    MARK_FRAME_BYTES, Mark, PAYLOAD_BYTES_MAX, batch_crc,
};
use super::frame::{self, Op};

/// An open log file with a checked header.
#[derive(Clone, Debug)]
pub struct LogFile {
    pub header: LogHeader,
    pub file: Arc<dyn VfsFile>,
    path: PathBuf,
    /// A planted bug: frames without their mark count as a batch.
    torn_accepted: bool,
}

/// One whole batch.
#[derive(Clone, Debug)]
pub struct Batch {
    pub seq: u64,
    /// Where the batch ends, mark included.
    pub end: u64,
    /// The first id that no row has after this batch.
    pub next_id: u64,
    pub ops: Vec<Op>,
}

/// What a lenient read found.
#[derive(Debug)]
pub struct Tail {
    pub batches: Vec<Batch>,
    /// Where the last whole batch ends.
    pub end: u64,
    /// Bytes that are no whole batch lie behind `end`.
    pub torn: bool,
}

impl LogFile {
    /// Opens a log and checks its header.
    ///
    /// # Errors
    /// `Io` when there is no such file; `Corrupt` or `Version` when the header does not hold.
    pub fn open(bundle: &Bundle, log: LogId, mode: OpenMode, database: &[u8; 16]) -> Result<Self> {
        let path = bundle.log(log);
        let file = bundle
            .vfs
            .open(&path, mode)
            .map_err(|error| Error::io("open log", error).in_file(&path))?;
        let mut bytes = [0; HEADER_BYTES];
        let filled = file
            .read_up_to(0, &mut bytes)
            .map_err(|error| Error::io("read log header", error).in_file(&path))?;
        let header = LogHeader::decode(&bytes[..filled], log, database)
            .map_err(|error| error.in_file(&path).at_byte(0))?;
        let torn_accepted = bundle.vfs.planted(PlantedBug::TornBatchAccepted);
        Ok(LogFile { header, file, path, torn_accepted })
    }

    /// A log that this process has just written.
    pub fn created(header: LogHeader, file: Arc<dyn VfsFile>, path: PathBuf) -> Self {
        LogFile { header, file, path, torn_accepted: false }
    }

    pub fn id(&self) -> LogId {
        self.header.log
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    pub fn len(&self) -> Result<u64> {
        self.file.len().map_err(|error| Error::io("length of log", error).in_file(&self.path))
    }

    /// The whole batches from `from` to `end`, of which the first must be number `seq + 1`.
    ///
    /// # Errors
    /// `Corrupt` when the range is not whole batches: it was promised to be durable.
    pub fn read_to(&self, from: u64, end: u64, seq: u64) -> Result<Vec<Batch>> {
        if from == end {
            return Ok(Vec::new());
        }
        if from > end || self.len()? < end {
            return Err(Error::corrupt("log is shorter than its durable end")
                .in_file(&self.path)
                .at_byte(from.min(end)));
        }
        let bytes = self.read_range(from, end)?;
        let mut batches = Vec::new();
        let mut at = 0;
        let mut seq = seq;
        while at < bytes.len() {
            let batch = self.parse_batch(&bytes, from, at, seq)?;
            at = (batch.end - from) as usize;
            seq = batch.seq;
            batches.push(batch);
        }
        Ok(batches)
    }

    /// The whole batches from `from` on, up to the first that is not whole.
    ///
    /// # Errors
    /// `Corrupt` when a batch is not whole although a later valid mark names it durable.
    pub fn read_tail(&self, from: u64, seq: u64) -> Result<Tail> {
        let length = self.len()?;
        let mut tail = Tail { batches: Vec::new(), end: from, torn: false };
        if length <= from {
            return Ok(tail);
        }
        let bytes = self.read_range(from, length)?;
        let mut seq = seq;
        let mut at = 0;
        while at < bytes.len() {
            match self.parse_batch(&bytes, from, at, seq) {
                Ok(batch) => {
                    at = (batch.end - from) as usize;
                    seq = batch.seq;
                    tail.end = batch.end;
                    tail.batches.push(batch);
                }
                Err(error) => {
                    if self
                        .later_mark(&bytes[at..], from + at as u64)
                        .is_some_and(|mark| mark.durable_seq > seq)
                    {
                        return Err(error);
                    }
                    tail.torn = true;
                    break;
                }
            }
        }
        Ok(tail)
    }

    /// The end that the newest valid mark of the log names durable; the header's length when there is none.
    pub fn marked_end(&self) -> Result<u64> {
        let length = self.len()?;
        let start = HEADER_BYTES as u64;
        if length <= start {
            return Ok(start);
        }
        let bytes = self.read_range(start, length)?;
        Ok(self.later_mark(&bytes, start).map_or(start, |mark| mark.durable_end.max(start)))
    }

    /// The valid mark with the highest durable number among `bytes`, which lie at `base`. Frames start at multiples
    /// of 8, and the salted checksum keeps stored text from passing for a mark.
    fn later_mark(&self, bytes: &[u8], base: u64) -> Option<Mark> {
        let mut best: Option<Mark> = None;
        for at in (0..bytes.len()).step_by(8) {
            let Some(head) = bytes[at..].first_chunk::<FRAME_HEADER_BYTES>() else { break };
            let header = FrameHeader::decode(head);
            if header.kind != KIND_MARK || header.payload_bytes as usize != MARK_BYTES {
                continue;
            }
            let payload = bytes[at + FRAME_HEADER_BYTES..].first_chunk::<MARK_BYTES>();
            let Some(payload) = payload else { break };
            if header.checksum(payload, self.header.salt) != header.crc {
                continue;
            }
            let Some(mark) = Mark::decode(payload) else { continue };
            if mark.durable_end <= base + at as u64
                && best.is_none_or(|best| best.durable_seq < mark.durable_seq)
            {
                best = Some(mark);
            }
        }
        best
    }

    /// Parses the batch that starts at `bytes[start]`; `bytes` lie at `base` in the file.
    fn parse_batch(&self, bytes: &[u8], base: u64, start: usize, seq: u64) -> Result<Batch> {
        let mut at = start;
        let mut frames = Vec::new();
        loop {
            let (header, payload) = match self.parse_frame(bytes, base, at, seq) {
                Err(_) if self.torn_accepted && !frames.is_empty() => {
                    let ops = self.decode_frames(frames, base)?;
                    let ids = ops.iter().filter_map(|op| match op {
                        Op::Row(row) => Some(row.record.id.get() + 1),
                        Op::End(_) => None,
                    });
                    let next_id = ids.max().unwrap_or(self.header.next_id);
                    return Ok(Batch { seq: seq + 1, end: base + at as u64, next_id, ops });
                }
                parsed => parsed?,
            };
            let next = at + header.frame_bytes() as usize;
            if header.kind != KIND_MARK {
                frames.push((header.kind, payload, at));
                at = next;
                continue;
            }
            let payload = payload.try_into().map_err(|_| self.bad("length of a mark", base, at))?;
            let mark =
                Mark::decode(payload).ok_or_else(|| self.bad("number in a mark", base, at))?;
            let covered = &bytes[start..at];
            if mark.start != base + start as u64
                || mark.bytes != covered.len() as u64
                || mark.frames as usize != frames.len()
                || mark.crc != batch_crc(covered, self.header.salt)
            {
                return Err(self.bad("commit mark does not match its batch", base, at));
            }
            let ops = self.decode_frames(frames, base)?;
            return Ok(Batch {
                seq: header.seq,
                end: base + next as u64,
                next_id: mark.next_id,
                ops,
            });
        }
    }

    /// The frame of batch `seq + 1` at `bytes[at]`: its head and its payload.
    fn parse_frame<'a>(
        &self,
        bytes: &'a [u8],
        base: u64,
        at: usize,
        seq: u64,
    ) -> Result<(FrameHeader, &'a [u8])> {
        let cut = || self.bad("frame is cut", base, at);
        let head = bytes.get(at..).and_then(|rest| rest.first_chunk::<FRAME_HEADER_BYTES>());
        let header = FrameHeader::decode(head.ok_or_else(cut)?);
        let length = header.payload_bytes as usize;
        if length > PAYLOAD_BYTES_MAX || header.seq != seq + 1 {
            return Err(self.bad("length or number of a frame", base, at));
        }
        let body = at + FRAME_HEADER_BYTES;
        let payload = bytes.get(body..body + length).ok_or_else(cut)?;
        if header.checksum(payload, self.header.salt) != header.crc {
            return Err(self.bad("frame checksum", base, at));
        }
        if bytes.len() < at + header.frame_bytes() as usize {
            return Err(cut());
        }
        Ok((header, payload))
    }

    /// Decodes frames given as kind, payload and place.
    fn decode_frames(&self, frames: Vec<(u16, &[u8], usize)>, base: u64) -> Result<Vec<Op>> {
        let decode = |(kind, payload, at): (u16, &[u8], usize)| {
            frame::decode(kind, payload)
                .map_err(|error| error.in_file(&self.path).at_byte(base + at as u64))
        };
        frames.into_iter().map(decode).collect()
    }

    fn bad(&self, what: &'static str, base: u64, at: usize) -> Error {
        Error::corrupt(what).in_file(&self.path).at_byte(base + at as u64)
    }

    /// Reads `from..end`, which the caller has held against the file's length.
    fn read_range(&self, from: u64, end: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (end - from) as usize];
        self.file
            .read_exact_at(from, &mut bytes)
            .map_err(|error| Error::io("read log", error).in_file(&self.path).at_byte(from))?;
        Ok(bytes)
    }
}

const _: () = assert!(MARK_FRAME_BYTES.is_multiple_of(8));
