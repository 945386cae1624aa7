//! Other programs that do what the chapter's service does, under the same load in the same run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
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
            GO => outside(&bench, scenario, name, go)?,
            NGINX => outside(&bench, scenario, name, proxy)?,
            _ => bench.round(Purpose::Baseline, SOLUTION, scenario)?.0,
        };
        (bench.observer)(Event::Measured(name, round.outcome.requests_per_second));
        rounds.push(round);
    }
    Ok(rounds)
}

/// Measures a round of a program that runs already.
fn outside(
    bench: &Bench<'_>,
    scenario: &str,
    name: &str,
    target: SocketAddr,
) -> Result<Round, RunError> {
    let asked = bench.scenario(scenario)?;
    Ok(Round {
        purpose: Purpose::Baseline,
        variant: name.to_owned(),
        scenario: scenario.to_owned(),
        wall_s: asked.whole_s(),
        outcome: bench.drive_at(target, &bench.chapter.load_of(asked))?,
        readings: BTreeMap::new(),
        server_cpu_s: None,
        throttled_s: None,
        elsewhere_share: None,
        connections: Vec::new(),
    })
}
