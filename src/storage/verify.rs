//! Holds every stored byte against its checksums, and the catalog's indexes against the rows.
//!
//! Never stops at the first problem and never panics on what it reads. Says nothing of a user or a text.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EpisodeId, SessionNumber, UserNumber};

use super::bundle::LockName;
use super::catalog::{CatalogRows, CatalogView, CatalogWriter, SessionEntry};
use super::inspect::inspect;
use super::lock;

use super::segment::{Counts, RowHead};
use super::snapshot::Snapshot;
use super::store::{Shared, Store};
use super::trust::check_copy;
use super::vfs::LockKind;

/// Problems that one call lists, at most: the rest would say the same.
const PROBLEMS_MAX: usize = 1000;

/// What a full check found.
#[derive(Debug, Default)]
pub struct Verification {
    /// Rows of segments and logs read and checked.
    pub rows: u64,
    /// Bytes of segments, logs and catalog read and checked.
    pub bytes: u64,
    /// Everything that is wrong, each with its place, at most 1,000. Empty: the database is whole.
    pub problems: Vec<Error>,
}

impl Verification {
    pub(super) fn add(&mut self, problem: Error) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Takes a value or notes what is wrong with it.
    pub(super) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|problem| self.add(problem)).ok()
    }
}

impl Store {
    /// Reads and checks all that is stored: the catalog's pages, all logs, all segments, and that the indexes list
    /// exactly the live rows. Bytes that hold nothing (free pages of the catalog, locks, trust marks) are not looked at. Readers and writers go on; a checkpoint waits while the catalog is checked.
    ///
    /// # Errors
    /// `Locked` when the checkpoint lock is held for longer than the busy timeout; `Poisoned`; `Io`. What is wrong
    /// with the database is no error of the call: it is listed.
    pub fn verify(&self) -> Result<Verification> {
        let shared = self.shared();
        shared.check_usable()?;
        shared.check_place()?;
        let mut found = Verification::default();
        if let Err(error) = shared.check_catalog() {
            // Neither a lock nor a machine that refuses says anything of the database.
            if matches!(error.kind(), ErrorKind::Locked | ErrorKind::Io) {
                return Err(error);
            }
            return Ok(shared.inspect_after(error));
        }
        // A snapshot reads FORMAT's id, the manifest and all logs.
        found.note(shared.follower.bundle.read_format());
        let snapshot = match shared.snapshot() {
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Version) => {
                return Ok(shared.inspect_after(error));
            }
            snapshot => snapshot?,
        };
        let live = check_segments(&snapshot, &mut found);
        if found.problems.is_empty() {
            let checked = check_indexes(&snapshot, &live, &mut found);
            found.note(checked);
        }
        found.rows += snapshot.view().pending.row_count();
        if let Some(stats) = found.note(self.stats()) {
            found.bytes += stats.log_bytes + stats.catalog_bytes;
        }
        Ok(found)
    }
}

impl Shared {
    /// What can be told of the files by themselves, when `error` keeps them from being read together.
    fn inspect_after(&self, error: Error) -> Verification {
        let bundle = &self.follower.bundle;
        let mut found = inspect(bundle.vfs.clone(), bundle.root());
        if found.problems.iter().all(|problem| problem.to_string() != error.to_string()) {
            found.problems.insert(0, error);
        }
        found
    }

    /// Every page of the catalog against its checksum, through a writable open, since redb skips that check on a
    /// read-only one.
    fn check_catalog(&self) -> Result<()> {
        let bundle = &self.follower.bundle;
        if bundle.read_only() {
            return check_copy(bundle);
        }
        let timeout = self.options.busy_timeout;
        let kind = LockKind::Exclusive;
        let _lock = lock::acquire(bundle, LockName::Checkpoint, kind, timeout)?;
        CatalogWriter::open(&bundle.vfs, &bundle.catalog(), self.follower.access, true)?.close()
    }
}

/// What the indexes must list: the live rows of the segments.
#[derive(Default)]
struct Live {
    heads: HashMap<EpisodeId, RowHead>,
    keys: HashMap<(UserNumber, String), EpisodeId>,
    counts: BTreeMap<UserNumber, Counts>,
}

