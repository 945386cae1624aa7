//! A limit of requests that limits nothing: its service is made anew for each connection or request, and so is its semaphore.

use ecosystem::{figures, is_within};

use crate::evidence::{Evidence, Limit};
use crate::finding::{Finding, Words};
use crate::thresholds::{FULL, LIMITS_NOTHING_WEIGHT, SEMAPHORES};

/// Futures of limits that count the requests of a whole service.
const OF_SERVICES: [&str; 2] = ["tower::limit::concurrency", "tower_http::limit"];

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(tasks) = &evidence.tasks else {
        return findings;
    };
    for limit in &tasks.limits {
        if is_within(&limit.kept_by, OF_SERVICES) && limits_nothing(limit) {
            findings.push(finding(limit, tasks.snapshots));
        }
    }
    findings
}

/// Returns whether more requests are in flight than the limit allows, because several semaphores count them.
fn limits_nothing(limit: &Limit) -> bool {
    limit.semaphores >= SEMAPHORES
        && limit.held > limit.permits as f64
        && limit.full <= FULL * limit.semaphores
}

fn finding(limit: &Limit, snapshots: u32) -> Finding {
    let at = match &limit.at {
        Some(at) => format!(" at {at}"),
        None => String::new(),
    };
    let words = Words {
        headline: format!(
            "The limit of {} requests{at} limits nothing: {} are in flight behind it.",
            limit.permits,
            figures::average(limit.held)
        ),
        seen: format!(
            "They hold permits of {} semaphores, none of which is full, in {snapshots} snapshots of all tasks.",
            figures::average(limit.semaphores)
        ),
        cause: "The layer makes a semaphore for each service, and the framework makes the service anew for each connection."
            .to_owned(),
        fix: "Share one semaphore: use `GlobalConcurrencyLimitLayer`.".to_owned(),
    };
    let finding = Finding::fault(
        "limits_nothing",
        LIMITS_NOTHING_WEIGHT,
        "/debug/tasks",
        words,
    );
    finding.at(limit.at.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Tasks;
    use crate::testing::both_sides;

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
