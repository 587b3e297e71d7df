//! Sealed, immutable files of rows (design 2.5; format-spec.md 3).
//!
//! Invariants: a published segment never changes; a cell, a text block, a lexicon, a posting list and a speaker's entry
//! are of one user only; every byte that is read is covered by a checksum that was checked first.

mod blocks;
mod bodies;
mod cache;
mod clusters;
mod columns;
#[cfg(any(test, feature = "internals"))]
pub mod example;
mod format;
#[cfg(test)]
mod hostile;
mod input;
mod lexical_writer;
mod lexicon;
mod open;
mod parts;
mod passages;
mod postings;
mod reader;
mod rows;
mod section;
mod sections;
mod speakers;
mod tables;
#[cfg(test)]
mod tests;
mod verify;
mod verify_clusters;
mod verify_lexical;
mod writer;

pub use blocks::unpacked;
pub use cache::TextCache;
pub use clusters::Cluster;
pub use format::{PASSAGE_LENGTH_BYTES, ROW_EXPIRES, ROW_HAS_TIME, ROW_HAS_VECTOR};
pub use lexical_writer::invert;
pub use lexicon::{Lexicon, Terms};
pub use parts::SegmentParts;
pub use passages::PassageLength;
pub use postings::{BLOCK_POSTINGS, Posting, Postings};
pub use reader::Segment;
pub use rows::Rows;
pub use speakers::Speaker;
pub use tables::CodecParameters;
pub use verify::Problem;
pub use writer::write_segment;

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::{RowKind, Shape, VectorSpace};
use crate::simd::codec::Codec;

/// The scalar columns of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHead {
    pub id: EpisodeId,
    pub version: u32,
    pub kind: RowKind,
    pub user: UserNumber,
    /// The cluster that the row belongs to; 0 until cells are clustered.
    pub cluster: u32,
    pub session: SessionNumber,
    pub ordinal: u64,
    pub time: i64,
    pub offset_minutes: i16,
    pub record_time: i64,
    pub first_record_time: i64,
    pub expires: i64,
    /// Whether the row has a vector. Rows without one have zeros in the vector columns.
    pub has_vector: bool,
    /// Bytes of the row's text (UTF-8), for statistics.
    pub text_bytes: u32,
    /// The text's analysis in numbers.
    pub shape: Shape,
}

/// Where a writer takes its rows from: sorted by (user, kind, cluster, id, version), each pair (id, version) once.
/// The writer passes over the rows once a column, so that nothing large is held at once.
pub trait RowSource {
    fn len(&self) -> usize;
    fn head(&self, row: usize) -> Result<RowHead>;
    /// Appends the stored bytes of the row's vector, if it has one, to `out` (cleared by the caller).
    fn vector(&self, row: usize, out: &mut Vec<u8>) -> Result<()>;
    /// The row's factor and code when they are already known for `codec` (a rewrite copies them): appends the code to
    /// `out`, returns the factor. `None`: the writer encodes the vector.
    fn code(&self, row: usize, codec: &Codec, out: &mut Vec<u8>) -> Result<Option<f32>>;
    /// Appends the row's encoded body to `out` (cleared by the caller).
    fn body(&self, row: usize, out: &mut Vec<u8>) -> Result<()>;
    /// The name of the row's speaker.
    fn speaker(&self, row: usize) -> Result<Option<&str>>;
    /// Appends the lengths of the row's passages to `out` (cleared by the caller). Only episodes have any.
    fn passages(&self, row: usize, out: &mut Vec<PassageLength>) -> Result<()>;
    /// Gives `put` the terms of `rows`, the episodes of one user, ascending and each once, with their postings,
    /// ascending by passage. `starts` are the numbers of the first passages of all rows of the source, and at the end
    /// the number of passages.
    fn terms(&self, rows: Range<usize>, starts: &[u32], put: &mut PutTerm<'_>) -> Result<()>;
}

/// Takes a term and its postings.
pub type PutTerm<'a> = dyn FnMut(&str, &[Posting]) -> Result<()> + 'a;

/// What a row adds to (or, negated, takes from) its user's live statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct Counts {
    /// Rows.
    pub rows: i64,
    /// Rows with a vector.
    pub vectors: i64,
    /// Bytes of text.
    pub text_bytes: i64,
    /// Passages.
    pub passages: i64,
    /// Own lengths of the passages, in halves of a term.
    pub half_terms: i64,
}

/// The end of one version of one row, with the negative counts that go with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    pub id: EpisodeId,
    pub version: u32,
    pub user: UserNumber,
    /// When it was ended.
    pub record_time: i64,
    /// True when a later version replaces it (the row stays for `history`); false when the episode is deleted.
    pub superseded: bool,
    /// Never positive.
    pub counts: Counts,
}

/// Everything of a new segment but its rows.
#[derive(Debug)]
pub struct SegmentInput<'a> {
    pub id: SegmentId,
    pub database: [u8; 16],
    pub space: &'a VectorSpace,
    /// `None`: no codes are written (the space's mean is not fixed yet).
    pub codec: Option<&'a Codec>,
    /// Rows with a vector, of one user and kind, from which on they are gathered into clusters.
    pub clustered_from: usize,
    /// First and last log whose rows and tombstones are in here; of a rewrite: the hull of its inputs'.
    pub logs: (LogId, LogId),
    /// Segments that this one replaces. Empty after a checkpoint.
    pub replaces: Vec<SegmentId>,
    /// Users of the rows and tombstones, ascending by number.
    pub users: Vec<(UserNumber, Arc<[u8]>)>,
    /// Sessions of the rows, ascending by number.
    pub sessions: Vec<(SessionNumber, UserNumber, String)>,
    /// Ascending by (id, version).
    pub tombstones: Vec<Tombstone>,
}

/// What the manifest records of a written segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    pub bytes: u64,
    /// CRC-32 of the footer, which covers every section's checksum table.
    pub footer_crc: u32,
    pub rows: u32,
    /// Smallest and largest id of the rows (0, 0 when there are none).
    pub ids: (u64, u64),
}

/// A contiguous run of rows of one user, kind and cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub user: UserNumber,
    pub kind: RowKind,
    pub cluster: u32,
    pub rows: Range<u32>,
    /// Smallest and largest time of the rows.
    pub min_time: i64,
    pub max_time: i64,
}

impl Counts {
    /// Adds `other`, part by part.
    pub fn add(&mut self, other: &Counts) {
        self.rows += other.rows;
        self.vectors += other.vectors;
        self.text_bytes += other.text_bytes;
        self.passages += other.passages;
        self.half_terms += other.half_terms;
    }

    /// Each part with the other sign.
    pub fn negated(&self) -> Counts {
        Counts {
            rows: -self.rows,
            vectors: -self.vectors,
            text_bytes: -self.text_bytes,
            passages: -self.passages,
            half_terms: -self.half_terms,
        }
    }
}
