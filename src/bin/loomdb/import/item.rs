//! What both input shapes become, and the pieces that both read: JSON values with a bound, names, times.

use std::borrow::Cow;

use loomdb::{Turn, Zone, ZonedTime};
use serde_json::{Map, Value, json};

use crate::json;

/// Values of a JSON text, at most: a parsed value takes some 72 bytes, however few it has in the text.
const VALUES_MAX: usize = 2 << 20;
/// Bytes of an id, at most, as for every name that is stored. Checked here because an id is copied into each turn.
const NAME_BYTES_MAX: usize = 64 << 10;

/// Why a line cannot be taken: names fields and sizes, never what stands in them.
pub type Refusal = Cow<'static, str>;

/// One turn of an input, on its way to the database.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub struct Item {
    /// The user that the input names; `--user` wins over it.
    pub user: Option<String>,
    /// The key, by which a second run finds it stored.
    pub key: String,
    /// The session.
    pub session: Option<String>,
    /// Who said it.
    pub speaker: Option<String>,
    /// When it was said.
    pub time: ZonedTime,
    /// The place among turns of one session and time.
    pub ordinal: Option<u64>,
    /// What was said.
    pub text: String,
    /// What a shared picture shows.
    pub caption: Option<String>,
}

impl Item {
    /// Bytes of its strings, for the size of a batch.
    pub fn bytes(&self) -> usize {
        let parts = [&self.user, &self.session, &self.speaker, &self.caption];
        let named: usize = parts.into_iter().flatten().map(String::len).sum();
        self.key.len() + self.text.len() + named
    }

    /// The turn that is stored.
    pub fn into_turn(self) -> Turn {
        let mut turn = Turn::new(self.text).key(self.key).time(self.time);
        if let Some(session) = self.session {
            turn = turn.session(session);
        }
        if let Some(speaker) = self.speaker {
            turn = turn.speaker(speaker);
        }
        if let Some(ordinal) = self.ordinal {
            turn = turn.ordinal(ordinal);
        }
        if let Some(caption) = self.caption {
            turn = turn.metadata(json!({ "caption": caption }));
        }
        turn
    }
}

/// Reads times, and remembers that one had no zone.
#[derive(Clone, Debug)]
pub struct Clock {
    zone: Zone,
    /// Whether a zone had to be assumed so far.
    pub assumed: bool,
}

impl Clock {
    /// A clock that reads times without a zone in `zone`.
    pub fn new(zone: Zone) -> Clock {
        Clock { zone, assumed: false }
    }

    /// Reads RFC 3339, with or without a zone.
    pub fn read(&mut self, text: &str) -> std::result::Result<ZonedTime, Refusal> {
        let (time, assumed) = ZonedTime::parse_in_zone(text, &self.zone).map_err(|error| {
            let told = error.to_string();
            told.strip_prefix("invalid: ").map(str::to_owned).unwrap_or(told)
        })?;
        self.assumed |= assumed;
        Ok(time)
    }
}

/// Why a text is not a JSON value that can be taken.
#[derive(Debug)]
pub enum JsonRefusal {
    /// The text ends before the value does: it may go on in the next line.
    Unfinished,
    /// Anything else.
    Bad(Refusal),
}

/// Reads a JSON object.
pub fn object(text: &str) -> std::result::Result<Map<String, Value>, JsonRefusal> {
    if values_at_most(text) > VALUES_MAX {
        let why = format!("JSON with more than {VALUES_MAX} values");
        return Err(JsonRefusal::Bad(why.into()));
    }
    match json::read(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(JsonRefusal::Bad("not a JSON object".into())),
        Err(cause) if cause.is_eof() => Err(JsonRefusal::Unfinished),
        Err(cause) if cause.is_data() => {
            let why = format!("a field stands twice in one object, at column {}", cause.column());
            Err(JsonRefusal::Bad(why.into()))
        }
        Err(cause) => {
            Err(JsonRefusal::Bad(format!("not JSON at column {}", cause.column()).into()))
        }
    }
}

/// The required string `field`.
pub fn string(map: &mut Map<String, Value>, field: &str) -> std::result::Result<String, Refusal> {
    optional_string(map, field)?.ok_or_else(|| format!("no \"{field}\"").into())
}

/// The string `field`; `null` counts as absent.
pub fn optional_string(
    map: &mut Map<String, Value>,
    field: &str,
) -> std::result::Result<Option<String>, Refusal> {
    match map.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("\"{field}\" is not a string").into()),
    }
}

/// The name `field`: a string or a whole number. `null` counts as absent.
pub fn optional_name(
    map: &mut Map<String, Value>,
    field: &str,
) -> std::result::Result<Option<String>, Refusal> {
    match map.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Err(format!("\"{field}\" is empty").into()),
        Some(Value::String(text)) if text.len() > NAME_BYTES_MAX => {
            let why = format!(
                "\"{field}\" has {} bytes, at most {NAME_BYTES_MAX} are allowed",
                text.len()
            );
            Err(why.into())
        }
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => {
            Ok(Some(number.to_string()))
        }
        Some(_) => Err(format!("\"{field}\" is neither a string nor a whole number").into()),
    }
}

/// `part` as the head of a path: `%` and `/` are written `%25` and `%2F`, so that two pairs of names never give one
/// key.
pub fn head(part: &str) -> Cow<'_, str> {
    if part.contains(['%', '/']) {
        part.replace('%', "%25").replace('/', "%2F").into()
    } else {
        part.into()
    }
}

/// An upper bound of the values of a JSON text: separators and openings outside strings.
fn values_at_most(text: &str) -> usize {
    let (mut values, mut inside, mut escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b',' | b'[' | b'{' if !inside => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_inside_strings_do_not_count() {
        assert_eq!(values_at_most(r#"{"a":"[,\"{,","b":[1,2]}"#), 5);
    }

    #[test]
    fn a_text_of_many_small_values_is_refused_before_it_is_read() {
        let hostile = format!("{{\"a\":[{}0]}}", "0,".repeat(VALUES_MAX));
        assert!(matches!(object(&hostile), Err(JsonRefusal::Bad(why)) if why.contains("values")));
        let commas = format!("{{\"a\":\"{}\"}}", ",".repeat(VALUES_MAX + 1));
        assert!(object(&commas).is_ok());
    }

    #[test]
    fn what_is_not_an_object_is_named_without_its_text() {
        for bad in ["[1]", "\"secret-marker\"", "{\"secret-marker\" 1}", "{} secret-marker"] {
            match object(bad) {
                Err(JsonRefusal::Bad(why)) => assert!(!why.contains("secret-marker"), "{why}"),
                other => panic!("{bad}: {other:?}"),
            }
        }
        for open in ["{", "{\"a\":", "{\"a\":\"b"] {
            assert!(matches!(object(open), Err(JsonRefusal::Unfinished)), "{open}");
        }
    }

    #[test]
    fn heads_of_paths_keep_pairs_apart() {
        assert_eq!(head("conv-26"), "conv-26");
        assert_ne!(format!("{}/c", head("a/b")), format!("{}/b/c", head("a")));
        assert_ne!(head("a/b"), head("a%2Fb"));
    }

    #[test]
    fn a_clock_remembers_that_it_assumed_a_zone() {
        let mut clock = Clock::new(Zone::parse("+02:00").unwrap());
        clock.read("2025-01-01T10:00:00Z").unwrap();
        assert!(!clock.assumed);
        let time = clock.read("2025-01-01T10:00:00").unwrap();
        assert!(clock.assumed);
        assert_eq!(time.to_string(), "2025-01-01T10:00:00+02:00");
    }
}
