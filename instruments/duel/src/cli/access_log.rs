//! Requests of an access log in the common or the combined format, such as those of nginx, Apache and Caddy.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use http::Uri;
use rand::Rng as _;
use rand_pcg::Pcg32;
use statistics::figures;

use crate::cli::spec::{MOST_VALUES, SELDOM, Spec, Values};
use terminal::exit::CliError;

/// Largest number of routes that are sent; rarer routes are left out.
const MOST_ROUTES: usize = 50;

/// Routes of an access log, and the number of lines that are left out.
#[derive(Debug)]
struct AccessLog {
    routes: BTreeMap<Pattern, Seen>,
    /// Number of GET requests with status 2xx or 3xx.
    taken: u64,
    /// Number of requests with another method.
    others: u64,
    /// Number of GET requests with another status.
    faults: u64,
    unreadable: u64,
    /// One of so many values of each route is kept, at random, so that frequent values stay frequent.
    every: u64,
    random: Pcg32,
    /// Number of values that are kept beyond each route's first.
    kept: usize,
}

/// Pattern of a route's paths: the text before the part that varies, that part as it is shown, and the text after it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    before: String,
    shown: String,
    after: String,
}

/// One route of a log.
#[derive(Debug, Default)]
struct Seen {
    count: u64,
    /// Values in the order of the log, each as often as it came.
    values: Vec<String>,
}

/// Returns the routes of the log in `file`, and notes on them, a sentence each.
pub(crate) fn specs(file: &Path) -> Result<(Vec<Spec>, Vec<String>), CliError> {
    let wrong = |why: &dyn std::fmt::Display| {
        CliError::usage(format!("--access-log {}: {why}", file.display()))
    };
    let mut log = AccessLog::new();
    for line in BufReader::new(File::open(file).map_err(|error| wrong(&error))?).split(b'\n') {
        let line = line.map_err(|error| wrong(&error))?;
        log.read(&String::from_utf8_lossy(&line));
    }
    let (specs, notes) = log.specs();
    if specs.is_empty() {
        return Err(wrong(
            &"it has no GET request with status 2xx or 3xx in the common or combined format, a line each: 1.2.3.4 - - \
              [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 2326",
        ));
    }
    Ok((specs, notes))
}

impl AccessLog {
    fn new() -> Self {
        Self {
            routes: BTreeMap::new(),
            taken: 0,
            others: 0,
            faults: 0,
            unreadable: 0,
            every: 1,
            random: Pcg32::new(0, 0),
            kept: 0,
        }
    }

    fn read(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let Some((method, path, status)) = request(line) else {
            self.unreadable += 1;
            return;
        };
        if method != "GET" {
            self.others += 1;
            return;
        }
        if !(200..400).contains(&status) {
            self.faults += 1;
            return;
        }
        self.taken += 1;
        let (pattern, value) = pattern(path);
        let route = self.routes.entry(pattern).or_default();
        if route.count == 0 || self.random.next_u64().is_multiple_of(self.every) {
            self.kept += usize::from(!route.values.is_empty());
            route.values.push(value.to_owned());
        }
        route.count += 1;
        if self.kept > MOST_VALUES - MOST_ROUTES {
            self.every *= 2;
            self.kept = 0;
            for route in self.routes.values_mut() {
                let mut kept = Vec::new();
                for value in route.values.drain(..) {
                    if kept.is_empty() || self.random.next_u64() & 1 == 0 {
                        kept.push(value);
                    }
                }
                self.kept += kept.len() - 1;
                route.values = kept;
            }
        }
    }

