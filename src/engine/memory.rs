//! One user's memory.

use std::sync::Arc;

use crate::error::Result;
use crate::ids::EpisodeId;
use crate::ingest::{self, Added, Patch, Turn};
use crate::model::Episode;
use crate::recall::{self, Page, Query, Recall, TimelineOptions};
use crate::storage::Store;
use crate::time::{Timestamp, ZonedTime};

use super::db::Db;
use super::stats::UserStats;

/// The memory of one user in a database. Made by [`Db::user`]; cheap to make and to clone.
///
/// # Errors
/// Besides what each call names, every call may answer [`crate::ErrorKind::Invalid`] or [`crate::ErrorKind::Limit`]
/// when the user's name is empty or longer than 64 KiB, [`crate::ErrorKind::Poisoned`] after [`Db::close`], a fork or
/// a failed sync, [`crate::ErrorKind::Corrupt`] with the place of a damage, and [`crate::ErrorKind::Io`]. Calls that
/// write answer [`crate::ErrorKind::Locked`] when another process writes for longer than the busy timeout, and
/// [`crate::ErrorKind::Invalid`] on a read-only handle.
#[derive(Clone)]
pub struct Memory {
    db: Db,
    user: Arc<[u8]>,
}

/// Redacted: a user's name must not reach a log line.
impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory {{ user: {} bytes }}", self.user.len())
    }
}

impl Memory {
    pub(super) fn new(db: Db, user: Arc<[u8]>) -> Memory {
        Memory { db, user }
    }

    /// The user's name.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// Stores one turn: it is durable when the call returns, and every later read in every process sees it.
    ///
    /// ```
    /// use loomdb::{Db, Outcome, Turn};
    ///
    /// # fn main() -> loomdb::Result<()> {
    /// let memory = Db::in_memory()?.user("alice");
    /// let turn = Turn::new("My flight leaves at noon").speaker("Alice").key("chat-1/3");
    ///
    /// let added = memory.add(turn.clone())?;
    /// assert_eq!(added.outcome, Outcome::Stored);
    /// // The same key with the same content again changes nothing, and says so.
    /// assert_eq!(memory.add(turn)?.outcome, Outcome::Unchanged);
    /// assert_eq!(memory.get(added.id)?.text, "My flight leaves at noon");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`]: empty text or name, a vector of another dimension (both are named), not finite
    /// or zero, a vector missing where the caller gives them, metadata that is no object.
    /// [`crate::ErrorKind::Limit`]: a part above its limit, naming it and both sizes. And those of [`Memory`].
    pub fn add(&self, turn: impl Into<Turn>) -> Result<Added> {
        let mut added = self.add_many(vec![turn.into()])?;
        Ok(added.pop().expect("one answer for one turn"))
    }

    /// Stores several turns as one: all of them or none. The answers stand in the order of the turns. Turns without a
    /// time all get the same one, now; turns equal in session and time keep the order given. An empty list does
    /// nothing.
    ///
    /// # Errors
    /// As [`Memory::add`]; [`crate::ErrorKind::Limit`] above 65,536 turns or 64 MiB encoded.
    pub fn add_many(&self, turns: Vec<Turn>) -> Result<Vec<Added>> {
        let store = self.store()?;
        let now = ZonedTime::utc(Timestamp::now());
        let batch = ingest::encode_batch(self.db.encoder(&store), &self.user, turns, now)?;
        ingest::append(&store, batch)
    }

    /// The latest version of an episode.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] when there is none, or it is another user's, deleted or expired. And those of
    /// [`Memory`].
    pub fn get(&self, id: EpisodeId) -> Result<Episode> {
        recall::get(&self.store()?.snapshot()?, &self.user, id, now())
    }

    /// All versions of an episode, oldest first.
    ///
    /// # Errors
    /// As [`Memory::get`].
    pub fn history(&self, id: EpisodeId) -> Result<Vec<Episode>> {
        recall::history(&self.store()?.snapshot()?, &self.user, id, now())
    }

