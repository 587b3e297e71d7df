//! How values of metadata are found and compared.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// The field called `name`. If there is none and the name has a dot, the part before the first dot names an object and
/// the rest a field of it, by the same rule.
pub(super) fn look_up<'a>(mut fields: &'a Map<String, Value>, mut name: &str) -> Option<&'a Value> {
    loop {
        if let Some(value) = fields.get(name) {
            return Some(value);
        }
        let (outer, inner) = name.split_once('.')?;
        fields = fields.get(outer)?.as_object()?;
        name = inner;
    }
}

/// Whether two values are the same: numbers as numbers, objects whatever the order of their fields.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => numbers(a, b) == Some(Ordering::Equal),
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => false,
    }
}

/// The order of two numbers or two strings; other values have none. UTF-8 sorts as its code points do.
pub(super) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => integer_and_float(a, b.as_f64()?),
        (None, Some(b)) => integer_and_float(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Compares without rounding the integer: beyond 2^53 a float cannot tell neighbours apart.
fn integer_and_float(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Integers here have at most 64 bits; a float that the cast clamps is beyond all of them. The cast cuts towards
    // zero, so that an equal whole part leaves the decision to the fraction.
    let whole = float as i128;
    let fraction = float - float.trunc();
    Some(integer.cmp(&whole).then_with(|| 0.0.partial_cmp(&fraction).unwrap_or(Ordering::Equal)))
}
