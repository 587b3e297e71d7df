//! One user's rows as a search sees them: where a row lies, whether it passes the filters, and its exact score.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ids::{SessionNumber, UserNumber};
use crate::model::{Record, VectorSpace, unpack_vector};
use crate::options::VectorElement;
use crate::simd;
use crate::storage::Snapshot;
use crate::storage::dead::DeadRows;
use crate::storage::segment::{ROW_EXPIRES, Segment};

use super::plan::Filters;

/// Where a row lies, within the parts of one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which part.
    pub part: u32,
    /// The row of the segment, or the index among the part's records.
    pub row: u32,
}

/// The filters of a search, ready to be asked row by row.
pub(super) struct RowFilter<'a> {
    snapshot: &'a Snapshot,
    filters: &'a Filters,
    /// The user's number in the segments.
    user: Option<UserNumber>,
    session: SessionFilter,
}

enum SessionFilter {
    Any,
    /// The session's number in the segments.
    Only(SessionNumber),
    /// The session was met in logs only: no row of a segment passes.
    LogsOnly,
}

impl<'a> RowFilter<'a> {
    pub fn new(snapshot: &'a Snapshot, user: &[u8], filters: &'a Filters) -> Result<RowFilter<'a>> {
        let session = match &filters.session {
            None => SessionFilter::Any,
            Some(session) => match snapshot.session_number(user, session)? {
                Some(number) => SessionFilter::Only(number),
                None => SessionFilter::LogsOnly,
            },
        };
        Ok(RowFilter { snapshot, filters, user: snapshot.user_number(user)?, session })
    }

    /// Whether nothing but life and expiry decides.
    pub fn is_open(&self) -> bool {
        self.filters.are_open()
    }

    /// Whether rows of a cell with these times, both inclusive, may pass.
    pub fn may_pass(&self, (min_time, max_time): (i64, i64)) -> bool {
        let times = &self.filters.times;
        !matches!(self.session, SessionFilter::LogsOnly)
            && min_time < times.end
            && max_time >= times.start
    }

    /// Whether a row is live and passes. The cheap columns are asked first.
    pub fn passes(&self, segment: &Segment, dead: &DeadRows, row: u32) -> Result<bool> {
        let times = &self.filters.times;
        if (times.start > i64::MIN || times.end < i64::MAX) && !times.contains(&segment.time(row)?)
        {
            return Ok(false);
        }
        match self.session {
            SessionFilter::Any => {}
            SessionFilter::LogsOnly => return Ok(false),
            SessionFilter::Only(number) => {
                let session = segment.session_column(row..row + 1)?;
                if session.first().map(|bytes| u64::from_le_bytes(*bytes)) != Some(number.get()) {
                    return Ok(false);
                }
            }
        }
        if segment.flags_column(row..row + 1)?.first().is_none_or(|flags| flags & ROW_EXPIRES != 0)
        {
            let expires = segment.expiries(row..row + 1)?;
            if expires.first().is_none_or(|bytes| i64::from_le_bytes(*bytes) <= self.filters.now) {
                return Ok(false);
            }
        }
        if let (Some(wanted), Some(user)) = (&self.filters.speaker, self.user)
            && segment.speaker_of(row, user)?.is_none_or(|speaker| *speaker.name != **wanted)
        {
            return Ok(false);
        }
        Ok(!dead.contains(row) && self.passes_metadata(segment, row)?)
    }

    /// Whether the metadata of a row passes. Reads the row when there is a filter.
    pub fn passes_metadata(&self, segment: &Segment, row: u32) -> Result<bool> {
        match self.filters.metadata {
            None => Ok(true),
            Some(_) => self.filters.pass_metadata(&self.snapshot.record(segment, row)?),
        }
    }

    /// The filters for the rows of one cell, which are then asked by their place in it.
    pub fn cell<'s>(
        &self,
        segment: &'s Segment,
        dead: &'s DeadRows,
        rows: Range<u32>,
    ) -> Result<CellFilter<'s>> {
        let times = &self.filters.times;
        let bounded = times.start > i64::MIN || times.end < i64::MAX;
        let session = match self.session {
            SessionFilter::Only(number) => {
                Some((segment.session_column(rows.clone())?, number.get()))
            }
            SessionFilter::Any | SessionFilter::LogsOnly => None,
        };
        let speaker = match (&self.filters.speaker, self.user) {
            (Some(name), Some(user)) => {
                let speakers = segment.speakers(user)?;
                let known = speakers.iter().find(|speaker| *speaker.name == **name);
                // No row has the number of the absent speaker.
                let number = known.map_or(u32::MAX, |speaker| speaker.number);
                Some((segment.speaker_column(rows.clone())?, number))
            }
            _ => None,
        };
        Ok(CellFilter {
            speaker,
            times: if bounded { Some((segment.times(rows.clone())?, times.clone())) } else { None },
            session,
            none: matches!(self.session, SessionFilter::LogsOnly),
            expiries: segment.expiries(rows.clone())?,
            now: self.filters.now,
            dead,
            first: rows.start,
        })
    }

    /// Whether a live record of the logs passes.
    pub fn passes_record(&self, record: &Record) -> Result<bool> {
        self.filters.pass(record)
    }
}