    /// One page of the episodes in the order of their time. See [`TimelineOptions`].
    ///
    /// ```
    /// use loomdb::{Db, TimelineOptions, Turn};
    ///
    /// # fn main() -> loomdb::Result<()> {
    /// let memory = Db::in_memory()?.user("alice");
    /// memory.add_many(vec![Turn::new("one"), Turn::new("two"), Turn::new("three")])?;
    ///
    /// let page = memory.timeline(TimelineOptions::new().limit(2))?;
    /// assert_eq!(page.episodes[0].text, "one");
    /// let rest = memory.timeline(TimelineOptions::new().cursor(page.next.unwrap()))?;
    /// assert_eq!(rest.episodes[0].text, "three");
    /// assert!(rest.next.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when `since` is later than `until` or the limit is 0,
    /// [`crate::ErrorKind::Limit`] for a limit above 65,536. And those of [`Memory`].
    pub fn timeline(&self, options: TimelineOptions) -> Result<Page> {
        recall::timeline(&self.store()?.snapshot()?, &self.user, &options, now())
    }

    /// Live episodes of this user. One that has expired counts until it is deleted.
    ///
    /// # Errors
    /// Those of [`Memory`].
    pub fn count(&self) -> Result<u64> {
        Ok(self.stats()?.episodes)
    }

    /// Counts of this user's live episodes.
    ///
    /// # Errors
    /// Those of [`Memory`].
    pub fn stats(&self) -> Result<UserStats> {
        Ok(UserStats::new(self.store()?.snapshot()?.counts(&self.user)?))
    }

    /// Writes the next version of an episode. What the patch does not name stays; metadata merges; the record time of
    /// the first version is kept; the vector follows the text and the speaker. A patch that changes nothing writes
    /// nothing and says so.
    ///
    /// # Errors
    /// As [`Memory::get`] and [`Memory::add`].
    pub fn update(&self, id: EpisodeId, patch: Patch) -> Result<Added> {
        let store = self.store()?;
        ingest::update(&store, self.db.encoder(&store), &self.user, id, &patch, now())
    }

    /// Deletes an episode, all versions of it: it is gone from every call, in every process, when this returns.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] when there is none, or it is another user's. And those of [`Memory`].
    pub fn delete(&self, id: EpisodeId) -> Result<()> {
        ingest::delete(&self.store()?, &self.user, id)
    }

    /// Deletes every episode of a session, all or none. Returns how many there were.
    ///
    /// # Errors
    /// Those of [`Memory`].
    pub fn delete_session(&self, session: &str) -> Result<u64> {
        ingest::delete_session(&self.store()?, &self.user, session)
    }

    /// Finds the episodes that answer `query`, best first.
    ///
    /// A text is compared by its words, by its vector where the database has an embedder or the query a vector, and by
    /// small priors; every episode that passes the filters has a score, and there is no threshold. A vector alone is
    /// compared with the stored vectors. An empty text lists the newest episodes. See [`Query`] for filters, modes and
    /// a bound on tokens, [`Recall::explain`] for how an answer came about.
    ///
    /// A score depends on the question and the user's memory alone; equal ones are ordered by id. Memories of up to 20,000
    /// episodes are scored whole; in larger ones candidates are chosen first, unless [`Query::exact`].
    ///
    /// ```
    /// use loomdb::{Db, Query, Turn};
    ///
    /// # fn main() -> loomdb::Result<()> {
    /// let memory = Db::in_memory()?.user("alice");
    /// memory.add(Turn::new("The dentist moved my appointment to Friday").session("monday"))?;
    /// memory.add(Turn::new("We had ramen for dinner").session("tuesday"))?;
    ///
    /// let recall = memory.search(Query::text("when do I see the dentist?").top_k(1))?;
    /// assert!(recall.hits[0].episode.text.contains("Friday"));
    /// println!("{} because of {}", recall.hits[0].score, recall.hits[0].why);
    ///
    /// let tuesday = memory.search(Query::text("dentist").session("tuesday"))?;
    /// assert_eq!(tuesday.hits.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when `since` is later than `until`, `top_k` is 0, a mode other than vector is
    /// asked of a vector without a text, a weight is out of range (it is named), or a given vector has another
    /// dimension (both are named), is zero or not finite; [`crate::ErrorKind::Limit`] for a `top_k` above 10,000 or a
    /// text above 16 MiB. And those of [`Memory`].
    pub fn search(&self, query: impl Into<Query>) -> Result<Recall> {
        let store = self.store()?;
        let encoder = self.db.encoder(&store);
        recall::search(
            &store,
            self.db.searches(),
            encoder.embedder,
            &self.user,
            query.into(),
            now(),
        )
    }

    /// The store, once the user's name is known to be acceptable.
    fn store(&self) -> Result<Store> {
        ingest::check_user(&self.user)?;
        self.db.store()
    }
}

/// The time against which expiry is told.
fn now() -> i64 {
    Timestamp::now().micros()
}
