//! What can be read of a catalog, in a read transaction and in the state that a publish is building.
//!
//! Invariants: one copy of every read, for both; each call enters redb once. Results are owned, so nothing of redb is
//! held between calls.

use std::ops::{Bound, Range};
use std::sync::Arc;

use redb::ReadableTable;

use crate::error::{Error, Result};
use crate::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use crate::storage::segment::Counts;

use super::boundary::{Attempt, Boundary};
use super::tables::{META_FACTS, META_STATE, STATISTICS_TOTAL, TableSet, TimeKey};
use super::{ManifestRow, Meta, SessionEntry, SessionName, format, order};

/// Rows that a listing reserves room for before it has met them.
const RESERVED_ROWS_MAX: usize = 1024;

/// Reads of one state of the catalog.
///
/// # Errors
/// Every method: `Corrupt` for damaged pages or values, `Io`, and `Poisoned` once the handle has failed.
pub trait CatalogView {
    /// The tables of this state.
    #[doc(hidden)]
    fn tables(&self) -> &impl TableSet;

    /// The boundary that calls go through.
    #[doc(hidden)]
    fn boundary(&self) -> &Boundary;

    /// Generation and applied log, from a row of their own: the check of a reader that asks whether it is up to date.
    fn publish_state(&self) -> Result<(u64, LogId)> {
        self.boundary().run("read of the publish state", || {
            let meta = self.tables().meta()?;
            let row = meta.get(META_STATE)?.ok_or_else(|| missing("publish state"))?;
            Ok(format::decode_state(row.value())?)
        })
    }

    /// The whole of `meta`.
    fn meta(&self) -> Result<Meta> {
        let state = self.publish_state()?;
        self.boundary().run("read of meta", || {
            let meta = self.tables().meta()?;
            let row = meta.get(META_FACTS)?.ok_or_else(|| missing("meta"))?;
            Ok(format::decode_facts(state, row.value())?)
        })
    }

    /// All live segments, ascending by id.
    fn manifest(&self) -> Result<Vec<ManifestRow>> {
        self.boundary().run("read of the manifest", || {
            let mut rows: Vec<ManifestRow> = Vec::new();
            for row in self.tables().manifest()?.iter()? {
                let (segment, value) = row?;
                let row = format::decode_manifest(segment.value(), value.value())?;
                if rows.last().is_some_and(|last| last.segment >= row.segment) {
                    return Err(Error::corrupt("manifest does not ascend").into());
                }
                rows.push(row);
            }
            Ok(rows)
        })
    }

    /// The row of one live segment.
    fn manifest_row(&self, segment: SegmentId) -> Result<Option<ManifestRow>> {
        self.boundary().run("read of a manifest row", || {
            let row = self.tables().manifest()?.get(segment.get())?;
            Ok(row.map(|row| format::decode_manifest(segment.get(), row.value())).transpose()?)
        })
    }

    /// The ended rows of a segment, ascending. A reader compares their number with the manifest's `dead_rows`.
    fn dead(&self, segment: SegmentId) -> Result<Vec<u32>> {
        let number = segment.get();
        self.boundary().run("read of dead rows", || {
            let mut rows = Vec::new();
            for row in self.tables().dead()?.range((number, 0)..=(number, u32::MAX))? {
                let (key, value) = row?;
                format::decode_dead(number, key.value().1, value.value(), &mut rows)?;
            }
            Ok(rows)
        })
    }

    /// The number of the user with this name.
    fn user_number(&self, name: &[u8]) -> Result<Option<UserNumber>> {
        self.boundary().run("read of a user", || {
            let row = self.tables().user_names()?.get(name)?;
            Ok(row.map(|row| UserNumber::new(row.value())))
        })
    }

    /// The name of the user with this number.
    fn user_name(&self, user: UserNumber) -> Result<Option<Arc<[u8]>>> {
        self.boundary().run("read of a user", || {
            let row = self.tables().users()?.get(user.get())?;
            Ok(row.map(|row| Arc::from(row.value())))
        })
    }

    /// Users by name, behind `after`, at most `limit`.
    fn users(&self, after: Option<&[u8]>, limit: usize) -> Result<Vec<(Arc<[u8]>, UserNumber)>> {
        let lower = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.boundary().run("listing of users", || {
            let mut users = Vec::with_capacity(limit.min(RESERVED_ROWS_MAX));
            let table = self.tables().user_names()?;
            for row in table.range::<&[u8]>((lower, Bound::Unbounded))?.take(limit) {
                let (name, number) = row?;
                users.push((Arc::from(name.value()), UserNumber::new(number.value())));
            }
            Ok(users)
        })
    }

    /// The number of a user's session.
    fn session_number(&self, user: UserNumber, name: &str) -> Result<Option<SessionNumber>> {
        self.boundary().run("read of a session", || {
            let row = self.tables().session_names()?.get((user.get(), name.as_bytes()))?;
            Ok(row.map(|row| SessionNumber::new(row.value())))
        })
    }

    /// The session with this number.
    fn session_name(&self, session: SessionNumber) -> Result<Option<SessionName>> {
        self.boundary().run("read of a session", || {
            let row = self.tables().sessions()?.get(session.get())?;
            Ok(row.map(|row| format::decode_session(session.get(), row.value())).transpose()?)
        })
    }

