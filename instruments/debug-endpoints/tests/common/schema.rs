//! A check of JSON by its schema, for as much of JSON Schema as ours use. The workshop's tests include this file.

use serde_json::{Map, Value, json};

/// Every keyword that the schema may use: those that [`check`] knows, and those that only describe.
const KEYWORDS: &[&str] = &[
    "$defs",
    "$ref",
    "$schema",
    "description",
    "enum",
    "items",
    "minimum",
    "properties",
    "required",
    "title",
    "type",
];

/// Adds what is wrong with `value` to `wrong`, each with the path to it. A key that is not described is wrong here,
/// though the schema allows it: readers ignore what a later version adds. An object without a list of keys may have any.
fn check(schema: &Value, root: &Value, value: &Value, path: &str, wrong: &mut Vec<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => root
            .pointer(reference.trim_start_matches('#'))
            .expect("a definition"),
        None => schema,
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    if !types.iter().any(|name| is_of(value, name)) {
        wrong.push(format!("{path}: {value} is none of {types:?}"));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        wrong.push(format!("{path}: {value} is none of {allowed:?}"));
    }
    if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < least
    {
        wrong.push(format!("{path}: {number} is below {least}"));
    }
    for item in value.as_array().into_iter().flatten() {
        check(&schema["items"], root, item, &format!("{path}[]"), wrong);
    }
    let Some(object) = value.as_object() else {
        return;
    };
    for required in schema["required"].as_array().into_iter().flatten() {
        if !object.contains_key(required.as_str().unwrap_or_default()) {
            wrong.push(format!("{path}: {required} is missing"));
        }
    }
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    for (key, value) in object {
        match properties.get(key) {
            Some(described) => check(described, root, value, &format!("{path}.{key}"), wrong),
            None => wrong.push(format!("{path}.{key} is not in the schema")),
        }
    }
}

fn parsed(schema: &str) -> Value {
    serde_json::from_str(schema).expect("JSON")
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    }
}

/// Returns what is wrong with `value` by a part of the schema: `#` for all of it, or `#/$defs/NAME`.
pub(crate) fn wrong_in(schema: &str, part: &str, value: &Value) -> Vec<String> {
    let (root, mut wrong) = (parsed(schema), Vec::new());
    check(&json!({ "$ref": part }), &root, value, "", &mut wrong);
    wrong
}

/// Checks that a schema uses known keywords alone, and describes itself.
#[track_caller]
pub(crate) fn check_all(schema: &str) {
    check_keywords(parsed(schema).as_object().expect("an object"), "");
}

#[track_caller]
fn check_keywords(schema: &Map<String, Value>, path: &str) {
    for (keyword, value) in schema {
        assert!(KEYWORDS.contains(&keyword.as_str()), "{path}: {keyword}");
        match keyword.as_str() {
            "properties" | "$defs" => {
                for (name, inner) in value.as_object().expect("an object") {
                    let inner = inner.as_object().expect("an object");
                    let is_told = inner.contains_key("description") || inner.contains_key("$ref");
                    assert!(is_told, "{path}/{name} has no description");
                    check_keywords(inner, &format!("{path}/{name}"));
                }
            }
            "items" => check_keywords(value.as_object().expect("an object"), path),
            _ => {}
        }
    }
}
