//! Reads a filter from JSON.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

use super::{MetadataFilter, check_conditions, check_depth};

const OPERATORS: &str = "eq ne in nin gt gte lt lte contains exists, and AND OR NOT around objects";
/// Bytes of an unknown operator's name that are shown, at most: a longer one is no slip of a name but something else.
const SHOWN_BYTES_MAX: usize = 16;

/// Reads the filter `value`.
pub(super) fn read(value: &Value) -> Result<MetadataFilter> {
    let fields = value.as_object().ok_or_else(|| Error::invalid("filter is not a JSON object"))?;
    object(fields, 1)
}

/// `level`: how many filters are around, this one included. Checked on the way down, so that
/// hostile nesting is refused before it is followed.
fn object(fields: &Map<String, Value>, level: usize) -> Result<MetadataFilter> {
    check_depth(level)?;
    let mut all = Vec::new();
    let mut conditions = 0;
    for (name, value) in fields {
        let found = match name.as_str() {
            "AND" => MetadataFilter::all(list("AND", value, level)?)?,
            "OR" => MetadataFilter::any(list("OR", value, level)?)?,
            "NOT" => {
                let inner = value.as_object().ok_or_else(|| takes("NOT", "an object"))?;
                MetadataFilter::not(object(inner, level + 1)?)?
            }
            _ => field(name, value)?,
        };
        conditions += found.conditions;
        check_conditions(conditions)?;
        all.push(found);
    }
    MetadataFilter::together(all)
}

fn list(operator: &str, value: &Value, level: usize) -> Result<Vec<MetadataFilter>> {
    let refused = || takes(operator, "a list of objects");
    let values = value.as_array().ok_or_else(refused)?;
    check_conditions(values.len())?;
    let filter = |value: &Value| object(value.as_object().ok_or_else(refused)?, level + 1);
    values.iter().map(filter).collect()
}

fn field(name: &str, value: &Value) -> Result<MetadataFilter> {
    let field = || MetadataFilter::field(name);
    match value {
        Value::Object(tests) if tests.is_empty() => Err(Error::invalid(format!(
            "filter has a field without an operator; known: {OPERATORS}"
        ))),
        Value::Object(tests) => {
            let mut all = Vec::new();
            for (operator, value) in tests {
                all.push(test(name, operator, value)?);
            }
            MetadataFilter::together(all)
        }
        Value::Array(_) => Err(Error::invalid(
            "filter has a bare list: write {\"in\": [..]} for any of them or {\"eq\": [..]} for this list",
        )),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            field().eq(value.clone())
        }
    }
}

fn test(name: &str, operator: &str, value: &Value) -> Result<MetadataFilter> {
    let field = MetadataFilter::field(name);
    let values = || value.as_array().cloned().ok_or_else(|| takes(operator, "a list"));
    match operator {
        "eq" => field.eq(value.clone()),
        "ne" => field.ne(value.clone()),
        "in" => field.is_in(values()?),
        "nin" => field.not_in(values()?),
        "gt" => field.gt(value.clone()),
        "gte" => field.gte(value.clone()),
        "lt" => field.lt(value.clone()),
        "lte" => field.lte(value.clone()),
        "contains" => field.contains(value.clone()),
        "exists" => field.exists(value.as_bool().ok_or_else(|| takes(operator, "true or false"))?),
        _ => Err(unknown(operator)),
    }
}

fn takes(operator: &str, what: &str) -> Error {
    Error::invalid(format!("filter operator \"{operator}\" takes {what}"))
}

/// Names the operator, unless it does not look like one: what is long or has spaces may be memory text.
fn unknown(operator: &str) -> Error {
    let shown = operator.len() <= SHOWN_BYTES_MAX
        && operator.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_$-<>=!".contains(&byte));
    let name = match shown {
        true => format!("\"{operator}\""),
        false => format!("of {} bytes", operator.len()),
    };
    Error::invalid(format!("filter operator {name} is unknown; known: {OPERATORS}"))
}
