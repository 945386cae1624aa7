//! Takes the evidence of an incident: stacks of threads while it lasts, and one second of waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use await_profile::{AwaitProfiler, Frames, Profile, ProfileOptions, path};
use cpu_time::ProcessTime;
use diagnosis::evidence::{Requests, Runtime};
use diagnosis::threads::ThreadProfile;
use diagnosis::{Evidence, Report};

use crate::descriptors;
use crate::evidence;
use crate::incidents::kind::Kind;
use crate::incidents::moment;
use crate::incidents::recorder::{Recorder, Seen};
use crate::memory_left;
use crate::own_thread::Until;
use crate::permit;
use crate::runtimes;
use crate::threads;

/// Longest time for which threads and requests are watched.
const WATCHED_FOR: Duration = Duration::from_secs(1);

/// Most requests that are captured in that time.
const CAPTURES: u32 = 200;

/// An incident whose evidence is taken.
pub(crate) struct Capture {
    pub(crate) recorder: Arc<Recorder>,
    /// Number of the incident.
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    /// Runtimes, as they were when it began.
    pub(crate) runtimes: Vec<Runtime>,
    pub(crate) profiler: AwaitProfiler,
    pub(crate) with_stacks: bool,
    /// Set when the incident is over.
    pub(crate) is_over: Arc<AtomicBool>,
}

impl Capture {
    /// Takes the evidence on a thread of its own, or on this one if the system starts none.
    pub(crate) fn start(self) {
        let capture = Arc::new(self);
        let on_its_own = Arc::clone(&capture);
        let thread = Builder::new().name("incident".to_owned());
        if thread.spawn(move || on_its_own.run()).is_err() {
            capture.run();
        }
    }

    fn run(&self) {
        let mut seen = Evidence {
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            runtimes: self.runtimes.clone(),
            ..Evidence::default()
        };
        let (began, cpu_time) = (Instant::now(), ProcessTime::now());
        let taking = self.start_waits();
        let threads = self.with_stacks.then(|| self.threads());
        let waits = taking.finish();
        seen.seconds = began.elapsed().as_secs_f64();
        seen.cpus_used = cpu_time.elapsed().as_secs_f64() / seen.seconds;
        let mut folded = Seen::default();
        let mut moment = Vec::new();
        match threads {
            Some(Ok(threads)) => {
                moment = moment::sentences(&threads);
                folded.stacks = lines(&threads.folded(false, false));
                folded.stacks.retain(|line| !runtimes::is_ours(line));
                seen.not_seen.extend(threads.note.clone());
                seen.threads = Some(Arc::new(threads));
            }
            Some(Err(why)) => seen.not_seen.push(format!("stacks of threads: {why}")),
            None => {}
        }
        match waits {
            Ok(waits) => {
                folded.waits = lines(&waits.folded(Frames::Own));
                seen.requests = Some(evidence::requests(waits.summary(), &self.profiler));
            }
            Err(why) => seen.not_seen.push(format!("waits of requests: {why}")),
        }
        if self.kind == Kind::Descriptors {
            seen.descriptors = descriptors::take(&Until::new(Duration::ZERO, &|| true));
        }
        folded.sentences = sentences(&seen, moment);
        self.recorder.add(self.number, folded);
        memory_left::give_back();
    }

    /// Samples the threads while the incident lasts. What is over after a moment is seen in that moment alone.
    fn threads(&self) -> Result<ThreadProfile, String> {
        threads::take(WATCHED_FOR, &|| {
            self.kind != Kind::Late || !self.is_over.load(Relaxed)
        })
        .map_err(|error| error.to_string())
    }

    /// Starts an await profile. Without a thread for it, it is taken later, when the stacks are done.
    fn start_waits(&self) -> Waits {
        let profiler = self.profiler.clone();
        let thread = Builder::new().name("await-profile".to_owned());
        match thread.spawn(move || waits(&profiler)) {
            Ok(thread) => Waits::Running(thread),
            Err(_) => Waits::Later(self.profiler.clone()),
        }
    }
}

/// An await profile that is being taken.
enum Waits {
    Running(JoinHandle<Result<Profile, String>>),
    Later(AwaitProfiler),
}

impl Waits {
    fn finish(self) -> Result<Profile, String> {
        match self {
            Self::Running(thread) => thread
                .join()
                .unwrap_or_else(|_| Err("the profiler failed".to_owned())),
            Self::Later(profiler) => waits(&profiler),
        }
    }
}

fn waits(profiler: &AwaitProfiler) -> Result<Profile, String> {
    memory_left::is_enough().map_err(|error| error.to_string())?;
    let _permit = permit::waits().map_err(|error| error.to_string())?;
    let options = ProfileOptions::lasting(WATCHED_FOR).captures_per_second(CAPTURES);
    profiler
        .profile_blocking(&options)
        .map_err(|error| error.to_string())
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Returns the findings of all rules, what threads did at the `moment`, where requests were most, and what was not seen.
fn sentences(seen: &Evidence, moment: Vec<String>) -> Vec<String> {
    let report = Report::new(seen);
    let mut sentences = Vec::new();
    for finding in report.findings.iter().chain(&report.bounds) {
        sentences.push(finding.says.clone());
    }
    sentences.extend(moment);
    for wait in &report.waits {
        sentences.push(wait.says.clone());
    }
    if let Some(requests) = &seen.requests {
        sentences.extend(most(requests));
    }
    for not_seen in &report.not_seen {
        sentences.push(format!("Not seen: {not_seen}"));
    }
    sentences
}

/// Returns a sentence on the place with most requests.
fn most(requests: &Requests) -> Option<String> {
    let place = requests.places.first()?;
    let share = place.in_flight / requests.in_flight.max(f64::MIN_POSITIVE);
    Some(format!(
        "{:.0} % of the requests in flight were in {}: {}.",
        share * 100.0,
        place.route,
        path(&place.frames)
    ))
}
