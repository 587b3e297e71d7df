//! The catalog: the redb file that holds the manifest and every index that is not in a segment (design 2.6).
//!
//! Invariants: every handle keeps the file open read-only; it is opened for writing only to create, to publish, to
//! repair and to check, under the checkpoint lock. No redb type and no redb panic leaves this folder. Every value is
//! decoded with a limit and must be consumed whole; values that point into segments carry their own CRC.

mod boundary;
mod format;
mod order;
mod reader;
mod rows;
mod tables;
mod txn;
mod view;
mod writer;

#[cfg(test)]
mod tests;

pub use boundary::needs_repair;
pub use order::SessionChange;
pub use reader::{CatalogRead, CatalogReader};
pub use rows::{CatalogRows, Rows};
pub use txn::CatalogTxn;
pub use view::CatalogView;
pub use writer::CatalogWriter;

use std::time::Duration;

use crate::ids::{LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::VectorSpace;

/// How one handle uses the catalog's file.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Bytes of pages held in memory, at most.
    pub cache_bytes: usize,
    /// How long another process's lock of the file is waited for.
    pub busy_timeout: Duration,
}

/// The facts fixed at creation and the counters, with what changes at every publish (a row of its own on disk).
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// The database's id, random, fixed at creation; echoed in every log and segment.
    pub database: [u8; 16],
    /// The vector space, fixed at creation.
    pub space: VectorSpace,
    /// Name and version of the text analysis that made every term, fixed at creation.
    pub analyser: String,
    /// Grows by one with every publish.
    pub generation: u64,
    /// The last log whose rows are in segments.
    pub log_applied: LogId,
    /// One more than the highest segment id ever published.
    pub next_segment: u64,
    /// One more than the highest user number given. `u64::MAX` is never given.
    pub next_user: u64,
    /// One more than the highest session number given; 0 is never given.
    pub next_session: u64,
    /// Mean of the vector space, once fixed: `dimension` values, used by every code.
    pub codec_mean: Option<Vec<f32>>,
    /// Seed of the rotation before codes are taken.
    pub codec_seed: u64,
}

/// One live segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestRow {
    /// The segment.
    pub segment: SegmentId,
    /// Bytes of its file.
    pub bytes: u64,
    /// CRC-32 of its footer.
    pub footer_crc: u32,
    /// Rows of all kinds, ended ones included.
    pub rows: u32,
    /// Rows that are ended (deleted, or superseded and kept for history). `dead` lists them.
    pub dead_rows: u32,
    /// Of those, rows of deleted episodes: a rewrite leaves them out.
    pub deleted_rows: u32,
    /// Grows by one whenever the segment's dead list changes.
    pub dead_version: u32,
    /// Smallest and largest id of its rows.
    pub ids: (u64, u64),
}

/// One turn's place in its session: sorted by (time, ordinal, id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionEntry {
    /// When it was said: microseconds since the epoch.
    pub time: i64,
    /// The place among turns of one time.
    pub ordinal: u64,
    /// The episode.
    pub id: u64,
}

/// A session of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    /// Whose it is.
    pub user: UserNumber,
    /// Its number.
    pub session: SessionNumber,
    /// Its name, unique per user.
    pub name: String,
}
