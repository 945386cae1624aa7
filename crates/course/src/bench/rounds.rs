//! One round: a fresh server under one load, with the figures of both.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::analysis::validity::is_late;
use crate::bench::metrics::Metrics;
use crate::measurement::attempt::Observed;
use crate::measurement::chapter_file::{ChapterFile, Scenario};
use crate::measurement::record::{Purpose, Round};
use children::Interrupt;
use children::processes::{CpuTimes, CpuWanted};
use children::quota::throttled_so_far;
use cpu_time::ProcessTime;
use engine::event::Event;
use engine::load::ask::Unanswered;
use engine::load::{GeneratorError, Progress};
use engine::outcome::Outcome;
use engine::traffic::Traffic;

use crate::bench::server::{Launch, Server, ServerError};
use crate::bench::watch;
use engine::placement::Placement;

/// Longest time for the answer to a request that comes alone, after a load in which some went without.
const ALONE: Duration = Duration::from_secs(15);

/// Everything that a run on servers needs.
#[derive(Clone)]
pub struct Bench<'a> {
    /// The chapter's compiled binary.
    pub program: &'a Path,
    /// Its build with the features for counting the root cause, if it needs any.
    pub counted: Option<&'a Path>,
    /// Arguments for every server, beside those of the scenario.
    pub arguments: &'a [String],
    /// The chapter's claims and loads.
    pub chapter: &'a ChapterFile,
    /// Seed of the servers' data, see [`Launch::data_seed`].
    pub data_seed: u64,
    /// Seed of the random moments of the first pair's or triplet's loads; each further one has the next number.
    pub seed: u64,
    /// CPUs of server and generator.
    pub placement: Placement,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Listener for events, for the terminal.
    pub observer: &'a dyn Fn(Event<'_>),
}

/// Error that ended a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The generator failed.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// The chapter's file has no such scenario. [`ChapterFile::parse`] checks the names that the file itself
    /// uses.
    #[error("chapter.toml has no [scenarios.{0}]; add it")]
    NoScenario(String),
    /// The chapter's contract tests could not be run, for this reason.
    #[error("the contract tests could not be run: {0}")]
    Contract(String),
    /// nginx or Go failed or is missing.
    #[error("{0}")]
    Outside(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// Returns whether it was Ctrl-C.
    pub fn is_interrupt(&self) -> bool {
        matches!(
            self,
            Self::Server(ServerError::Interrupted)
                | Self::Generator(GeneratorError::Interrupted)
                | Self::Interrupted
        )
    }

    pub(crate) fn of_contract(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Contract(error.to_string()),
        }
    }

    /// Makes the error of another program, for `map_err`; `what` is a clause on what could not be done.
    pub(crate) fn of_child(what: &str) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.kind() {
            io::ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Outside(format!("{what}: {error}")),
        }
    }
}

impl<'a> Bench<'a> {
    /// Makes a bench for the variants of `program`, on the chapter's CPUs, with no arguments but those of its
    /// scenarios.
    pub fn new(
        program: &'a Path,
        chapter: &'a ChapterFile,
        interrupt: &'a Interrupt,
        observer: &'a dyn Fn(Event<'_>),
    ) -> Self {
        Self {
            program,
            counted: None,
            arguments: &[],
            chapter,
            data_seed: 0,
            seed: 0,
            placement: placement_of(chapter),
            interrupt,
            observer,
        }
    }
}

