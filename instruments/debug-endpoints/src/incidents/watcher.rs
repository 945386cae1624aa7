//! Watches the service from a thread of its own, and records what the judge calls an incident.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use diagnosis::evidence::Runtime;
use tokio::runtime::{Handle, RuntimeMetrics};

use crate::descriptors;
use crate::incidents::capture::{Capture, Profiles};
use crate::incidents::condition::Cpu;
use crate::incidents::delays::Delays;
use crate::incidents::judge::{Event, Judge, Key, Reading, Second};
use crate::incidents::kind::Kind;
use crate::incidents::latency;
use crate::incidents::options::Incidents;
use crate::incidents::recorder::Recorder;
use crate::memory_left;
use crate::own_thread::{self, Start};
use crate::runtimes::Runtimes;

/// Longest time between two looks at the workers. A look finds the caches cold, so its price is a wake and what it
/// touches: some tens of microseconds.
const LONGEST_STEP: Duration = Duration::from_millis(50);

/// Time between two readings of limits, and between two jobs for a blocking pool.
const READINGS: Duration = Duration::from_secs(10);

/// Largest share of the time that readings of limits may take: one of so many.
const SPARED: u32 = 500;

/// Time for which a job may wait for a thread of a blocking pool.
const JOB_WAITS: Duration = Duration::from_secs(1);

/// Share of the limit in use from which descriptors run out.
const DESCRIPTORS: f64 = diagnosis::thresholds::DESCRIPTORS;

/// Share of the limit in use from which memory runs out.
const MEMORY: f64 = 0.9;

/// Starts to watch, until nobody has the recorder any more.
pub(crate) fn start(
    recorder: &Arc<Recorder>,
    options: Incidents,
    profiles: Profiles,
    runtimes: Runtimes,
) {
    let watched = Arc::downgrade(recorder);
    let thread = Builder::new().name("incidents".to_owned());
    let started = thread.spawn(move || Watcher::new(options, profiles, runtimes).run(&watched));
    if let Err(error) = started {
        recorder.fail(format!(
            "Incidents are not recorded: the system starts no thread ({error})."
        ));
    }
}

/// A runtime that is watched.
struct Watched {
    name: Arc<str>,
    handle: Handle,
    metrics: RuntimeMetrics,
    /// Figures that each worker has published: number of parks and wakes, and time that it worked.
    told: Vec<(u64, Duration)>,
    /// For each worker, whether it was awake at the last look and had published nothing since the look before.
    is_held: Vec<bool>,
    job: Option<Job>,
}

/// A job for the blocking pool.
struct Job {
    asked: Instant,
    has_begun: Arc<AtomicBool>,
}

impl Watched {
    fn new(name: &str, handle: Handle) -> Self {
        let metrics = handle.metrics();
        Self {
            name: Arc::from(name),
            handle,
            metrics,
            told: Vec::new(),
            is_held: Vec::new(),
            job: None,
        }
    }

    /// Looks at the workers, and returns whether one is held or was so at the last look. Workers publish their figures
    /// when they park, when they wake, and after 61 polls.
    fn look(&mut self) -> bool {
        let workers = self.metrics.num_workers();
        self.told.resize(workers, (0, Duration::MAX));
        self.is_held.resize(workers, false);
        let mut is_news = false;
        for (worker, before) in self.told.iter_mut().enumerate() {
            let told = (
                self.metrics.worker_park_unpark_count(worker),
                self.metrics.worker_total_busy_duration(worker),
            );
            // As many wakes as parks: it is awake.
            let is_held = told.0.is_multiple_of(2) && told == *before;
            is_news |= is_held || self.is_held[worker];
            self.is_held[worker] = is_held;
            *before = told;
        }
        is_news
    }

    fn ask_pool(&mut self) {
        if self.job.is_none() {
            let has_begun = Arc::new(AtomicBool::new(false));
            let begins = Arc::clone(&has_begun);
            self.job = Some(Job {
                asked: Instant::now(),
                has_begun,
            });
            self.handle
                .spawn_blocking(move || begins.store(true, Relaxed));
        }
    }

