//! Other programs that do what the chapter's service does, under the same load in the same run.

use std::net::SocketAddr;

use bench::rounds::{Bench, Event};
use measurement::chapter_file::Baselines;
use measurement::claim::SOLUTION;
use measurement::record::{Purpose, Round};

use super::outside::{Nginx, start_go};
use crate::chapters::Chapter;
use crate::exit::CliError;

const GO: &str = "Go's net/http";
const NGINX: &str = "nginx as a proxy";

/// As [`before`], with an nginx of its own; nothing for a chapter without baselines.
pub(super) fn measure(chapter: &Chapter, bench: &Bench<'_>) -> Result<Vec<Round>, CliError> {
    if bench.chapter.baselines.is_none() {
        return Ok(Vec::new());
    }
    let nginx = Nginx::start(chapter, bench.chapter, &bench.placement.server)?;
    before(&nginx, chapter, bench)
}

/// Solution, Go and nginx in turn, there and back and once more, all of them before `nginx`.
pub(super) fn before(
    nginx: &Nginx,
    chapter: &Chapter,
    bench: &Bench<'_>,
) -> Result<Vec<Round>, CliError> {
    let Baselines {
        scenario,
        go,
        nginx_upstream,
        ..
    } = &nginx.baselines;
    let arguments = ["--upstream".to_owned(), nginx_upstream.clone()];
    let bench = Bench {
        arguments: &arguments,
        ..bench.clone()
    };
    let (_go, go) = start_go(
        chapter,
        go,
        nginx_upstream,
        &bench.placement.server,
        bench.interrupt,
    )?;
    let proxy = nginx.proxy()?;
    let there = [SOLUTION, GO, NGINX];
    let order: Vec<_> = there
        .iter()
        .chain(there.iter().rev())
        .chain(&there)
        .collect();
    let mut rounds = Vec::new();
    for (number, &&name) in order.iter().enumerate() {
        (bench.observer)(Event::Begins(number + 1, order.len(), name));
        let round = match name {
            GO => outside(&bench, scenario, name, go)?,
            NGINX => outside(&bench, scenario, name, proxy)?,
            _ => {
                let measured = bench.round(Purpose::Baseline, SOLUTION, scenario);
                measured
                    .map_err(|error| CliError::of_run(&error, bench.interrupt))?
                    .0
            }
        };
        (bench.observer)(Event::Measured(name, round.outcome.requests_per_second));
        rounds.push(round);
    }
    Ok(rounds)
}

/// A round of a program that runs already.
fn outside(
    bench: &Bench<'_>,
    scenario: &str,
    name: &str,
    target: SocketAddr,
) -> Result<Round, CliError> {
    let failed = |error| CliError::of_run(&error, bench.interrupt);
    let asked = bench.scenario(scenario).map_err(failed)?;
    let load = bench.chapter.load_of(asked);
    let outcome = bench
        .drive_at(target, &load)
        .map_err(|error| failed(error.into()))?;
    Ok(Round {
        purpose: Purpose::Baseline,
        variant: name.to_owned(),
        scenario: scenario.to_owned(),
        wall_s: asked.whole_s(),
        outcome,
        readings: std::collections::BTreeMap::new(),
        server_cpu_s: None,
        server_answers: None,
        throttled_s: None,
        elsewhere_share: None,
        connections: Vec::new(),
    })
}