impl Bench<'_> {
    /// Returns the named scenario of the chapter's file.
    ///
    /// # Errors
    ///
    /// Fails if there is none of this name.
    pub fn scenario(&self, name: &str) -> Result<&Scenario, RunError> {
        self.chapter
            .scenario(name)
            .ok_or_else(|| RunError::NoScenario(name.to_owned()))
    }

    /// Starts a server of `variant` on its CPUs, with the arguments of `scenario`.
    ///
    /// # Errors
    ///
    /// Fails if the server does not start to listen.
    pub fn start(&self, variant: &str, scenario: &Scenario) -> Result<Server, ServerError> {
        let launch = Launch {
            program: self.program,
            variant,
            data_seed: self.data_seed,
            arguments: &[self.arguments, &scenario.arguments].concat(),
            cpus: &self.placement.server,
            workers: None,
        };
        Server::start(&launch, self.interrupt)
    }

    /// Returns a bench with the build that counts root causes, if there is one.
    fn counting(&self) -> Self {
        Self {
            program: self.counted.unwrap_or(self.program),
            ..self.clone()
        }
    }

    /// Puts `load` on whatever answers at `target`.
    fn drive(&self, target: SocketAddr, load: &Traffic) -> Result<Outcome, GeneratorError> {
        let progress = |now: Progress| (self.observer)(Event::Runs(now));
        let settings = engine::load::Settings {
            cpus: &self.placement.generator,
            interrupt: self.interrupt,
            progress: Some(&progress),
        };
        engine::load::run(target, load, &settings).map(Outcome::from)
    }

    /// Runs one fresh server under one load. Also returns whether it was an optimised build.
    ///
    /// # Errors
    ///
    /// Fails if server or generator fails, or on Ctrl-C.
    pub fn round(
        &self,
        purpose: Purpose,
        variant: &str,
        scenario: &str,
    ) -> Result<(Round, bool), RunError> {
        self.round_of(&Step {
            purpose,
            variant,
            scenario,
            number: 0,
        })
    }

    /// Runs a step of a plan like [`Bench::round`].
    pub(crate) fn round_of(&self, step: &Step<'_>) -> Result<(Round, bool), RunError> {
        let ran = self.run(step)?;
        match ran.uncounted {
            Some(error) => Err(error.into()),
            None => Ok((ran.observed.round, ran.optimised)),
        }
    }

    /// Runs a round of the program `name` that answers at `target` already, and counts nothing.
    ///
    /// # Errors
    ///
    /// Fails if the load cannot be sent, or on Ctrl-C.
    pub(crate) fn round_at(
        &self,
        target: SocketAddr,
        name: &str,
        scenario: &str,
    ) -> Result<Round, RunError> {
        let asked = self.scenario(scenario)?;
        Ok(Round {
            purpose: Purpose::Baseline,
            variant: name.to_owned(),
            scenario: scenario.to_owned(),
            seed: self.seed,
            wall_s: asked.whole_s(),
            outcome: self.drive(target, &self.load_of(asked, self.seed))?,
            readings: BTreeMap::new(),
            server_cpu_s: None,
            throttled_s: None,
            elsewhere_share: None,
            series: Vec::new(),
        })
    }

    /// Returns whether the server is idle and leaves a request unanswered that comes alone, after the load.
    fn answers_nothing(&self, server: &Server) -> bool {
        let before = CpuWanted::by(server.id());
        let request = (&self.chapter.exchange).into();
        let answered = engine::load::ask::send(server.service(), &request, ALONE);
        matches!(answered, Err(Unanswered::TimeOut))
            && CpuWanted::is_idle_since(before.as_ref(), server.id())
    }

    /// Runs one fresh server under one load, whatever becomes of the server.
    ///
    /// # Errors
    ///
    /// Fails if the server does not come to listen or the load cannot be sent, or on Ctrl-C.
    pub(crate) fn run(&self, step: &Step<'_>) -> Result<Ran, RunError> {
        let scenario = self.scenario(step.scenario)?;
        let kept = self.chapter.metrics();
        let load = self.load_of(scenario, self.seed_of(step));
        let mut server = match step.purpose {
            Purpose::RootCause => self.counting().start(step.variant, scenario),
            _ => self.start(step.variant, scenario),
        }?;
        let watch = Watch::begin(&server);
        let (outcome, series) = match step.purpose {
            Purpose::Series => watch::series(&server, || self.drive(server.service(), &load)),
            _ => (self.drive(server.service(), &load), Vec::new()),
        };
        let outcome = outcome?;
        // A server that ended under load has no counters any more.
        let (after, uncounted) = match server.metrics() {
            Ok(metrics) => (metrics, None),
            Err(error) => (Metrics::default(), Some(error)),
        };
        let mut round = watch.end(step, outcome, &after, kept);
        round.seed = self.seed_of(step);
        round.series = series;
        let is_stuck = is_late(&round.outcome) && self.answers_nothing(&server);
        let panics = server.panics();
        let ended = server.has_ended().then(|| server.why_ended());
        Ok(Ran {
            observed: Observed {
                round,
                panics,
                ended,
                is_stuck,
            },
            optimised: server.is_optimised(),
            uncounted,
        })
    }

    /// Returns the seed of the random moments of a step's load.
    pub(crate) fn seed_of(&self, step: &Step<'_>) -> u64 {
        self.seed.wrapping_add(step.number.into())
    }

    fn load_of(&self, scenario: &Scenario, seed: u64) -> Traffic {
        Traffic {
            seed,
            ..self.chapter.load_of(scenario)
        }
    }
}