    /// Returns for how long its job has waited; zero if it has begun.
    fn job_waits(&mut self) -> Duration {
        self.job.take_if(|job| job.has_begun.load(Relaxed));
        self.job
            .as_ref()
            .map_or(Duration::ZERO, |job| job.asked.elapsed())
    }
}

struct Watcher {
    options: Incidents,
    judge: Judge,
    profiles: Profiles,
    runtimes: Runtimes,
    watched: Vec<Watched>,
    /// Measure the current step and second, while something is suspected.
    of_step: Delays,
    of_second: Delays,
    began: Instant,
    stepped: Instant,
    judged: Instant,
    next_reading: Instant,
    /// For each incident that goes on and whose evidence is taken, what says that it is over.
    captured: HashMap<Key, Arc<AtomicBool>>,
}

impl Watcher {
    fn new(options: Incidents, profiles: Profiles, runtimes: Runtimes) -> Self {
        let now = Instant::now();
        Self {
            judge: Judge::new(options.clone()),
            options,
            profiles,
            runtimes,
            watched: Vec::new(),
            of_step: Delays::default(),
            of_second: Delays::default(),
            began: now,
            stepped: now,
            judged: now,
            next_reading: now,
            captured: HashMap::new(),
        }
    }

    fn run(mut self, watched: &Weak<Recorder>) {
        // Read it while descriptors are left.
        descriptors::limit();
        loop {
            let step = self.next_step();
            std::thread::sleep(step);
            let Some(recorder) = watched.upgrade() else {
                return;
            };
            self.step(step);
            if self.judged.elapsed() >= Duration::from_secs(1) {
                self.second();
            }
            for event in self.judge.events() {
                self.handle(&recorder, event);
            }
        }
    }

    /// Returns the time until the next look at the workers: shorter while one is suspected.
    fn next_step(&self) -> Duration {
        let late = self.options.late;
        if self.judge.suspects_workers() {
            (late / 4).min(LONGEST_STEP)
        } else {
            late.min(LONGEST_STEP)
        }
    }

    /// Looks at the workers.
    fn step(&mut self, planned: Duration) {
        let now = Instant::now();
        let length = now.saturating_duration_since(self.stepped);
        self.stepped = now;
        // This thread had no CPU itself: the machine is busy, stood still, or the container's share was used up.
        let is_late = length > planned * 2;
        let measured = self.of_step.end();
        let cpu = if is_late { Cpu::Lacked } else { measured };
        let since = now.saturating_duration_since(self.began);
        for runtime in &mut self.watched {
            if runtime.look() {
                self.judge
                    .step(since, &runtime.name, &runtime.is_held, length, cpu);
            }
        }
        if self.judge.suspects_workers() {
            self.of_step.begin();
        }
    }

    /// Judges the last second.
    fn second(&mut self) {
        let now = Instant::now();
        self.judged = now;
        let cpu = self.of_second.end();
        let mut readings = self.pools();
        if self.next_reading <= now {
            self.find_runtimes();
            readings.extend(self.limits());
            self.next_reading = now + READINGS.max(now.elapsed() * SPARED);
        }
        let routes = match self.options.p99_limit {
            Some(limit) => latency::look(&self.profiles.profiler, limit),
            None => Vec::new(),
        };
        let seen = Second {
            routes,
            cpu,
            readings,
        };
        self.judge
            .second(now.saturating_duration_since(self.began), &seen);
        if self.judge.suspects_requests() {
            self.of_second.begin();
        }
    }

    /// Watches the runtimes that there are now.
    fn find_runtimes(&mut self) {
        let all = self.runtimes.all();
        self.watched
            .retain(|one| all.iter().any(|other| *other.name == *one.name));
        for runtime in all {
            if !self.watched.iter().any(|one| *one.name == *runtime.name) {
                self.watched
                    .push(Watched::new(&runtime.name, runtime.handle));
            }
        }
        let names: Vec<_> = self.watched.iter().map(|one| one.name.clone()).collect();
        self.judge.keep_runtimes(&names);
    }

