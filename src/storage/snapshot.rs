//! A read view pinned to one commit.

use std::collections::BTreeSet;
use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{CommitSeq, EpisodeId, SegmentId, SessionNumber, UserNumber};
use crate::model::{Record, RowKind};
use crate::simd::codec::Codec;

use super::catalog::{CatalogRead, CatalogView, SessionEntry};
use super::dead::DeadRows;
use super::pending::{Pending, UserPending, entry_of};
use super::segment::{Cluster, Counts, Segment};
use super::view::{SegmentView, View};

/// Catalog rows read at once by a listing.
const PAGE: usize = 256;

/// The order of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// A read view pinned to one commit. Every read of one operation goes through one snapshot.
pub struct Snapshot {
    view: View,
    read: CatalogRead,
}

/// A piece of one user's rows, for a scan.
pub enum Part<'a> {
    /// Rows `rows` of a segment: one cell. `dead` holds the rows of the segment that are not live.
    Cell {
        segment: &'a Arc<Segment>,
        rows: Range<u32>,
        times: (i64, i64),
        dead: Arc<DeadRows>,
        /// The same rows by meaning, but for those without a vector, with the number of the first cluster; empty where
        /// there are few.
        clusters: (u32, &'a [Cluster]),
    },
    /// Live rows that are in the logs only.
    Log { records: Vec<Arc<Record>> },
}

/// Where a row lies in the segments.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub view: &'a SegmentView,
    pub row: u32,
    pub version: u32,
}

impl Snapshot {
    pub(super) fn new(view: View, read: CatalogRead) -> Snapshot {
        Snapshot { view, read }
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    pub(super) fn read(&self) -> &CatalogRead {
        &self.read
    }

    fn pending(&self) -> &Pending {
        &self.view.pending
    }

    fn pending_user(&self, user: &[u8]) -> Option<&UserPending> {
        self.view.pending.user(user)
    }

    /// The last commit that this view shows.
    pub fn seq(&self) -> CommitSeq {
        CommitSeq::new(self.view.seq)
    }

    /// The generation of the catalog's state that this view shows: what is derived from segments alone is as good as
    /// long as it stays.
    pub fn generation(&self) -> u64 {
        self.view.base.generation
    }

    /// The number of a user in the segments, if the catalog has one.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn user_number(&self, user: &[u8]) -> Result<Option<UserNumber>> {
        self.read.user_number(user)
    }

    /// The rows of a segment that the catalog lists as dead; those that the logs end are not among them.
    pub fn dead_in_catalog(&self, segment: SegmentId) -> Option<&DeadRows> {
        let view = self.view.base.segments.iter().find(|view| view.segment.id() == segment);
        view.map(|view| &*view.dead)
    }

    /// Whether the logs end a version of `id`: what catalog and segments say of it no longer holds.
    pub fn is_masked(&self, id: EpisodeId) -> bool {
        self.pending().masks(id)
    }

