//! The shape "chat": `{"messages": [{"role", "content", "timestamp"}]}`, one conversation an object; one object a
//! line, or one object over several lines.
//!
//! - `role` becomes the speaker; `content` is a string or a list of parts, of which those with a `text` are joined
//!   by a line break; a message without text (a call of a tool, a picture alone) is counted and left out.
//! - `timestamp` is RFC 3339 or a number of Unix seconds; required.
//! - `conversation_id` or `id` names the conversation. It is the session, the key is `conversation/place`, the place
//!   counted from 0 over all messages, and it is the user unless `--user` names one.
//! - Without an id the conversation is named `chat-` and a hash (FNV-1a, 64 bits) of its first message: role,
//!   timestamp, content. So a file may be moved, read from a pipe or grow at its end, and a second run still skips
//!   what is stored; two conversations of one user that begin with the same message at the same time count as one.
//!   `--user` is then required.

use loomdb::{Timestamp, ZonedTime};
use serde_json::{Map, Value};

use super::item::{Clock, Item, Refusal, head, optional_name, string};

/// Whether an object has this shape.
pub fn is_chat(map: &Map<String, Value>) -> bool {
    map.contains_key("messages")
}

/// The messages of one conversation, read one by one: turns repeat its name, so that they are made only when the last
/// batch is stored.
pub struct Conversation {
    id: Option<String>,
    name: String,
    messages: std::vec::IntoIter<Value>,
    place: u64,
}

impl Conversation {
    /// Takes the conversation apart.
    pub fn new(mut map: Map<String, Value>) -> Result<Conversation, Refusal> {
        let id = match optional_name(&mut map, "conversation_id")? {
            Some(id) => Some(id),
            None => optional_name(&mut map, "id")?,
        };
        let messages = match map.remove("messages") {
            Some(Value::Array(messages)) => messages,
            Some(_) => return Err("\"messages\" is not a list".into()),
            None => return Err("no \"messages\"".into()),
        };
        let name = match (&id, messages.first()) {
            (Some(id), _) => id.clone(),
            (None, Some(first)) => format!("chat-{:016x}", fingerprint(first)),
            (None, None) => String::new(),
        };
        Ok(Conversation { id, name, messages: messages.into_iter(), place: 0 })
    }

    /// The next message: `None` behind the last, `Some(None)` for one without text. A refusal names the message by its
    /// place, from 1.
    pub fn next(&mut self, clock: &mut Clock) -> Result<Option<Option<Item>>, Refusal> {
        let Some(message) = self.messages.next() else {
            return Ok(None);
        };
        let place = self.place;
        self.place += 1;
        let said = read_message(message, clock)
            .map_err(|why| Refusal::from(format!("message {}: {why}", place + 1)))?;
        Ok(Some(said.map(|said| Item {
            user: self.id.clone(),
            key: format!("{}/{place}", head(&self.name)),
            session: Some(self.name.clone()),
            speaker: Some(said.role),
            time: said.time,
            ordinal: Some(place),
            text: said.text,
            caption: None,
        })))
    }
}

struct Said {
    role: String,
    time: ZonedTime,
    text: String,
}

/// What a message says; `None` when it has no text.
fn read_message(message: Value, clock: &mut Clock) -> Result<Option<Said>, Refusal> {
    let Value::Object(mut message) = message else {
        return Err("not a JSON object".into());
    };
    let text = content(message.remove("content"))?;
    if text.is_empty() {
        return Ok(None);
    }
    let time = timestamp(message.remove("timestamp"), clock)?;
    let role = string(&mut message, "role")?;
    if role.is_empty() {
        return Err("\"role\" is empty".into());
    }
    Ok(Some(Said { role, time, text }))
}

fn content(content: Option<Value>) -> Result<String, Refusal> {
    let parts = match content {
        None | Some(Value::Null) => return Ok(String::new()),
        Some(Value::String(text)) => return Ok(text),
        Some(Value::Array(parts)) => parts,
        Some(_) => return Err("\"content\" is neither a string nor a list of parts".into()),
    };
    let mut texts = Vec::new();
    for part in parts {
        match part {
            Value::String(text) => texts.push(text),
            Value::Object(mut part) => match part.remove("text") {
                Some(Value::String(text)) => texts.push(text),
                None | Some(Value::Null) => {}
                Some(_) => return Err("\"text\" of a part of \"content\" is not a string".into()),
            },
            _ => return Err("part of \"content\" is neither a string nor an object".into()),
        }
    }
    Ok(texts.join("\n"))
}

