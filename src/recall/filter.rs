//! Filters on metadata: what an episode's fields must be to stand in an answer.
//!
//! Invariants: a [`MetadataFilter`] is within its limits however it was built, so matching is bounded and never fails. No
//! error here holds a name of a field or a value: both may be memory text. The name of an operator is shown.

mod field;
mod json;
mod value;

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::options::{FILTER_CONDITIONS_MAX, FILTER_DEPTH_MAX};

pub use field::MetadataField;
use value::{compare, equal, look_up};

/// Conditions on the metadata of an episode, built from JSON or in code.
///
/// # From JSON
/// `{"city": "Bern", "n": {"gte": 3, "lt": 9}, "OR": [{..}, {..}], "NOT": {..}}`. All keys of an object must hold, and
/// all operators of a field. `{}` matches everything.
///
/// | condition | takes | holds for a field that is |
/// |---|---|---|
/// | bare value, `eq` | any value; a list only behind `eq` | equal |
/// | `ne` | any value | not equal, or absent |
/// | `in`, `nin` | a list of values | equal to one of them; to none, or absent |
/// | `gt` `gte` `lt` `lte` | a number or a string | of the same type, and beyond or at the bound |
/// | `contains` | a string, number, boolean or null | a string with this part, or a list with this member |
/// | `exists` | true or false | present (null counts); absent |
/// | `AND`, `OR` | a list of objects | |
/// | `NOT` | an object | |
///
/// - An absent field meets `exists: false`, `ne`, `nin`, and what `NOT` makes of the others. Null is a value.
/// - Numbers compare as numbers, `1` and `1.0` being equal, and integers of any size exactly. Strings compare by code
///   points, upper and lower case being different. Values of different types are never equal and have no order.
/// - `in` with an empty list and an empty `OR` hold for nothing; `nin` with an empty list and an empty `AND` for all.
/// - `a.b` is the field of that name. If there is none, it is the field `b` of the object `a`, and so on.
/// - Fields called `AND`, `OR` or `NOT` are reached from code only, see [`MetadataFilter::field`].
///
/// ```
/// use loomdb::MetadataFilter;
/// use serde_json::json;
///
/// # fn main() -> loomdb::Result<()> {
/// let from_json = MetadataFilter::from_json(&json!({ "city": "Bern", "n": { "gte": 3, "lt": 9 } }))?;
/// let in_code = MetadataFilter::all([
///     MetadataFilter::field("city").eq("Bern")?,
///     MetadataFilter::field("n").gte(3)?,
///     MetadataFilter::field("n").lt(9)?,
/// ])?;
/// let metadata = json!({ "city": "Bern", "n": 4 });
/// for filter in [from_json, in_code] {
///     assert!(filter.matches(metadata.as_object().unwrap()));
/// }
/// # Ok(())
/// # }
/// ```
///
/// `Debug` shows counts only.
#[derive(Clone, PartialEq)]
pub struct MetadataFilter {
    node: Node,
    /// Levels of `node`, a single condition being 1: at most [`FILTER_DEPTH_MAX`].
    depth: usize,
    /// Conditions in `node`: at most [`FILTER_CONDITIONS_MAX`].
    conditions: usize,
}

#[derive(Clone, PartialEq)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Field { name: String, test: Test },
}

/// What one field must be.
#[derive(Clone, PartialEq)]
enum Test {
    Equal(Value),
    In(Vec<Value>),
    Compare { bound: Value, order: Order },
    Contains(Value),
    Exists,
}