/// The filters of a search over the rows of one cell: [`RowFilter::passes`] on columns whose checksums hold, but for the
/// metadata.
pub(super) struct CellFilter<'a> {
    /// `None`: any time passes.
    times: Option<(&'a [[u8; 8]], Range<i64>)>,
    /// `None`: any session passes.
    session: Option<(&'a [[u8; 8]], u64)>,
    /// `None`: any speaker passes.
    speaker: Option<(&'a [[u8; 4]], u32)>,
    /// No row passes.
    none: bool,
    expiries: &'a [[u8; 8]],
    now: i64,
    dead: &'a DeadRows,
    /// The cell's first row.
    first: u32,
}

impl CellFilter<'_> {
    /// Whether the row at `index` of the cell, with these flags, is live and passes.
    ///
    /// # Panics
    /// When the cell has no such row.
    #[inline]
    pub fn passes(&self, index: usize, flags: u8) -> bool {
        let in_time = self
            .times
            .as_ref()
            .is_none_or(|(column, times)| times.contains(&i64::from_le_bytes(column[index])));
        let in_session =
            self.session.is_none_or(|(column, number)| u64::from_le_bytes(column[index]) == number);
        let of_speaker =
            self.speaker.is_none_or(|(column, number)| u32::from_le_bytes(column[index]) == number);
        in_time
            && in_session
            && of_speaker
            && !self.none
            && (flags & ROW_EXPIRES == 0 || i64::from_le_bytes(self.expiries[index]) > self.now)
            && !self.dead.contains(self.first + index as u32)
    }
}

/// Scores stored vectors against one query, exactly.
pub(super) struct ExactScorer<'a> {
    query: &'a [f32],
    element: VectorElement,
    vector_bytes: usize,
    scratch: Vec<f32>,
}

impl<'a> ExactScorer<'a> {
    /// `query`: of unit length, of the space's dimension.
    pub fn new(query: &'a [f32], space: &VectorSpace) -> ExactScorer<'a> {
        ExactScorer {
            query,
            element: space.element,
            vector_bytes: space.vector_bytes(),
            scratch: Vec::new(),
        }
    }

    /// Tells the processor that a vector stored as `bytes` is scored soon.
    pub fn expect(bytes: &[u8]) {
        if let Some(values) = simd::as_floats(bytes) {
            simd::prefetch(values);
        }
    }

    /// The cosine of the query and the vector stored as `bytes`.
    ///
    /// # Errors
    /// `Corrupt` when the vector has another dimension.
    pub fn score(&mut self, bytes: &[u8]) -> Result<f32> {
        if bytes.len() != self.vector_bytes {
            return Err(Error::corrupt(format!(
                "stored vector has {} bytes, the space has {}",
                bytes.len(),
                self.vector_bytes
            )));
        }
        let in_place = match self.element {
            VectorElement::F32 => simd::as_floats(bytes),
            VectorElement::F16 => None,
        };
        let values = match in_place {
            Some(values) => values,
            None => {
                unpack_vector(bytes, self.element, &mut self.scratch);
                &self.scratch
            }
        };
        Ok(simd::dot(self.query, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::pack_vector;

    #[test]
    fn stored_vectors_are_scored_by_their_element() {
        let space = |element| VectorSpace { name: "m".into(), dimension: 3, element };
        let query = [0.6, 0.0, 0.8];
        for element in [VectorElement::F32, VectorElement::F16] {
            let space = space(element);
            let bytes = pack_vector(&[0.0, 0.6, 0.8], element);
            let mut scorer = ExactScorer::new(&query, &space);
            assert!((scorer.score(&bytes).unwrap() - 0.64).abs() < 1e-3);
            // Bytes that lie at an odd address are copied, with the same result.
            let mut shifted = vec![0];
            shifted.extend(&bytes);
            assert_eq!(scorer.score(&shifted[1..]).unwrap(), scorer.score(&bytes).unwrap());
            assert!(scorer.score(&bytes[1..]).is_err());
        }
    }
}
