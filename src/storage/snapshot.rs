//! A read view pinned to one commit.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::{CommitSeq, EpisodeId};
use crate::model::Record;
use crate::simd::codec::Codec;

use super::segment::{Counts, Segment};

/// The order of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// A read view pinned to one commit. Every read of one operation goes through one snapshot.
pub struct Snapshot {}

/// A piece of one user's rows, for a scan.
pub enum Part<'a> {
    /// Rows `rows` of a segment: one cell. A row is live when `is_live(row)`.
    Cell { segment: &'a Arc<Segment>, rows: Range<u32>, min_time: i64, max_time: i64 },
    /// Live rows that are in the logs only.
    Log { records: Vec<Arc<Record>> },
}

impl Snapshot {
    /// The last commit that this view shows.
    pub fn seq(&self) -> CommitSeq {
        todo!()
    }

    /// The latest version of a live episode.
    pub fn get(&self, _id: EpisodeId) -> Result<Option<Record>> {
        todo!()
    }

    /// All versions of a live episode, oldest first; empty when it does not exist or is deleted.
    pub fn versions(&self, _id: EpisodeId) -> Result<Vec<Record>> {
        todo!()
    }

    /// The live episode of this user that carries `key`.
    pub fn key(&self, _user: &[u8], _key: &str) -> Result<Option<EpisodeId>> {
        todo!()
    }

    /// Live episodes with time in `times`, strictly behind `after` in the direction of the listing, at most `limit`.
    pub fn timeline(
        &self,
        _user: &[u8],
        _times: Range<i64>,
        _after: Option<(i64, EpisodeId)>,
        _direction: Direction,
        _limit: usize,
    ) -> Result<Vec<(i64, EpisodeId)>> {
        todo!()
    }

    /// Live episodes of one session in its order: (time, ordinal, id).
    pub fn session(&self, _user: &[u8], _session: &str) -> Result<Vec<EpisodeId>> {
        todo!()
    }

    /// The live episodes before and after one in its session.
    pub fn neighbours(&self, _id: EpisodeId) -> Result<(Option<EpisodeId>, Option<EpisodeId>)> {
        todo!()
    }

    /// Users that have at least one live episode, by name.
    pub fn users(&self) -> Result<Vec<Arc<[u8]>>> {
        todo!()
    }

    /// Live counts of one user.
    pub fn counts(&self, _user: &[u8]) -> Result<Counts> {
        todo!()
    }

    /// The pieces that a scan of one user's episodes goes through.
    pub fn parts(&self, _user: &[u8]) -> Result<Vec<Part<'_>>> {
        todo!()
    }

    /// Whether row `row` of `segment` is live in this view: not ended in the segment's dead list nor by a log.
    pub fn is_live(&self, _segment: &Segment, _row: u32) -> Result<bool> {
        todo!()
    }

    /// The number of a session in the segments' session column, if it is in the catalog.
    pub fn session_number(
        &self,
        _user: &[u8],
        _session: &str,
    ) -> Result<Option<crate::ids::SessionNumber>> {
        todo!()
    }

    /// The record of one row of a segment.
    pub fn record(&self, _segment: &Segment, _row: u32) -> Result<Record> {
        todo!()
    }

    /// The codec that the segments' codes were made with, once there is one.
    pub fn codec(&self) -> Option<&Arc<Codec>> {
        todo!()
    }
}
