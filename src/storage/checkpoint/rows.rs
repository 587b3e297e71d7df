//! What a checkpoint writes: the rows of the sealed logs in segment order, and the ends of earlier rows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::{EpisodeId, SegmentId, SessionNumber, UserNumber};
use crate::model::{RowKind, RowTerms};
use crate::simd::codec::Codec;
use crate::storage::catalog::{CatalogView, SessionEntry};
use crate::storage::log::frame::counts_of;
use crate::storage::log::{EndFrame, Op, RowFrame};
use crate::storage::pending::entry_of;
use crate::storage::segment::{
    Counts, PassageLength, PutTerm, RowHead, RowSource, Tombstone, invert,
};
use crate::storage::snapshot::Snapshot;

/// Everything that one checkpoint does, decided before anything is written.
pub struct Plan {
    /// Sorted by (user, kind, cluster, id, version).
    pub rows: Vec<PlanRow>,
    /// Ends of rows that lie in segments.
    pub ends: Vec<StoredEnd>,
    /// Deleted episodes of which a segment holds a version, with the version that the deletion ended.
    pub deleted: BTreeMap<EpisodeId, u32>,
    /// Every end that a segment must remember, with its user's number, ascending by (id, version).
    tombstones: Vec<Tombstone>,
    pub new_users: Vec<(UserNumber, Arc<[u8]>)>,
    pub new_sessions: Vec<(SessionNumber, UserNumber, String)>,
    /// Users and sessions that the segment mentions.
    users: BTreeMap<UserNumber, Arc<[u8]>>,
    sessions: BTreeMap<SessionNumber, (UserNumber, String)>,
    /// Change of each user's live counts.
    pub counts: BTreeMap<UserNumber, Counts>,
    pub next_user: u64,
    pub next_session: u64,
}

/// A row to write.
pub struct PlanRow {
    pub frame: RowFrame,
    pub user: UserNumber,
    pub session: SessionNumber,
    /// No log ends it: the catalog's indexes list it.
    pub live: bool,
}

/// The end of a row that lies in a segment.
pub struct StoredEnd {
    pub end: EndFrame,
    pub segment: SegmentId,
    pub row: u32,
    pub head: RowHead,
    pub key: Option<String>,
}

impl Plan {
    /// Decides what becomes of `ops`, the sealed logs' frames in order, on top of `before`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`: what the ends name cannot be read.
    pub fn new(before: &Snapshot, ops: Vec<Op>) -> Result<Plan> {
        let meta = &before.view().base.meta;
        let mut plan = Plan {
            rows: Vec::new(),
            ends: Vec::new(),
            deleted: BTreeMap::new(),
            tombstones: Vec::new(),
            new_users: Vec::new(),
            new_sessions: Vec::new(),
            users: BTreeMap::new(),
            sessions: BTreeMap::new(),
            counts: BTreeMap::new(),
            next_user: meta.next_user,
            next_session: meta.next_session,
        };
        let (mut rows, mut ends) = (Vec::new(), Vec::new());
        for op in ops {
            match op {
                Op::Row(row) => rows.push(row),
                Op::End(end) => ends.push(end),
            }
        }
        let ended: HashSet<(EpisodeId, u32)> =
            ends.iter().map(|end| (end.id, end.version)).collect();
        let deleted: HashSet<EpisodeId> =
            ends.iter().filter(|end| !end.superseded).map(|end| end.id).collect();
        let mut names = Names { before, users: HashMap::new(), sessions: HashMap::new() };
        for row in rows {
            plan.take_row(&mut names, row, &ended, &deleted)?;
        }
        let stored: BTreeSet<EpisodeId> = plan.rows.iter().map(|row| row.frame.record.id).collect();
        for end in ends {
            plan.take_end(&mut names, end, &stored)?;
        }
        plan.rows.sort_by_key(|row| {
            (row.user, RowKind::Episode, row.frame.record.id, row.frame.record.version)
        });
        plan.tombstones.sort_by_key(|tombstone| (tombstone.id, tombstone.version));
        Ok(plan)
    }

    fn take_row(
        &mut self,
        names: &mut Names<'_>,
        frame: RowFrame,
        ended: &HashSet<(EpisodeId, u32)>,
        deleted: &HashSet<EpisodeId>,
    ) -> Result<()> {
        let record = &frame.record;
        let user = names.user(self, &record.user)?;
        self.counts.entry(user).or_default().add(&counts_of(record));
        if deleted.contains(&record.id) {
            // Written and deleted since the last checkpoint: nothing of it reaches a segment.
            return Ok(());
        }
        let session = match &record.body.session {
            Some(session) => names.session(self, user, session)?,
            None => SessionNumber::NONE,
        };
        self.users.entry(user).or_insert_with(|| record.user.clone());
        let live = !ended.contains(&(record.id, record.version));
        self.rows.push(PlanRow { user, session, live, frame });
        Ok(())
    }

