//! The checks at the door (design 8). A message names the field and both sizes, and never holds what was given.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::model::{parse_metadata, print_metadata};
use crate::options::{
    BATCH_BYTES_MAX, BATCH_EPISODES_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX, TAGS_MAX,
    TEXT_BYTES_MAX,
};

use super::turn::Turn;

/// Checks the sizes of everything in a turn but its vector and its metadata.
pub(super) fn check_turn(turn: &Turn) -> Result<()> {
    check_text(&turn.text)?;
    let names = [
        ("session", &turn.session),
        ("speaker", &turn.speaker),
        ("agent", &turn.agent),
        ("key", &turn.key),
    ];
    for (field, name) in names {
        if let Some(name) = name {
            check_name(field, name.len())?;
        }
    }
    check_tags(&turn.tags)
}

pub(super) fn check_text(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(Error::invalid("text is empty"));
    }
    check_size("text", text.len(), TEXT_BYTES_MAX)
}

pub(super) fn check_tags(tags: &[String]) -> Result<()> {
    if tags.len() > TAGS_MAX {
        return Err(Error::limit(format!("tags: {}, at most {TAGS_MAX} are allowed", tags.len())));
    }
    tags.iter().try_for_each(|tag| check_name("tag", tag.len()))
}

/// Checks the length of a name: at least one byte, at most [`NAME_BYTES_MAX`].
pub(super) fn check_name(field: &str, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Err(Error::invalid(format!("{field} is empty")));
    }
    check_size(field, bytes, NAME_BYTES_MAX)
}

/// Checks a user's name: opaque bytes, not empty.
pub(crate) fn check_user(name: &[u8]) -> Result<()> {
    check_name("user", name.len())
}

fn check_size(field: &str, bytes: usize, bytes_max: usize) -> Result<()> {
    if bytes > bytes_max {
        return Err(Error::limit(format!(
            "{field} has {bytes} bytes, at most {bytes_max} are allowed"
        )));
    }
    Ok(())
}

/// The object in `metadata`; `null` counts as an empty one.
pub(super) fn metadata_object(metadata: Value) -> Result<Map<String, Value>> {
    match metadata {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        _ => Err(Error::invalid("metadata is no JSON object")),
    }
}

/// The stored form of `metadata`, checked for size and for nesting that its reader would refuse.
pub(super) fn metadata_text(metadata: &Map<String, Value>) -> Result<String> {
    let text = print_metadata(metadata);
    check_size("metadata", text.len(), METADATA_BYTES_MAX)?;
    if parse_metadata(&text).is_none() {
        return Err(Error::limit("metadata is nested deeper than 127 levels"));
    }
    Ok(text)
}

/// Checks the number of episodes in a batch.
pub(super) fn check_batch_episodes(episodes: usize) -> Result<()> {
    if episodes > BATCH_EPISODES_MAX {
        return Err(Error::limit(format!(
            "batch has {episodes} episodes, at most {BATCH_EPISODES_MAX} are allowed"
        )));
    }
    Ok(())
}

/// Checks the encoded size of a batch.
pub(super) fn check_batch_bytes(bytes: usize) -> Result<()> {
    check_size("batch", bytes, BATCH_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use serde_json::json;

    #[track_caller]
    fn check(result: Result<()>, kind: ErrorKind, parts: &[&str]) {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind);
        for part in parts {
            assert!(error.to_string().contains(part), "{error} lacks {part}");
        }
    }

    #[test]
    fn each_field_over_its_limit_is_named_with_both_sizes() {
        let long = || "x".repeat(NAME_BYTES_MAX + 1);
        let turn = || Turn::new("hello");
        let sizes = |field| [field, "65537", "65536"];
        check(check_turn(&turn().session(long())), ErrorKind::Limit, &sizes("session"));
        check(check_turn(&turn().speaker(long())), ErrorKind::Limit, &sizes("speaker"));
        check(check_turn(&turn().agent(long())), ErrorKind::Limit, &sizes("agent"));
        check(check_turn(&turn().key(long())), ErrorKind::Limit, &sizes("key"));
        check(check_turn(&turn().tag(long())), ErrorKind::Limit, &sizes("tag"));
        check(check_turn(&turn().tags(["t"; 65])), ErrorKind::Limit, &["tags", "65", "64"]);
        let text = Turn::new("x".repeat(TEXT_BYTES_MAX + 1));
        check(check_turn(&text), ErrorKind::Limit, &["text", "16777217", "16777216"]);
        check(check_batch_episodes(65_537), ErrorKind::Limit, &["batch", "65537", "65536"]);
        check(check_batch_bytes(BATCH_BYTES_MAX + 1), ErrorKind::Limit, &["batch", "67108864"]);
        check(check_user(long().as_bytes()), ErrorKind::Limit, &sizes("user"));
    }

    #[test]
    fn what_stands_at_a_limit_is_taken() {
        let name = "x".repeat(NAME_BYTES_MAX);
        let turn = Turn::new("x".repeat(TEXT_BYTES_MAX))
            .session(name.clone())
            .key(name.clone())
            .tags(vec![name; TAGS_MAX]);
        check_turn(&turn).unwrap();
        check_batch_episodes(BATCH_EPISODES_MAX).unwrap();
        check_batch_bytes(BATCH_BYTES_MAX).unwrap();
    }

    #[test]
    fn empty_fields_are_invalid() {
        check(check_turn(&Turn::new("")), ErrorKind::Invalid, &["text is empty"]);
        check(check_turn(&Turn::new("a").session("")), ErrorKind::Invalid, &["session is empty"]);
        check(check_turn(&Turn::new("a").key("")), ErrorKind::Invalid, &["key is empty"]);
        check(check_turn(&Turn::new("a").tag("")), ErrorKind::Invalid, &["tag is empty"]);
        check(check_user(b""), ErrorKind::Invalid, &["user is empty"]);
    }

    #[test]
    fn metadata_is_an_object_that_can_be_read_again() {
        assert!(metadata_object(json!([1])).is_err());
        assert!(metadata_object(json!("text")).is_err());
        assert_eq!(metadata_object(Value::Null).unwrap(), Map::new());
        let mut deep = json!({});
        for _ in 0..200 {
            deep = json!({ "a": deep });
        }
        let error = metadata_text(&metadata_object(deep).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let large = metadata_object(json!({ "a": "x".repeat(METADATA_BYTES_MAX) })).unwrap();
        assert_eq!(metadata_text(&large).unwrap_err().kind(), ErrorKind::Limit);
    }
}