    fn specs(self) -> (Vec<Spec>, Vec<String>) {
        let mut routes: Vec<(Pattern, Seen)> = self.routes.into_iter().collect();
        routes.sort_by_key(|(_, route)| std::cmp::Reverse(route.count));
        let all = routes.len();
        routes.truncate(MOST_ROUTES);
        routes.retain(|(_, route)| route.count as f64 / self.taken as f64 >= SELDOM);
        let covered: u64 = routes.iter().map(|(_, route)| route.count).sum();
        let mut notes = vec![format!(
            "{} of the access log are sent, as often as each was there: {} of its {} with GET and status 2xx or 3xx{}.",
            figures::things(routes.len() as u64, "route"),
            figures::percent(covered as f64 / self.taken.max(1) as f64),
            figures::things(self.taken, "request"),
            match (all - routes.len()) as u64 {
                0 => String::new(),
                left => format!("; {} left out", figures::things(left, "rarer route")),
            }
        )];
        let left = [
            (self.others, "with other methods"),
            (self.faults, "with other statuses"),
            (self.unreadable, "that cannot be read"),
        ];
        let left: Vec<String> = left
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", figures::count(*count as f64)))
            .collect();
        if !left.is_empty() {
            notes.push(format!(
                "lines of the access log left out: {}.",
                left.join(", ")
            ));
        }
        if self.every > 1 {
            notes.push(format!(
                "one in {} of the values in the access log's routes is sent, because there are more than {}.",
                self.every,
                figures::count(MOST_VALUES as f64)
            ));
        }
        (routes.into_iter().map(spec).collect(), notes)
    }
}

/// Returns the method, path and status of a line, if it has them and the path can be sent.
fn request(line: &str) -> Option<(&str, &str, u16)> {
    let (_, rest) = line.split_once("] \"")?;
    let (request, rest) = rest.split_once("\" ")?;
    let mut words = request.split(' ');
    let (method, path, protocol) = (words.next()?, words.next()?, words.next()?);
    let is_path = path.starts_with('/') && !path.contains('#') && path.parse::<Uri>().is_ok();
    if !is_path || !protocol.starts_with("HTTP/") || words.next().is_some() {
        return None;
    }
    Some((method, path, rest.split(' ').next()?.parse().ok()?))
}

/// Returns the route of a path, and the value that its `…` replaces. The value reaches from the first number or id to
/// the last, or to the end of the query.
fn pattern(path: &str) -> (Pattern, &str) {
    let end = path.find('?').unwrap_or(path.len());
    let mut ids: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for segment in path[..end].split('/') {
        if is_id(segment) {
            ids.push(start..start + segment.len());
        }
        start += segment.len() + 1;
    }
    if end < path.len() {
        ids.push(end + 1..path.len());
    }
    let (mut first, mut last) = (end, end);
    if let (Some(one), Some(other)) = (ids.first(), ids.last()) {
        (first, last) = (one.start, other.end);
    }
    let (mut shown, mut at) = (String::new(), first);
    for id in ids {
        shown = shown + &path[at..id.start] + "…";
        at = id.end;
    }
    let pattern = Pattern {
        before: path[..first].to_owned(),
        shown,
        after: path[last..].to_owned(),
    };
    (pattern, &path[first..last])
}

/// Returns whether a segment of a path is a number, a UUID or another hexadecimal id.
fn is_id(segment: &str) -> bool {
    let is_number = segment.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = segment.len() >= 8
        && segment.bytes().any(|byte| byte.is_ascii_digit())
        && segment
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    !segment.is_empty() && (is_number || is_hex)
}