    /// The episodes of which the logs end a version, in the order of the logs.
    pub fn ended(&self) -> impl Iterator<Item = EpisodeId> + '_ {
        self.pending().ends().iter().map(|(id, _)| *id)
    }

    /// The sessions of which the logs hold live rows of a user, in no order, with those rows' entries.
    pub fn pending_sessions(
        &self,
        user: &[u8],
    ) -> impl Iterator<Item = (&str, &BTreeSet<SessionEntry>)> {
        self.pending_user(user).into_iter().flat_map(UserPending::sessions)
    }

    /// The codec that the segments' codes were made with, once there is one.
    pub fn codec(&self) -> Option<&Arc<Codec>> {
        self.view.base.codec.as_ref()
    }

    /// Where the latest version of `id` that is in a segment lies, live or not. Binary search in each segment whose
    /// ids reach over it.
    pub fn place(&self, id: EpisodeId) -> Result<Option<Place<'_>>> {
        let mut best: Option<Place<'_>> = None;
        for view in self.view.base.segments.iter().rev() {
            if id.get() < view.row.ids.0 || id.get() > view.row.ids.1 || view.row.rows == 0 {
                continue;
            }
            let Some(row) = view.segment.find(id)?.next_back() else { continue };
            let version = view.segment.version(row)?;
            if best.is_none_or(|best| best.version < version) {
                best = Some(Place { view, row, version });
            }
        }
        Ok(best)
    }

    fn live_place(&self, id: EpisodeId) -> Result<Option<Place<'_>>> {
        if self.pending().masks(id) {
            return Ok(None);
        }
        Ok(self.place(id)?.filter(|place| !place.view.dead.contains(place.row)))
    }

    /// The latest version of a live episode.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn get(&self, id: EpisodeId) -> Result<Option<Arc<Record>>> {
        if let Some(record) = self.pending().live(id) {
            return Ok(Some(record.clone()));
        }
        let Some(place) = self.live_place(id)? else { return Ok(None) };
        self.record(&place.view.segment, place.row).map(|record| Some(Arc::new(record)))
    }

    /// All versions of a live episode, oldest first; empty when it does not exist or is deleted.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn versions(&self, id: EpisodeId) -> Result<Vec<Arc<Record>>> {
        if self.pending().live(id).is_none() && self.live_place(id)?.is_none() {
            return Ok(Vec::new());
        }
        let mut versions = Vec::new();
        for view in &self.view.base.segments {
            if view.row.rows > 0 && (view.row.ids.0..=view.row.ids.1).contains(&id.get()) {
                for row in view.segment.find(id)? {
                    versions.push(Arc::new(self.record(&view.segment, row)?));
                }
            }
        }
        versions.extend(self.pending().versions(id).iter().cloned());
        versions.sort_by_key(|record| record.version);
        Ok(versions)
    }

    /// The record of one row of a segment.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn record(&self, segment: &Segment, row: u32) -> Result<Record> {
        record_of(segment, row)
    }

    /// The live episode of this user that carries `key`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn key(&self, user: &[u8], key: &str) -> Result<Option<EpisodeId>> {
        if let Some(id) = self.pending_user(user).and_then(|user| user.key(key)) {
            return Ok(Some(id));
        }
        let Some(user) = self.read.user_number(user)? else { return Ok(None) };
        Ok(self.read.key(user, key)?.filter(|id| !self.pending().masks(*id)))
    }

    /// Live episodes with time in `times`, strictly behind `after` in the direction of the listing, at most `limit`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn timeline(
        &self,
        user: &[u8],
        times: Range<i64>,
        after: Option<(i64, EpisodeId)>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(i64, EpisodeId)>> {
        let mut listed = match self.read.user_number(user)? {
            Some(number) => self.stored_timeline(number, &times, after, direction, limit)?,
            None => Vec::new(),
        };
        if let Some(pending) = self.pending_user(user) {
            listed.extend(pending_timeline(pending, &times, after, direction, limit));
            match direction {
                Direction::Ascending => listed.sort_unstable(),
                Direction::Descending => listed.sort_unstable_by(|a, b| b.cmp(a)),
            }
            listed.truncate(limit);
        }
        Ok(listed)
    }

    fn stored_timeline(
        &self,
        user: UserNumber,
        times: &Range<i64>,
        after: Option<(i64, EpisodeId)>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(i64, EpisodeId)>> {
        let descending = direction == Direction::Descending;
        let mut after = after.map(|(time, id)| (time, id.get()));
        let mut listed = Vec::new();
        while listed.len() < limit {
            let page = (limit - listed.len()).clamp(1, PAGE);
            let rows = self.read.timeline(user, times.clone(), after, descending, page)?;
            let full = rows.len() == page;
            after = rows.last().copied().or(after);
            let rows = rows.into_iter().map(|(time, id)| (time, EpisodeId::new(id)));
            listed.extend(rows.filter(|(_, id)| !self.pending().masks(*id)));
            if !full {
                break;
            }
        }
        Ok(listed)
    }

    /// Live episodes of one session in its order: (time, ordinal, id).
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn session(&self, user: &[u8], session: &str) -> Result<Vec<EpisodeId>> {
        let mut entries = BTreeSet::new();
        if let Some(number) = self.session_number(user, session)? {
            entries.extend(self.read.session_entries(number)?);
            entries.retain(|entry| !self.pending().masks(EpisodeId::new(entry.id)));
        }
        if let Some(pending) = self.pending_user(user).and_then(|user| user.session(session)) {
            entries.extend(pending);
        }
        Ok(entries.into_iter().map(|entry| EpisodeId::new(entry.id)).collect())
    }

    /// The live episodes before and after one in its session.
    ///
    /// # Errors
    /// `NotFound` when `id` is no live episode; `Corrupt`, `Io`.
    pub fn neighbours(&self, id: EpisodeId) -> Result<(Option<EpisodeId>, Option<EpisodeId>)> {
        let missing = || Error::not_found("no such episode").of(id.get());
        let (entry, number, pending) = match self.pending().live(id) {
            Some(record) => {
                let Some(session) = &record.body.session else { return Ok((None, None)) };
                let number = self.session_number(&record.user, session)?;
                let user = self.pending_user(&record.user);
                (entry_of(record), number, user.and_then(|user| user.session(session)))
            }
            None => {
                let place = self.live_place(id)?.ok_or_else(missing)?;
                let head = place.view.segment.head(place.row)?;
                if head.session == SessionNumber::NONE {
                    return Ok((None, None));
                }
                let entry = SessionEntry { time: head.time, ordinal: head.ordinal, id: id.get() };
                (entry, Some(head.session), self.pending_session(head.session)?)
            }
        };
        let around = |forward: bool| -> Result<Option<EpisodeId>> {
            let stored = match number {
                Some(number) => self.stored_neighbour(number, entry, forward)?,
                None => None,
            };
            let waiting = pending.and_then(|entries| {
                if forward {
                    entries.range((Bound::Excluded(entry), Bound::Unbounded)).next()
                } else {
                    entries.range(..entry).next_back()
                }
            });
            let nearest = match (stored, waiting.copied()) {
                (Some(a), Some(b)) => Some(if forward { a.min(b) } else { a.max(b) }),
                (a, b) => a.or(b),
            };
            Ok(nearest.map(|entry| EpisodeId::new(entry.id)))
        };
        Ok((around(false)?, around(true)?))
    }

    fn stored_neighbour(
        &self,
        session: SessionNumber,
        mut entry: SessionEntry,
        forward: bool,
    ) -> Result<Option<SessionEntry>> {
        loop {
            let next = if forward {
                self.read.session_after(session, entry)?
            } else {
                self.read.session_before(session, entry)?
            };
            match next {
                Some(found) if self.pending().masks(EpisodeId::new(found.id)) => entry = found,
                found => return Ok(found),
            }
        }
    }

    /// The logs' rows of a session that is known by number. Most databases have few users in the logs.
    fn pending_session(&self, session: SessionNumber) -> Result<Option<&BTreeSet<SessionEntry>>> {
        if self.pending().is_empty() {
            return Ok(None);
        }
        let Some(name) = self.read.session_name(session)? else { return Ok(None) };
        let Some(user) = self.read.user_name(name.user)? else { return Ok(None) };
        Ok(self.pending_user(&user).and_then(|user| user.session(&name.name)))
    }

    /// Users that have at least one live episode, by name, ascending.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn users(&self) -> Result<Vec<Arc<[u8]>>> {
        let mut users = BTreeSet::new();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.read.users(after.as_deref(), PAGE)?;
            let full = page.len() == PAGE;
            after = page.last().map(|(name, _)| name.to_vec());
            for (name, number) in page {
                let mut counts = self.read.statistics(number)?;
                if let Some(pending) = self.pending_user(&name) {
                    counts.add(&pending.counts);
                }
                if counts.rows > 0 {
                    users.insert(Arc::from(&name[..]));
                }
            }
            if !full {
                break;
            }
        }
        for (name, pending) in self.pending().users() {
            if !pending.timeline.is_empty() {
                users.insert(name.clone());
            }
        }
        Ok(users.into_iter().collect())
    }

    /// Live counts of one user.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn counts(&self, user: &[u8]) -> Result<Counts> {
        let mut counts = match self.read.user_number(user)? {
            Some(number) => self.read.statistics(number)?,
            None => Counts::default(),
        };
        if let Some(pending) = self.pending_user(user) {
            counts.add(&pending.counts);
        }
        Ok(counts)
    }

    /// The pieces that a scan of one user's episodes goes through.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn parts(&self, user: &[u8]) -> Result<Vec<Part<'_>>> {
        let mut parts = Vec::new();
        if let Some(number) = self.read.user_number(user)? {
            let segments = &self.view.base.segments;
            let dead = self.view.masks.of(segments, self.pending().ends())?;
            for (view, dead) in segments.iter().zip(dead) {
                let cells = view.segment.cells_of(number, RowKind::Episode);
                for cell in cells {
                    let clusters = match cells.len() {
                        1 => view.segment.clusters_of(number, RowKind::Episode),
                        _ => (0, &[][..]),
                    };
                    parts.push(Part::Cell {
                        segment: &view.segment,
                        rows: cell.rows.clone(),
                        times: (cell.min_time, cell.max_time),
                        dead: dead.clone(),
                        clusters,
                    });
                }
            }
        }
        if let Some(pending) = self.pending_user(user) {
            let records = pending.timeline.iter().filter_map(|(_, id)| self.pending().live(*id));
            let records: Vec<_> = records.cloned().collect();
            if !records.is_empty() {
                parts.push(Part::Log { records });
            }
        }
        Ok(parts)
    }

    /// The number of a session in the segments' session column, if it is in the catalog.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn session_number(&self, user: &[u8], session: &str) -> Result<Option<SessionNumber>> {
        match self.read.user_number(user)? {
            Some(user) => self.read.session_number(user, session),
            None => Ok(None),
        }
    }
}