/// A round to run.
pub(crate) struct Step<'a> {
    /// Purpose of the round. A root cause's own round runs on the build that counts it.
    pub(crate) purpose: Purpose,
    /// The variant that serves.
    pub(crate) variant: &'a str,
    /// The scenario: its load, and the arguments of the server.
    pub(crate) scenario: &'a str,
    /// Number of its pair or triplet, counted from 0. The rounds of one get the same seed.
    pub(crate) number: u32,
}

impl Step<'_> {
    /// Formats the name of the round, for people.
    pub(crate) fn label(&self) -> String {
        match self.purpose {
            Purpose::Equal => format!("{} again, {} scenario", self.variant, self.scenario),
            Purpose::Law => format!("{}, for the law", self.variant),
            Purpose::RootCause => format!("{}, counted", self.variant),
            Purpose::Claim
            | Purpose::Matrix
            | Purpose::Series
            | Purpose::Baseline
            | Purpose::Disturbed => {
                format!("{}, {} scenario", self.variant, self.scenario)
            }
        }
    }
}

/// A round that was run.
pub(crate) struct Ran {
    /// Its figures, and what became of the server.
    pub(crate) observed: Observed,
    /// `true` if the server was an optimised build.
    pub(crate) optimised: bool,
    /// Error of a server that did not give its counters after the load.
    uncounted: Option<ServerError>,
}

/// Counts of a server before it is put under load.
struct Watch {
    throttled: Option<Duration>,
    before: Metrics,
    began: Instant,
    own_cpu: ProcessTime,
    machine: Option<CpuTimes>,
}

impl Watch {
    /// Reads the counts of a server that is not under load yet.
    fn begin(server: &Server) -> Self {
        Self {
            throttled: throttled_so_far(),
            // A counter that is missing here is missing from the difference, too.
            before: server.metrics().unwrap_or_default(),
            began: Instant::now()
                .checked_sub(server.age())
                .unwrap_or_else(Instant::now),
            own_cpu: ProcessTime::now(),
            machine: CpuTimes::now(&[], 0.0),
        }
    }

    /// Makes the round from the server's counters `after` the load, of which it keeps some.
    fn end(self, step: &Step<'_>, outcome: Outcome, after: &Metrics, kept: Vec<String>) -> Round {
        let [before_s, after_s] =
            [&self.before, after].map(|metrics| metrics.get("process_cpu_seconds"));
        let server_cpu_s = match (before_s, after_s) {
            (Some(before_s), Some(after_s)) => Some(after_s - before_s),
            _ => None,
        };
        let mut readings = BTreeMap::new();
        for metric in kept {
            if let Some(value) = after.get(&metric) {
                readings.insert(metric, value);
            }
        }
        Round {
            purpose: step.purpose,
            variant: step.variant.to_owned(),
            scenario: step.scenario.to_owned(),
            seed: 0,
            outcome,
            readings,
            server_cpu_s,
            elsewhere_share: self.elsewhere_share(server_cpu_s),
            throttled_s: throttled_since(self.throttled),
            wall_s: self.began.elapsed().as_secs_f64(),
            series: Vec::new(),
        }
    }

    /// Returns the share of the machine's CPU time that neither this process nor the server used.
    fn elsewhere_share(&self, server_cpu_s: Option<f64>) -> Option<f64> {
        let own_s = self.own_cpu.elapsed().as_secs_f64() + server_cpu_s?;
        let now = CpuTimes::now(&[], own_s)?;
        Some(self.machine?.used_by_others(&now))
    }
}

/// Returns the seconds for which a quota held this run back since `before`.
fn throttled_since(before: Option<Duration>) -> Option<f64> {
    let so_far = throttled_so_far()?.checked_sub(before?)?;
    Some(so_far.as_secs_f64())
}

/// Returns the CPUs of this chapter's servers and their generator: apart, unless the claim is about all CPUs.
pub fn placement_of(chapter: &ChapterFile) -> Placement {
    if chapter.all_cpus {
        Placement::anywhere()
    } else {
        Placement::apart()
    }
}
