//! Routes of a tail profile: raw paths of one handler are one route.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tail_times::Histogram;

/// Fewest routes with too few requests that are taken for raw paths of one handler.
const FEWEST_PATHS: usize = 3;

/// Part of a path that stands for values.
const VALUE: &str = "{}";

/// Returns a name for each route that is a path with a value in it. Routes with enough requests keep their own: what has
/// `needed` requests by itself needs no company.
pub(crate) fn folded(
    routes: &HashMap<Arc<str>, Histogram>,
    needed: u64,
) -> HashMap<Arc<str>, String> {
    let mut names: HashMap<Arc<str>, String> = HashMap::new();
    for fold in [without_numbers, without_last_part] {
        let mut paths: HashMap<String, Vec<&Arc<str>>> = HashMap::new();
        for (route, histogram) in routes {
            if histogram.requests() < needed && !names.contains_key(route) {
                paths.entry(fold(route)).or_default().push(route);
            }
        }
        for (name, same) in paths {
            if same.len() >= FEWEST_PATHS {
                names.extend(same.into_iter().map(|route| (route.clone(), name.clone())));
            }
        }
    }
    names
}

/// Returns the route with a placeholder for each part that has a digit and is no version, as in `/v1/item/{}`.
fn without_numbers(route: &str) -> String {
    let parts: Vec<&str> = route
        .split('/')
        .map(|part| if is_number(part) { VALUE } else { part })
        .collect();
    parts.join("/")
}

fn is_number(part: &str) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let is_version = part
        .strip_prefix('v')
        .is_some_and(|rest| rest.chars().all(is_digit));
    part.contains(is_digit) && !is_version
}

/// Returns the route with a placeholder for its last part.
fn without_last_part(route: &str) -> String {
    match route.rsplit_once('/') {
        Some((before, _)) => format!("{before}/{VALUE}"),
        None => route.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn routes(names: &[&str], requests: u64) -> HashMap<Arc<str>, Histogram> {
        let mut routes = HashMap::new();
        for name in names {
            let mut histogram = Histogram::default();
            for _ in 0..requests {
                histogram.add(Duration::from_millis(3));
            }
            routes.insert(Arc::from(*name), histogram);
        }
        routes
    }

    #[test]
    fn raw_paths_of_one_handler_are_one_route() {
        let names = [
            "GET /v1/item/17",
            "GET /v1/item/18",
            "GET /v1/item/9a",
            "GET /v1/all",
        ];
        let folded = folded(&routes(&names, 5), 1000);
        assert_eq!(folded.len(), 3, "{folded:?}");
        assert!(
            folded.values().all(|name| name == "GET /v1/item/{}"),
            "{folded:?}"
        );
        assert!(
            super::folded(&routes(&names, 5), 5).is_empty(),
            "each is enough"
        );
    }

    #[test]
    fn paths_without_digits_are_one_route_if_they_differ_in_the_last_part() {
        let names = [
            "GET /user/ann",
            "GET /user/bob",
            "GET /user/eve",
            "GET /other",
        ];
        let folded = folded(&routes(&names, 5), 1000);
        assert_eq!(
            folded.get("GET /user/bob").map(String::as_str),
            Some("GET /user/{}")
        );
        assert_eq!(folded.get("GET /other"), None);
    }
}
