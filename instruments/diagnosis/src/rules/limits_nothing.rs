//! A limit of requests that limits nothing: its service is made anew for each connection or request, and so is its semaphore.

use ecosystem::{figures, is_within};

use super::table;
use crate::evidence::{Frame, Limit};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::thresholds::{FULL, SEMAPHORES};

/// Futures of limits that count the requests of a whole service.
const OF_SERVICES: [&str; 2] = ["tower::limit::concurrency", "tower_http::limit"];

/// A limit with several semaphores.
pub(crate) struct LimitsNothing {
    limit: Limit,
    snapshots: u32,
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<LimitsNothing> {
    let mut found = Vec::new();
    let Some(tasks) = &facts.evidence.tasks else {
        return found;
    };
    for limit in &tasks.limits {
        if is_within(&limit.kept_by, OF_SERVICES) && limits_nothing(limit) {
            found.push(LimitsNothing {
                limit: limit.clone(),
                snapshots: tasks.snapshots,
            });
        }
    }
    found
}

/// Returns whether more requests are in flight than the limit allows, because several semaphores count them.
fn limits_nothing(limit: &Limit) -> bool {
    limit.semaphores >= SEMAPHORES
        && limit.held > limit.permits as f64
        && limit.full <= FULL * limit.semaphores
}

impl Sighting for LimitsNothing {
    fn row(&self) -> &'static Row {
        table::LIMITS_NOTHING
    }

    fn places(&self) -> Vec<Frame> {
        let Ok(place) = self.limit.at.clone().unwrap_or_default().parse();
        vec![place]
    }

    fn headline(&self) -> String {
        let at = match &self.limit.at {
            Some(at) => format!(" at {at}"),
            None => String::new(),
        };
        format!(
            "The limit of {} requests{at} limits nothing: {} are in flight behind it.",
            self.limit.permits,
            figures::average(self.limit.held)
        )
    }

    fn seen(&self) -> String {
        format!(
            "They hold permits of {} semaphores, none of which is full, in {} snapshots.",
            figures::average(self.limit.semaphores),
            self.snapshots
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Tasks};
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::both_sides;

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(check(&Facts::of(evidence)))
    }

    fn of(kept_by: &str, semaphores: f64, held: f64, full: f64) -> Evidence {
        let limit = Limit {
            kept_by: kept_by.to_owned(),
            at: Some("shop::quote".to_owned()),
            permits: 8,
            semaphores,
            held,
            full,
        };
        Evidence {
            tasks: Some(Tasks {
                snapshots: 10,
                limits: vec![limit],
                ..Tasks::default()
            }),
            ..Evidence::default()
        }
    }

    #[test]
    fn a_limit_for_each_connection_is_told_on_the_right_side_of_each_threshold() {
        let tower = "tower::limit::concurrency::future::ResponseFuture";
        both_sides(look, SEMAPHORES, |many| of(tower, many, 20.0, 0.0));
        both_sides(look, 8.0, |held| of(tower, 20.0, held, 0.0));
        assert!(
            look(&of(tower, 20.0, 20.0, FULL * 20.0 + 0.01)).is_empty(),
            "it holds some up"
        );
        // One for each tenant is on purpose.
        assert!(look(&of("shop::tenants::serve", 20.0, 20.0, 0.0)).is_empty());
        let found = look(&of(tower, 20.0, 20.0, 0.0)).remove(0);
        assert!(
            found
                .headline
                .contains("limit of 8 requests at shop::quote"),
            "{found:?}"
        );
    }
}