/// The record of one row of a segment.
///
/// # Errors
/// `Corrupt`, `Io`.
pub fn record_of(segment: &Segment, row: u32) -> Result<Record> {
    let head = segment.head(row)?;
    let user = segment
        .user_name(head.user)?
        .ok_or_else(|| Error::corrupt("row of a user without a name").of(head.id.get()))?;
    Ok(Record {
        id: head.id,
        version: head.version,
        user,
        time: head.time,
        offset_minutes: head.offset_minutes,
        record_time: head.record_time,
        first_record_time: head.first_record_time,
        ordinal: head.ordinal,
        expires: head.expires,
        vector: segment.vector(row)?.unwrap_or_default().into(),
        shape: head.shape,
        terms: None,
        body: segment.body_decoded(row)?,
    })
}

fn pending_timeline(
    pending: &UserPending,
    times: &Range<i64>,
    after: Option<(i64, EpisodeId)>,
    direction: Direction,
    limit: usize,
) -> Vec<(i64, EpisodeId)> {
    let mut from = Bound::Included((times.start, EpisodeId::new(0)));
    let mut to = Bound::Excluded((times.end, EpisodeId::new(0)));
    if let Some(after) = after {
        match direction {
            Direction::Ascending if after.0 >= times.start => from = Bound::Excluded(after),
            Direction::Descending if after.0 < times.end => to = Bound::Excluded(after),
            _ => {}
        }
    }
    // A cursor outside the range, or an empty range, would make the bounds cross.
    if let (Bound::Included(a) | Bound::Excluded(a), Bound::Excluded(b)) = (from, to)
        && a >= b
    {
        return Vec::new();
    }
    let range = pending.timeline.range((from, to)).copied();
    match direction {
        Direction::Ascending => range.take(limit).collect(),
        Direction::Descending => range.rev().take(limit).collect(),
    }
}
