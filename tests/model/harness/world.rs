//! A run: several handles of one database, and the oracle beside them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loomdb::internals::storage::vfs::Vfs;
use loomdb::{
    Added, Db, Embedding, EpisodeId, ErrorKind, Maintenance, Memory, OpenOptions, Outcome, Patch,
    Timestamp, Turn, ZonedTime,
};

use super::check::{self, Same, answer, refused, same};
use super::embedder::{self, ExactEmbedder};
use super::op::{Op, PatchSpec, TurnSpec};
use super::oracle::{Content, Expected, NewTurn, Oracle};
use super::pools;

/// Handles of a run: one that checkpoints when told, one that does so by itself after a few rows, one read-only.
pub const HANDLES: usize = 3;
/// Rows of the log at which the second handle checkpoints.
const ROWS_INLINE: u64 = 6;
/// The handle that writes nothing.
const READ_ONLY: usize = 2;
/// A run has one thread: whoever waits for a lock waits for ever.
const BUSY_TIMEOUT: Duration = Duration::from_millis(200);

/// The run.
pub struct World {
    pub oracle: Oracle,
    /// The highest id given out so far.
    pub highest: u64,
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    handles: Vec<Db>,
}

/// Opens handle number `handle` of the database at `path`.
///
/// # Errors
/// Those of [`Db::open_on`].
pub fn open(vfs: &Arc<dyn Vfs>, path: &std::path::Path, handle: usize) -> loomdb::Result<Db> {
    let options = OpenOptions::new()
        .embedding(Embedding::Custom(Arc::new(ExactEmbedder)))
        .busy_timeout(BUSY_TIMEOUT)
        .catalog_cache_bytes(1 << 20)
        .checkpoint_rows(ROWS_INLINE)
        .read_only(handle == READ_ONLY)
        .maintenance(match handle {
            1 => Maintenance::Inline,
            _ => Maintenance::Manual,
        });
    Db::open_on(vfs.clone(), path, options)
}

impl World {
    /// A new database at `path`, with all its handles.
    pub fn new(vfs: Arc<dyn Vfs>, path: impl Into<PathBuf>) -> Result<World, String> {
        let path = path.into();
        let handles = Vec::new();
        let mut world = World { oracle: Oracle::default(), highest: 0, vfs, path, handles };
        world.open_all()?;
        Ok(world)
    }

    fn open_all(&mut self) -> Same {
        for handle in 0..HANDLES {
            self.handles.push(answer(open(&self.vfs, &self.path, handle), "open")?);
        }
        Ok(())
    }

    /// Runs `ops` one by one, then compares everything. The difference names the operation.
    pub fn run(&mut self, ops: &[Op]) -> Same {
        for (step, op) in ops.iter().enumerate() {
            self.apply(op).map_err(|difference| format!("step {step}, {op:?}: {difference}"))?;
        }
        self.finish()
    }

    /// Compares everything that every handle answers, then the whole file by its checksums.
    pub fn finish(&self) -> Same {
        for (number, handle) in self.handles.iter().enumerate() {
            check::everything(handle, &self.oracle, self.highest)
                .map_err(|difference| format!("handle {number} at the end: {difference}"))?;
        }
        check::storage(&self.vfs, &self.path, &self.oracle)?;
        let found = answer(self.handles[0].verify(), "verify")?;
        same(found.problems.iter().map(ToString::to_string).collect(), Vec::new(), "problems")
    }

    /// Runs one operation and compares its answer, and after a write what another handle then shows.
    pub fn apply(&mut self, op: &Op) -> Same {
        match op {
            Op::Add { handle, user, turns } => self.add(*handle, *user, turns),
            Op::Update { handle, user, target, patch } => {
                self.update(*handle, *user, *target, patch)
            }
            Op::Delete { handle, user, target } => self.delete(*handle, *user, *target),
            Op::DeleteSession { handle, user, session } => {
                self.delete_session(*handle, *user, *session)
            }
            Op::Checkpoint { handle } => self.checkpoint(*handle),
            Op::Merge { handle } => {
                let handle = number(*handle);
                match self.handles[handle].merge() {
                    Err(error) if handle == READ_ONLY => {
                        same(error.kind(), ErrorKind::Invalid, "merge of a read-only handle")
                    }
                    result => answer(result, "merge").map(drop),
                }
            }
            Op::Churn { handle, user, rounds } => {
                let turn = TurnSpec { text: *rounds, key: *user, ..TurnSpec::default() };
                for round in 0..1 + rounds % 9 {
                    self.add(*handle, *user, &[TurnSpec { time: round, ..turn.clone() }])?;
                    self.checkpoint(*handle)?;
                }
                Ok(())
            }
            Op::Reopen { handle } => {
                let handle = number(*handle);
                answer(self.handles[handle].close(), "close")?;
                self.handles[handle] = answer(open(&self.vfs, &self.path, handle), "reopen")?;
                Ok(())
            }
            Op::ReopenAll => {
                self.handles.clear();
                self.open_all()
            }
            Op::Search { handle, user, query } => {
                let (memory, user) = self.memory(*handle, *user);
                check::search(&memory, &self.oracle, user, query)
            }
            Op::Timeline { handle, user, listing } => {
                let (memory, user) = self.memory(*handle, *user);
                check::listing(&memory, &self.oracle, user, listing)
            }
            Op::Check { handle } => {
                let handle = &self.handles[number(*handle)];
                check::everything(handle, &self.oracle, self.highest)?;
                check::storage(&self.vfs, &self.path, &self.oracle)
            }
        }
    }

