//! Appends an encoded batch: keys are looked up and contents compared under the writer lock, nothing else.

use std::sync::Arc;

use crate::error::Result;
use crate::ids::EpisodeId;
use crate::model::{Episode, Record, parse_metadata};
use crate::storage::{Store, Transaction};

use super::encode::{Batch, Encoded, Given};

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A new episode was stored.
    Stored,
    /// An episode with this key or id and the same content is stored already; nothing was written.
    Unchanged,
    /// An episode with this key or id was there; a new version of it was stored.
    NewVersion,
}

/// The answer to a write.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Added {
    /// The episode's id.
    pub id: EpisodeId,
    /// What the write did.
    pub outcome: Outcome,
    /// The version that is stored now.
    pub version: u32,
    record: Arc<Record>,
}

impl Added {
    pub(super) fn new(record: Arc<Record>, outcome: Outcome) -> Added {
        Added { id: record.id, outcome, version: record.version, record }
    }

    /// The episode as it is stored now.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when an episode stored earlier cannot be read.
    pub fn episode(&self) -> Result<Episode> {
        Episode::from_record(&self.record)
    }
}

/// Writes the batch as one: all of it or nothing.
pub(crate) fn append(store: &Store, batch: Batch) -> Result<Vec<Added>> {
    if batch.rows.is_empty() {
        return Ok(Vec::new());
    }
    let (added, _) = store.commit(move |transaction| {
        batch.rows.into_iter().map(|row| write_one(transaction, row)).collect::<Result<Vec<_>>>()
    })?;
    Ok(added)
}

fn write_one(transaction: &mut Transaction<'_>, encoded: Encoded) -> Result<Added> {
    let Encoded { row, given } = encoded;
    let new = row.record();
    let known = match &new.body.key {
        Some(key) => match transaction.key(&new.user, key)? {
            Some(id) => transaction.get(id)?,
            None => None,
        },
        None => None,
    };
    match known {
        None => Ok(Added::new(transaction.insert(row)?, Outcome::Stored)),
        // An expired episode is not readable: to call it stored would be a lie, so it is written again.
        Some(old) if old.expires > transaction.record_time() && same_content(&old, new, given) => {
            Ok(Added::new(old, Outcome::Unchanged))
        }
        Some(old) => Ok(Added::new(transaction.replace(&old, row)?, Outcome::NewVersion)),
    }
}

/// Whether `new` says what `old` says. Parts with a default (time, ordinal, vector) count only when given.
pub(super) fn same_content(old: &Record, new: &Record, given: Given) -> bool {
    let (a, b) = (&old.body, &new.body);
    a.text == b.text
        && a.session == b.session
        && a.speaker == b.speaker
        && a.agent == b.agent
        && a.tags == b.tags
        && old.expires == new.expires
        && (!given.time || (old.time, old.offset_minutes) == (new.time, new.offset_minutes))
        && (!given.ordinal || old.ordinal == new.ordinal)
        && (!given.vector || old.vector == new.vector)
        && same_metadata(&a.metadata, &b.metadata)
}

/// Equal as JSON: the order of keys does not count.
fn same_metadata(a: &str, b: &str) -> bool {
    a == b || matches!((parse_metadata(a), parse_metadata(b)), (Some(a), Some(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, VERSION_FIRST};

    fn record() -> Record {
        Record {
            id: EpisodeId::new(1),
            version: VERSION_FIRST,
            user: b"u".as_slice().into(),
            time: 5,
            offset_minutes: 0,
            record_time: 9,
            first_record_time: 9,
            ordinal: 1,
            expires: i64::MAX,
            vector: [1, 2].into(),
            shape: crate::model::Shape::default(),
            terms: None,
            body: Body {
                text: "t".into(),
                session: Some("s".into()),
                speaker: None,
                agent: None,
                key: Some("k".into()),
                metadata: r#"{"a":1,"b":2}"#.into(),
                tags: vec!["x".into()],
            },
        }
    }

    const ALL: Given = Given { time: true, ordinal: true, vector: true };
    const NONE: Given = Given { time: false, ordinal: false, vector: false };

    #[test]
    fn defaults_that_were_not_given_do_not_make_a_difference() {
        let old = record();
        let mut now = record();
        (now.time, now.ordinal, now.vector) = (6, 2, [3].into());
        assert!(same_content(&old, &now, NONE));
        assert!(!same_content(&old, &now, ALL));
        assert!(!same_content(&old, &now, Given { time: true, ..NONE }));
        assert!(!same_content(&old, &now, Given { ordinal: true, ..NONE }));
        assert!(!same_content(&old, &now, Given { vector: true, ..NONE }));
    }

    #[test]
    fn metadata_is_compared_as_json() {
        let old = record();
        let mut same = record();
        same.body.metadata = r#"{"b":2,"a":1}"#.into();
        assert!(same_content(&old, &same, ALL));
        same.body.metadata = r#"{"b":2,"a":2}"#.into();
        assert!(!same_content(&old, &same, ALL));
    }

    #[test]
    fn every_given_part_makes_a_difference() {
        let old = record();
        let changes: [fn(&mut Record); 7] = [
            |new| new.body.text.push('!'),
            |new| new.body.session = None,
            |new| new.body.speaker = Some("a".into()),
            |new| new.body.agent = Some("a".into()),
            |new| new.body.tags.clear(),
            |new| new.expires = 7,
            |new| new.body.metadata.clear(),
        ];
        assert!(same_content(&old, &record(), NONE));
        for change in changes {
            let mut changed = record();
            change(&mut changed);
            assert!(!same_content(&old, &changed, NONE));
        }
    }
}
