//! An episode as callers see it: a stored record with civil times and parsed metadata.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::ids::EpisodeId;
use crate::time::{Timestamp, ZonedTime};

use super::record::Record;

/// One stored turn, note or chunk, in its latest version or, from a history, in an earlier one.
///
/// `Debug` shows the id, the version and sizes only, so that a log line cannot leak what was said.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Episode {
    /// The id: grows in commit order, never reused.
    pub id: EpisodeId,
    /// The version that this is, from 1 up.
    pub version: u32,
    /// The caller's key, unique per user.
    pub key: Option<String>,
    /// The text as given.
    pub text: String,
    /// Who said it.
    pub speaker: Option<String>,
    /// The user it belongs to: opaque bytes.
    pub user: Vec<u8>,
    /// The session it belongs to.
    pub session: Option<String>,
    /// The agent that stored it.
    pub agent: Option<String>,
    /// When it was said.
    pub time: ZonedTime,
    /// When the first version was written.
    pub record_time: Timestamp,
    /// When this version was written.
    pub updated: Timestamp,
    /// When it expires, if ever.
    pub expires: Option<Timestamp>,
    /// The place among turns of one session and time.
    pub ordinal: u64,
    /// Tags given by the caller.
    pub tags: Vec<String>,
    /// Metadata: a JSON object.
    pub metadata: Map<String, Value>,
    /// Whether it has a vector. Without one the vector leg of a search cannot find it.
    pub has_vector: bool,
}

impl Episode {
    /// The episode that `record` stores.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when a time is outside the calendar or the metadata is no JSON object.
    pub fn from_record(record: &Record) -> Result<Episode> {
        let id = record.id;
        let time = |micros: i64| {
            Timestamp::from_micros(micros)
                .map_err(|cause| Error::corrupt("time of an episode").of(id.get()).because(cause))
        };
        let body = &record.body;
        Ok(Episode {
            id,
            version: record.version,
            key: body.key.clone(),
            text: body.text.clone(),
            speaker: body.speaker.clone(),
            user: record.user.to_vec(),
            session: body.session.clone(),
            agent: body.agent.clone(),
            time: ZonedTime { time: time(record.time)?, offset_minutes: record.offset_minutes },
            record_time: time(record.first_record_time)?,
            updated: time(record.record_time)?,
            expires: match record.expires {
                i64::MAX => None,
                micros => Some(time(micros)?),
            },
            ordinal: record.ordinal,
            tags: body.tags.clone(),
            metadata: parse_metadata(&body.metadata).ok_or_else(|| {
                Error::corrupt("metadata of an episode is no JSON object").of(id.get())
            })?,
            has_vector: !record.vector.is_empty(),
        })
    }
}

impl std::fmt::Debug for Episode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Episode {{ id: {}, version: {}, text: {} bytes, tags: {}, metadata: {} keys }}",
            self.id,
            self.version,
            self.text.len(),
            self.tags.len(),
            self.metadata.len()
        )
    }
}

/// Reads stored metadata: empty text is an empty object. `None` when it is no JSON object.
pub fn parse_metadata(text: &str) -> Option<Map<String, Value>> {
    if text.is_empty() {
        return Some(Map::new());
    }
    serde_json::from_str(text).ok()
}

/// The stored form of metadata: empty text for an empty object.
pub fn print_metadata(metadata: &Map<String, Value>) -> String {
    if metadata.is_empty() {
        return String::new();
    }
    serde_json::to_string(metadata).expect("a JSON object always prints")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, VERSION_FIRST};

    fn record(metadata: &str) -> Record {
        Record {
            id: EpisodeId::new(7),
            version: VERSION_FIRST,
            user: b"u".as_slice().into(),
            time: 1_000_000,
            offset_minutes: 120,
            record_time: 2_000_000,
            first_record_time: 2_000_000,
            ordinal: 0,
            expires: i64::MAX,
            vector: [].into(),
            shape: crate::model::Shape::default(),
            terms: None,
            body: Body {
                text: "secret-marker".into(),
                session: None,
                speaker: None,
                agent: None,
                key: None,
                metadata: metadata.into(),
                tags: vec!["secret-marker".into()],
            },
        }
    }

    #[test]
    fn a_record_becomes_an_episode_with_civil_time_and_json() {
        let episode = Episode::from_record(&record(r#"{"a":{"b":[1,null]}}"#)).unwrap();
        assert_eq!(episode.time.to_string(), "1970-01-01T02:00:01+02:00");
        assert_eq!(episode.expires, None);
        assert_eq!(episode.metadata["a"]["b"][0], 1);
        assert!(!episode.has_vector);
        assert_eq!(print_metadata(&episode.metadata), r#"{"a":{"b":[1,null]}}"#);
    }

    #[test]
    fn damaged_parts_are_corrupt_and_name_the_id() {
        let mut late = record("");
        late.time = i64::MAX;
        for bad in [record("[1]"), record("{"), late] {
            let error = Episode::from_record(&bad).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
            assert_eq!(error.id(), Some(7));
        }
    }

    #[test]
    fn debug_shows_no_text() {
        let episode = Episode::from_record(&record("")).unwrap();
        assert!(!format!("{episode:?}").contains("secret-marker"));
    }
}
