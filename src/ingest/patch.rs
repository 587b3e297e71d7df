//! Changes a stored episode: a new version made from the latest one and a patch.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::analysis::analyse;
use crate::error::{Error, Result};
use crate::ids::EpisodeId;
use crate::model::{Record, parse_metadata};
use crate::options::UPDATE_TRIES_MAX;
use crate::storage::{Draft, EncodedRow, Store};
use crate::time::{Timestamp, ZonedTime, civil_date};

use super::encode::{Encoder, Given};
use super::limits;
use super::write::{Added, Outcome, same_content};

/// What to change of an episode; everything not named stays. The key, the user and the id cannot change.
///
/// ```
/// use loomdb::Patch;
///
/// let patch = Patch::new()
///     .text("I moved to Porto, not Lisbon")
///     .metadata(serde_json::json!({ "corrected": true, "draft": null }));
/// # let _ = patch;
/// ```
///
/// `Debug` shows nothing of the contents.
#[derive(Clone, Default)]
pub struct Patch {
    text: Option<String>,
    session: Option<Option<String>>,
    speaker: Option<Option<String>>,
    agent: Option<Option<String>>,
    time: Option<ZonedTime>,
    ordinal: Option<u64>,
    vector: Option<Vec<f32>>,
    tags: Option<Vec<String>>,
    metadata: Option<Value>,
    expires: Option<Option<Timestamp>>,
}

impl Patch {
    /// A patch that changes nothing yet.
    pub fn new() -> Patch {
        Patch::default()
    }

    /// Another text. The vector follows, unless one is given.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Patch {
        self.text = Some(text.into());
        self
    }

    /// Another session, or none.
    #[must_use]
    pub fn session(mut self, session: Option<&str>) -> Patch {
        self.session = Some(session.map(Into::into));
        self
    }

    /// Another speaker, or none. The vector follows, unless one is given.
    #[must_use]
    pub fn speaker(mut self, speaker: Option<&str>) -> Patch {
        self.speaker = Some(speaker.map(Into::into));
        self
    }

    /// Another agent, or none.
    #[must_use]
    pub fn agent(mut self, agent: Option<&str>) -> Patch {
        self.agent = Some(agent.map(Into::into));
        self
    }

    /// Another time.
    #[must_use]
    pub fn time(mut self, time: impl Into<ZonedTime>) -> Patch {
        self.time = Some(time.into());
        self
    }

    /// Another place among turns of one session and time.
    #[must_use]
    pub fn ordinal(mut self, ordinal: u64) -> Patch {
        self.ordinal = Some(ordinal);
        self
    }

    /// Another vector.
    #[must_use]
    pub fn vector(mut self, vector: impl Into<Vec<f32>>) -> Patch {
        self.vector = Some(vector.into());
        self
    }

    /// Other tags: these and no others.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Patch {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Metadata to merge into what is there (RFC 7396): an object within an object merges, `null` removes its key,
    /// anything else replaces.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Patch {
        self.metadata = Some(metadata.into());
        self
    }

    /// Another expiry, or none.
    #[must_use]
    pub fn expires(mut self, expires: Option<Timestamp>) -> Patch {
        self.expires = Some(expires);
        self
    }

    /// Checks the sizes of what is given.
    fn check(&self) -> Result<()> {
        if let Some(text) = &self.text {
            limits::check_text(text)?;
        }
        let names =
            [("session", &self.session), ("speaker", &self.speaker), ("agent", &self.agent)];
        for (field, name) in names {
            if let Some(Some(name)) = name {
                limits::check_name(field, name.len())?;
            }
        }
        if let Some(tags) = &self.tags {
            limits::check_tags(tags)?;
        }
        match &self.metadata {
            None | Some(Value::Object(_)) => Ok(()),
            Some(_) => Err(Error::invalid("metadata is no JSON object")),
        }
    }

    /// The contents that `old` has after this patch.
    fn apply(&self, old: &Record, encoder: Encoder<'_>) -> Result<Draft> {
        let mut body = old.body.clone();
        if let Some(text) = &self.text {
            body.text.clone_from(text);
        }
        for (part, change) in [
            (&mut body.session, &self.session),
            (&mut body.speaker, &self.speaker),
            (&mut body.agent, &self.agent),
        ] {
            if let Some(change) = change {
                part.clone_from(change);
            }
        }
        if let Some(tags) = &self.tags {
            body.tags.clone_from(tags);
        }
        if let Some(Value::Object(changes)) = &self.metadata {
            let mut metadata = parse_metadata(&body.metadata).ok_or_else(|| {
                Error::corrupt("metadata of an episode is no JSON object").of(old.id.get())
            })?;
            merge(&mut metadata, changes);
            body.metadata = limits::metadata_text(&metadata)?;
        }
        let spoken = body.text != old.body.text || body.speaker != old.body.speaker;
        let vector = if self.vector.is_some() || spoken {
            encoder.vector(self.vector.clone(), body.speaker.as_deref(), &body.text)?
        } else {
            Arc::clone(&old.vector)
        };
        let (time, offset_minutes) = match self.time {
            Some(time) => (time.time.micros(), time.offset_minutes),
            None => (old.time, old.offset_minutes),
        };
        Ok(Draft {
            user: Arc::clone(&old.user),
            time,
            offset_minutes,
            ordinal: self.ordinal.unwrap_or(old.ordinal),
            expires: match self.expires {
                Some(expires) => expires.map_or(i64::MAX, |expires| expires.micros()),
                None => old.expires,
            },
            vector,
            terms: analyse(body.speaker.as_deref(), &body.text, civil_date(time, offset_minutes)),
            body,
        })
    }
}