fn spec((pattern, route): (Pattern, Seen)) -> Spec {
    let Pattern {
        mut before,
        shown,
        mut after,
    } = pattern;
    let is_one = route.values.iter().all(|value| *value == route.values[0]);
    if is_one {
        before = before + &route.values[0] + &after;
        after.clear();
    }
    Spec {
        method: "GET".to_owned(),
        before,
        values: if is_one {
            None
        } else {
            Some(Values::Listed(shown, route.values))
        },
        after,
        weight: route.count as f64,
        headers: Vec::new(),
        body: None,
        allowed: Arc::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: impl IntoIterator<Item = String>) -> (Vec<Spec>, Vec<String>) {
        let mut log = AccessLog::new();
        lines.into_iter().for_each(|line| log.read(&line));
        log.specs()
    }

    fn line(request: &str, status: u16) -> String {
        format!(
            "::1 - me [10/Oct/2026:13:55:36 +0000] \"{request}\" {status} 23 \"-\" \"curl/8 \\\"x\\\"\""
        )
    }

    #[test]
    fn ids_and_queries_are_the_values_of_a_route() {
        for (path, name, value) in [
            ("/", "/{}", ""),
            ("/a/b", "/a/b{}", ""),
            ("/a/17", "/a/{…}", "17"),
            ("/a/17/b/", "/a/{…}/b/", "17"),
            ("/a/17/b/18/c", "/a/{…/b/…}/c", "17/b/18"),
            (
                "/a/0191e9b4-7d1e-7c3a-9a58-6f1f4a4f7a11",
                "/a/{…}",
                "0191e9b4-7d1e-7c3a-9a58-6f1f4a4f7a11",
            ),
            ("/facade/deadbeef/v2", "/facade/deadbeef/v2{}", ""),
            ("/s?q=tea", "/s?{…}", "q=tea"),
            ("/a/17?full", "/a/{…?…}", "17?full"),
        ] {
            let (
                Pattern {
                    before,
                    shown,
                    after,
                },
                found,
            ) = pattern(path);
            assert_eq!(
                (format!("{before}{{{shown}}}{after}").as_str(), found),
                (name, value)
            );
        }
    }

    #[test]
    fn what_was_sent_more_often_is() {
        let mut lines = vec![
            line("GET /a/1 HTTP/1.1", 200),
            line("GET /a/1 HTTP/1.1", 304),
            line("GET /a/2 HTTP/2.0", 200),
            line("GET /b?x=1 HTTP/1.1", 200),
            line("GET /b?x=2 HTTP/1.1", 404),
            line("HEAD /a/1 HTTP/1.1", 200),
            line("POST /a HTTP/1.1", 201),
            line("GET /<script> HTTP/1.1", 200),
            line("\\x16\\x03", 400),
        ];
        let (specs, notes) = of(lines.clone());
        let told: Vec<(String, f64)> = specs.iter().map(|one| (one.name(), one.weight)).collect();
        assert_eq!(
            told,
            [
                ("GET /a/{…}".to_owned(), 3.0),
                ("GET /b?x=1".to_owned(), 1.0)
            ]
        );
        let values = Values::Listed("…".to_owned(), ["1", "1", "2"].map(str::to_owned).to_vec());
        assert_eq!(specs[0].values, Some(values));
        assert!(
            notes[0].contains("2 routes") && notes[0].contains("100 % of its 4 requests"),
            "{notes:?}"
        );
        let left = "2 with other methods, 1 with other statuses, 2 that cannot be read";
        assert!(notes[1].contains(left), "{notes:?}");
        lines.extend((0..60).map(|n| line(&format!("GET /r{n} HTTP/1.1"), 200)));
        let (specs, notes) = of(lines);
        assert_eq!(specs.len(), MOST_ROUTES);
        assert!(notes[0].contains("12 rarer routes left out"), "{notes:?}");
    }

    #[test]
    fn of_a_long_log_some_values_are_kept() {
        let ids = (0..250_000).map(|n| line(&format!("GET /a/{} HTTP/1.1", n % 4 * n), 200));
        let (specs, notes) = of(ids);
        assert!((specs[0].weight - 250_000.0).abs() < 1e-9);
        let Some(Values::Listed(_, values)) = &specs[0].values else {
            panic!("{specs:?}");
        };
        // Three quarters of them are not 0.
        let others = values.iter().filter(|value| *value != "0").count() as f64;
        assert!(
            (others / values.len() as f64 - 0.75).abs() < 0.02,
            "{others}"
        );
        assert!(
            (30_000..=MOST_VALUES).contains(&values.len()),
            "{}",
            values.len()
        );
        assert!(notes[1].contains("one in 4 of the values"), "{notes:?}");
    }
}
