//! The table of what the logs hold since the last checkpoint, in memory, as every read sees it.
//!
//! Invariant: equal logs give equal tables, in every process. What a log ends of the segments' rows is kept as a mask:
//! an id in `ended` is not taken from the catalog or a segment.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::ids::EpisodeId;
use crate::model::Record;

use super::catalog::SessionEntry;
use super::log::frame::counts_of;
use super::log::{EndFrame, Op};
use super::segment::Counts;

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    users: HashMap<Arc<[u8]>, Arc<UserPending>>,
    rows: HashMap<EpisodeId, PendingRow>,
    /// Ended versions of each id.
    ended: HashMap<EpisodeId, Vec<u32>>,
    /// The same in the order of the logs.
    ends: Vec<(EpisodeId, u32)>,
    row_count: u64,
}

/// The versions of one episode that the logs hold, oldest first.
#[derive(Clone, Debug)]
struct PendingRow {
    versions: Vec<Arc<Record>>,
    live: bool,
}

/// What the logs hold of one user.
#[derive(Clone, Debug, Default)]
pub struct UserPending {
    /// Live rows by time.
    pub timeline: BTreeSet<(i64, EpisodeId)>,
    keys: HashMap<String, EpisodeId>,
    sessions: HashMap<String, BTreeSet<SessionEntry>>,
    /// What the logs change of the user's live counts.
    pub counts: Counts,
}

impl Pending {
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Row(frame) => self.apply_row(&frame.record),
            Op::End(end) => self.apply_end(end),
        }
    }

    /// Rows applied, ended ones included.
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    pub fn is_empty(&self) -> bool {
        self.row_count == 0 && self.ends.is_empty()
    }

    pub fn user(&self, user: &[u8]) -> Option<&UserPending> {
        self.users.get(user).map(|user| &**user)
    }

    pub fn users(&self) -> impl Iterator<Item = (&Arc<[u8]>, &UserPending)> {
        self.users.iter().map(|(name, user)| (name, &**user))
    }

    /// The latest version of a row that is live in the logs.
    pub fn live(&self, id: EpisodeId) -> Option<&Arc<Record>> {
        self.rows.get(&id).filter(|row| row.live).and_then(|row| row.versions.last())
    }

    /// All versions in the logs, oldest first.
    pub fn versions(&self, id: EpisodeId) -> &[Arc<Record>] {
        self.rows.get(&id).map_or(&[], |row| &row.versions)
    }

    /// Whether the logs end a version of this id: what catalog and segments say of it no longer holds.
    pub fn masks(&self, id: EpisodeId) -> bool {
        self.ended.contains_key(&id)
    }

    /// Every ended version, in the order of the logs.
    pub fn ends(&self) -> &[(EpisodeId, u32)] {
        &self.ends
    }

    fn apply_row(&mut self, record: &Arc<Record>) {
        self.row_count += 1;
        let user = Arc::make_mut(self.users.entry(record.user.clone()).or_default());
        user.timeline.insert((record.time, record.id));
        if let Some(key) = &record.body.key {
            user.keys.insert(key.clone(), record.id);
        }
        if let Some(session) = &record.body.session {
            user.sessions.entry(session.clone()).or_default().insert(entry_of(record));
        }
        user.counts.add(&counts_of(record));
        let row = self
            .rows
            .entry(record.id)
            .or_insert_with(|| PendingRow { versions: Vec::new(), live: true });
        row.versions.push(record.clone());
        row.live = true;
    }

    fn apply_end(&mut self, end: &EndFrame) {
        let user = Arc::make_mut(self.users.entry(end.user.clone()).or_default());
        user.counts.add(&end.counts);
        self.ended.entry(end.id).or_default().push(end.version);
        self.ends.push((end.id, end.version));
        let Some(row) = self.rows.get_mut(&end.id) else { return };
        let Some(record) = row.versions.last().filter(|record| record.version == end.version)
        else {
            return;
        };
        row.live = false;
        user.timeline.remove(&(record.time, record.id));
        if let Some(key) = &record.body.key {
            user.keys.remove(key);
        }
        if let Some(session) = &record.body.session
            && let Some(entries) = user.sessions.get_mut(session)
        {
            entries.remove(&entry_of(record));
            if entries.is_empty() {
                user.sessions.remove(session);
            }
        }
    }
}

impl UserPending {
    /// The live row with this key.
    pub fn key(&self, key: &str) -> Option<EpisodeId> {
        self.keys.get(key).copied()
    }

    /// The sessions with live rows, and those rows.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, &BTreeSet<SessionEntry>)> {
        self.sessions.iter().map(|(name, entries)| (&**name, entries))
    }

    /// The live rows of a session, in its order.
    pub fn session(&self, session: &str) -> Option<&BTreeSet<SessionEntry>> {
        self.sessions.get(session)
    }
}

/// A row's place in its session.
pub fn entry_of(record: &Record) -> SessionEntry {
    SessionEntry { time: record.time, ordinal: record.ordinal, id: record.id.get() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Body;
    use crate::storage::log::RowFrame;

    fn row(id: u64, version: u32, key: &str, time: i64) -> Op {
        Op::Row(RowFrame {
            record: Arc::new(Record {
                id: EpisodeId::new(id),
                version,
                user: b"u"[..].into(),
                time,
                offset_minutes: 0,
                record_time: 0,
                first_record_time: 0,
                ordinal: 0,
                expires: i64::MAX,
                vector: [][..].into(),
                shape: crate::model::Shape { passages: 1, ..Default::default() },
                terms: None,
                body: Body {
                    text: "abc".into(),
                    session: Some("s".into()),
                    speaker: None,
                    agent: None,
                    key: Some(key.into()),
                    metadata: String::new(),
                    tags: vec![],
                },
            }),
            body: [][..].into(),
        })
    }

    fn end(id: u64, version: u32, superseded: bool) -> Op {
        Op::End(EndFrame {
            id: EpisodeId::new(id),
            version,
            user: b"u"[..].into(),
            record_time: 0,
            superseded,
            counts: Counts { rows: -1, text_bytes: -3, passages: -1, ..Counts::default() },
        })
    }

    #[test]
    fn an_update_moves_the_row_and_keeps_its_key() {
        let mut pending = Pending::default();
        for op in [row(1, 1, "k", 10), row(2, 1, "l", 11), end(1, 1, true), row(1, 2, "k", 20)] {
            pending.apply(&op);
        }
        let user = pending.user(b"u").unwrap();
        let times: Vec<i64> = user.timeline.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [11, 20]);
        assert_eq!(user.key("k"), Some(EpisodeId::new(1)));
        assert_eq!(user.session("s").unwrap().len(), 2);
        assert_eq!(
            user.counts,
            Counts { rows: 2, text_bytes: 6, passages: 2, ..Counts::default() }
        );
        assert_eq!(pending.versions(EpisodeId::new(1)).len(), 2);
    }

    #[test]
    fn a_deleted_row_leaves_every_listing() {
        let mut pending = Pending::default();
        for op in [row(1, 1, "k", 10), end(1, 1, false), end(7, 3, false)] {
            pending.apply(&op);
        }
        let user = pending.user(b"u").unwrap();
        assert!(user.timeline.is_empty() && user.key("k").is_none() && user.session("s").is_none());
        assert!(pending.live(EpisodeId::new(1)).is_none());
        assert!(pending.masks(EpisodeId::new(7)));
        assert_eq!(pending.ends(), [(EpisodeId::new(1), 1), (EpisodeId::new(7), 3)]);
        assert_eq!(user.counts.rows, -1);
    }
}
