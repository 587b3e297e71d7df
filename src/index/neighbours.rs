//! The turns before and after a row in its session, by row number.
//!
//! The rows of a session are put in order when one of them is first asked for, and what follows is kept as long as the
//! catalog's state holds. What the logs add or end lies over it, and is made again when the logs have grown.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Result;
use crate::ids::{EpisodeId, SessionNumber};
use crate::simd;
use crate::storage::{SessionEntry, Snapshot};

use super::log_rows::LogRows;
use super::rows::NO_ROW;
use super::run::Run;

/// A row whose session was not put in order yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// The sessions of stored rows, without those rows that the catalog lists as dead.
#[derive(Debug, Default)]
pub struct StoredOrder {
    around: Vec<[AtomicU32; 2]>,
    /// The rows by session, in no order within one.
    rows: Vec<u32>,
    /// Where the rows of each session lie in `rows`.
    sessions: HashMap<u64, (u32, u32)>,
}

/// What the logs change of it.
#[derive(Clone, Debug, Default)]
pub struct LogOrder {
    /// Rows of the segments, in sessions that the logs add to or take from.
    stored: HashMap<u32, [u32; 2]>,
    /// Rows of the logs, by their number there.
    logs: Vec<[u32; 2]>,
}

impl StoredOrder {
    /// Sorts the rows of `runs` by session.
    pub fn new(snapshot: &Snapshot, runs: &[Run<'_>]) -> StoredOrder {
        let count = runs.last().map_or(0, |run| run.ends().0);
        let unknown = || [AtomicU32::new(UNKNOWN), AtomicU32::new(UNKNOWN)];
        let mut order = StoredOrder {
            around: (0..count).map(|_| unknown()).collect(),
            ..StoredOrder::default()
        };
        // First how many rows each session has, then where each session starts, then the rows. Rows of one session
        // mostly follow one another.
        let mut spans: Vec<(u32, u32)> = Vec::new();
        let mut span_of: Vec<u32> = Vec::with_capacity(count as usize);
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut last = (SessionNumber::NONE.get(), NO_ROW);
        for run in runs {
            let dead = snapshot.dead_in_catalog(run.segment.id());
            for at in 0..run.len() {
                let session = run.session(at);
                let is_dead = dead.is_some_and(|dead| dead.contains(run.rows.start + at));
                if session == SessionNumber::NONE.get() || is_dead {
                    span_of.push(NO_ROW);
                    continue;
                }
                if session != last.0 {
                    let number = *numbers.entry(session).or_insert_with(|| {
                        spans.push((0, 0));
                        spans.len() as u32 - 1
                    });
                    last = (session, number);
                }
                spans[last.1 as usize].1 += 1;
                span_of.push(last.1);
            }
        }
        let mut start = 0;
        for span in &mut spans {
            let length = span.1;
            *span = (start, start);
            start += length;
        }
        order.rows = vec![0; start as usize];
        for (row, number) in (0..).zip(span_of) {
            if let Some(span) = spans.get_mut(number as usize) {
                order.rows[span.1 as usize] = row;
                span.1 += 1;
            }
        }
        order.sessions = numbers
            .into_iter()
            .map(|(session, number)| (session, spans[number as usize]))
            .collect();
        order
    }

    /// The rows before and after the stored row `row`; [`NO_ROW`] for none.
    pub fn around(&self, runs: &[Run<'_>], row: u32) -> [u32; 2] {
        let slot = &self.around[row as usize];
        let load = || {
            let previous = slot[0].load(Ordering::Acquire);
            [previous, slot[1].load(Ordering::Relaxed)]
        };
        let around = load();
        if around[0] != UNKNOWN {
            return around;
        }
        if let Some(session) = session_of(runs, row) {
            let mut entries: Vec<(SessionEntry, u32)> =
                self.rows_of(session).iter().map(|row| (entry_of(runs, *row), *row)).collect();
            entries.sort_unstable();
            let order: Vec<u32> = entries.into_iter().map(|(_, row)| row).collect();
            for (row, around) in links(&order) {
                self.set(row, around);
            }
        }
        // A dead row stands alone.
        if load()[0] == UNKNOWN {
            self.set(row, [NO_ROW, NO_ROW]);
        }
        load()
    }

    /// Tells the processor that [`StoredOrder::around`] is asked soon.
    pub fn expect(&self, row: u32) {
        simd::prefetch(&self.around[row as usize..=row as usize]);
    }

    fn rows_of(&self, session: SessionNumber) -> &[u32] {
        match self.sessions.get(&session.get()) {
            Some((start, end)) => &self.rows[*start as usize..*end as usize],
            None => &[],
        }
    }

    /// The one before is written last: who sees it sees both.
    fn set(&self, row: u32, around: [u32; 2]) {
        let slot = &self.around[row as usize];
        slot[1].store(around[1], Ordering::Relaxed);
        slot[0].store(around[0], Ordering::Release);
    }
}

impl LogOrder {
    /// What the logs change of `order`. `log`: the rows of the logs of `user`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn new(
        snapshot: &Snapshot,
        user: &[u8],
        runs: &[Run<'_>],
        order: &StoredOrder,
        log: &LogRows,
    ) -> Result<LogOrder> {
        let mut made =
            LogOrder { stored: HashMap::new(), logs: vec![[NO_ROW, NO_ROW]; log.len() as usize] };
        let mut touched = BTreeSet::new();
        for (name, waiting) in snapshot.pending_sessions(user) {
            let number = snapshot.session_number(user, name)?;
            touched.extend(number);
            let stored = number.map_or(&[][..], |number| order.rows_of(number));
            made.take(snapshot, runs, log, stored, waiting.iter());
        }
        // Sessions of which the logs end a row and hold none.
        for id in snapshot.ended() {
            let row = stored_row(snapshot, runs, id)?;
            if let Some(session) = row.and_then(|row| session_of(runs, row))
                && touched.insert(session)
            {
                made.take(snapshot, runs, log, order.rows_of(session), [].iter());
            }
        }
        Ok(made)
    }

    /// Puts the rows of one session in order: those of the segments that the logs do not end, and those of the logs.
    fn take<'e>(
        &mut self,
        snapshot: &Snapshot,
        runs: &[Run<'_>],
        log: &LogRows,
        stored: &[u32],
        waiting: impl Iterator<Item = &'e SessionEntry>,
    ) {
        let first_of_log = runs.last().map_or(0, |run| run.ends().0);
        let stored = stored.iter().map(|row| (entry_of(runs, *row), *row));
        let mut entries: Vec<(SessionEntry, u32)> =
            stored.filter(|(entry, _)| !snapshot.is_masked(EpisodeId::new(entry.id))).collect();
        entries.extend(waiting.filter_map(|entry| {
            let row = log.row_of(EpisodeId::new(entry.id))?;
            Some((*entry, first_of_log + row))
        }));
        entries.sort_unstable();
        let order: Vec<u32> = entries.into_iter().map(|(_, row)| row).collect();
        for (row, around) in links(&order) {
            match row.checked_sub(first_of_log) {
                Some(row) => self.logs[row as usize] = around,
                None => {
                    self.stored.insert(row, around);
                }
            }
        }
    }

    /// The rows around a row of the logs.
    pub fn of_log(&self, row: u32) -> [u32; 2] {
        self.logs[row as usize]
    }

    /// The rows around a stored row, if the logs change them.
    pub fn of_stored(&self, row: u32) -> Option<[u32; 2]> {
        if self.stored.is_empty() {
            return None;
        }
        self.stored.get(&row).copied()
    }
}

/// The run of a stored row, and the row's index in it.
fn at<'r, 's>(runs: &'r [Run<'s>], row: u32) -> (&'r Run<'s>, u32) {
    let run = &runs[runs.partition_point(|run| run.first <= row) - 1];
    (run, row - run.first)
}

/// The session of a stored row.
fn session_of(runs: &[Run<'_>], row: u32) -> Option<SessionNumber> {
    let (run, at) = at(runs, row);
    let session = SessionNumber::new(run.session(at));
    (session != SessionNumber::NONE).then_some(session)
}

/// The place of a stored row in its session.
fn entry_of(runs: &[Run<'_>], row: u32) -> SessionEntry {
    let (run, at) = at(runs, row);
    SessionEntry { time: run.time(at), ordinal: run.ordinal(at), id: run.id(at) }
}

/// The number of the row that holds the latest stored version of `id`, if it is one of `runs`.
fn stored_row(snapshot: &Snapshot, runs: &[Run<'_>], id: EpisodeId) -> Result<Option<u32>> {
    let Some(place) = snapshot.place(id)? else { return Ok(None) };
    let run = runs.iter().find(|run| run.segment.id() == place.view.segment.id());
    let run = run.filter(|run| run.rows.contains(&place.row));
    Ok(run.map(|run| run.first + (place.row - run.rows.start)))
}

/// Each row of a session with the rows around it.
fn links(order: &[u32]) -> impl Iterator<Item = (u32, [u32; 2])> + '_ {
    let at = |place: Option<usize>| place.and_then(|place| order.get(place)).copied();
    order.iter().enumerate().map(move |(place, row)| {
        let around = [at(place.checked_sub(1)), at(Some(place + 1))];
        (*row, around.map(|row| row.unwrap_or(NO_ROW)))
    })
}
