//! Futures that a request has and does not poll keep what they hold.

use ecosystem::figures;

use crate::evidence::{Evidence, Unpolled, innermost_line};
use crate::finding::{Finding, Words};
use crate::thresholds::{UNPOLLED_REQUESTS, UNPOLLED_WEIGHT};

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(requests) = &evidence.requests {
        for unpolled in &requests.unpolled {
            if unpolled.requests >= UNPOLLED_REQUESTS {
                findings.push(finding(unpolled));
            }
        }
    }
    findings
}

fn finding(unpolled: &Unpolled) -> Finding {
    let line = innermost_line(&unpolled.frames).unwrap_or("an unknown place");
    let route = unpolled.frames.first().map_or("", String::as_str);
    let instead = unpolled.instead.get(1..).unwrap_or_default().join(", ");
    let mut seen = format!(
        "Seen of {} in {} requests.",
        unpolled.requests, unpolled.of_requests
    );
    if !unpolled.woken_by.is_empty() {
        seen = format!(
            "{seen} They were woken by {}.",
            unpolled.woken_by.join(", ")
        );
    }
    if let Some(ms) = unpolled.longest_ms {
        seen = format!(
            "{seen} They were not polled for up to {}.",
            figures::duration(ms)
        );
    }
    let words = Words {
        headline: format!(
            "{route}: futures that {line} polls were not polled, while the request awaited {instead}."
        ),
        seen,
        cause:
            "They keep what they hold, such as a permit or a connection, and others wait for that."
                .to_owned(),
        fix: "Put the work in between into those futures, or let them end first.".to_owned(),
    };
    Finding::fault("unpolled", UNPOLLED_WEIGHT, "/debug/await", words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Requests;

    #[test]
    fn three_requests_are_no_chance() {
        let of = |requests| Evidence {
            requests: Some(Requests {
                unpolled: vec![Unpolled {
                    frames: vec![
                        "GET /batch".to_owned(),
                        "shop::batch (src/b.rs:3)".to_owned(),
                    ],
                    instead: vec![
                        "GET /batch".to_owned(),
                        "shop::note (src/b.rs:9)".to_owned(),
                    ],
                    requests,
                    of_requests: 20,
                    ..Unpolled::default()
                }],
                ..Requests::default()
            }),
            ..Evidence::default()
        };
        assert!(look(&of(UNPOLLED_REQUESTS - 1)).is_empty());
        let found = look(&of(UNPOLLED_REQUESTS)).remove(0);
        assert!(found.headline.contains("src/b.rs:3"), "{found:?}");
    }
}