    fn memory(&self, handle: u8, user: u8) -> (Memory, usize) {
        let user = usize::from(user) % pools::USERS.len();
        (self.handles[number(handle)].user(pools::USERS[user]), user)
    }

    fn add(&mut self, handle: u8, user: u8, specs: &[TurnSpec]) -> Same {
        let (memory, user) = self.memory(handle, user);
        let mut turns: Vec<NewTurn> = specs.iter().map(NewTurn::new).collect();
        let before = Timestamp::now();
        let result = memory.add_many(turns.iter().map(turn).collect());
        if number(handle) == READ_ONLY && !turns.is_empty() {
            return refused(result.map(drop), ErrorKind::Invalid, "add to a read-only handle");
        }
        let added = answer(result, "add")?;
        same(added.len(), turns.len(), "answers of an addition")?;
        let lowest = self.highest;
        for (turn, added) in turns.iter_mut().zip(&added) {
            let stored = answer(added.episode(), "episode of an addition")?;
            if !turn.given_time && added.outcome != Outcome::Unchanged {
                let time = stored.time.time;
                if time < before || time > Timestamp::now() {
                    return Err(format!("a turn without a time got {time:?}"));
                }
                turn.content.time = time.micros();
            }
            let expected = self.oracle.expect_add(user, turn);
            self.take_in(user, turn, expected, added)?;
            if expected == Expected::Stored && added.id.get() <= lowest {
                return Err(format!("id {} was given out before", added.id));
            }
            let row = &self.oracle.rows[&added.id.get()];
            check::episode(&stored, added.id.get(), row.latest())?;
            same(added.version as usize, row.versions.len(), "version of an addition")?;
        }
        self.glance(handle, user)
    }

    /// Holds one answer of an addition against what was expected, and takes the turn in.
    fn take_in(&mut self, user: usize, turn: &NewTurn, expected: Expected, got: &Added) -> Same {
        let id = got.id.get();
        match (expected, got.outcome) {
            (Expected::Stored, Outcome::Stored) => {
                if id <= self.highest {
                    return Err(format!("id {id} does not follow {}", self.highest));
                }
                self.highest = id;
                self.oracle.put(id, user, turn.content.clone());
            }
            (Expected::NewVersion(known), Outcome::NewVersion) if known == id => {
                self.oracle.put(id, user, turn.content.clone());
            }
            (Expected::Unchanged(known), Outcome::Unchanged) if known == id => {}
            (expected, outcome) => {
                return Err(format!("add: got {outcome:?} of {id}, wanted {expected:?}"));
            }
        }
        Ok(())
    }

    fn update(&mut self, handle: u8, user: u8, target: u8, spec: &PatchSpec) -> Same {
        let (memory, user) = self.memory(handle, user);
        let id = self.target(target);
        let row = self.oracle.rows.get(&id).filter(|row| row.user == user);
        let old = row.map(|row| row.latest().clone());
        let old = old.filter(|old| !pools::is_expired(old.expires));
        let new = old.as_ref().and_then(|old| Oracle::patched(old, spec));
        let result = memory.update(EpisodeId::new(id), patch(spec, old.as_ref(), new.as_ref()));
        let Some(old) = old else {
            return refused(result.map(drop), ErrorKind::NotFound, "update of nothing");
        };
        if number(handle) == READ_ONLY && new.is_some() {
            return refused(result.map(drop), ErrorKind::Invalid, "update of a read-only handle");
        }
        let added = answer(result, "update")?;
        let outcome = if new.is_some() { Outcome::NewVersion } else { Outcome::Unchanged };
        same((added.id.get(), added.outcome), (id, outcome), "outcome of an update")?;
        let stored = answer(added.episode(), "episode of an update")?;
        check::episode(&stored, id, new.as_ref().unwrap_or(&old))?;
        if let Some(new) = new {
            self.oracle.put(id, user, new);
        }
        self.glance(handle, user)
    }

