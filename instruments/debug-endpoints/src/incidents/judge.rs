//! Decides from observations what is an incident. It knows no clock and no system: time comes with the observations.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::incidents::condition::{Change, Condition, Cpu};
use crate::incidents::kind::Kind;
use crate::incidents::options::Incidents;
use crate::incidents::pace::Pace;
use crate::incidents::traffic::{RouteSeen, Seen};
use crate::incidents::usual::{Rule, Usual};
use crate::incidents::workers::Workers;

/// Fewest requests for a mean latency that is judged.
const FEWEST_REQUESTS: u64 = 30;

/// Shortest and longest time for a mean latency that is judged.
const WINDOW: Duration = Duration::from_secs(5);
const LONGEST_WINDOW: Duration = Duration::from_secs(60);

/// Time for which a condition of the second is out of its range before it is an incident.
const CONFIRMED_AFTER: Duration = Duration::from_secs(2);

/// Subject of an incident: its kind, and the route or runtime.
pub(crate) type Key = (Kind, Arc<str>);

/// Something that happened to an incident.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// It began, and is counted.
    Counted(Key),
    /// It is to be recorded.
    Recorded {
        key: Key,
        /// Sentence on the value that left its range.
        says: String,
        /// Time since it began.
        ago: Duration,
    },
    /// It is over.
    Ended(Key),
    /// Something was late because the machine had no CPU.
    LackedCpu,
}

/// State of a limit, or of a job that waits.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) key: Key,
    pub(crate) is_out: bool,
    /// Sentence on the value that is out of range.
    pub(crate) says: String,
}

/// Observations of about a second.
#[derive(Clone, Debug)]
pub(crate) struct Second {
    pub(crate) length: Duration,
    pub(crate) requests: Seen,
    pub(crate) cpu: Cpu,
    pub(crate) readings: Vec<Reading>,
}

/// One route.
#[derive(Debug, Default)]
struct Route {
    usual: Usual,
    window: RouteSeen,
    length: Duration,
    is_out: bool,
    mean: Duration,
    condition: Condition,
}

/// Decides what is an incident.
#[derive(Debug)]
pub(crate) struct Judge {
    options: Incidents,
    in_flight: Usual,
    in_flight_condition: Condition,
    routes: HashMap<Arc<str>, Route>,
    readings: BTreeMap<Key, Condition>,
    workers: HashMap<Arc<str>, Workers>,
    log: Log,
}

/// Events, and what decides which of them are recorded.
#[derive(Debug, Default)]
struct Log {
    now: Duration,
    pace: Pace,
    began: BTreeMap<Key, Duration>,
    events: Vec<Event>,
}

impl Log {
    /// Writes down what changed, and returns whether the incident is to be recorded. It began `lead` before now.
    fn write(
        &mut self,
        key: &Key,
        change: Change,
        lead: Duration,
        says: impl FnOnce() -> String,
    ) -> bool {
        match change {
            Change::Nothing => return false,
            Change::LacksCpu => self.events.push(Event::LackedCpu),
            Change::Ends => {
                self.began.remove(key);
                self.events.push(Event::Ended(key.clone()));
            }
            Change::Begins => {
                let began = self.now.saturating_sub(lead);
                self.began.insert(key.clone(), began);
                self.events.push(Event::Counted(key.clone()));
            }
            Change::GoesOn => {}
        }
        if !matches!(change, Change::Begins | Change::GoesOn) {
            return false;
        }
        let is_recorded = self.pace.allows(self.now, key.0);
        if is_recorded {
            let began = self.began.get(key).copied().unwrap_or(self.now);
            self.events.push(Event::Recorded {
                key: key.clone(),
                says: says(),
                ago: self.now.saturating_sub(began),
            });
        }
        is_recorded
    }
}

impl Judge {
    pub(crate) fn new(options: Incidents) -> Self {
        Self {
            options,
            in_flight: Usual::default(),
            in_flight_condition: Condition::default(),
            routes: HashMap::new(),
            readings: BTreeMap::new(),
            workers: HashMap::new(),
            log: Log::default(),
        }
    }

    /// Takes a look at the workers of a runtime after a step; see [`Workers::observe`]. `now` is a time since the start.
    pub(crate) fn step(
        &mut self,
        now: Duration,
        runtime: &Arc<str>,
        is_held: &[bool],
        length: Duration,
        cpu: Cpu,
    ) {
        self.log.now = now;
        let late = self.options.late;
        let workers = self.workers.entry(runtime.clone()).or_default();
        let change = workers.observe(is_held, length, cpu, late);
        let longest = workers.times().into_iter().max().unwrap_or_default();
        let key = (Kind::Late, runtime.clone());
        let is_recorded = self.log.write(&key, change, longest, || {
            let (held, all) = (workers.late(late), workers.len());
            let of_all = match all {
                1 => format!("The worker of the runtime {runtime}"),
                all => format!("{held} of {all} workers of the runtime {runtime}"),
            };
            format!("{of_all} did not yield for {} ms.", longest.as_millis())
        });
        if is_recorded {
            workers.set_recorded();
        }
    }

