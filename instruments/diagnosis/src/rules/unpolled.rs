//! Futures that a request has and does not poll keep what they hold.

use ecosystem::figures;

use super::table;
use crate::evidence::{Unpolled, innermost_line, path};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::thresholds::UNPOLLED_REQUESTS;

/// Futures that requests did not poll.
pub(crate) struct LeftFutures(Unpolled);

pub(crate) fn check(facts: &Facts<'_>) -> Vec<LeftFutures> {
    let mut found = Vec::new();
    if let Some(requests) = facts.requests {
        for unpolled in &requests.unpolled {
            if unpolled.requests >= UNPOLLED_REQUESTS {
                found.push(LeftFutures(unpolled.clone()));
            }
        }
    }
    found
}

impl Sighting for LeftFutures {
    fn row(&self) -> &'static Row {
        table::UNPOLLED
    }

    fn headline(&self) -> String {
        let line = innermost_line(&self.0.frames).map(ToString::to_string);
        format!(
            "{}: futures that {} polls were not polled, while the request awaited {}.",
            self.0.route,
            line.unwrap_or_else(|| "an unknown place".to_owned()),
            path(&self.0.instead)
        )
    }

    fn seen(&self) -> String {
        let mut seen = format!(
            "Seen of {} in {} requests.",
            self.0.requests, self.0.of_requests
        );
        if !self.0.woken_by.is_empty() {
            seen = format!("{seen} They were woken by {}.", path(&self.0.woken_by));
        }
        match self.0.longest_ms {
            Some(ms) => {
                let time = figures::duration(ms);
                format!("{seen} They were not polled for up to {time}.")
            }
            None => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::evidence::Requests;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::frames;

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    #[test]
    fn three_requests_are_no_chance() {
        let of = |requests| Evidence {
            requests: Some(Requests {
                unpolled: vec![Unpolled {
                    route: "GET /batch".to_owned(),
                    frames: frames(&["shop::batch (src/b.rs:3)"]),
                    instead: frames(&["shop::note (src/b.rs:9)"]),
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
