//! A row that a search has found, with its score, and the record behind it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::Result;
use crate::model::Record;
use crate::storage::Snapshot;
use crate::storage::segment::Segment;

use super::formula::ScoreParts;

/// A scored row.
#[derive(Clone)]
pub(super) struct Found<'s> {
    /// Larger is better.
    pub score: f32,
    /// The episode's id.
    pub id: u64,
    /// What the score is made of.
    pub parts: ScoreParts,
    /// The passage that holds the question's words best, if words were compared.
    pub passage: Option<u32>,
    pub source: Source<'s>,
}

/// A row with its score, by its number among the user's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub score: f32,
    pub id: u64,
    pub row: u32,
}

impl Candidate {
    /// As [`Found::order`].
    pub fn order(&self, other: &Candidate) -> Ordering {
        other.score.total_cmp(&self.score).then(self.id.cmp(&other.id))
    }
}

/// Where a row lies.
#[derive(Clone)]
pub(super) enum Source<'s> {
    /// A row of a segment.
    Stored(&'s Segment, u32),
    /// A row that only the logs hold.
    Log(Arc<Record>),
}

impl Found<'_> {
    /// Best first: the larger score, and of equal ones the smaller id.
    pub fn order(&self, other: &Found<'_>) -> Ordering {
        other.score.total_cmp(&self.score).then(self.id.cmp(&other.id))
    }
}

impl Source<'_> {
    /// The record.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn record(&self, snapshot: &Snapshot) -> Result<Cow<'_, Record>> {
        match self {
            Source::Stored(segment, row) => Ok(Cow::Owned(snapshot.record(segment, *row)?)),
            Source::Log(record) => Ok(Cow::Borrowed(record)),
        }
    }
}
