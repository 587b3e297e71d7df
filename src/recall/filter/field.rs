//! Conditions on one field, built in code.

use serde_json::Value;

use crate::error::{Error, Result};

use super::{MetadataFilter, Node, Order, Test, check_conditions, check_depth};

/// A field of which something is to be asked. Made by [`MetadataFilter::field`].
#[derive(Clone)]
pub struct MetadataField {
    pub(super) name: String,
}

impl std::fmt::Debug for MetadataField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MetadataField {{ name: {} bytes }}", self.name.len())
    }
}

macro_rules! orders {
    ($($(#[$doc:meta])* $name:ident => $order:ident;)*) => {
        $($(#[$doc])*
        ///
        /// # Errors
        /// [`crate::ErrorKind::Invalid`] unless `bound` is a number or a string.
        pub fn $name(self, bound: impl Into<Value>) -> Result<MetadataFilter> {
            self.compare(stringify!($name), bound.into(), Order::$order)
        })*
    };
}

impl MetadataField {
    /// Holds when the field is `value`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] for a value of more than 32 levels.
    pub fn eq(self, value: impl Into<Value>) -> Result<MetadataFilter> {
        let value = value.into();
        check_depth_of(&value, 1)?;
        self.test(Test::Equal(value), 1)
    }

    /// Holds when the field is not `value`, or absent.
    ///
    /// # Errors
    /// As [`MetadataField::eq`].
    pub fn ne(self, value: impl Into<Value>) -> Result<MetadataFilter> {
        self.eq(value)?.negated()
    }

    /// Holds when the field is one of `values`.
    ///
    /// # Errors
    /// As [`MetadataField::eq`]; [`crate::ErrorKind::Limit`] for more than 1,000 values.
    pub fn is_in<T: Into<Value>>(
        self,
        values: impl IntoIterator<Item = T>,
    ) -> Result<MetadataFilter> {
        let mut list = Vec::new();
        for value in values {
            let value = value.into();
            check_depth_of(&value, 1)?;
            list.push(value);
            check_conditions(list.len())?;
        }
        let conditions = list.len().max(1);
        self.test(Test::In(list), conditions)
    }

    /// Holds when the field is none of `values`, or absent.
    ///
    /// # Errors
    /// As [`MetadataField::is_in`].
    pub fn not_in<T: Into<Value>>(
        self,
        values: impl IntoIterator<Item = T>,
    ) -> Result<MetadataFilter> {
        self.is_in(values)?.negated()
    }

    orders! {
        /// Holds when the field is of the type of `bound` and greater.
        gt => Greater;
        /// Holds when the field is of the type of `bound` and greater or equal.
        gte => GreaterOrEqual;
        /// Holds when the field is of the type of `bound` and less.
        lt => Less;
        /// Holds when the field is of the type of `bound` and less or equal.
        lte => LessOrEqual;
    }

    /// Holds when the field is a string that `value` is a part of, or a list that it is a member of.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] for a list or an object.
    pub fn contains(self, value: impl Into<Value>) -> Result<MetadataFilter> {
        let value = value.into();
        if matches!(value, Value::Array(_) | Value::Object(_)) {
            return Err(Error::invalid(
                "filter operator \"contains\" takes a string, a number, a boolean or null",
            ));
        }
        self.test(Test::Contains(value), 1)
    }

    /// Holds when the field is there, null included; with `false`, when it is not.
    ///
    /// # Errors
    /// None; a `Result` as all conditions are.
    pub fn exists(self, exists: bool) -> Result<MetadataFilter> {
        let filter = self.test(Test::Exists, 1)?;
        if exists { Ok(filter) } else { filter.negated() }
    }

    fn compare(self, operator: &str, bound: Value, order: Order) -> Result<MetadataFilter> {
        if !matches!(bound, Value::Number(_) | Value::String(_)) {
            return Err(Error::invalid(format!(
                "filter operator \"{operator}\" takes a number or a string"
            )));
        }
        self.test(Test::Compare { bound, order }, 1)
    }

    fn test(self, test: Test, conditions: usize) -> Result<MetadataFilter> {
        MetadataFilter::new(Node::Field { name: self.name, test }, 1, conditions)
    }
}

/// Refuses a value of so many levels that comparing it could exhaust the stack.
fn check_depth_of(value: &Value, depth: usize) -> Result<()> {
    check_depth(depth)?;
    match value {
        Value::Array(values) => {
            values.iter().try_for_each(|inner| check_depth_of(inner, depth + 1))
        }
        Value::Object(fields) => {
            fields.values().try_for_each(|inner| check_depth_of(inner, depth + 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}
