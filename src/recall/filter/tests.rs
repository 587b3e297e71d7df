//! Claims about filters, and a second, naive reading of the same JSON to hold them against.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::MetadataFilter;
use crate::error::ErrorKind;

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => panic!("an object"),
    }
}

#[track_caller]
fn check(filter: Value, metadata: Value, expected: bool) {
    let read = MetadataFilter::from_json(&filter).unwrap();
    assert_eq!(read.matches(&map(metadata.clone())), expected, "{filter} on {metadata}");
}

#[track_caller]
fn refused(filter: Value, kind: ErrorKind) -> String {
    let error = MetadataFilter::from_json(&filter).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

#[test]
fn the_empty_filter_matches_everything() {
    check(json!({}), json!({}), true);
    check(json!({}), json!({ "a": 1 }), true);
    assert!(MetadataFilter::from_json(&json!({})).unwrap().is_empty());
    assert!(!MetadataFilter::from_json(&json!({ "a": 1 })).unwrap().is_empty());
}

#[test]
fn keys_of_an_object_and_operators_of_a_field_must_all_hold() {
    let filter = json!({ "city": "Bern", "n": { "gte": 3, "lt": 9 } });
    check(filter.clone(), json!({ "city": "Bern", "n": 3 }), true);
    check(filter.clone(), json!({ "city": "Bern", "n": 9 }), false);
    check(filter.clone(), json!({ "city": "bern", "n": 3 }), false);
    check(filter, json!({ "city": "Bern" }), false);
}

#[test]
fn and_or_and_not_combine() {
    let filter = json!({ "OR": [{ "a": 1 }, { "b": 2, "c": 3 }], "NOT": { "d": 4 } });
    check(filter.clone(), json!({ "a": 1 }), true);
    check(filter.clone(), json!({ "b": 2 }), false);
    check(filter.clone(), json!({ "b": 2, "c": 3 }), true);
    check(filter, json!({ "a": 1, "d": 4 }), false);
    check(json!({ "AND": [{ "a": 1 }, { "a": { "ne": 2 } }] }), json!({ "a": 1 }), true);
    check(json!({ "AND": [] }), json!({}), true);
    check(json!({ "OR": [] }), json!({}), false);
    check(json!({ "NOT": {} }), json!({}), false);
}

#[test]
fn an_absent_field_meets_only_what_denies() {
    for (test, expected) in [
        (json!({ "exists": false }), true),
        (json!({ "exists": true }), false),
        (json!({ "ne": 1 }), true),
        (json!({ "nin": [1] }), true),
        (json!({ "eq": null }), false),
        (json!({ "in": [null] }), false),
        (json!({ "gt": 0 }), false),
        (json!({ "lte": "z" }), false),
        (json!({ "contains": "" }), false),
    ] {
        check(json!({ "a": test.clone() }), json!({ "b": 1 }), expected);
        check(json!({ "NOT": { "a": test } }), json!({ "b": 1 }), !expected);
    }
    check(json!({ "a": null }), json!({ "a": null }), true);
    check(json!({ "a": { "exists": true } }), json!({ "a": null }), true);
}

#[test]
fn numbers_compare_as_numbers_and_large_integers_exactly() {
    check(json!({ "a": 1 }), json!({ "a": 1.0 }), true);
    check(json!({ "a": { "gt": 1 } }), json!({ "a": 1.5 }), true);
    check(json!({ "a": { "lt": -1 } }), json!({ "a": -1.5 }), true);
    check(json!({ "a": { "gt": -1.5 } }), json!({ "a": -1 }), true);
    let next = (1_u64 << 53) + 1;
    check(json!({ "a": next }), json!({ "a": next - 1 }), false);
    check(json!({ "a": { "gt": next - 1 } }), json!({ "a": next }), true);
    // The float is 2^53, the nearest to the integer above it.
    check(json!({ "a": 9_007_199_254_740_992.0 }), json!({ "a": next }), false);
    check(json!({ "a": { "gt": 9_007_199_254_740_992.0 } }), json!({ "a": next }), true);
    check(json!({ "a": { "gt": i64::MAX } }), json!({ "a": u64::MAX }), true);
    check(json!({ "a": { "lt": 1e300 } }), json!({ "a": u64::MAX }), true);
    check(json!({ "a": { "gt": -1e300 } }), json!({ "a": i64::MIN }), true);
    check(json!({ "a": { "gt": 18_446_744_073_709_551_616.0 } }), json!({ "a": u64::MAX }), false);
    check(json!({ "a": { "eq": [1, { "b": 2.0 }] } }), json!({ "a": [1.0, { "b": 2 }] }), true);
}

#[test]
fn strings_compare_by_code_points_and_never_with_numbers() {
    check(json!({ "a": { "lt": "b" } }), json!({ "a": "a" }), true);
    check(json!({ "a": { "gt": "Z" } }), json!({ "a": "a" }), true);
    // The UTF-16 of the second begins with a smaller unit.
    check(json!({ "a": { "lt": "\u{10000}" } }), json!({ "a": "\u{ffff}" }), true);
    check(json!({ "a": { "gte": "2025-03-01" } }), json!({ "a": "2025-03-02T10:00:00Z" }), true);
    check(json!({ "a": { "gt": 1 } }), json!({ "a": "2" }), false);
    check(json!({ "a": "1" }), json!({ "a": 1 }), false);
    check(json!({ "a": { "lt": 1 } }), json!({ "a": true }), false);
}

#[test]
fn contains_is_a_part_of_a_string_and_a_member_of_a_list() {
    check(json!({ "a": { "contains": "er" } }), json!({ "a": "Bern" }), true);
    check(json!({ "a": { "contains": "er" } }), json!({ "a": ["Bern"] }), false);
    check(json!({ "a": { "contains": "Bern" } }), json!({ "a": ["Bern", 1] }), true);
    check(json!({ "a": { "contains": 1.0 } }), json!({ "a": ["Bern", 1] }), true);
    check(json!({ "a": { "contains": 1 } }), json!({ "a": "1" }), false);
    check(json!({ "a": { "contains": "b" } }), json!({ "a": { "b": 1 } }), false);
}

#[test]
fn lists_of_values_are_told_apart_from_lists_as_values() {
    check(json!({ "a": { "in": [1, "x"] } }), json!({ "a": "x" }), true);
    check(json!({ "a": { "nin": [1, "x"] } }), json!({ "a": "x" }), false);
    check(json!({ "a": { "in": [1] } }), json!({ "a": [1] }), false);
    check(json!({ "a": { "eq": [1] } }), json!({ "a": [1] }), true);
    check(json!({ "a": { "in": [] } }), json!({ "a": 1 }), false);
    check(json!({ "a": { "nin": [] } }), json!({ "a": 1 }), true);
    assert!(refused(json!({ "a": [1] }), ErrorKind::Invalid).contains("in"));
}

#[test]
fn a_dotted_name_reaches_into_objects_only_when_there_is_no_such_field() {
    let filter = json!({ "a.b": 1 });
    check(filter.clone(), json!({ "a": { "b": 1 } }), true);
    check(filter.clone(), json!({ "a.b": 2, "a": { "b": 1 } }), false);
    check(filter.clone(), json!({ "a.b": 1, "a": { "b": 2 } }), true);
    check(filter, json!({ "a": [1] }), false);
    check(json!({ "a.b.c": 1 }), json!({ "a": { "b": { "c": 1 } } }), true);
    check(json!({ "a.b.c": 1 }), json!({ "a": { "b.c": 1 } }), true);
    check(json!({ "a..": { "exists": false } }), json!({ "a": {} }), true);
}

#[test]
fn an_unknown_operator_is_named_beside_the_known_ones() {
    let text = refused(json!({ "a": { "$gte": 3 } }), ErrorKind::Invalid);
    assert!(
        text.contains("\"$gte\"") && text.contains("eq ne in nin gt gte lt lte contains exists")
    );
    refused(json!({ "a": { "gt": 1, "over": 3 } }), ErrorKind::Invalid);
    refused(json!({ "a": {} }), ErrorKind::Invalid);
}

#[test]
fn a_value_that_an_operator_cannot_take_is_refused() {
    for filter in [
        json!({ "a": { "gt": true } }),
        json!({ "a": { "lte": null } }),
        json!({ "a": { "gte": [1] } }),
        json!({ "a": { "in": 1 } }),
        json!({ "a": { "nin": { "b": 1 } } }),
        json!({ "a": { "exists": 1 } }),
        json!({ "a": { "contains": ["x"] } }),
        json!({ "AND": { "a": 1 } }),
        json!({ "OR": [1] }),
        json!({ "NOT": [{ "a": 1 }] }),
        json!([{ "a": 1 }]),
        json!("a"),
    ] {
        refused(filter, ErrorKind::Invalid);
    }
}

#[test]
fn fields_and_values_never_show() {
    let marker = "secret marker";
    for filter in [
        json!({ marker: { "gt": [marker] } }),
        json!({ marker: { marker: marker } }),
        json!({ marker: [marker] }),
        json!({ marker: {} }),
        json!({ "OR": [marker] }),
        json!(marker),
    ] {
        let error = MetadataFilter::from_json(&filter).unwrap_err();
        assert!(!format!("{error:?}").contains(marker), "{error:?}");
    }
    let filter = MetadataFilter::from_json(&json!({ marker: marker })).unwrap();
    assert!(!format!("{filter:?} {:?}", MetadataFilter::field(marker)).contains(marker));
}

#[test]
fn levels_and_conditions_are_limited() {
    let nested = |levels: usize| {
        (1..levels).fold(json!({ "a": 1, "b": 2 }), |inner, _| json!({ "NOT": inner }))
    };
    assert!(MetadataFilter::from_json(&nested(32)).is_ok());
    refused(nested(33), ErrorKind::Limit);
    let lists = (0..500).fold(json!({}), |inner, _| json!({ "OR": [inner] }));
    refused(lists, ErrorKind::Limit);
    let value = (0..40).fold(json!(1), |inner, _| json!([inner]));
    refused(json!({ "a": { "eq": value.clone() } }), ErrorKind::Limit);
    refused(json!({ "a": { "in": [value] } }), ErrorKind::Limit);

    let many = |count: usize| json!({ "OR": vec![json!({ "a": 1 }); count] });
    assert!(MetadataFilter::from_json(&many(1_000)).is_ok());
    refused(many(1_001), ErrorKind::Limit);
    refused(json!({ "a": { "in": vec![1; 1_001] } }), ErrorKind::Limit);
    refused(json!({ "a": { "in": vec![1; 600], "nin": vec![1; 600] } }), ErrorKind::Limit);
    refused(json!({ "OR": vec![json!({}); 1_001] }), ErrorKind::Limit);
    refused(json!({ "OR": vec![many(400); 3] }), ErrorKind::Limit);
}

#[test]
fn the_builder_and_json_agree() {
    let field = MetadataFilter::field;
    let built = MetadataFilter::all([
        field("a").ne("x").unwrap(),
        MetadataFilter::any([
            field("n").gt(1.5).unwrap(),
            field("n").is_in([0, 1]).unwrap(),
            field("tags").contains("y").unwrap(),
        ])
        .unwrap(),
        MetadataFilter::not(field("b").exists(true).unwrap()).unwrap(),
        field("c").not_in(["u", "v"]).unwrap(),
    ])
    .unwrap();
    let read = MetadataFilter::from_json(&json!({
        "a": { "ne": "x" },
        "OR": [{ "n": { "gt": 1.5 } }, { "n": { "in": [0, 1] } }, { "tags": { "contains": "y" } }],
        "NOT": { "b": { "exists": true } },
        "c": { "nin": ["u", "v"] },
    }))
    .unwrap();
    for metadata in [
        json!({ "n": 2 }),
        json!({ "n": 1 }),
        json!({ "n": 1.25 }),
        json!({ "n": 1.25, "tags": ["y"] }),
        json!({ "n": 2, "a": "x" }),
        json!({ "n": 2, "b": null }),
        json!({ "n": 2, "c": "v" }),
    ] {
        let metadata = map(metadata);
        assert_eq!(built.matches(&metadata), read.matches(&metadata), "{metadata:?}");
    }
    assert_eq!(field("a").gt(true).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(field("a").contains(json!({})).unwrap_err().kind(), ErrorKind::Invalid);
    let deep = (0..31).try_fold(field("a").eq(1).unwrap(), |inner, _| MetadataFilter::not(inner));
    assert_eq!(MetadataFilter::not(deep.unwrap()).unwrap_err().kind(), ErrorKind::Limit);
}

/// Reads a filter anew at every call, in the words of the documentation; metadata here is flat and its numbers small.
fn naive(filter: &Value, metadata: &Map<String, Value>) -> bool {
    let same = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    };
    let each = |value: &Value| -> Vec<bool> {
        value.as_array().unwrap().iter().map(|filter| naive(filter, metadata)).collect()
    };
    filter.as_object().unwrap().iter().all(|(key, value)| match key.as_str() {
        "AND" => !each(value).contains(&false),
        "OR" => each(value).contains(&true),
        "NOT" => !naive(value, metadata),
        name => {
            let tests = match value {
                Value::Object(tests) => tests.clone(),
                bare => map(json!({ "eq": bare })),
            };
            tests.iter().all(|(operator, wanted)| {
                let Some(found) = metadata.get(name) else {
                    return match operator.as_str() {
                        "exists" => wanted == &json!(false),
                        "ne" | "nin" => true,
                        _ => false,
                    };
                };
                let among = || wanted.as_array().unwrap().iter().any(|one| same(one, found));
                let order = match (found, wanted) {
                    (Value::String(a), Value::String(b)) => a.chars().partial_cmp(b.chars()),
                    (a, b) if a.is_number() && b.is_number() => a.as_f64().partial_cmp(&b.as_f64()),
                    _ => None,
                };
                match operator.as_str() {
                    "eq" => same(found, wanted),
                    "ne" => !same(found, wanted),
                    "in" => among(),
                    "nin" => !among(),
                    "gt" => order.is_some_and(|order| order.is_gt()),
                    "gte" => order.is_some_and(|order| order.is_ge()),
                    "lt" => order.is_some_and(|order| order.is_lt()),
                    "lte" => order.is_some_and(|order| order.is_le()),
                    "contains" => match found {
                        Value::String(text) => {
                            wanted.as_str().is_some_and(|part| text.contains(part))
                        }
                        Value::Array(values) => values.iter().any(|one| same(one, wanted)),
                        _ => false,
                    },
                    "exists" => wanted == &json!(true),
                    _ => unreachable!("the generator knows the operators"),
                }
            })
        }
    })
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        (-4_i32..5).prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        "[aB\u{e9}\u{10348}]{0,2}".prop_map(Value::from),
    ]
}

