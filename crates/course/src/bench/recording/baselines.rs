//! Other programs that do what the chapter's service does, under the same load in the same run.

use std::path::Path;

use crate::measurement::claim::SOLUTION;
use crate::measurement::record::{Purpose, Round};

use super::outside::{Nginx, start_go};
use crate::bench::rounds::{Bench, RunError};
use engine::event::Event;

const GO: &str = "Go's net/http";
const NGINX: &str = "nginx as a proxy";

/// Measures solution, Go and nginx as a proxy in turn: forwards, backwards, and forwards again. All of them
/// call the upstream of `nginx`.
pub(super) fn measure(
    nginx: &Nginx,
    bench: &Bench<'_>,
    folder: &Path,
) -> Result<Vec<Round>, RunError> {
    let arguments = nginx.arguments();
    let bench = Bench {
        arguments: &arguments,
        ..bench.clone()
    };
    let scenario = &nginx.baselines.scenario;
    let (_go, go) = start_go(&bench, folder, &nginx.baselines)?;
    let proxy = nginx.proxy()?;
    let order = [
        SOLUTION, GO, NGINX, NGINX, GO, SOLUTION, SOLUTION, GO, NGINX,
    ];
    let mut rounds = Vec::new();
    for (number, name) in order.into_iter().enumerate() {
        (bench.observer)(Event::Begins(number + 1, order.len(), name));
        let round = match name {
            GO => bench.round_at(go, name, scenario)?,
            NGINX => bench.round_at(proxy, name, scenario)?,
            _ => bench.round(Purpose::Baseline, SOLUTION, scenario)?.0,
        };
        (bench.observer)(Event::Measured(name, round.outcome.requests_per_second));
        rounds.push(round);
    }
    Ok(rounds)
}