/// The order of a field to its bound.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl MetadataFilter {
    /// Reads a filter from a JSON object; see the type for its shape.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] for an unknown operator, which is named beside the known ones, and for a value
    /// that an operator cannot take; [`crate::ErrorKind::Limit`] for more than 32 levels or 1,000 conditions, where
    /// each value of a list counts as one.
    pub fn from_json(filter: &Value) -> Result<MetadataFilter> {
        json::read(filter)
    }

    /// Begins a condition on the field `name`.
    pub fn field(name: impl Into<String>) -> MetadataField {
        MetadataField { name: name.into() }
    }

    /// Holds when every one of `filters` does; without any, always.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] for more than 32 levels or 1,000 conditions.
    pub fn all(filters: impl IntoIterator<Item = MetadataFilter>) -> Result<MetadataFilter> {
        MetadataFilter::group(filters, Node::All)
    }

    /// Holds when at least one of `filters` does; without any, never.
    ///
    /// # Errors
    /// As [`MetadataFilter::all`].
    pub fn any(filters: impl IntoIterator<Item = MetadataFilter>) -> Result<MetadataFilter> {
        MetadataFilter::group(filters, Node::Any)
    }

    /// Holds when `filter` does not.
    ///
    /// # Errors
    /// As [`MetadataFilter::all`].
    #[expect(clippy::should_implement_trait, reason = "it may fail, which `!` may not")]
    pub fn not(filter: MetadataFilter) -> Result<MetadataFilter> {
        let MetadataFilter { node, depth, conditions } = filter;
        MetadataFilter::new(Node::Not(Box::new(node)), depth + 1, conditions)
    }

    /// Whether an episode with this metadata passes. Cost: at most one comparison a condition.
    pub fn matches(&self, metadata: &Map<String, Value>) -> bool {
        self.node.holds(metadata)
    }

    /// Whether every metadata passes because there is no condition.
    pub fn is_empty(&self) -> bool {
        matches!(&self.node, Node::All(nodes) if nodes.is_empty())
    }

    fn group(
        filters: impl IntoIterator<Item = MetadataFilter>,
        node: fn(Vec<Node>) -> Node,
    ) -> Result<MetadataFilter> {
        let Group { nodes, depth, conditions } = Group::collect(filters)?;
        MetadataFilter::new(node(nodes), depth + 1, conditions)
    }

    /// All of `filters`, as the keys of one object stand together: no level of its own.
    fn together(filters: Vec<MetadataFilter>) -> Result<MetadataFilter> {
        let Group { nodes, depth, conditions } = Group::collect(filters)?;
        MetadataFilter::new(Node::All(nodes), depth.max(1), conditions)
    }

    fn new(node: Node, depth: usize, conditions: usize) -> Result<MetadataFilter> {
        check_depth(depth)?;
        check_conditions(conditions)?;
        Ok(MetadataFilter { node, depth, conditions })
    }
}

/// Filters on their way into one.
struct Group {
    nodes: Vec<Node>,
    depth: usize,
    conditions: usize,
}

impl Group {
    fn collect(filters: impl IntoIterator<Item = MetadataFilter>) -> Result<Group> {
        let mut group = Group { nodes: Vec::new(), depth: 0, conditions: 0 };
        for filter in filters {
            group.depth = group.depth.max(filter.depth);
            group.conditions += filter.conditions;
            group.nodes.push(filter.node);
            check_conditions(group.conditions)?;
        }
        // An empty group counts too, so that the limit bounds the nodes of a filter.
        group.conditions = group.conditions.max(1);
        Ok(group)
    }
}

fn check_depth(depth: usize) -> Result<()> {
    if depth > FILTER_DEPTH_MAX {
        return Err(Error::limit(format!("filter has more than {FILTER_DEPTH_MAX} levels")));
    }
    Ok(())
}

fn check_conditions(conditions: usize) -> Result<()> {
    if conditions > FILTER_CONDITIONS_MAX {
        return Err(Error::limit(format!(
            "filter has more than {FILTER_CONDITIONS_MAX} conditions, the values of lists included"
        )));
    }
    Ok(())
}

/// Sizes only: fields and values may be memory text.
impl std::fmt::Debug for MetadataFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MetadataFilter {{ conditions: {}, depth: {} }}", self.conditions, self.depth)
    }
}

impl MetadataFilter {
    /// The opposite of a single condition, which is a single condition too.
    fn negated(self) -> Result<MetadataFilter> {
        MetadataFilter::new(Node::Not(Box::new(self.node)), self.depth, self.conditions)
    }
}

impl Node {
    fn holds(&self, metadata: &Map<String, Value>) -> bool {
        match self {
            Node::All(nodes) => nodes.iter().all(|node| node.holds(metadata)),
            Node::Any(nodes) => nodes.iter().any(|node| node.holds(metadata)),
            Node::Not(node) => !node.holds(metadata),
            Node::Field { name, test } => {
                look_up(metadata, name).is_some_and(|value| test.holds(value))
            }
        }
    }
}

impl Test {
    fn holds(&self, value: &Value) -> bool {
        match self {
            Test::Equal(wanted) => equal(value, wanted),
            Test::In(list) => list.iter().any(|wanted| equal(value, wanted)),
            Test::Compare { bound, order } => {
                compare(value, bound).is_some_and(|found| order.allows(found))
            }
            Test::Contains(part) => match (value, part) {
                (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
                (Value::Array(values), part) => values.iter().any(|value| equal(value, part)),
                _ => false,
            },
            Test::Exists => true,
        }
    }
}

impl Order {
    fn allows(self, found: Ordering) -> bool {
        match self {
            Order::Greater => found.is_gt(),
            Order::GreaterOrEqual => found.is_ge(),
            Order::Less => found.is_lt(),
            Order::LessOrEqual => found.is_le(),
        }
    }
}

#[cfg(test)]
mod tests;