    fn delete(&mut self, handle: u8, user: u8, target: u8) -> Same {
        let (memory, user) = self.memory(handle, user);
        let id = self.target(target);
        let is_there = self.oracle.rows.get(&id).is_some_and(|row| row.user == user);
        let result = memory.delete(EpisodeId::new(id));
        if number(handle) == READ_ONLY {
            return refused(result, ErrorKind::Invalid, "delete of a read-only handle");
        }
        if !is_there {
            return refused(result, ErrorKind::NotFound, "delete of nothing");
        }
        answer(result, "delete")?;
        self.oracle.rows.remove(&id);
        self.glance(handle, user)
    }

    fn delete_session(&mut self, handle: u8, user: u8, session: u8) -> Same {
        let (memory, user) = self.memory(handle, user);
        let session = pools::SESSIONS[usize::from(session) % pools::SESSIONS.len()];
        let result = memory.delete_session(session);
        if number(handle) == READ_ONLY {
            return refused(result.map(drop), ErrorKind::Invalid, "deletion, read-only");
        }
        let before = self.oracle.rows.len();
        self.oracle
            .rows
            .retain(|_, row| row.user != user || row.latest().session.as_deref() != Some(session));
        let gone = (before - self.oracle.rows.len()) as u64;
        same(answer(result, "delete of a session")?, gone, "episodes of a deleted session")?;
        self.glance(handle, user)
    }

    fn checkpoint(&mut self, handle: u8) -> Same {
        let handle = number(handle);
        match self.handles[handle].checkpoint() {
            Err(error) if handle == READ_ONLY => {
                same(error.kind(), ErrorKind::Invalid, "checkpoint of a read-only handle")
            }
            result => answer(result, "checkpoint").map(drop),
        }
    }

    /// What another handle than the writer's shows of the user at once.
    fn glance(&self, writer: u8, user: usize) -> Same {
        let other = &self.handles[(number(writer) + 1) % HANDLES];
        let memory = other.user(pools::USERS[user]);
        check::counts(&memory, &self.oracle, user)?;
        let spec = super::op::ListingSpec { limit: 8, ..Default::default() };
        check::listing(&memory, &self.oracle, user, &spec)
    }

    /// An id that was given out, or, for 0, the next one.
    fn target(&self, target: u8) -> u64 {
        let ids = self.highest + 1;
        (self.highest + 1 - u64::from(target) % ids).max(1)
    }
}

fn number(handle: u8) -> usize {
    usize::from(handle) % HANDLES
}

/// The turn that is handed to the database.
fn turn(new: &NewTurn) -> Turn {
    let content = &new.content;
    let mut turn = Turn::new(content.text.as_str())
        .metadata(content.metadata.clone())
        .tags(content.tags.iter().map(String::as_str));
    if let Some(session) = &content.session {
        turn = turn.session(session.as_str());
    }
    if let Some(speaker) = &content.speaker {
        turn = turn.speaker(speaker.as_str());
    }
    if let Some(agent) = &content.agent {
        turn = turn.agent(agent.as_str());
    }
    if let Some(key) = &content.key {
        turn = turn.key(key.as_str());
    }
    if new.given_time {
        turn = turn.time(zoned(content));
    }
    if new.given_ordinal {
        turn = turn.ordinal(content.ordinal);
    }
    if new.given_vector {
        let vector = content.vector.expect("a given vector");
        turn = turn.vector(embedder::vector(vector).map(|value| value * 2.0));
    }
    if let Some(expires) = content.expires {
        turn = turn.expires(timestamp(expires));
    }
    turn
}

/// The patch that is handed to the database: what differs between `old` and `new`, and metadata as a merge.
fn patch(spec: &PatchSpec, old: Option<&Content>, new: Option<&Content>) -> Patch {
    let (Some(old), Some(new)) = (old, new) else { return Patch::new() };
    let mut patch = Patch::new();
    if new.text != old.text {
        patch = patch.text(new.text.as_str());
    }
    if new.session != old.session {
        patch = patch.session(new.session.as_deref());
    }
    if new.speaker != old.speaker {
        patch = patch.speaker(new.speaker.as_deref());
    }
    if (new.time, new.offset_minutes) != (old.time, old.offset_minutes) {
        patch = patch.time(zoned(new));
    }
    if new.ordinal != old.ordinal {
        patch = patch.ordinal(new.ordinal);
    }
    if !spec.vector.is_multiple_of(2) {
        patch = patch.vector(embedder::vector(new.vector.expect("a given vector")));
    }
    if let Some(change) = pools::metadata_patch(spec.extra) {
        patch = patch.metadata(change);
    }
    if new.tags != old.tags {
        patch = patch.tags(new.tags.iter().map(String::as_str));
    }
    if new.expires != old.expires {
        patch = patch.expires(new.expires.map(timestamp));
    }
    patch
}

fn zoned(content: &Content) -> ZonedTime {
    ZonedTime { time: timestamp(content.time), offset_minutes: content.offset_minutes }
}

fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("times of the pool lie in the calendar")
}
