//! The shape "turns": one JSON object a line, one turn an object.
//!
//! | field | meaning |
//! |---|---|
//! | `conv_id` | the conversation; required. The user, unless `--user` names one |
//! | `turn_id` | unique in the conversation; required. The key is `conv_id/turn_id` |
//! | `text` | what was said; required |
//! | `time` | when the session began or the turn was said; required unless `turn_time` is there |
//! | `turn_time` | when the turn was said; wins over `time` |
//! | `session_id` | the session becomes `conv_id/session_id` |
//! | `idx` | the turn's place in the conversation: orders turns of one time |
//! | `speaker` | who said it |
//! | `caption` | what a shared picture shows: kept as metadata, and with `--captions` also in the text |
//!
//! Other fields are left out.

use serde_json::{Map, Value};

use super::item::{Clock, Item, Refusal, head, optional_name, optional_string, string};

/// Reads one turn.
pub fn turn(
    mut map: Map<String, Value>,
    clock: &mut Clock,
    captions: bool,
) -> Result<Item, Refusal> {
    let conversation = optional_name(&mut map, "conv_id")?.ok_or("no \"conv_id\"")?;
    let turn_id = optional_name(&mut map, "turn_id")?.ok_or("no \"turn_id\"")?;
    let mut text = string(&mut map, "text")?;
    if text.is_empty() {
        return Err("\"text\" is empty".into());
    }
    let caption = optional_string(&mut map, "caption")?.filter(|caption| !caption.is_empty());
    if let Some(caption) = caption.as_ref().filter(|_| captions) {
        text = format!("{text} [image: {caption}]");
    }
    let (field, time) = match optional_string(&mut map, "turn_time")? {
        Some(time) => ("turn_time", time),
        None => ("time", string(&mut map, "time")?),
    };
    let time = clock.read(&time).map_err(|why| not_a_time(field, &why))?;
    let session = optional_name(&mut map, "session_id")?;
    let speaker = optional_string(&mut map, "speaker")?.filter(|name| !name.is_empty());
    let ordinal = match map.remove("idx") {
        None | Some(Value::Null) => None,
        Some(index) => Some(index.as_u64().ok_or("\"idx\" is not a whole number from 0 up")?),
    };
    Ok(Item {
        key: format!("{}/{turn_id}", head(&conversation)),
        session: session.map(|session| format!("{}/{session}", head(&conversation))),
        user: Some(conversation),
        speaker,
        time,
        ordinal,
        text,
        caption,
    })
}

fn not_a_time(field: &str, why: &str) -> String {
    format!("\"{field}\": {why}; a time is written as 2025-01-31T09:30:00+01:00")
}

#[cfg(test)]
mod tests {
    use super::*;
    use loomdb::Zone;
    use serde_json::json;

    fn read(value: Value) -> Result<Item, Refusal> {
        let Value::Object(map) = value else { panic!("an object") };
        turn(map, &mut Clock::new(Zone::utc()), false)
    }

    fn whole() -> Value {
        json!({
            "conv_id": "c", "session_id": "S1", "time": "2025-01-01T10:00:00", "turn_id": "D1:1",
            "idx": 0, "speaker": "Ana", "text": "hello", "caption": "a dog", "image_query": "dog",
        })
    }

    #[test]
    fn a_whole_turn_is_taken_and_the_conversation_is_its_user() {
        let item = read(whole()).unwrap();
        let expected = Item {
            user: Some("c".into()),
            key: "c/D1:1".into(),
            session: Some("c/S1".into()),
            speaker: Some("Ana".into()),
            time: loomdb::ZonedTime::parse("2025-01-01T10:00:00Z").unwrap(),
            ordinal: Some(0),
            text: "hello".into(),
            caption: Some("a dog".into()),
        };
        assert!(item == expected);
    }

    #[test]
    fn captions_join_the_text_only_when_asked() {
        let Value::Object(map) = whole() else { unreachable!() };
        let item = turn(map, &mut Clock::new(Zone::utc()), true).unwrap();
        assert_eq!(item.text, "hello [image: a dog]");
    }

    #[test]
    fn numbers_serve_as_ids_and_optional_fields_may_be_missing() {
        let time = "2025-01-01T10:00:00Z";
        let item = read(json!({ "conv_id": 7, "turn_id": 1, "text": "x", "turn_time": time }));
        let item = item.unwrap();
        assert_eq!((item.key.as_str(), item.user.as_deref()), ("7/1", Some("7")));
        assert_eq!((item.session, item.speaker, item.ordinal), (None, None, None));
    }

    #[test]
    fn the_time_of_the_turn_wins_over_that_of_the_session() {
        let mut value = whole();
        value["turn_time"] = json!("2025-01-01T10:07:00");
        assert_eq!(read(value).unwrap().time.to_string(), "2025-01-01T10:07:00Z");
    }

    #[test]
    fn each_bad_field_is_named() {
        for (field, bad) in [
            ("conv_id", json!(null)),
            ("conv_id", json!("")),
            ("turn_id", json!([1])),
            ("text", json!(null)),
            ("text", json!("")),
            ("text", json!(5)),
            ("time", json!("yesterday")),
            ("time", json!(null)),
            ("turn_time", json!("secret-marker")),
            ("session_id", json!(1.5)),
            ("speaker", json!({})),
            ("idx", json!(-1)),
            ("idx", json!("1")),
            ("caption", json!(1)),
        ] {
            let mut value = whole();
            value[field] = bad.clone();
            let why = read(value).expect_err("refused");
            assert!(why.contains(&format!("\"{field}\"")), "{field} {bad}: {why}");
            assert!(!why.contains("secret-marker"));
        }
    }
}
