//! The turns before and after a row in its session, by row number.
//!
//! What the catalog says of stored rows is read a session at a time, when first asked for, and kept as long as the
//! catalog's state holds. What the logs add or end lies over it, and is made again when the logs have grown.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Result;
use crate::ids::{EpisodeId, SessionNumber};
use crate::storage::{SessionEntry, Snapshot};

use super::log_rows::LogRows;
use super::rows::NO_ROW;
use super::run::Run;

/// A row whose session was not read yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// The order of stored rows, as the catalog has it.
#[derive(Debug, Default)]
pub struct StoredOrder {
    around: Vec<[AtomicU32; 2]>,
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
    /// Nothing known yet of `rows` rows.
    pub fn new(rows: u32) -> StoredOrder {
        let unknown = || [AtomicU32::new(UNKNOWN), AtomicU32::new(UNKNOWN)];
        StoredOrder { around: (0..rows).map(|_| unknown()).collect() }
    }

    /// The rows before and after the stored row `row`; [`NO_ROW`] for none.
    pub fn around(&self, snapshot: &Snapshot, runs: &[Run<'_>], row: u32) -> Result<[u32; 2]> {
        let slot = &self.around[row as usize];
        let load = || {
            let previous = slot[0].load(Ordering::Acquire);
            [previous, slot[1].load(Ordering::Relaxed)]
        };
        let around = load();
        if around[0] != UNKNOWN {
            return Ok(around);
        }
        if let Some(session) = session_of(runs, row) {
            let entries = snapshot.session_entries(session)?;
            let mut order = Vec::with_capacity(entries.len());
            for entry in &entries {
                order.extend(stored_row(snapshot, runs, EpisodeId::new(entry.id))?);
            }
            for (row, around) in links(&order) {
                self.set(row, around);
            }
        }
        // A row that its session does not list is ended, or stands alone.
        if load()[0] == UNKNOWN {
            self.set(row, [NO_ROW, NO_ROW]);
        }
        Ok(load())
    }

    /// The one before is written last: who sees it sees both.
    fn set(&self, row: u32, around: [u32; 2]) {
        let slot = &self.around[row as usize];
        slot[1].store(around[1], Ordering::Relaxed);
        slot[0].store(around[0], Ordering::Release);
    }
}

impl LogOrder {
    /// What the logs change. `log`: the rows of the logs of `user`.
    pub fn new(
        snapshot: &Snapshot,
        user: &[u8],
        runs: &[Run<'_>],
        log: &LogRows,
    ) -> Result<LogOrder> {
        let mut made =
            LogOrder { stored: HashMap::new(), logs: vec![[NO_ROW, NO_ROW]; log.len() as usize] };
        let mut touched = BTreeSet::new();
        for (name, waiting) in snapshot.pending_sessions(user) {
            let number = snapshot.session_number(user, name)?;
            touched.extend(number);
            made.take(snapshot, runs, log, number, waiting.iter())?;
        }
        // Sessions of which the logs end a row and hold none.
        for id in snapshot.ended() {
            let row = stored_row(snapshot, runs, id)?;
            if let Some(session) = row.and_then(|row| session_of(runs, row))
                && touched.insert(session)
            {
                made.take(snapshot, runs, log, Some(session), [].iter())?;
            }
        }
        Ok(made)
    }

    fn take<'e>(
        &mut self,
        snapshot: &Snapshot,
        runs: &[Run<'_>],
        log: &LogRows,
        number: Option<SessionNumber>,
        waiting: impl Iterator<Item = &'e SessionEntry>,
    ) -> Result<()> {
        let mut entries = match number {
            Some(number) => snapshot.session_entries(number)?,
            None => Vec::new(),
        };
        entries.retain(|entry| !snapshot.is_masked(EpisodeId::new(entry.id)));
        entries.extend(waiting);
        entries.sort_unstable();
        let stored = runs.last().map_or(0, |run| run.ends().0);
        let mut order = Vec::with_capacity(entries.len());
        for entry in &entries {
            let id = EpisodeId::new(entry.id);
            order.extend(match log.row_of(id) {
                Some(row) => Some(stored + row),
                None => stored_row(snapshot, runs, id)?,
            });
        }
        for (row, around) in links(&order) {
            match row.checked_sub(stored) {
                Some(row) => self.logs[row as usize] = around,
                None => {
                    self.stored.insert(row, around);
                }
            }
        }
        Ok(())
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

/// The session of a stored row.
fn session_of(runs: &[Run<'_>], row: u32) -> Option<SessionNumber> {
    let behind = runs.partition_point(|run| run.first <= row);
    let run = &runs[behind.checked_sub(1)?];
    let session = SessionNumber::new(run.session(row - run.first));
    (session != SessionNumber::NONE).then_some(session)
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