impl std::fmt::Debug for Patch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patch").finish_non_exhaustive()
    }
}

/// JSON merge patch (RFC 7396) of one object into another, in depth: the nesting of `changes` was bounded when it was
/// parsed or built, and is bounded again before the result is stored.
fn merge(target: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (name, change) in changes {
        match change {
            Value::Null => {
                // Keeps the order of the keys that stay, so that printed metadata does not jump about.
                target.shift_remove(name);
            }
            Value::Object(inner) => {
                let slot = target.entry(name.clone()).or_insert(Value::Null);
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(slot) = slot {
                    merge(slot, inner);
                }
            }
            other => {
                target.insert(name.clone(), other.clone());
            }
        }
    }
}

/// Writes the next version of episode `id` of `user`. The new version is made outside the writer lock from the version
/// read; when another writer was faster, it is made again from theirs.
///
/// `now`: microseconds since the epoch; an episode that expired before is not found.
pub(crate) fn update(
    store: &Store,
    encoder: Encoder<'_>,
    user: &Arc<[u8]>,
    id: EpisodeId,
    patch: &Patch,
    now: i64,
) -> Result<Added> {
    patch.check()?;
    let not_found = || Error::not_found("episode").of(id.get());
    for _ in 0..UPDATE_TRIES_MAX {
        let old = store
            .snapshot()?
            .get(id)?
            .filter(|old| old.user == *user && old.expires > now)
            .ok_or_else(not_found)?;
        let draft = patch.apply(&old, encoder)?;
        let row = EncodedRow::new(draft)?;
        if same_content(&old, row.record(), Given { time: true, ordinal: true, vector: true }) {
            return Ok(Added::new(old, Outcome::Unchanged));
        }
        let version = old.version;
        let (written, _) = store.commit(move |transaction| match transaction.get(id)? {
            None => Err(Error::not_found("episode").of(id.get())),
            Some(latest) if latest.version != version => Ok(None),
            Some(latest) => transaction.replace(&latest, row).map(Some),
        })?;
        if let Some(record) = written {
            return Ok(Added::new(record, Outcome::NewVersion));
        }
    }
    Err(Error::locked(format!(
        "episode was changed by others between reading and writing it, {UPDATE_TRIES_MAX} times"
    ))
    .of(id.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(target: Value, changes: Value, expected: Value) {
        let (Value::Object(mut target), Value::Object(changes)) = (target, changes) else {
            panic!("objects")
        };
        merge(&mut target, &changes);
        assert_eq!(Value::Object(target), expected);
    }

    #[test]
    fn metadata_merges_as_rfc_7396_says() {
        check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}));
        check(json!({"a": "b"}), json!({"a": null}), json!({}));
        check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]}));
        let nested = json!({"a": {"b": "d", "c": null}});
        check(json!({"a": {"b": "c"}}), nested, json!({"a": {"b": "d"}}));
        check(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
    }

    #[test]
    fn what_is_wrong_with_a_patch_is_named() {
        assert!(Patch::new().text("").check().unwrap_err().to_string().contains("text"));
        assert!(Patch::new().session(Some("")).check().is_err());
        assert!(Patch::new().metadata(json!([1])).check().is_err());
        assert!(Patch::new().tags(["x"; 65]).check().is_err());
        Patch::new().session(None).metadata(json!({"a": null})).check().unwrap();
    }
}
