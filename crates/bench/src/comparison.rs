//! Two builds of a service, side by side: rounds of short slices in balanced order, until they
//! decide.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use analysis::comparison::{Goal, LOOKS, Verdict, Word, judge};
use loadgen::interrupt::Interrupt;
use loadgen::{GeneratorError, GroupOutcome, Latencies, Progress, Target, Tls, TrafficOutcome};
use measurement::comparison::{
    BYSTANDER_P99, CPU_MS, Figures, Metric, PEAK_MEMORY, PERCENTILES, REQUESTS_PER_SECOND, Round,
    SeenByBoth, answers_for, grows, route_key,
};
use measurement::figures;
use measurement::load::Arrivals;
use measurement::metrics::samples;
use measurement::outcome::GeneratorFacts;
use measurement::traffic::Traffic;

use crate::answers::{AnswerError, Asked, Learnt, learn};
use crate::child::processes;
use crate::drivers::DriverError;
use crate::placement::Placement;
use crate::server::command::{CommandError, CommandServer, Launch};
use crate::server::fetch;
use crate::service_profiles;

/// Warm-up before a slice on a server that has been under load before.
const WARM_AGAIN: Duration = Duration::from_millis(300);
/// After a slice the server may go on with what nobody waits for any more; the next one begins
/// when that is done, or after so long.
const SETTLE_AT_MOST: Duration = Duration::from_secs(5);
const SETTLE_LOOK: Duration = Duration::from_millis(100);
/// How long the end of a server is waited for that has failed requests: its process may end a moment
/// after its connections.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// A longer slice than this is not worked out for a percentile.
const LONGEST_SLICE: Duration = Duration::from_secs(20);
/// What programs that do not belong here may use of the server's CPUs in a slice.
const DISTURBED: f64 = 0.1;
/// Each server is loaded so often in a round.
const SLICES: usize = 2;
/// The order of a round's slices, which is gone through there and back.
const ORDERS: [[usize; 3]; 6] = [
    [BASE, CHANGE, AGAIN],
    [AGAIN, CHANGE, BASE],
    [CHANGE, BASE, AGAIN],
    [AGAIN, BASE, CHANGE],
    [BASE, AGAIN, CHANGE],
    [CHANGE, AGAIN, BASE],
];
const BASE: usize = 0;
const CHANGE: usize = 1;
const AGAIN: usize = 2;

/// One of the two builds.
#[derive(Debug, Clone)]
pub enum Side {
    /// A command, and the folder it runs in.
    Command(String, PathBuf),
    /// A server that runs already. It is not restarted, and runs where it likes.
    Running(Target),
}

/// Puts a load on a server, as [`loadgen::run_traffic`] does.
pub type Generator<'a> = dyn Fn(&Target, &Traffic) -> Result<TrafficOutcome, DriverError> + 'a;

/// What is compared, and how.
pub struct Comparison<'a> {
    /// The base.
    pub base: Side,
    /// The change.
    pub change: Side,
    /// Path that answers once a server is ready.
    pub ready: Option<&'a str>,
    /// How long that may take.
    pub ready_within: Duration,
    /// Whom to trust, where the commands start services that speak HTTPS.
    pub tls: Option<&'a Tls>,
    /// The load. What is expected of its requests is learnt.
    pub traffic: Traffic,
    /// Every answer must have this status, instead of being the base's.
    pub expect_status: Option<u16>,
    /// Counters of the service that are read beside.
    pub counters: &'a [String],
    /// The path that has them.
    pub metrics_path: &'a str,
    /// Whether that is on the second port.
    pub is_metrics_on_admin: bool,
    /// Whether both are profiled afterwards, under the same load.
    pub with_profiles: bool,
    /// The metric that decides.
    pub deciding: &'a Metric,
    /// What is asked of the change.
    pub goal: Goal,
    /// No round begins after so long.
    pub at_most: Duration,
    /// Who runs where.
    pub placement: &'a Placement,
    /// Another generator than the embedded one.
    pub generator: Option<&'a Generator<'a>>,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Told what happens, for the terminal.
    pub observer: &'a dyn Fn(Event<'_>),
}

