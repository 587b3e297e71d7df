//! The catalog: the redb file that holds the manifest and every index that is not in a segment (design 2.6).
//!
//! Invariants: every handle keeps the file open read-only; it is opened for writing only to create, to publish, to
//! repair and to check, under the checkpoint lock. No redb type and no redb panic leaves this folder. Every value is
//! decoded with a limit and must be consumed whole; values that point into segments carry their own CRC.

use crate::ids::{LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::VectorSpace;

/// The one row of table `meta` that changes at every publish, and the facts fixed at creation.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// The database's id, random, fixed at creation; echoed in every log and segment.
    pub database: [u8; 16],
    /// The vector space, fixed at creation.
    pub space: VectorSpace,
    /// Grows by one with every publish.
    pub generation: u64,
    /// The last log whose rows are in segments.
    pub log_applied: LogId,
    /// One more than the highest segment id ever published.
    pub next_segment: u64,
    pub next_user: u64,
    pub next_session: u64,
    /// Mean of the vector space, once fixed: `dimension` values, used by every code.
    pub codec_mean: Option<Vec<f32>>,
    /// Seed of the rotation before codes are taken.
    pub codec_seed: u64,
}

/// One live segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestRow {
    pub segment: SegmentId,
    pub bytes: u64,
    pub footer_crc: u32,
    pub rows: u32,
    /// Rows that are ended (deleted, or superseded and kept for history). `dead` lists them.
    pub dead_rows: u32,
    /// Grows by one whenever the segment's dead list changes.
    pub dead_version: u32,
    pub ids: (u64, u64),
}

/// One turn's place in its session: sorted by (time, ordinal, id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionEntry {
    pub time: i64,
    pub ordinal: u64,
    pub id: u64,
}

/// A session of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    pub user: UserNumber,
    pub session: SessionNumber,
    pub name: String,
}
