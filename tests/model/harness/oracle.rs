//! The memory that is known to be right: maps and sorted lists, no files.

use std::collections::BTreeMap;

use loomdb::Value;

use super::embedder::{score, vector_of_episode};
use super::op::{ListingSpec, PatchSpec, QuerySpec, TurnSpec};
use super::pools;

/// What one version of an episode holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub text: String,
    pub session: Option<String>,
    pub speaker: Option<String>,
    pub agent: Option<String>,
    pub key: Option<String>,
    pub tags: Vec<String>,
    pub metadata: Value,
    pub time: i64,
    pub offset_minutes: i16,
    pub ordinal: u64,
    pub expires: Option<i64>,
    /// The number of its vector in [`super::embedder::vector`].
    pub vector: Option<usize>,
}

/// A turn to add, and which of its parts with a default were given.
#[derive(Clone, Debug)]
pub struct NewTurn {
    pub content: Content,
    pub given_time: bool,
    pub given_ordinal: bool,
    pub given_vector: bool,
}

/// One episode with all its versions, oldest first.
#[derive(Clone, Debug)]
pub struct Row {
    pub user: usize,
    pub versions: Vec<Content>,
}

impl Row {
    /// The version that counts.
    pub fn latest(&self) -> &Content {
        self.versions.last().expect("a row has a version")
    }
}

/// All live episodes of all users by id.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub rows: BTreeMap<u64, Row>,
}

/// What an addition is expected to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Stored,
    Unchanged(u64),
    NewVersion(u64),
}

impl NewTurn {
    /// The turn that `spec` describes. A time that is not given is filled in by whoever learns it.
    pub fn new(spec: &TurnSpec) -> NewTurn {
        let text = pools::text(spec.text);
        let speaker = pools::maybe(&pools::SPEAKERS, spec.speaker);
        let given_time = spec.time % 16 != 15;
        let (time, offset_minutes) = if given_time { pools::time(spec.time) } else { (0, 0) };
        let vector = match spec.vector % 8 {
            0..=3 => None,
            _ => Some(usize::from(spec.vector / 8)),
        };
        let ordinal = u64::from(spec.ordinal % 4);
        NewTurn {
            given_time,
            given_ordinal: ordinal > 0,
            given_vector: vector.is_some(),
            content: Content {
                vector: vector
                    .map(|vector| vector % super::embedder::VECTORS)
                    .or_else(|| vector_of_episode(speaker.as_deref(), &text)),
                text,
                session: pools::maybe(&pools::SESSIONS, spec.session),
                speaker,
                agent: (spec.extra & 1 != 0).then(|| "agent".to_owned()),
                key: pools::maybe(&pools::KEYS, spec.key),
                tags: pools::tags(spec.extra >> 1),
                metadata: pools::metadata(spec.extra >> 3),
                time,
                offset_minutes,
                ordinal,
                expires: pools::expires(spec.extra >> 6),
            },
        }
    }

    /// Whether writing it over `old` would change nothing.
    fn is_same_as(&self, old: &Content) -> bool {
        let new = &self.content;
        let mut wanted = old.clone();
        // Parts with a default that were not given take no part.
        if !self.given_time {
            (wanted.time, wanted.offset_minutes) = (new.time, new.offset_minutes);
        }
        if !self.given_ordinal {
            wanted.ordinal = new.ordinal;
        }
        if !self.given_vector {
            wanted.vector = new.vector;
        }
        wanted == *new
    }
}

impl Oracle {
    /// The live episode of a key.
    pub fn key(&self, user: usize, key: &str) -> Option<u64> {
        let mut rows = self
            .rows
            .iter()
            .filter(|(_, row)| row.user == user && row.latest().key.as_deref() == Some(key));
        rows.next().map(|(id, _)| *id)
    }

    /// What adding `turn` will do.
    pub fn expect_add(&self, user: usize, turn: &NewTurn) -> Expected {
        let Some(id) = turn.content.key.as_deref().and_then(|key| self.key(user, key)) else {
            return Expected::Stored;
        };
        let old = self.rows[&id].latest();
        if !pools::is_expired(old.expires) && turn.is_same_as(old) {
            return Expected::Unchanged(id);
        }
        Expected::NewVersion(id)
    }

