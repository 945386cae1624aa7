//! Decides from observations what is an incident. It knows no clock and no system: time comes with the observations.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::incidents::condition::{Change, Condition, Cpu};
use crate::incidents::kind::Kind;
use crate::incidents::latency::RouteSeen;
use crate::incidents::options::Incidents;
use crate::incidents::pace::Pace;
use crate::incidents::workers::Workers;

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
        /// Sentence on the value that is out of its range.
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
    /// Latencies by route; empty without a limit for them.
    pub(crate) routes: Vec<RouteSeen>,
    pub(crate) cpu: Cpu,
    pub(crate) readings: Vec<Reading>,
}

/// Decides what is an incident.
#[derive(Debug)]
pub(crate) struct Judge {
    options: Incidents,
    routes: HashMap<Arc<str>, Condition>,
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
        if let Some(limit) = self.options.p99_limit {
            self.judge_latencies(seen, limit);
        }
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

    fn judge_latencies(&mut self, seen: &Second, limit: Duration) {
        let mut gone = std::mem::take(&mut self.routes);
        for route in &seen.routes {
            let mut condition = gone.remove(&route.name).unwrap_or_default();
            let goes_on = matches!(condition, Condition::Out { .. });
            let is_out = route.is_over(limit, goes_on);
            let change = condition.observe(is_out, seen.cpu);
            let key = (Kind::Latency, route.name.clone());
            let is_recorded = self
                .log
                .write(&key, change, CONFIRMED_AFTER, || route.says(limit));
            if is_recorded {
                condition.set_recorded();
            }
            self.routes.insert(route.name.clone(), condition);
        }
        // The profiler forgets rare routes; so does this.
        for (name, mut condition) in gone {
            let change = condition.observe(false, Cpu::NotAsked);
            let key = (Kind::Latency, name);
            self.log.write(&key, change, CONFIRMED_AFTER, String::new);
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
        let mut conditions = self.routes.values().chain(self.readings.values());
        conditions.any(|one| matches!(one, Condition::Suspected { .. }))
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
