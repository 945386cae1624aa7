//! One round: a fresh server under one load, with the figures of both.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::bench::metrics::Metrics;
use crate::measurement::chapter_file::{ChapterFile, Scenario};
use crate::measurement::record::{Purpose, Round};
use children::Interrupt;
use children::processes::CpuTimes;
use children::quota::throttled_so_far;
use cpu_time::ProcessTime;
use engine::event::Event;
use engine::load::{GeneratorError, Progress};
use engine::outcome::Outcome;
use engine::traffic::Traffic;

use crate::bench::server::{Launch, Server, ServerError};
use crate::bench::watch;
use engine::placement::Placement;

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
    pub fn start(
        &self,
        variant: &str,
        scenario: &Scenario,
        data_seed: u64,
    ) -> Result<Server, ServerError> {
        let launch = Launch {
            program: self.program,
            variant,
            data_seed,
            arguments: &[self.arguments, &scenario.arguments].concat(),
            cpus: &self.placement.server,
            workers: None,
        };
        Server::start(&launch, self.interrupt)
    }

    /// Returns a bench with the build that counts root causes, if there is one.
    pub(crate) fn counting(&self) -> Self {
        Self {
            program: self.counted.unwrap_or(self.program),
            ..self.clone()
        }
    }

    /// Puts `load` on a server.
    ///
    /// # Errors
    ///
    /// Fails if the load cannot be sent, or on Ctrl-C.
    pub fn drive(&self, server: &Server, load: &Traffic) -> Result<Outcome, GeneratorError> {
        self.drive_at(server.service(), load)
    }

    /// Puts `load` on whatever answers at `target`.
    ///
    /// # Errors
    ///
    /// Fails like [`Bench::drive`].
    pub fn drive_at(&self, target: SocketAddr, load: &Traffic) -> Result<Outcome, GeneratorError> {
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
        let asked = self.scenario(scenario)?;
        let load = self.chapter.load_of(asked);
        let server = match purpose {
            Purpose::RootCause => self.counting().start(variant, asked, 0),
            _ => self.start(variant, asked, 0),
        }?;
        let watch = Watch::begin(&server);
        let (outcome, connections) = match purpose {
            Purpose::Series => watch::connections(&server, || self.drive(&server, &load)),
            _ => (self.drive(&server, &load), Vec::new()),
        };
        let (outcome, after) = (outcome?, server.metrics()?);
        let mut round = watch.end(self.chapter, purpose, (variant, scenario), outcome, &after);
        round.connections = connections;
        Ok((round, server.is_optimised()))
    }
}

/// Counts of a server before it is put under load.
pub(crate) struct Watch {
    throttled: Option<Duration>,
    before: Metrics,
    began: Instant,
    own_cpu: ProcessTime,
    machine: Option<CpuTimes>,
}

impl Watch {
    /// Reads the counts of a server that is not under load yet.
    pub(crate) fn begin(server: &Server) -> Self {
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

    /// Makes the round from the server's counters `after` the load.
    pub(crate) fn end(
        self,
        chapter: &ChapterFile,
        purpose: Purpose,
        (variant, scenario): (&str, &str),
        outcome: Outcome,
        after: &Metrics,
    ) -> Round {
        let [before_s, after_s] =
            [&self.before, after].map(|metrics| metrics.get("process_cpu_seconds"));
        let server_cpu_s = match (before_s, after_s) {
            (Some(before_s), Some(after_s)) => Some(after_s - before_s),
            _ => None,
        };
        let mut readings = BTreeMap::new();
        for metric in chapter.metrics() {
            if let Some(value) = after.get(&metric) {
                readings.insert(metric, value);
            }
        }
        Round {
            purpose,
            variant: variant.to_owned(),
            scenario: scenario.to_owned(),
            outcome,
            readings,
            server_cpu_s,
            elsewhere_share: self.elsewhere_share(server_cpu_s),
            throttled_s: throttled_since(self.throttled),
            wall_s: self.began.elapsed().as_secs_f64(),
            connections: Vec::new(),
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