    fn pools(&mut self) -> Vec<Reading> {
        let mut readings = Vec::new();
        for runtime in &mut self.watched {
            let waits = runtime.job_waits();
            readings.push(Reading {
                key: (Kind::BlockingPool, runtime.name.clone()),
                is_out: waits >= JOB_WAITS,
                says: format!(
                    "A job for the blocking pool of the runtime {} has waited {:.1} s for a thread.",
                    runtime.name,
                    waits.as_secs_f64()
                ),
            });
        }
        readings
    }

    /// Reads the limits of the process, and asks the blocking pools.
    fn limits(&mut self) -> Vec<Reading> {
        let mut readings = Vec::new();
        let mut read = |kind, is_out, says| {
            readings.push(Reading {
                key: (kind, Arc::from("")),
                is_out,
                says,
            });
        };
        let start = own_thread::try_start();
        let says = "The system starts no further thread for this process.";
        read(Kind::Threads, start == Start::Refused, says.to_owned());
        // A pool that can start no thread at all panics, which may end the service.
        if start == Start::Allowed {
            for runtime in &mut self.watched {
                runtime.ask_pool();
            }
        }
        if let Some(limit) = descriptors::limit() {
            // Listing the descriptors takes one itself.
            let open = descriptors::open().unwrap_or(limit);
            let is_out = open as f64 >= DESCRIPTORS * limit as f64;
            let says = format!("{open} of {limit} file descriptors are open.");
            read(Kind::Descriptors, is_out, says);
        }
        if let Some(left) = memory_left::least_left() {
            let is_out = left.bytes as f64 <= (1.0 - MEMORY) * left.of as f64;
            let says = format!(
                "{} of {} MiB are left of {}.",
                left.bytes >> 20,
                left.of >> 20,
                left.limit
            );
            read(Kind::Memory, is_out, says);
        }
        readings
    }

    fn handle(&mut self, recorder: &Arc<Recorder>, event: Event) {
        match event {
            Event::Counted(key) => recorder.count(key.0),
            Event::LackedCpu => recorder.count_lacked_cpu(),
            Event::Ended(key) => {
                recorder.end(&key);
                if let Some(is_over) = self.captured.remove(&key) {
                    is_over.store(true, Relaxed);
                }
            }
            Event::Recorded { key, says, ago } => {
                let is_over = Arc::new(AtomicBool::new(false));
                self.captured.insert(key.clone(), Arc::clone(&is_over));
                let kind = key.0;
                let number = recorder.begin(key, &says, ago);
                let capture = Capture {
                    recorder: Arc::clone(recorder),
                    number,
                    kind,
                    runtimes: self.evidence(),
                    profiles: self.profiles.clone(),
                    with_stacks: self.options.stacks,
                    is_over,
                };
                capture.start();
            }
        }
    }

    /// Returns the runtimes as the rules judge them.
    fn evidence(&mut self) -> Vec<Runtime> {
        let held = self.judge.held();
        let mut runtimes = Vec::new();
        for runtime in &mut self.watched {
            let mut held_worst = Vec::new();
            for (name, times) in &held {
                if *name == runtime.name {
                    held_worst.extend(times.iter().map(Duration::as_secs_f64));
                }
            }
            // A task begins late if no worker is left to run it.
            let late = held_worst.iter().copied().reduce(f64::min);
            let waits = runtime.job_waits().as_secs_f64();
            runtimes.push(Runtime {
                name: runtime.name.to_string(),
                late_p99: late.unwrap_or_default(),
                unanswered: late.unwrap_or_default(),
                held_worst,
                blocking_wait_worst: waits,
                blocking_unanswered: waits,
                ..Runtime::default()
            });
        }
        runtimes
    }
}
