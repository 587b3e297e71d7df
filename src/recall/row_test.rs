//! The filters of a search over one user's rows, asked row by row, cheap columns first.

use std::collections::HashMap;

use crate::error::Result;
use crate::index::{At, UserRows};

use super::plan::Filters;

/// The filters, ready to be asked.
pub(super) struct RowTest<'f> {
    filters: &'f Filters,
    /// Whether there is a filter on time.
    is_bounded: bool,
    /// The session's number in the segments; none when it was met in logs only.
    session: Option<u64>,
    /// The speaker's number in each segment that has the speaker, by the segment's id.
    speakers: HashMap<u64, u32>,
}

impl<'f> RowTest<'f> {
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn new(rows: &UserRows<'_>, user: &[u8], filters: &'f Filters) -> Result<RowTest<'f>> {
        let session = match &filters.session {
            Some(session) => rows.snapshot().session_number(user, session)?,
            None => None,
        };
        let mut speakers = HashMap::new();
        if let Some(speaker) = &filters.speaker {
            for run in rows.runs() {
                if let Some(number) = run.speaker_number(speaker)? {
                    speakers.insert(run.segment.id().get(), number);
                }
            }
        }
        let is_bounded = filters.times != (i64::MIN..i64::MAX);
        Ok(RowTest { filters, is_bounded, session: session.map(|session| session.get()), speakers })
    }

    /// Whether a row is live and passes all but the filter on metadata.
    pub fn passes(&self, rows: &UserRows<'_>, row: u32) -> bool {
        let filters = self.filters;
        if !rows.is_live(row) {
            return false;
        }
        match rows.at(row) {
            At::Run(run, at) => {
                !run.is_expired(at, filters.now)
                    && (!self.is_bounded || filters.times.contains(&run.time(at)))
                    && (filters.session.is_none() || self.session == Some(run.session(at)))
                    && (filters.speaker.is_none()
                        || self.speakers.get(&run.segment.id().get()) == Some(&run.speaker(at)))
            }
            At::Log(record) => filters.pass_columns(record),
        }
    }
}
