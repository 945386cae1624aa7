//! The form of results, by `results.schema.json`.

#[path = "../../../../instruments/debug-endpoints/tests/common/schema.rs"]
mod schema;

use serde_json::Value;

const RESULTS: &str = include_str!("../../results.schema.json");

/// Asserts that a result of `cargo workshop` has the form of its kind. The results of a list have one each.
#[track_caller]
pub(crate) fn described(result: &Value) {
    if let Some(several) = result.as_array() {
        several.iter().for_each(described);
        return;
    }
    let kind = result["schema"].as_str();
    let kind = kind.and_then(|kind| kind.strip_suffix("/1"));
    let kind = kind.unwrap_or_else(|| panic!("no kind and version: {result}"));
    let wrong = schema::wrong_in(RESULTS, &format!("#/$defs/{kind}"), result);
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_schema_of_results_describes_each_key() {
    schema::check_all(RESULTS);
}