    /// All sessions of a user, by name.
    fn sessions_of(&self, user: UserNumber) -> Result<Vec<SessionName>> {
        let number = user.get();
        self.boundary().run("listing of sessions", || {
            let mut sessions: Vec<SessionName> = Vec::new();
            let table = self.tables().session_names()?;
            let lower: (u64, &[u8]) = (number, &[]);
            for row in table.range(lower..)? {
                let (key, session) = row?;
                let (owner, name) = key.value();
                if owner != number {
                    break;
                }
                let session = SessionNumber::new(session.value());
                let name = format::decode_name(name)?;
                if sessions.last().is_some_and(|last| last.name >= name) {
                    return Err(Error::corrupt("session names do not ascend").of(number).into());
                }
                sessions.push(SessionName { user, session, name });
            }
            Ok(sessions)
        })
    }

    /// All entries of a session in its order.
    fn session_entries(&self, session: SessionNumber) -> Result<Vec<SessionEntry>> {
        self.boundary().run("read of a session's order", || {
            order::entries(self.tables().session_order()?, session.get())
        })
    }

    /// The chunk (at most 256 neighbouring entries) that holds `at`, or would hold it; empty for an empty session.
    fn session_chunk(&self, session: SessionNumber, at: SessionEntry) -> Result<Vec<SessionEntry>> {
        self.boundary().run("read of a session's order", || {
            order::chunk(self.tables().session_order()?, session.get(), at)
        })
    }

    /// The last entry before `entry`, which need not exist itself. One seek.
    fn session_before(
        &self,
        session: SessionNumber,
        entry: SessionEntry,
    ) -> Result<Option<SessionEntry>> {
        self.boundary().run("read of a session's order", || {
            order::before(self.tables().session_order()?, session.get(), entry)
        })
    }

    /// The first entry behind `entry`, which need not exist itself. One seek, or two at a chunk's end.
    fn session_after(
        &self,
        session: SessionNumber,
        entry: SessionEntry,
    ) -> Result<Option<SessionEntry>> {
        self.boundary().run("read of a session's order", || {
            order::after(self.tables().session_order()?, session.get(), entry)
        })
    }

    /// The episode of this user that carries `key`.
    fn key(&self, user: UserNumber, key: &str) -> Result<Option<EpisodeId>> {
        self.boundary().run("read of a key", || {
            let row = self.tables().keys()?.get((user.get(), key.as_bytes()))?;
            Ok(row.map(|row| EpisodeId::new(row.value())))
        })
    }

    /// A user's live episodes as (time, id), with time in `times`, strictly behind `after` in the direction of the
    /// listing, at most `limit`. One seek, then rows in order.
    fn timeline(
        &self,
        user: UserNumber,
        times: Range<i64>,
        after: Option<(i64, u64)>,
        descending: bool,
        limit: usize,
    ) -> Result<Vec<(i64, u64)>> {
        self.boundary().run("read of a timeline", || {
            let bounds = time_bounds(user, times, after, descending);
            listing(self.tables().timeline()?, bounds, descending, limit)
        })
    }

    /// As [`CatalogView::timeline`], by record time.
    fn recorded(
        &self,
        user: UserNumber,
        times: Range<i64>,
        after: Option<(i64, u64)>,
        descending: bool,
        limit: usize,
    ) -> Result<Vec<(i64, u64)>> {
        self.boundary().run("read of record times", || {
            let bounds = time_bounds(user, times, after, descending);
            listing(self.tables().recorded()?, bounds, descending, limit)
        })
    }

    /// Live counts of one user; zeros for a user that has none.
    fn statistics(&self, user: UserNumber) -> Result<Counts> {
        self.boundary().run("read of statistics", || counts(self.tables(), user.get()))
    }

    /// Live counts of all users together.
    fn statistics_total(&self) -> Result<Counts> {
        self.boundary().run("read of statistics", || counts(self.tables(), STATISTICS_TOTAL))
    }

    /// The highest ended version of an episode, and whether a later version replaced it (else it was deleted).
    fn tombstone(&self, id: EpisodeId) -> Result<Option<(u32, bool)>> {
        self.boundary().run("read of a tombstone", || {
            let row = self.tables().tombstones()?.get(id.get())?;
            Ok(row.map(|row| format::decode_tombstone(id.get(), row.value())).transpose()?)
        })
    }
}

fn missing(what: &'static str) -> Error {
    Error::corrupt(format!("the catalog has no {what}"))
}

fn counts(tables: &impl TableSet, key: u64) -> Attempt<Counts> {
    let row = tables.statistics()?.get(key)?;
    Ok(row.map(|row| format::decode_counts(row.value())).transpose()?.unwrap_or_default())
}

fn time_bounds(
    user: UserNumber,
    times: Range<i64>,
    after: Option<(i64, u64)>,
    descending: bool,
) -> (Bound<TimeKey>, Bound<TimeKey>) {
    let user = user.get();
    let lower = (user, times.start, 0);
    let upper = (user, times.end, 0);
    match after.map(|(time, id)| (user, time, id)) {
        Some(key) if !descending && key >= lower => (Bound::Excluded(key), Bound::Excluded(upper)),
        Some(key) if descending && key < upper => (Bound::Included(lower), Bound::Excluded(key)),
        _ => (Bound::Included(lower), Bound::Excluded(upper)),
    }
}

fn listing(
    table: &impl ReadableTable<TimeKey, ()>,
    bounds: (Bound<TimeKey>, Bound<TimeKey>),
    descending: bool,
    limit: usize,
) -> Attempt<Vec<(i64, u64)>> {
    let mut rows = Vec::with_capacity(limit.min(RESERVED_ROWS_MAX));
    // redb takes a reversed range for an empty one.
    let mut range = table.range::<TimeKey>(bounds)?;
    while rows.len() < limit {
        let row = if descending { range.next_back() } else { range.next() };
        let Some(row) = row else { break };
        let (_, time, id) = row?.0.value();
        rows.push((time, id));
    }
    Ok(rows)
}