fn timestamp(value: Option<Value>, clock: &mut Clock) -> Result<ZonedTime, Refusal> {
    match value {
        None | Some(Value::Null) => Err("no \"timestamp\"".into()),
        Some(Value::String(text)) => clock
            .read(&text)
            .map_err(|why| format!("\"timestamp\": {why}; a number is Unix seconds").into()),
        Some(Value::Number(seconds)) => {
            let micros = match seconds.as_i64() {
                Some(whole) => whole.checked_mul(1_000_000),
                // The conversion saturates; the calendar below is far narrower.
                None => seconds.as_f64().map(|seconds| (seconds * 1e6).round() as i64),
            };
            micros
                .and_then(|micros| Timestamp::from_micros(micros).ok())
                .map(ZonedTime::utc)
                .ok_or_else(|| {
                    "\"timestamp\": time is out of range: numbers are Unix seconds".into()
                })
        }
        Some(_) => Err("\"timestamp\" is neither a string nor a number".into()),
    }
}

/// FNV-1a over role, timestamp and content of a message, as JSON with a separator that JSON never holds bare.
fn fingerprint(message: &Value) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for field in ["role", "timestamp", "content"] {
        let text = message.get(field).unwrap_or(&Value::Null).to_string();
        for byte in text.bytes().chain([0x1f]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use loomdb::Zone;
    use serde_json::json;

    fn read(value: Value) -> Result<(Vec<Item>, usize), Refusal> {
        let Value::Object(map) = value else { panic!("an object") };
        let mut conversation = Conversation::new(map)?;
        let mut clock = Clock::new(Zone::utc());
        let (mut items, mut skipped) = (Vec::new(), 0);
        while let Some(message) = conversation.next(&mut clock)? {
            match message {
                Some(item) => items.push(item),
                None => skipped += 1,
            }
        }
        Ok((items, skipped))
    }

    fn message(content: Value, timestamp: Value) -> Value {
        json!({ "role": "user", "content": content, "timestamp": timestamp })
    }

    #[test]
    fn parts_are_joined_and_messages_without_text_are_counted() {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "image_url" }, "b"]);
        let (items, skipped) = read(json!({ "id": 4, "messages": [
            message(parts, json!(1_700_000_000)),
            message(json!(null), json!(null)),
            message(json!("c"), json!("2025-01-01T10:00:00")),
        ]}))
        .unwrap();
        assert_eq!((items.len(), skipped), (2, 1));
        assert_eq!((items[0].text.as_str(), items[0].user.as_deref()), ("a\nb", Some("4")));
        assert_eq!((items[1].key.as_str(), items[1].ordinal), ("4/2", Some(2)));
        assert_eq!(items[1].session.as_deref(), Some("4"));
        assert_eq!(items[1].speaker.as_deref(), Some("user"));
    }

    #[test]
    fn times_are_rfc_3339_or_unix_seconds() {
        let mut clock = Clock::new(Zone::utc());
        let mut read = |value| timestamp(Some(value), &mut clock).map(|time| time.to_string());
        assert_eq!(read(json!(0)).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(read(json!(1.5)).unwrap(), "1970-01-01T00:00:01.5Z");
        assert_eq!(read(json!("1970-01-01T01:00:00+01:00")).unwrap(), "1970-01-01T01:00:00+01:00");
        for bad in [json!(1_700_000_000_000_i64), json!(1e300), json!(u64::MAX), json!([])] {
            assert!(read(bad).unwrap_err().contains("timestamp"));
        }
    }

    #[test]
    fn a_conversation_without_an_id_keeps_its_name_while_it_grows() {
        let first = message(json!("hi"), json!(5));
        let short = json!({ "messages": [first] });
        let long = json!({ "messages": [first, message(json!("more"), json!(6))] });
        let other = json!({ "messages": [message(json!("hi"), json!(6))] });
        let name = |value: &Value| fingerprint(&value["messages"][0]);
        assert_eq!(name(&short), name(&long));
        assert_ne!(name(&short), name(&other));
        // Written out, so that keys of stored databases stay what they are.
        assert_eq!(name(&short), 0xcf74_8548_1e3b_9b55);
        let item = &read(long).unwrap().0[1];
        assert_eq!((item.user.as_deref(), item.key.as_str()), (None, "chat-cf7485481e3b9b55/1"));
    }

    #[test]
    fn refusals_name_the_message_and_the_field() {
        for (messages, parts) in [
            (json!([5]), ["message 1", "object"]),
            (
                json!([message(json!("a"), json!(1)), message(json!("b"), json!(null))]),
                ["message 2", "\"timestamp\""],
            ),
            (json!([message(json!(7), json!(1))]), ["message 1", "\"content\""]),
            (json!([{ "content": "a", "timestamp": 1 }]), ["message 1", "\"role\""]),
            (json!({}), ["\"messages\"", "list"]),
        ] {
            let why = read(json!({ "id": "c", "messages": messages })).unwrap_err();
            assert!(parts.iter().all(|part| why.contains(part)), "{why}");
        }
    }
}
