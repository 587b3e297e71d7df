//! What is kept of a user's rows between searches.
//!
//! Kept by the generation of the catalog and the last commit: another of either makes another entry, which takes over
//! what still holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::model::Record;
use crate::options::INDEX_CACHE_USERS;
use crate::storage::Snapshot;

use super::log_rows::LogRows;
use super::neighbours::{LogOrder, StoredOrder};
use super::passages::Passages;
use super::run::Run;
use super::speakers::Speakers;

/// Of the users that were searched lately. One a handle.
#[derive(Debug, Default)]
pub(crate) struct IndexCache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    users: HashMap<Arc<[u8]>, (Arc<Entry>, u64)>,
    /// Counts uses: the user with the oldest goes first.
    clock: u64,
}

enum Known {
    /// Of the same generation and commit.
    Same(Arc<Entry>),
    Other(Arc<Entry>),
    Nothing,
}

/// What is kept of one user.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    generation: u64,
    seq: u64,
    pub stored: Arc<Stored>,
    pub log: LogRows,
    pub log_order: LogOrder,
    pub speakers: Speakers,
}

/// What follows from the segments alone.
#[derive(Debug)]
pub(super) struct Stored {
    pub passages: Passages,
    pub order: StoredOrder,
}

impl IndexCache {
    /// The entry for `user` as `snapshot` shows it. `records`: the live rows of the logs.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(super) fn entry(
        &self,
        snapshot: &Snapshot,
        user: &[u8],
        runs: &[Run<'_>],
        records: &[Arc<Record>],
    ) -> Result<Arc<Entry>> {
        let (generation, seq) = (snapshot.generation(), snapshot.seq().get());
        let (stored, before, mut log) = match self.find(user, (generation, seq)) {
            Known::Same(entry) => return Ok(entry),
            Known::Other(entry) => {
                let stored = Some(&entry.stored).filter(|_| entry.generation == generation);
                let stored = stored.cloned();
                let Entry { speakers, log, .. } = Arc::unwrap_or_clone(entry);
                (stored, Some(speakers), log)
            }
            Known::Nothing => (None, None, LogRows::default()),
        };
        let stored = stored.map_or_else(|| Stored::new(snapshot, runs).map(Arc::new), Ok)?;
        log.update(records);
        let log_order = LogOrder::new(snapshot, user, runs, &stored.order, &log)?;
        let entry = Arc::new(Entry {
            generation,
            seq,
            stored,
            log_order,
            speakers: Speakers::new(speakers(runs, records)?, before.as_ref()),
            log,
        });
        self.keep(user, &entry);
        Ok(entry)
    }

    /// What is kept of `user`. An entry of another time is taken out, so that it can grow in place.
    fn find(&self, user: &[u8], time: (u64, u64)) -> Known {
        let mut kept = self.lock();
        kept.clock += 1;
        let clock = kept.clock;
        match kept.users.get_mut(user) {
            Some((entry, used)) if (entry.generation, entry.seq) == time => {
                *used = clock;
                Known::Same(Arc::clone(entry))
            }
            Some(_) => {
                kept.users.remove(user).map_or(Known::Nothing, |(entry, _)| Known::Other(entry))
            }
            None => Known::Nothing,
        }
    }

    /// Keeps `entry` unless a newer one is there, and lets the user go that was asked for longest ago.
    fn keep(&self, user: &[u8], entry: &Arc<Entry>) {
        let mut kept = self.lock();
        let age = |entry: &Entry| (entry.generation, entry.seq);
        let newer = |(known, _): &(Arc<Entry>, u64)| age(known) > age(entry);
        if kept.users.get(user).is_some_and(newer) {
            return;
        }
        let clock = kept.clock;
        kept.users.insert(user.into(), (Arc::clone(entry), clock));
        if kept.users.len() > INDEX_CACHE_USERS
            && let Some(oldest) = kept.users.iter().min_by_key(|(_, (_, used))| *used)
        {
            let oldest = Arc::clone(oldest.0);
            kept.users.remove(&oldest);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        // Nothing that panics runs under the lock.
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl Stored {
    fn new(snapshot: &Snapshot, runs: &[Run<'_>]) -> Result<Stored> {
        let rows = runs.last().map_or(0, |run| run.ends().0);
        let mut starts = Vec::with_capacity(rows as usize + 1);
        starts.push(0);
        for run in runs {
            starts.pop();
            starts.extend(run.starts()?);
        }
        Ok(Stored { passages: Passages::new(starts), order: StoredOrder::new(snapshot, runs) })
    }
}

/// Live rows of each speaker that has any.
fn speakers(runs: &[Run<'_>], records: &[Arc<Record>]) -> Result<BTreeMap<Arc<str>, u64>> {
    let mut speakers: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for run in runs {
        for (name, rows) in run.live_speakers()?.into_iter().filter(|(_, rows)| *rows > 0) {
            *speakers.entry(name).or_default() += rows;
        }
    }
    for name in records.iter().filter_map(|record| record.body.speaker.as_deref()) {
        match speakers.get_mut(name) {
            Some(rows) => *rows += 1,
            None => drop(speakers.insert(name.into(), 1)),
        }
    }
    Ok(speakers)
}