/// What happens, as it happens.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// Something begins.
    Begins(&'a str),
    /// Load is on.
    Runs(Progress),
    /// Something to tell.
    Said(&'a str),
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The verdict.
    pub verdict: Verdict,
    /// The rounds that it rests on.
    pub rounds: Vec<Round>,
    /// What a reader must know beside, a sentence each.
    pub notes: Vec<String>,
    /// What the instruments saw that both have; none unless it was asked for.
    pub profiles: Vec<SeenByBoth>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Seconds that a slice recorded.
    pub slice_s: f64,
    /// Largest share of its CPU time that the generator used in a slice.
    pub generator_cpu: Option<f64>,
}

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// A server failed.
    #[error(transparent)]
    Server(#[from] CommandError),
    /// The requests are not answered as they must be.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The generator failed.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// Another generator failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Nobody answers where the profiles are asked for.
    #[error(
        "both services need the endpoints of debug-endpoints, without a token, on their port or on \
         `{{admin_port}}`."
    )]
    NoEndpoints,
    /// A counter that a server lacks.
    #[error("the {who} has no `{counter}` at {path}: {reason}")]
    NoCounter {
        /// Which server.
        who: &'static str,
        /// The counter.
        counter: String,
        /// Where it was looked for.
        path: String,
        /// What there is instead.
        reason: String,
    },
    /// Load was put on, and something was wrong that makes every figure meaningless.
    #[error("{0}")]
    Invalid(String),
}

impl ComparisonError {
    /// Whether it was Ctrl-C.
    pub fn is_interrupt(&self) -> bool {
        matches!(
            self,
            Self::Server(CommandError::Interrupted)
                | Self::Answer(AnswerError::Interrupted)
                | Self::Generator(GeneratorError::Interrupted)
                | Self::Driver(DriverError::Interrupted)
        )
    }
}

/// Names of the three servers, in their order.
const NAMES: [&str; 3] = ["base", "change", "base (again)"];

/// A server of a round.
struct Instance {
    target: Target,
    /// `None` where it ran already.
    process: Option<CommandServer>,
}

impl Instance {
    fn cpu_s(&self) -> Option<f64> {
        Some(self.process.as_ref()?.used()?.cpu_s)
    }
}

/// What one server did in the slices of a round.
#[derive(Default)]
struct Seen {
    per_second: Vec<f64>,
    right: u64,
    cpu_s: Option<f64>,
    routes: Vec<Latencies>,
    bystander: Option<Latencies>,
    counters: Vec<f64>,
}

/// What spoils a round, apart from its result.
#[derive(Default)]
struct Spoilt {
    /// Largest share of the server's CPUs that other programs used in a slice.
    foreign: f64,
    /// Largest share of its CPU time that the generator used.
    generator_cpu: Option<f64>,
    is_generator_bound: bool,
    /// A slice ended before its first answer.
    is_silent: bool,
    is_unsettled: bool,
}

