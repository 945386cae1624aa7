//! Do the load generators agree? At a load that none of them saturates on, a
//! figure belongs to the server and not to the instrument.

use std::panic::resume_unwind;
use std::path::Path;
use std::time::Duration;

use crate::drivers::{self, DriverError, k6, locust};
use crate::rounds::{Bench, Event, RunError};
use crate::server::Server;
use measurement::claim::SOLUTION;
use measurement::load::Load;
use measurement::outcome::Outcome;
use measurement::record::{Purpose, Round};

/// The external generators and their scripts.
#[derive(Debug, Clone, Copy)]
pub struct External<'a> {
    /// The k6 executable.
    pub k6: &'a Path,
    /// The chapter's k6 script.
    pub k6_script: &'a Path,
    /// The Locust executable.
    pub locust: &'a Path,
    /// The chapter's Locust file.
    pub locust_file: &'a Path,
}

/// Why no agreement could be measured.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// Server or embedded generator.
    #[error(transparent)]
    Proof(#[from] RunError),
    /// k6 or Locust.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Has the three generators look at the same solution at the same time, each with a third of the
/// chapter's load. One after the other they would see what the machine did to the service
/// meanwhile, which on a machine with neighbours is more than they differ by.
///
/// # Errors
///
/// When a server or a generator fails, a tool is missing, or on Ctrl-C.
pub fn measure(
    bench: &Bench<'_>,
    external: &External<'_>,
    duration: Duration,
) -> Result<Vec<Round>, AgreementError> {
    together(bench, external, SOLUTION, true, duration)
}

/// Puts half of the chapter's load on `variant` by k6 and half by Locust, whose exit codes say
/// what their scripts' thresholds think of it.
///
/// # Errors
///
/// As [`measure`].
pub fn scripts(
    bench: &Bench<'_>,
    external: &External<'_>,
    variant: &str,
    duration: Duration,
) -> Result<Vec<Round>, AgreementError> {
    together(bench, external, variant, false, duration)
}

fn together(
    bench: &Bench<'_>,
    external: &External<'_>,
    variant: &str,
    with_embedded: bool,
    duration: Duration,
) -> Result<Vec<Round>, AgreementError> {
    let whole = bench.chapter.load_of(&bench.chapter.load);
    let (generators, label) = if with_embedded {
        (3, "all three generators")
    } else {
        (2, "k6 and Locust")
    };
    let mut load = Load {
        users: (whole.users / generators).max(1),
        duration,
        ..whole
    };
    if let Some(bystander) = &mut load.bystander {
        // k6 takes whole numbers.
        bystander.per_second = (bystander.per_second / f64::from(generators))
            .floor()
            .max(1.0);
    }
    let label = format!("{variant} under the load of {label}");
    (bench.observer)(Event::Begins(1, 1, &label));
    let mut outcomes = Vec::new();
    let (round, _) = bench.round_by(Purpose::Agreement, variant, "load", |server| {
        outcomes = side_by_side(bench, external, server, &load, with_embedded)?;
        Ok::<_, AgreementError>(outcomes[0].clone())
    })?;
    let sum = outcomes.iter().map(|outcome| outcome.requests_per_second);
    (bench.observer)(Event::Measured(&label, sum.sum()));
    let of = |outcome| Round {
        outcome,
        ..round.clone()
    };
    Ok(outcomes.into_iter().map(of).collect())
}

/// Python starts, and then the users in batches of a second. The others wait for that, so that all
/// record the same time: where the CPU is full, what one of them leaves the others take.
const LOCUST_IS_LATER: Duration = Duration::from_secs(2);

/// Long enough for the lower quartile of some answers with nobody else there.
const ALONE: Duration = Duration::from_secs(2);

/// What each generator saw of `server`, the embedded one first.
fn side_by_side(
    bench: &Bench<'_>,
    external: &External<'_>,
    server: &Server,
    load: &Load,
    with_embedded: bool,
) -> Result<Vec<Outcome>, AgreementError> {
    let (cpus, interrupt) = (&bench.placement.generator, bench.interrupt);
    let alone = alone(bench, server)?;
    let settings = |program, script| drivers::Settings {
        program,
        script,
        cpus,
        alone,
        interrupt,
    };
    let target = server.service();
    let k6 = settings(external.k6, external.k6_script);
    let locust = settings(external.locust, external.locust_file);
    std::thread::scope(|scope| {
        let tools = [
            scope.spawn(move || {
                std::thread::sleep(LOCUST_IS_LATER);
                k6::run(target, load, &k6)
            }),
            scope.spawn(move || locust::run(target, load, &locust)),
        ];
        let mut outcomes = Vec::new();
        if with_embedded {
            std::thread::sleep(LOCUST_IS_LATER);
            outcomes.push(bench.drive(server, load).map_err(RunError::from)?);
        }
        for tool in tools {
            let ended = tool.join().unwrap_or_else(|panic| resume_unwind(panic));
            outcomes.push(ended?);
        }
        Ok(outcomes)
    })
}

/// What an answer takes with nobody else there, if the chapter's scripts compare with it. Left to
/// find it out themselves, they would ask beside each other and begin the later for it.
fn alone(bench: &Bench<'_>, server: &Server) -> Result<Option<Duration>, RunError> {
    if bench.chapter.times_alone.is_none() {
        return Ok(None);
    }
    let mut load = bench.chapter.load_of(&bench.chapter.load);
    (load.users, load.warm_up, load.duration) = (1, Duration::ZERO, ALONE);
    let outcome = bench.drive(server, &load)?;
    let quartile = outcome.latency.at(0.25);
    Ok(quartile.map(|ms| Duration::from_secs_f64(ms / 1000.0)))
}