    /// Takes the observations of a second.
    pub(crate) fn second(&mut self, now: Duration, seen: &Second) {
        self.log.now = now;
        self.judge_in_flight(seen);
        self.judge_latencies(seen);
        for reading in &seen.readings {
            let condition = self.readings.entry(reading.key.clone()).or_default();
            let cpu = match reading.key.0 {
                Kind::BlockingPool => seen.cpu,
                _ => Cpu::Had,
            };
            let change = condition.observe(reading.is_out, cpu);
            let is_recorded = self.log.write(&reading.key, change, CONFIRMED_AFTER, || {
                reading.says.clone()
            });
            if is_recorded {
                condition.set_recorded();
            }
        }
        self.readings
            .retain(|_, condition| *condition != Condition::Usual);
    }

    fn judge_in_flight(&mut self, seen: &Second) {
        let Some(least) = seen.requests.least_in_flight else {
            return;
        };
        let rule = self.rule(self.options.in_flight_over as f64);
        let is_out = self.in_flight.is_left_by(least as f64, seen.length, &rule);
        let change = self.in_flight_condition.observe(is_out, seen.cpu);
        let high = self.in_flight.high();
        let key = (Kind::InFlight, Arc::from(""));
        let is_recorded = self.log.write(&key, change, CONFIRMED_AFTER, || {
            format!(
                "{least} requests or more were in flight for a second; usually at most {high:.0} are."
            )
        });
        if is_recorded {
            self.in_flight_condition.set_recorded();
        }
    }

    fn judge_latencies(&mut self, seen: &Second) {
        let rule = self.rule(self.options.latency_over.as_secs_f64());
        for (name, route) in &seen.requests.routes {
            let known = self.routes.entry(name.clone()).or_default();
            known.take(route, seen.length, &rule);
            let change = known.condition.observe(known.is_out, seen.cpu);
            let key = (Kind::Latency, name.clone());
            let is_recorded = self.log.write(&key, change, WINDOW, || {
                let (mean, high) = (known.mean.as_secs_f64(), known.usual.high());
                format!(
                    "{name} took {:.0} ms on average; usually it takes at most {:.0} ms.",
                    mean * 1e3,
                    high * 1e3
                )
            });
            if is_recorded {
                known.condition.set_recorded();
            }
        }
        // The profiler forgets rare routes; so does this.
        for (name, mut route) in std::mem::take(&mut self.routes) {
            if seen.requests.least_in_flight.is_none() || seen.requests.routes.contains_key(&name) {
                self.routes.insert(name, route);
            } else {
                let change = route.condition.observe(false, Cpu::NotAsked);
                let key = (Kind::Latency, name);
                self.log.write(&key, change, WINDOW, String::new);
            }
        }
    }

    fn rule(&self, floor: f64) -> Rule {
        Rule {
            times: self.options.times_usual,
            floor,
            learning: self.options.learning,
        }
    }

    /// Forgets the runtimes that are not among these.
    pub(crate) fn keep_runtimes(&mut self, names: &[Arc<str>]) {
        let log = &mut self.log;
        self.workers.retain(|name, _| {
            if names.contains(name) {
                return true;
            }
            let key = (Kind::Late, name.clone());
            if log.began.remove(&key).is_some() {
                log.events.push(Event::Ended(key));
            }
            false
        });
    }

    /// Returns whether the next step needs to know if the machine has a CPU for the service.
    pub(crate) fn suspects_workers(&self) -> bool {
        let late = self.options.late;
        self.workers.values().any(|one| one.is_suspicious(late))
    }

    /// Returns whether the next second needs to know if the machine has a CPU for the service.
    pub(crate) fn suspects_requests(&self) -> bool {
        let mut conditions = vec![&self.in_flight_condition];
        for route in self.routes.values() {
            conditions.push(&route.condition);
        }
        conditions.extend(self.readings.values());
        conditions
            .iter()
            .any(|one| matches!(one, Condition::Suspected { .. }))
    }

    /// Returns for how long each worker of each runtime has not yielded.
    pub(crate) fn held(&self) -> Vec<(Arc<str>, Vec<Duration>)> {
        let mut held = Vec::new();
        for (name, workers) in &self.workers {
            held.push((name.clone(), workers.times()));
        }
        held
    }

    /// Returns the events since the last call.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.log.events)
    }
}

impl Route {
    /// Adds the requests of a second, and judges the mean latency once there are enough of them.
    fn take(&mut self, seen: &RouteSeen, length: Duration, rule: &Rule) {
        self.window.request_seconds += seen.request_seconds;
        self.window.ended += seen.ended;
        self.length += length;
        if self.window.ended >= FEWEST_REQUESTS && self.length >= WINDOW {
            // Little's law: the mean number in flight is the number that end a second, times their mean latency.
            let mean = self.window.request_seconds / self.window.ended as f64;
            self.mean = Duration::from_secs_f64(mean);
            self.is_out = self.usual.is_left_by(mean, self.length, rule);
        } else if self.length >= LONGEST_WINDOW {
            self.is_out = false;
        } else {
            return;
        }
        (self.window, self.length) = (RouteSeen::default(), Duration::ZERO);
    }
}
