//! The dead rows of every segment as one view sees them: the catalog's lists, and what the logs end beyond them.
//!
//! Invariant: what a longer reading of the logs has added never reaches a snapshot of a shorter one.

use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::ids::EpisodeId;

use super::dead::DeadRows;
use super::view::SegmentView;

/// Grows with the logs, so that a scan does not look up every end anew.
#[derive(Debug, Default)]
pub struct Masks(Mutex<Grown>);

#[derive(Clone, Debug, Default)]
struct Grown {
    /// Ends taken in so far.
    taken: usize,
    /// One set a segment, in the order of the segments.
    dead: Vec<Arc<DeadRows>>,
}

impl Masks {
    /// The dead rows of each of `segments` after `ends`, the logs' ends in order: the same list, or a longer one, than at
    /// earlier calls, unless an older snapshot asks.
    ///
    /// # Errors
    /// `Corrupt`: a segment cannot be read.
    pub fn of(
        &self,
        segments: &[SegmentView],
        ends: &[(EpisodeId, u32)],
    ) -> Result<Vec<Arc<DeadRows>>> {
        let mut grown = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        if grown.taken > ends.len() {
            let mut older = Grown::default();
            older.grow(segments, ends)?;
            return Ok(older.dead);
        }
        grown.grow(segments, ends)?;
        Ok(grown.dead.clone())
    }
}

impl Grown {
    fn grow(&mut self, segments: &[SegmentView], ends: &[(EpisodeId, u32)]) -> Result<()> {
        if self.dead.is_empty() {
            self.dead = segments.iter().map(|view| view.dead.clone()).collect();
        }
        for (id, version) in &ends[self.taken..] {
            for (view, dead) in segments.iter().zip(&mut self.dead) {
                if let Some(row) = view.segment.row_of(*id, *version)? {
                    Arc::make_mut(dead).insert(row);
                }
            }
            self.taken += 1;
        }
        Ok(())
    }
}