fn test() -> impl Strategy<Value = Value> {
    let bound =
        scalar().prop_filter("has an order", |value| value.is_number() || value.is_string());
    let list = prop::collection::vec(scalar(), 0..4);
    prop_oneof![
        scalar(),
        (prop::sample::select(vec!["eq", "ne", "contains"]), scalar())
            .prop_map(|(operator, value)| json!({ operator: value })),
        (prop::sample::select(vec!["gt", "gte", "lt", "lte"]), bound)
            .prop_map(|(operator, value)| json!({ operator: value, "exists": true })),
        (prop::sample::select(vec!["in", "nin"]), list)
            .prop_map(|(operator, values)| json!({ operator: values })),
        any::<bool>().prop_map(|exists| json!({ "exists": exists })),
    ]
}

fn filter() -> impl Strategy<Value = Value> {
    let fields = prop::collection::btree_map("[abc]", test(), 0..3);
    let leaf = fields.prop_map(|fields| Value::Object(fields.into_iter().collect()));
    leaf.prop_recursive(4, 24, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (prop::sample::select(vec!["AND", "OR"]), list, test())
                .prop_map(|(operator, filters, test)| json!({ operator: filters, "a": test })),
            inner.prop_map(|filter| json!({ "NOT": filter })),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        3 => scalar(),
        1 => prop::collection::vec(scalar(), 0..3).prop_map(Value::from),
    ];
    prop::collection::btree_map("[abc]", value, 0..4).prop_map(|map| map.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn matching_is_what_the_documentation_says(filter in filter(), metadata in metadata()) {
        let read = MetadataFilter::from_json(&filter).unwrap();
        prop_assert_eq!(read.matches(&metadata), naive(&filter, &metadata), "{} on {:?}", filter, metadata);
    }
}
