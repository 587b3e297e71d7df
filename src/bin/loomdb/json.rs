//! Reads JSON as it is meant by those who wrote it: an object in which a field stands twice is refused, since readers
//! differ in which of the two they take, and the other one would be lost without a word.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Number, Value};

/// Reads one JSON value, which is the whole text.
///
/// # Errors
/// Of class `Data` when a field stands twice in one object; else as [`serde_json::from_str`].
pub fn read(text: &str) -> Result<Value, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(Strict)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(field) = access.next_key::<String>()? {
            if map.contains_key(&field) {
                // The field's name is not told: it may be stored text.
                return Err(A::Error::custom("a field stands twice in one object"));
            }
            map.insert(field, access.next_value_seed(Strict)?);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_serde_json_reads_them() {
        for text in [
            "null",
            r#"{"b":[1,-2,18446744073709551615,0.5,1e300,true,null,"\u00e9\n"],"a":{"b":{}}}"#,
            " [ ] ",
        ] {
            assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
        for text in ["", "{", "{} x", "[1,]", "1e999", "nul"] {
            let ours = read(text).unwrap_err();
            let theirs = serde_json::from_str::<Value>(text).unwrap_err();
            assert_eq!(ours.classify(), theirs.classify(), "{text}");
        }
        assert!(read(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn a_field_that_stands_twice_is_refused_at_every_depth() {
        for text in [
            r#"{"secret":1,"secret":1}"#,
            r#"{"secret":1,"\u0073ecret":2}"#,
            r#"{"a":[{"b":{"secret":1,"c":0,"secret":2}}]}"#,
        ] {
            let error = read(text).unwrap_err();
            assert!(error.is_data() && !error.to_string().contains("secret"), "{error}");
        }
        assert!(read(r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#).is_ok());
    }
}