    /// Takes in a version of the episode `id`.
    pub fn put(&mut self, id: u64, user: usize, content: Content) {
        let row = self.rows.entry(id).or_insert_with(|| Row { user, versions: Vec::new() });
        row.versions.push(content);
    }

    /// The content after a patch; `None` when it changes nothing.
    pub fn patched(old: &Content, patch: &PatchSpec) -> Option<Content> {
        let mut new = old.clone();
        let change = |pool: &[&str], choice: u8| match choice % 4 {
            0 => None,
            1 => Some(None),
            _ => Some(pools::maybe(pool, choice / 4)),
        };
        if !patch.text.is_multiple_of(2) {
            new.text = pools::text(patch.text / 2);
        }
        if let Some(session) = change(&pools::SESSIONS, patch.session) {
            new.session = session;
        }
        if let Some(speaker) = change(&pools::SPEAKERS, patch.speaker) {
            new.speaker = speaker;
        }
        if !patch.time.is_multiple_of(2) {
            (new.time, new.offset_minutes) = pools::time(patch.time / 2);
        }
        if !patch.ordinal.is_multiple_of(2) {
            new.ordinal = u64::from(patch.ordinal / 2 % 4);
        }
        if let Some(change) = pools::metadata_patch(patch.extra) {
            merge(&mut new.metadata, &change);
        }
        if patch.extra & 4 != 0 {
            new.tags = pools::tags(patch.extra >> 3);
        }
        if patch.extra & 32 != 0 {
            new.expires = pools::expires(patch.extra >> 6);
        }
        if !patch.vector.is_multiple_of(2) {
            new.vector = Some(usize::from(patch.vector / 2) % super::embedder::VECTORS);
        } else if new.text != old.text || new.speaker != old.speaker {
            new.vector = vector_of_episode(new.speaker.as_deref(), &new.text);
        }
        (new != *old).then_some(new)
    }

    /// The live episodes of one user, expired ones included.
    pub fn live(&self, user: usize) -> impl Iterator<Item = (u64, &Content)> {
        let rows = self.rows.iter().filter(move |(_, row)| row.user == user);
        rows.map(|(id, row)| (*id, row.latest()))
    }

    /// What a listing holds, in its order.
    pub fn listing(&self, user: usize, spec: &ListingSpec) -> Vec<u64> {
        let session = pools::maybe(&pools::SESSIONS, spec.session);
        let mut rows: Vec<(i64, u64, u64)> = self
            .passing(user, spec.since, spec.until, session.as_deref())
            .map(|(id, row)| (row.time, session.as_ref().map_or(0, |_| row.ordinal), id))
            .collect();
        rows.sort_unstable();
        if spec.descending {
            rows.reverse();
        }
        rows.into_iter().map(|(_, _, id)| id).collect()
    }

    /// The answer to a question with a vector: ids and scores.
    pub fn nearest(&self, user: usize, vector: usize, spec: &QuerySpec) -> Vec<(u64, f32)> {
        let session = pools::maybe(&pools::SESSIONS, spec.session);
        let mut rows: Vec<(u64, f32)> = self
            .passing(user, spec.since, spec.until, session.as_deref())
            .filter_map(|(id, row)| Some((id, score(vector, row.vector?))))
            .collect();
        rows.sort_by(|one, two| two.1.total_cmp(&one.1).then(one.0.cmp(&two.0)));
        rows
    }

    fn passing<'a>(
        &'a self,
        user: usize,
        since: u8,
        until: u8,
        session: Option<&'a str>,
    ) -> impl Iterator<Item = (u64, &'a Content)> {
        let since = pools::bound(since).map_or(i64::MIN, |time| time.micros());
        let until = pools::bound(until).map_or(i64::MAX, |time| time.micros());
        self.live(user).filter(move |(_, row)| {
            (since..until).contains(&row.time)
                && session.is_none_or(|session| row.session.as_deref() == Some(session))
                && !pools::is_expired(row.expires)
        })
    }
}

/// RFC 7396, as written there.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Default::default());
    }
    let Value::Object(target) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            target.remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}
