//! What a database must hold after a number of batches: the oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use loomdb::Result;
use loomdb::internals::ids::EpisodeId;
use loomdb::internals::model::{Body, pack_vector};
use loomdb::internals::options::VectorElement;
use loomdb::internals::storage::segment::example::simple_terms;
use loomdb::internals::storage::{Draft, EncodedRow, Store, Transaction};

/// Users that the scripts write for.
pub const USERS: [&str; 3] = ["ann", "bob", "cy"];
/// Sessions that the scripts write to.
pub const SESSIONS: [&str; 2] = ["s1", "s2"];
/// Keys that the scripts use.
pub const KEYS: [&str; 3] = ["k1", "k2", "k3"];
/// Values of a vector.
pub const DIMENSION: u32 = 4;

/// The contents of one version of an episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub user: &'static str,
    pub session: Option<&'static str>,
    pub key: Option<&'static str>,
    pub time: i64,
    pub ordinal: u64,
    pub vector: bool,
    pub text: String,
}

impl Row {
    /// A row of user and time number `user`, with `bytes` of text that names it.
    pub fn new(user: usize, time: i64, bytes: usize) -> Row {
        let mut text = format!("{user}/{time}/{bytes} ");
        // Digits of a multiplicative sequence: text that no compressor makes small.
        let mut state = time as u64 ^ 0x9E37_79B9_7F4A_7C15;
        while text.len() < bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(time as u64 | 1);
            text.push(char::from(b'!' + ((state >> 33) % 90) as u8));
        }
        Row {
            user: USERS[user],
            session: Some(SESSIONS[time as usize % 2]),
            key: None,
            time: time / 2 * 10,
            ordinal: time as u64 % 3,
            vector: time % 4 != 0,
            text,
        }
    }

    pub fn key(mut self, key: usize) -> Row {
        self.key = Some(KEYS[key]);
        self
    }

    /// The stored bytes of the vector.
    pub fn vector_bytes(&self) -> Vec<u8> {
        if !self.vector {
            return Vec::new();
        }
        let first = (self.text.len() % 7) as f32;
        pack_vector(&[first, 1.0, 2.0, 3.0], VectorElement::F32)
    }

    fn encode(&self) -> Result<EncodedRow> {
        EncodedRow::new(Draft {
            user: self.user.as_bytes().into(),
            time: self.time,
            offset_minutes: 60,
            ordinal: self.ordinal,
            expires: i64::MAX,
            vector: self.vector_bytes().into(),
            terms: simple_terms(&self.text, Some("speaker")),
            body: Body {
                text: self.text.clone(),
                session: self.session.map(str::to_owned),
                speaker: Some("speaker".into()),
                agent: None,
                key: self.key.map(str::to_owned),
                metadata: "{}".into(),
                tags: vec!["tag".into()],
            },
        })
    }
}

/// One step of a batch. Ids are known beforehand: they count up from 1.
#[derive(Clone, Debug)]
pub enum Write {
    Insert(Row),
    Update(u64, Row),
    Delete(u64),
}

/// A step whose row is encoded: the id that it is about, and the new row.
pub type EncodedWrite = (Option<EpisodeId>, Option<EncodedRow>);

/// Encodes what a batch writes.
///
/// # Errors
/// What the encoder answers.
pub fn encode(writes: &[Write]) -> Result<Vec<EncodedWrite>> {
    let encoded = writes.iter().map(|write| {
        Ok(match write {
            Write::Insert(row) => (None, Some(row.encode()?)),
            Write::Update(id, row) => (Some(EpisodeId::new(*id)), Some(row.encode()?)),
            Write::Delete(id) => (Some(EpisodeId::new(*id)), None),
        })
    });
    encoded.collect()
}

/// Does the steps under the writer lock. An episode that is gone is left alone, as a caller that lost a race would do.
///
/// # Errors
/// What the transaction answers.
pub fn run(transaction: &mut Transaction<'_>, steps: Vec<EncodedWrite>) -> Result<()> {
    for step in steps {
        match step {
            (None, Some(row)) => drop(transaction.insert(row)?),
            (None, None) => {}
            (Some(id), row) => match (transaction.get(id)?, row) {
                (None, _) => {}
                (Some(old), Some(row)) => drop(transaction.replace(&old, row)?),
                (Some(old), None) => transaction.delete(&old)?,
            },
        }
    }
    Ok(())
}

/// Commits `writes` as one batch.
///
/// # Errors
/// What the store answers.
pub fn commit(store: &Store, writes: &[Write]) -> Result<()> {
    let steps = encode(writes)?;
    store.commit(move |transaction| run(transaction, steps)).map(drop)
}

/// The database after some batches.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Versions of live episodes, oldest first.
    pub live: BTreeMap<u64, Vec<Arc<Row>>>,
    pub deleted: BTreeSet<u64>,
    pub next_id: u64,
}

impl Model {
    pub fn new() -> Model {
        Model { next_id: 1, ..Model::default() }
    }

    /// The model with one more batch.
    #[must_use]
    pub fn with(&self, writes: &[Write]) -> Model {
        let mut model = self.clone();
        for write in writes {
            match write {
                Write::Insert(row) => {
                    model.live.insert(model.next_id, vec![Arc::new(row.clone())]);
                    model.next_id += 1;
                }
                Write::Update(id, row) => {
                    if let Some(versions) = model.live.get_mut(id) {
                        versions.push(Arc::new(row.clone()));
                    }
                }
                Write::Delete(id) => {
                    if model.live.remove(id).is_some() {
                        model.deleted.insert(*id);
                    }
                }
            }
        }
        model
    }

    /// Live episodes of a user: id and latest version.
    pub fn of_user(&self, user: &str) -> impl Iterator<Item = (u64, &Row)> {
        let of = move |versions: &[Arc<Row>]| versions.last().is_some_and(|row| row.user == user);
        self.live
            .iter()
            .filter(move |(_, versions)| of(versions))
            .map(|(id, versions)| (*id, &**versions.last().expect("never empty")))
    }
}