impl Comparison<'_> {
    /// Runs rounds until they decide, the time is over, or something is wrong.
    ///
    /// # Errors
    ///
    /// When servers, answers or generator fail, or on Ctrl-C.
    pub fn run(&self) -> Result<Compared, ComparisonError> {
        let began = Instant::now();
        let (mut traffic, mut notes) = self.prepare()?;
        let mut rounds: Vec<Round> = Vec::new();
        let mut spoilt: Vec<Spoilt> = Vec::new();
        let (mut looks, mut shed, mut bound, mut silent) = (0, 0, 0, 0);
        let mut verdict = None;
        for number in 0_u32.. {
            (self.observer)(Event::Begins(&format!(
                "round {}: servers start",
                number + 1
            )));
            let mut servers = self.start(number)?;
            traffic.seed = u64::from(number);
            let (round, fault) = self.round(number, &mut servers, &traffic)?;
            drop(servers);
            let is_late = began.elapsed() > self.at_most;
            let what = if fault.is_silent {
                silent += 1;
                "not counted: a slice had no answer"
            } else if fault.is_generator_bound {
                bound += 1;
                "not counted: the generator was the limit"
            } else if fault.foreign > DISTURBED && shed * 2 <= rounds.len() && !is_late {
                shed += 1;
                "not counted: other programs used the CPU"
            } else {
                rounds.push(round.clone());
                "counted"
            };
            self.tell(number, &round, what);
            spoilt.push(fault);
            if bound * 2 > number + 1 && (bound >= 2 || is_late) {
                verdict = Some(generator_bound(&spoilt));
                break;
            }
            if silent >= 3 && silent * 2 > number + 1 {
                return Err(ComparisonError::Invalid(format!(
                    "in {silent} of {} rounds a server gave no answer for a whole slice of {} s; \
                     take longer slices with --seconds, or more users.",
                    number + 1,
                    figures::ratio(traffic.duration.as_secs_f64())
                )));
            }
            let is_over = is_late || rounds.len() == LOOKS[LOOKS.len() - 1];
            let is_look = LOOKS.contains(&rounds.len()) && what == "counted";
            if is_look || is_over {
                looks += 1;
                let seen = judge(self.deciding, self.goal, &rounds);
                let is_decided = seen.word != Word::Inconclusive && rounds.len() >= LOOKS[0];
                if is_decided || is_over || looks == LOOKS.len() {
                    verdict = Some(seen);
                    break;
                }
            }
        }
        let verdict = verdict.unwrap_or_else(|| judge(self.deciding, self.goal, &rounds));
        self.note(&spoilt, shed, &rounds, &mut notes);
        let profiles = match self.with_profiles.then(|| self.profiles(&traffic)) {
            None => Vec::new(),
            Some(Ok(profiles)) => profiles,
            Some(Err(error)) if error.is_interrupt() => return Err(error),
            // The verdict stands without them.
            Some(Err(error)) => {
                notes.push(format!("there are no profiles: {error}"));
                Vec::new()
            }
        };
        Ok(Compared {
            profiles,
            verdict,
            rounds,
            notes,
            seconds: began.elapsed().as_secs_f64(),
            slice_s: traffic.duration.as_secs_f64(),
            generator_cpu: most(spoilt.iter().filter_map(|one| one.generator_cpu)),
        })
    }

    /// Profiles of both, each under the load of a slice that lasts as long as they take. Apart from
    /// all rounds: looking costs time.
    fn profiles(&self, traffic: &Traffic) -> Result<Vec<SeenByBoth>, ComparisonError> {
        (self.observer)(Event::Begins("profiles: servers start"));
        let servers = self.start(0)?;
        let traffic = Traffic {
            duration: service_profiles::AT_MOST,
            ..traffic.clone()
        };
        let look = |index: usize| {
            let what = format!("profiles of the {}", NAMES[index]);
            (self.observer)(Event::Begins(&what));
            let enough = Interrupt::new();
            let target = servers[index].target.clone();
            let cpus = &*self.placement.generator;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let settings = loadgen::Settings {
                        cpus,
                        ..loadgen::Settings::of(&enough)
                    };
                    // What it did is told by the rounds.
                    let _ = loadgen::run_traffic(target, &traffic, &settings);
                });
                let taken = service_profiles::take(&self.metrics_at(&servers[index]));
                enough.set();
                taken
            })
        };
        let (base, change) = (look(BASE), look(CHANGE));
        if self.interrupt.is_set() {
            return Err(CommandError::Interrupted.into());
        }
        let profiles = service_profiles::paired(base, &change);
        if profiles.is_empty() {
            return Err(ComparisonError::NoEndpoints);
        }
        Ok(profiles)
    }

    /// The load with what is expected of its requests, and how long its slices last. The servers
    /// that were asked for it are not used further: those of a round are equally fresh.
    fn prepare(&self) -> Result<(Traffic, Vec<String>), ComparisonError> {
        let mut traffic = self.traffic.clone();
        (self.observer)(Event::Begins("the servers start"));
        let mut servers = self.start(0)?;
        let learnt = self.learn(&servers, &traffic)?;
        learnt.complete(&mut traffic);
        self.counters(&servers)?;
        let mut notes = learnt.notes;
        self.fit(&mut servers, &mut traffic, &mut notes)?;
        Ok((traffic, notes))
    }

    /// The three servers of a round, in their order, started in that of its slices.
    fn start(&self, number: u32) -> Result<[Instance; 3], ComparisonError> {
        let mut servers = [None, None, None];
        for index in order(number) {
            let side = if index == CHANGE {
                &self.change
            } else {
                &self.base
            };
            servers[index] = Some(match side {
                Side::Running(target) => Instance {
                    target: target.clone(),
                    process: None,
                },
                Side::Command(command, folder) => {
                    let launch = Launch {
                        name: NAMES[index],
                        command,
                        folder,
                        ready: self.ready,
                        ready_within: self.ready_within,
                        tls: self.tls,
                        cpus: &self.placement.server,
                    };
                    let process = CommandServer::start(&launch, self.interrupt)?;
                    Instance {
                        target: Target {
                            address: process.address(),
                            tls: self.tls.cloned(),
                        },
                        process: Some(process),
                    }
                }
            });
        }
        let [Some(base), Some(change), Some(again)] = servers else {
            unreachable!("an order names each server once");
        };
        Ok([base, change, again])
    }

    fn asked<'s>(&'s self, servers: &'s [Instance; 3], index: usize) -> Asked<'s> {
        Asked {
            who: NAMES[index],
            target: &servers[index].target,
            time_out: self.traffic.time_out,
            interrupt: self.interrupt,
        }
    }

    fn learn(&self, servers: &[Instance; 3], traffic: &Traffic) -> Result<Learnt, ComparisonError> {
        (self.observer)(Event::Begins("the base's answers are learnt"));
        let learnt = learn(&self.asked(servers, BASE), traffic, self.expect_status)?;
        (self.observer)(Event::Begins("the change's answers are compared"));
        learnt.compare(&self.asked(servers, CHANGE))?;
        Ok(learnt)
    }

    /// Finds out how long a slice must be for the percentiles that are told.
    fn fit(
        &self,
        servers: &mut [Instance; 3],
        traffic: &mut Traffic,
        notes: &mut Vec<String>,
    ) -> Result<(), ComparisonError> {
        let slices = SLICES as f64;
        let mut needed = traffic.duration;
        if let Some(paced) = &traffic.bystander {
            let seconds = answers_for(0.99) / (paced.per_second * slices);
            needed = needed.max(Duration::from_secs_f64(seconds));
        }
        let is_of_users = !self.deciding.key.starts_with("bystander");
        let quantile = self.deciding.quantile().filter(|_| is_of_users);
        (self.observer)(Event::Begins("how long a slice must be"));
        for index in [BASE, CHANGE] {
            let mut probe = Traffic {
                bystander: None,
                ..traffic.clone()
            };
            loop {
                let outcome = self.load(servers, index, &probe)?;
                settle(&servers[index]);
                let answers = self.answers(&outcome, traffic) as f64;
                if answers > 0.0 {
                    // Without a percentile to decide, the median is what a slice must hold.
                    let wanted = answers_for(quantile.unwrap_or(0.5));
                    let seconds = wanted / (answers / outcome.seconds * slices);
                    let seconds = Duration::try_from_secs_f64(seconds);
                    needed = needed.max(seconds.unwrap_or(Duration::MAX));
                    break;
                }
                if probe.duration >= LONGEST_SLICE {
                    return Err(ComparisonError::Invalid(format!(
                        "under load the {} answered nothing in {} s.",
                        NAMES[index],
                        figures::count(outcome.seconds)
                    )));
                }
                probe.duration = (probe.duration * 4).min(LONGEST_SLICE);
            }
        }
        if needed > LONGEST_SLICE {
            notes.push(format!(
                "a slice would have to last {} s for {}, more than {} s; the load is too small for it.",
                figures::count(needed.as_secs_f64().ceil()),
                self.deciding.label,
                LONGEST_SLICE.as_secs()
            ));
            needed = LONGEST_SLICE;
        } else if needed > traffic.duration {
            notes.push(format!(
                "slices last {} s, for a latency takes so many answers.",
                figures::ratio(needed.as_secs_f64())
            ));
        }
        traffic.duration = needed;
        Ok(())
    }

    /// How many answers of a load the deciding metric is about.
    fn answers(&self, outcome: &TrafficOutcome, traffic: &Traffic) -> u64 {
        let is_its_own = |route: usize| {
            let name = &traffic.routes[route].name;
            PERCENTILES
                .iter()
                .any(|(_, key)| route_key(key, name) == self.deciding.key)
        };
        let mut routes = outcome.users.routes.iter().enumerate();
        routes
            .find(|(route, _)| is_its_own(*route))
            .map_or(outcome.users.completed, |(_, seen)| seen.latency.count())
    }

    fn generate(
        &self,
        target: &Target,
        traffic: &Traffic,
    ) -> Result<TrafficOutcome, ComparisonError> {
        if let Some(generator) = self.generator {
            return Ok(generator(target, traffic)?);
        }
        let progress = |now: Progress| (self.observer)(Event::Runs(now));
        let settings = loadgen::Settings {
            cpus: &self.placement.generator,
            interrupt: self.interrupt,
            progress: Some(&progress),
        };
        Ok(loadgen::run_traffic(target.clone(), traffic, &settings)?)
    }

    fn load(
        &self,
        servers: &mut [Instance; 3],
        index: usize,
        traffic: &Traffic,
    ) -> Result<TrafficOutcome, ComparisonError> {
        let carried = self.generate(&servers[index].target, traffic);
        let fault = carried.as_ref().ok().and_then(|outcome| {
            let groups = [Some(&outcome.users), outcome.bystander.as_ref()];
            groups.into_iter().flatten().find_map(fault)
        });
        if let Some(server) = &mut servers[index].process {
            // A server that dies closes its connections a moment before it has ended.
            let time = fault.as_ref().map_or(Duration::ZERO, |_| ENDS_WITHIN);
            server.is_alive_after(time, "under load")?;
        }
        let outcome = carried?;
        match fault {
            Some(fault) => Err(ComparisonError::Invalid(format!(
                "under load the {} {fault}",
                NAMES[index]
            ))),
            None => Ok(outcome),
        }
    }

    /// All slices of a round: there and back again, so that what drifts steadily favours nobody.
    fn round(
        &self,
        number: u32,
        servers: &mut [Instance; 3],
        traffic: &Traffic,
    ) -> Result<(Round, Spoilt), ComparisonError> {
        let mut seen: [Seen; 3] = std::array::from_fn(|_| Seen::default());
        let mut spoilt = Spoilt::default();
        let there = order(number);
        let back = there.into_iter().rev();
        for index in 0..3 {
            seen[index].counters = self.read(&servers[index]);
        }
        for (place, index) in there.into_iter().chain(back).enumerate() {
            let what = format!(
                "round {}, slice {} of 6: {}",
                number + 1,
                place + 1,
                NAMES[index]
            );
            (self.observer)(Event::Begins(&what));
            let is_first = place < there.len() && servers[index].process.is_some();
            let slice = Traffic {
                warm_up: if is_first {
                    traffic.warm_up
                } else {
                    traffic.warm_up.min(WARM_AGAIN)
                },
                ..traffic.clone()
            };
            let before = self.busy(servers);
            let cpu_before = servers[index].cpu_s();
            let outcome = self.load(servers, index, &slice)?;
            let is_settled = settle(&servers[index]);
            // What the server does for this slice after it is part of its price, too.
            let cpu_s = servers[index].cpu_s().zip(cpu_before).map(|(a, b)| a - b);
            if let Some((foreign, now)) = before.zip(self.busy(servers)) {
                let used = (now.all - foreign.all) - (now.own - foreign.own);
                let wall = (now.at - foreign.at).as_secs_f64() * self.placement.server.len() as f64;
                spoilt.foreign = spoilt.foreign.max((used / wall).min(1.0));
            }
            let generator = &outcome.generator;
            spoilt.generator_cpu = most(
                [spoilt.generator_cpu, generator.cpu_share]
                    .into_iter()
                    .flatten(),
            );
            spoilt.is_generator_bound |= generator.is_bound();
            spoilt.is_unsettled |= !is_settled;
            spoilt.is_silent |= outcome.users.completed == 0;
            seen[index].add(outcome, cpu_s);
        }
        let mut figures = Vec::new();
        for (index, seen) in seen.into_iter().enumerate() {
            figures.push(self.figures(&seen, &servers[index], traffic));
        }
        let mut figures = figures.into_iter();
        let mut next = || figures.next().unwrap_or_default();
        Ok((
            Round {
                base: next(),
                change: next(),
                again: next(),
            },
            spoilt,
        ))
    }

    /// What the CPUs of the servers, and what the servers themselves have done up to now.
    fn busy(&self, servers: &[Instance; 3]) -> Option<Busy> {
        if self.placement.server.is_empty() {
            return None;
        }
        let own = servers.iter().map(Instance::cpu_s).sum::<Option<f64>>()?;
        Some(Busy {
            at: Instant::now(),
            all: processes::busy_seconds(&self.placement.server)?,
            own,
        })
    }

    fn figures(&self, seen: &Seen, server: &Instance, traffic: &Traffic) -> Figures {
        let mut figures = Figures::new();
        let mean = seen.per_second.iter().sum::<f64>() / seen.per_second.len().max(1) as f64;
        figures.insert(REQUESTS_PER_SECOND.to_owned(), mean);
        let mut routes = seen.routes.iter();
        let all = routes.next().cloned().map(|mut all| {
            routes.for_each(|route| all.add(route));
            all
        });
        let mut told = |latencies: &Latencies, name: &dyn Fn(&str) -> String| {
            for (quantile, key) in PERCENTILES {
                if latencies.count() as f64 * 1.05 >= answers_for(quantile)
                    && let Some(ms) = latencies.at(quantile)
                {
                    figures.insert(name(key), ms);
                }
            }
        };
        if let Some(all) = &all {
            told(all, &str::to_owned);
        }
        for (route, latencies) in traffic.routes.iter().zip(&seen.routes) {
            told(latencies, &|key| route_key(key, &route.name));
        }
        if let Some(bystander) = &seen.bystander {
            told(bystander, &|key| format!("bystander_{key}"));
        }
        // The system counts in hundredths of a second: less than ten of them are no figure.
        if let Some(cpu_s) = seen.cpu_s.filter(|cpu_s| *cpu_s >= 0.1) {
            figures.insert(CPU_MS.to_owned(), cpu_s * 1e3 / seen.right.max(1) as f64);
        }
        if let Some(server) = &server.process
            && let Some(bytes) = server.used().and_then(|used| used.peak_bytes)
        {
            figures.insert(PEAK_MEMORY.to_owned(), bytes);
        }
        let after = self.read(server);
        for ((counter, before), after) in self.counters.iter().zip(&seen.counters).zip(after) {
            let value = if grows(counter) {
                (after - before) / seen.right.max(1) as f64
            } else {
                after
            };
            figures.insert(counter.clone(), value);
        }
        figures
    }

    /// Where the counters are: a second port speaks plain HTTP.
    fn metrics_at(&self, server: &Instance) -> Target {
        match &server.process {
            Some(process) if self.is_metrics_on_admin => process.admin_address().into(),
            _ => server.target.clone(),
        }
    }

    /// The counters of this moment, in their order; none if one is missing.
    fn read(&self, server: &Instance) -> Vec<f64> {
        if self.counters.is_empty() {
            return Vec::new();
        }
        let at = self.metrics_at(server);
        let body = fetch(&at, self.metrics_path, self.traffic.time_out).unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        let values = self.counters.iter().map(|counter| counted(&text, counter));
        values.collect::<Option<_>>().unwrap_or_default()
    }

    /// Looks whether both have the counters that are asked for.
    fn counters(&self, servers: &[Instance; 3]) -> Result<(), ComparisonError> {
        for counter in self.counters {
            for index in [BASE, CHANGE] {
                let at = self.metrics_at(&servers[index]);
                let found = fetch(&at, self.metrics_path, self.traffic.time_out);
                let reason = match &found {
                    Ok(body) => {
                        let text = String::from_utf8_lossy(body);
                        if counted(&text, counter).is_some() {
                            continue;
                        }
                        format!("it has {}", names(&text))
                    }
                    Err(reason) => reason.clone(),
                };
                return Err(ComparisonError::NoCounter {
                    who: NAMES[index],
                    counter: counter.clone(),
                    path: self.metrics_path.to_owned(),
                    reason,
                });
            }
        }
        Ok(())
    }

    fn tell(&self, number: u32, round: &Round, what: &str) {
        let key = &self.deciding.key;
        let value = |figures: &Figures| {
            figures
                .get(key)
                .map_or_else(|| "-".to_owned(), |value| figures::count(*value))
        };
        let text = format!(
            "round {:>2}: {} {} (base), {} (change), {} (base again); {what}",
            number + 1,
            self.deciding.label,
            value(&round.base),
            value(&round.change),
            value(&round.again)
        );
        (self.observer)(Event::Said(&text));
    }

    /// What the reader must know beside the verdict.
    fn note(&self, spoilt: &[Spoilt], shed: usize, rounds: &[Round], notes: &mut Vec<String>) {
        let foreign = spoilt.iter().map(|one| one.foreign).fold(0.0, f64::max);
        if foreign > DISTURBED {
            notes.push(format!(
                "the machine was busy: other programs used up to {} of the servers' CPU time in a \
                 slice; {} not counted for it.",
                figures::percent(foreign),
                match shed {
                    1 => "1 round was".to_owned(),
                    shed => format!("{shed} rounds were"),
                }
            ));
        }
        let is_running = |side: &Side| matches!(side, Side::Running(_));
        if is_running(&self.base) || is_running(&self.change) {
            notes.push(
                "the servers ran already: they were neither restarted nor pinned, and their CPU \
                 time and memory are unknown."
                    .to_owned(),
            );
        } else if self.placement.server.is_empty() {
            notes.push("servers and generator shared their CPUs.".to_owned());
        }
        if spoilt.iter().any(|one| one.is_unsettled) {
            notes.push(format!(
                "a server was still busy {} s after its load; what was left ran beside the next \
                 one's.",
                SETTLE_AT_MOST.as_secs()
            ));
        }
        if let Arrivals::Closed { think } = self.traffic.arrivals
            && self.deciding.key == REQUESTS_PER_SECOND
            && !think.is_zero()
        {
            let most_asked = f64::from(self.traffic.users) / think.as_secs_f64();
            let rates = rounds
                .iter()
                .filter_map(|round| round.base.get(REQUESTS_PER_SECOND));
            let count = rates.clone().count().max(1) as f64;
            if rates.sum::<f64>() / count > 0.9 * most_asked {
                notes.push(format!(
                    "{} who think for {} s ask at most {} times a second, which the base almost \
                     answers: the users are the limit. Take more of them, less think time, or \
                     --metric p50_ms.",
                    figures::things(self.traffic.users.into(), "user"),
                    figures::count(think.as_secs_f64()),
                    figures::count(most_asked.round())
                ));
            }
        }
        if self.traffic.bystander.is_some()
            && !rounds
                .iter()
                .all(|round| round.base.contains_key(BYSTANDER_P99))
        {
            notes.push(format!(
                "the bystander got fewer than {} answers in a round, too few for its 99th percentile.",
                figures::count(answers_for(0.99))
            ));
        }
    }
}