fn check_segments(snapshot: &Snapshot, found: &mut Verification) -> Live {
    let mut live = Live::default();
    let mut seen = HashSet::new();
    for view in &snapshot.view().base.segments {
        found.bytes += view.row.bytes;
        found.rows += u64::from(view.row.rows);
        let problems = view.segment.verify(true);
        let whole = problems.is_empty();
        for problem in problems {
            found.add(problem.error);
        }
        if !whole {
            continue;
        }
        for row in 0..view.row.rows {
            let Some(head) = found.note(view.segment.head(row)) else { continue };
            if !seen.insert((head.id, head.version)) {
                found
                    .add(Error::corrupt("a version of a row lies in two places").of(head.id.get()));
            }
            if view.dead.contains(row) {
                continue;
            }
            let Some(body) = found.note(view.segment.body_decoded(row)) else { continue };
            live.counts.entry(head.user).or_default().add(&Counts {
                rows: 1,
                vectors: i64::from(head.has_vector),
                text_bytes: i64::from(head.text_bytes),
                passages: i64::from(head.shape.passages),
                half_terms: head.shape.half_terms as i64,
            });
            if let Some(key) = body.key
                && live.keys.insert((head.user, key), head.id).is_some()
            {
                found.add(Error::corrupt("two live rows have one key").of(head.id.get()));
            }
            if live.heads.insert(head.id, head).is_some() {
                found.add(Error::corrupt("two versions of a row are live").of(head.id.get()));
            }
        }
    }
    live
}

/// Each index lists exactly the live rows.
fn check_indexes(snapshot: &Snapshot, live: &Live, found: &mut Verification) -> Result<()> {
    let read = snapshot.read();
    let mut listed = 0;
    for row in read.timeline_rows()? {
        let (user, time, id) = row?;
        listed += 1;
        if live.heads.get(&id).is_none_or(|head| (head.user, head.time) != (user, time)) {
            found.add(Error::corrupt("the timeline lists no live row").of(id.get()));
        }
    }
    compare(listed, live.heads.len(), "the timeline", found);
    listed = 0;
    for row in read.recorded_rows()? {
        let (user, time, id) = row?;
        listed += 1;
        let matches = |head: &RowHead| (head.user, head.first_record_time) == (user, time);
        if !live.heads.get(&id).is_some_and(matches) {
            found.add(Error::corrupt("the record times list no live row").of(id.get()));
        }
    }
    compare(listed, live.heads.len(), "the record times", found);
    listed = 0;
    for row in read.key_rows()? {
        let (user, key, id) = row?;
        listed += 1;
        if live.keys.get(&(user, key)) != Some(&id) {
            found.add(Error::corrupt("a key names no live row").of(id.get()));
        }
    }
    compare(listed, live.keys.len(), "the keys", found);
    check_sessions(snapshot, live, found)?;
    for row in read.statistics_rows()? {
        let (Some(user), counts) = row? else { continue };
        if live.counts.get(&user).copied().unwrap_or_default() != counts {
            found.add(Error::corrupt("live counts do not match the rows").of(user.get()));
        }
    }
    for (user, counts) in &live.counts {
        if read.statistics(*user)? != *counts {
            found.add(Error::corrupt("live counts do not match the rows").of(user.get()));
        }
    }
    Ok(())
}

fn check_sessions(snapshot: &Snapshot, live: &Live, found: &mut Verification) -> Result<()> {
    let mut listed = 0;
    for row in snapshot.read().session_order_rows()? {
        let (session, entries) = row?;
        for entry in entries {
            listed += 1;
            let id = EpisodeId::new(entry.id);
            let place = |head: &RowHead| {
                let SessionEntry { time, ordinal, .. } = entry;
                (head.session, head.time, head.ordinal) == (session, time, ordinal)
            };
            if !live.heads.get(&id).is_some_and(place) {
                found.add(Error::corrupt("a session lists no live row").of(entry.id));
            }
        }
    }
    let expected = live.heads.values().filter(|head| head.session != SessionNumber::NONE).count();
    compare(listed, expected, "the sessions", found);
    Ok(())
}

fn compare(listed: usize, live: usize, what: &'static str, found: &mut Verification) {
    if listed != live {
        found.add(Error::corrupt(format!("{what} list {listed} rows of {live}")));
    }
}
