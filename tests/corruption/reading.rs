//! Everything that a database can be asked, as a list of answers that two databases can be compared by.

use std::hash::{DefaultHasher, Hash, Hasher};

use loomdb::internals::model::Record;
use loomdb::internals::storage::{Part, Snapshot, Store};
use loomdb::{Direction, EpisodeId, Result};

/// What the questions are about. The same for every state of one sample, so that answers stand at the same places.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    pub users: Vec<&'static str>,
    pub keys: Vec<String>,
    pub sessions: Vec<String>,
    /// Ids from 1 up to here.
    pub last_id: u64,
}

/// A digest for each question, `None` where the answer is an error.
#[derive(Clone, PartialEq, Eq)]
pub struct Reading(Vec<Option<u64>>);

impl Reading {
    /// Asks everything, in one view.
    pub fn of(store: &Store, questions: &Questions) -> Result<Reading> {
        let snapshot = store.snapshot()?;
        let mut answers = vec![Some(snapshot.seq().get())];
        let mut ask = |answer: Result<u64>| answers.push(answer.ok());
        ask(snapshot.users().map(|users| digest(&users)));
        for id in (1..=questions.last_id).map(EpisodeId::new) {
            ask(snapshot.get(id).map(|found| digest(&found.map(|record| record_digest(&record)))));
            let versions = snapshot.versions(id);
            ask(versions.map(|versions| {
                let digests = versions.iter().map(|record| record_digest(record));
                digest(&digests.collect::<Vec<_>>())
            }));
            ask(match snapshot.neighbours(id) {
                Err(error) if error.kind() == loomdb::ErrorKind::NotFound => Ok(0),
                answer => answer.map(|around| digest(&around)),
            });
        }
        for user in &questions.users {
            let name = user.as_bytes();
            let counts = snapshot.counts(name);
            ask(counts.map(|counts| digest(&(counts.rows, counts.vectors, counts.text_bytes))));
            for direction in [Direction::Ascending, Direction::Descending] {
                let listed = snapshot.timeline(name, i64::MIN..i64::MAX, None, direction, 10_000);
                ask(listed.map(|listed| digest(&listed)));
            }
            ask(scanned(&snapshot, name));
            for key in &questions.keys {
                ask(snapshot.key(name, key).map(|id| digest(&id)));
            }
            for session in &questions.sessions {
                ask(snapshot.session(name, session).map(|ids| digest(&ids)));
            }
        }
        Ok(Reading(answers))
    }

    /// Whether every answer that is no error is that of `state`.
    pub fn agrees_with(&self, state: &Reading) -> bool {
        assert_eq!(self.0.len(), state.0.len());
        self.0.iter().zip(&state.0).all(|(answer, right)| answer.is_none() || answer == right)
    }

    pub fn errors(&self) -> usize {
        self.0.iter().filter(|answer| answer.is_none()).count()
    }

    /// Places of the answers that are wrong by `state`, with its own.
    pub fn wrong(&self, state: &Reading) -> Vec<usize> {
        let pairs = self.0.iter().zip(&state.0).enumerate();
        pairs
            .filter(|(_, (answer, right))| answer.is_some() && answer != right)
            .map(|p| p.0)
            .collect()
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn record_digest(record: &Record) -> u64 {
    let body = &record.body;
    digest(&(
        (record.id, record.version, &record.user, record.time, record.offset_minutes),
        (record.record_time, record.first_record_time, record.ordinal, record.expires),
        (&record.vector, &body.text, &body.session, &body.speaker, &body.agent),
        (&body.key, &body.metadata, &body.tags),
    ))
}

/// What a scan of one user meets, row by row, in the order of the ids.
fn scanned(snapshot: &Snapshot, user: &[u8]) -> Result<u64> {
    let mut rows = Vec::new();
    for part in snapshot.parts(user)? {
        match part {
            Part::Cell { segment, rows: range, times, dead, .. } => {
                for row in range.filter(|row| !dead.contains(*row)) {
                    let head = segment.head(row)?;
                    let codes = segment.codes(row..row + 1)?;
                    let factors = segment.factors(row..row + 1)?;
                    let whole = times.0 <= head.time && head.time <= times.1;
                    let read = digest(&(segment.vector(row)?, codes, factors, whole));
                    rows.push((head.id, head.version, head.time, read));
                }
            }
            Part::Log { records } => rows.extend(
                records
                    .iter()
                    .map(|record| (record.id, record.version, record.time, record_digest(record))),
            ),
        }
    }
    rows.sort_unstable();
    Ok(digest(&rows))
}