    fn take_end(
        &mut self,
        names: &mut Names<'_>,
        end: EndFrame,
        stored: &BTreeSet<EpisodeId>,
    ) -> Result<()> {
        let user = names.user(self, &end.user)?;
        self.counts.entry(user).or_default().add(&end.counts);
        let mut found = stored.contains(&end.id);
        for view in &names.before.view().base.segments {
            found |= !found && view.segment.find(end.id)?.len() > 0;
            let Some(row) = view.segment.row_of(end.id, end.version)? else { continue };
            let head = view.segment.head(row)?;
            let key = view.segment.body_decoded(row)?.key;
            let segment = view.row.segment;
            self.ends.push(StoredEnd { end: end.clone(), segment, row, head, key });
        }
        if found && !end.superseded {
            self.deleted.insert(end.id, end.version);
        }
        if found {
            self.users.entry(user).or_insert_with(|| end.user.clone());
            self.tombstones.push(Tombstone {
                id: end.id,
                version: end.version,
                user,
                record_time: end.record_time,
                superseded: end.superseded,
                counts: end.counts,
            });
        }
        Ok(())
    }

    /// Nothing is left to write into a segment.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.tombstones.is_empty()
    }

    pub fn segment_users(&self) -> Vec<(UserNumber, Arc<[u8]>)> {
        self.users.iter().map(|(number, name)| (*number, name.clone())).collect()
    }

    pub fn segment_sessions(&self) -> Vec<(SessionNumber, UserNumber, String)> {
        let sessions = self.sessions.iter();
        sessions.map(|(number, (user, name))| (*number, *user, name.clone())).collect()
    }

    pub fn tombstones(&self) -> Vec<Tombstone> {
        self.tombstones.clone()
    }

    /// Entries to put into and take from each session's order.
    pub fn session_changes(&self) -> BTreeMap<SessionNumber, [Vec<SessionEntry>; 2]> {
        let mut changes: BTreeMap<SessionNumber, [Vec<SessionEntry>; 2]> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.live) {
            changes.entry(row.session).or_default()[0].push(entry_of(&row.frame.record));
        }
        for end in &self.ends {
            let head = &end.head;
            changes.entry(head.session).or_default()[1].push(SessionEntry {
                time: head.time,
                ordinal: head.ordinal,
                id: head.id.get(),
            });
        }
        changes.remove(&SessionNumber::NONE);
        changes
    }
}

/// Numbers of users and sessions: the catalog's, or new ones.
struct Names<'a> {
    before: &'a Snapshot,
    users: HashMap<Arc<[u8]>, UserNumber>,
    sessions: HashMap<(UserNumber, String), SessionNumber>,
}

impl Names<'_> {
    fn user(&mut self, plan: &mut Plan, name: &Arc<[u8]>) -> Result<UserNumber> {
        if let Some(number) = self.users.get(name) {
            return Ok(*number);
        }
        let number = match self.before.read().user_number(name)? {
            Some(number) => number,
            None => {
                let number = UserNumber::new(plan.next_user);
                plan.next_user += 1;
                plan.new_users.push((number, name.clone()));
                number
            }
        };
        self.users.insert(name.clone(), number);
        Ok(number)
    }

    fn session(&mut self, plan: &mut Plan, user: UserNumber, name: &str) -> Result<SessionNumber> {
        let key = (user, name.to_owned());
        if let Some(number) = self.sessions.get(&key) {
            return Ok(*number);
        }
        let number = match self.before.read().session_number(user, name)? {
            Some(number) => number,
            None => {
                let number = SessionNumber::new(plan.next_session);
                plan.next_session += 1;
                plan.new_sessions.push((number, user, name.to_owned()));
                number
            }
        };
        plan.sessions.insert(number, (user, name.to_owned()));
        self.sessions.insert(key, number);
        Ok(number)
    }
}

/// The plan's rows as a segment writer takes them.
pub struct LogRows<'a>(&'a Plan);

impl<'a> LogRows<'a> {
    pub fn new(plan: &'a Plan) -> LogRows<'a> {
        LogRows(plan)
    }
}

impl RowSource for LogRows<'_> {
    fn len(&self) -> usize {
        self.0.rows.len()
    }

    fn head(&self, row: usize) -> Result<RowHead> {
        let row = &self.0.rows[row];
        let record = &row.frame.record;
        Ok(RowHead {
            id: record.id,
            version: record.version,
            kind: RowKind::Episode,
            user: row.user,
            cluster: 0,
            session: row.session,
            ordinal: record.ordinal,
            time: record.time,
            offset_minutes: record.offset_minutes,
            record_time: record.record_time,
            first_record_time: record.first_record_time,
            expires: record.expires,
            has_vector: !record.vector.is_empty(),
            text_bytes: record.body.text.len() as u32,
            shape: record.shape,
        })
    }

    fn vector(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.0.rows[row].frame.record.vector);
        Ok(())
    }

    fn code(&self, _row: usize, _codec: &Codec, _out: &mut Vec<u8>) -> Result<Option<f32>> {
        Ok(None)
    }

    fn body(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.0.rows[row].frame.body);
        Ok(())
    }
    fn speaker(&self, row: usize) -> Result<Option<&str>> {
        Ok(self.0.rows[row].frame.record.body.speaker.as_deref())
    }

    fn passages(&self, row: usize, out: &mut Vec<PassageLength>) -> Result<()> {
        out.extend(PassageLength::of(self.terms_of(row)));
        Ok(())
    }

    fn terms(&self, rows: Range<usize>, starts: &[u32], put: &mut PutTerm<'_>) -> Result<()> {
        invert(rows.map(|row| (starts[row], self.terms_of(row))), put)
    }
}

impl LogRows<'_> {
    fn terms_of(&self, row: usize) -> &RowTerms {
        let terms = self.0.rows[row].frame.record.terms.as_ref();
        terms.expect("a row of a log has its terms")
    }
}