/// CPU seconds up to a moment.
struct Busy {
    at: Instant,
    all: f64,
    own: f64,
}

impl Seen {
    fn add(&mut self, outcome: TrafficOutcome, cpu_s: Option<f64>) {
        self.per_second.push(outcome.users.requests_per_second);
        self.right += outcome.users.right_in_all;
        self.cpu_s = match (self.per_second.len(), self.cpu_s, cpu_s) {
            (1, _, now) => now,
            (_, before, now) => before.zip(now).map(|(before, now)| before + now),
        };
        for (index, route) in outcome.users.routes.into_iter().enumerate() {
            match self.routes.get_mut(index) {
                Some(latencies) => latencies.add(&route.latency),
                None => self.routes.push(route.latency),
            }
        }
        for route in outcome.bystander.into_iter().flat_map(|group| group.routes) {
            match &mut self.bystander {
                Some(latencies) => latencies.add(&route.latency),
                None => self.bystander = Some(route.latency),
            }
        }
    }
}

/// The verdict on a run whose generator had nothing left to give.
fn generator_bound(spoilt: &[Spoilt]) -> Verdict {
    let share = most(spoilt.iter().filter_map(|one| one.generator_cpu));
    Verdict {
        word: Word::Invalid,
        is_good: false,
        reason: format!(
            "generator-bound: the generator used {}, so the figures describe it and not the service; ask for fewer users or some think time, and compare a \
             latency or {CPU_MS}.",
            match share {
                Some(share) if share < GeneratorFacts::BOUND => format!(
                    "all of its CPU time that other programs left it, {}",
                    figures::percent(share)
                ),
                Some(share) => format!("{} of its CPU time", figures::percent(share)),
                None => "all of its CPU time".to_owned(),
            }
        ),
    }
}

/// Each server comes first, second and third as often as the others.
fn order(number: u32) -> [usize; 3] {
    ORDERS[number as usize % ORDERS.len()]
}

/// Waits until the server rests; `false` if it does not.
fn settle(server: &Instance) -> bool {
    let began = Instant::now();
    let mut before = server.cpu_s();
    loop {
        std::thread::sleep(SETTLE_LOOK);
        let now = server.cpu_s();
        match before.zip(now) {
            // Less than two scheduler ticks are a service that rests.
            Some((before, now)) if now - before > 0.015 => {}
            _ => return true,
        }
        if began.elapsed() > SETTLE_AT_MOST {
            return false;
        }
        before = now;
    }
}

/// What is wrong with what the users of a load, or its bystanders, got.
fn fault(group: &GroupOutcome) -> Option<String> {
    if group.wrong_answers > 0 {
        return Some(format!(
            "gave {}, the first {:?}; a service must be right before it is fast.",
            figures::things(group.wrong_answers, "wrong answer"),
            group.first_wrong_answer.as_deref().unwrap_or_default()
        ));
    }
    let (cause, count) = group.errors.iter().max_by_key(|(_, count)| **count)?;
    Some(format!(
        "failed {} with `{cause}`; find out why, or ask for less.",
        figures::things(*count, "request")
    ))
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

/// A counter in Prometheus text, its labels added up.
fn counted(text: &str, name: &str) -> Option<f64> {
    let values = samples(text).filter(|sample| sample.name == name);
    let all = values.map(|sample| sample.value).reduce(|a, b| a + b);
    all.filter(|all| all.is_finite())
}

fn names(text: &str) -> String {
    const MOST: usize = 20;
    let mut names: Vec<&str> = samples(text).map(|sample| sample.name).collect();
    names.dedup();
    match names.len() {
        0 => "none".to_owned(),
        count if count > MOST => format!("{}, …", names[..MOST].join(", ")),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_taken_as_often_as_its_mirror() {
        for place in 0..3 {
            for server in 0..3 {
                let times = ORDERS.iter().filter(|order| order[place] == server);
                assert_eq!(times.count(), 2, "server {server} at {place}");
            }
        }
    }

    #[test]
    fn labels_of_a_counter_are_added_up() {
        let text = "# TYPE a counter\na_total{route=\"/x y\"} 3\na_total{route=\"/b\"} 4\nb 0.5\n";
        assert_eq!(counted(text, "a_total"), Some(7.0));
        assert_eq!(counted(text, "b"), Some(0.5));
        assert_eq!(counted(text, "c"), None);
        assert_eq!(names(text), "a_total, b");
    }
}
