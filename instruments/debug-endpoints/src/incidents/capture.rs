//! Takes the evidence of an incident: stacks of threads while it lasts, and one second of waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use await_profile::{AwaitProfiler, Frames, Profile, ProfileError, ProfileOptions, path};
use cpu_time::ProcessTime;
use diagnosis::evidence::{Requests, Runtime};
use diagnosis::threads::ThreadProfile;
use diagnosis::{Evidence, Report};

use crate::descriptors;
use crate::error::EndpointError;
use crate::evidence;
use crate::incidents::kind::Kind;
use crate::incidents::moment;
use crate::incidents::recorder::{Recorder, Seen};
use crate::last::Last;
use crate::memory_left;
use crate::own_thread::Until;
use crate::permit::{self, Permit};
use crate::runtimes;
use crate::stacks::threads;

/// Longest time for which threads and requests are watched.
const WATCHED_FOR: Duration = Duration::from_secs(1);

/// Most requests that are captured in that time.
const CAPTURES: u32 = 200;

/// Longest time for which it waits for a profile that somebody is taking: a look takes ten seconds, and looks names up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Pause between two questions for it, and longest time until it is kept after its end.
const PAUSE: Duration = Duration::from_millis(50);
const KEPT_WITHIN: Duration = Duration::from_secs(1);

/// Profiler of the service's requests, and the last profiles that somebody took.
#[derive(Clone)]
pub(crate) struct Profiles {
    pub(crate) profiler: AwaitProfiler,
    pub(crate) last_waits: Arc<Last<Profile>>,
    pub(crate) last_threads: Arc<Last<ThreadProfile>>,
}

/// An incident whose evidence is taken.
pub(crate) struct Capture {
    pub(crate) recorder: Arc<Recorder>,
    /// Number of the incident.
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    /// Runtimes, as they were when it began.
    pub(crate) runtimes: Vec<Runtime>,
    pub(crate) profiles: Profiles,
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
        let of_others = [
            matches!(&threads, Some(Ok(taken)) if taken.is_of_others),
            matches!(&waits, Ok(taken) if taken.is_of_others),
        ];
        seen.seconds = began.elapsed().as_secs_f64();
        seen.cpus_used = cpu_time.elapsed().as_secs_f64() / seen.seconds;
        let mut folded = Seen::default();
        let mut moment = Vec::new();
        match threads {
            Some(Ok(threads)) => {
                let threads = threads.profile;
                moment = moment::sentences(&threads);
                folded.stacks = lines(&threads.folded(false, false));
                folded.stacks.retain(|line| !runtimes::is_ours(line));
                seen.not_seen.extend(threads.note.clone());
                seen.threads = Some(threads);
            }
            Some(Err(why)) => seen.not_seen.push(format!("stacks of threads: {why}")),
            None => {}
        }
        match waits {
            Ok(waits) => {
                let waits = waits.profile;
                folded.waits = lines(&waits.folded(Frames::Own));
                seen.requests = Some(evidence::requests(waits.summary(), &self.profiles.profiler));
            }
            Err(why) => seen.not_seen.push(format!("waits of requests: {why}")),
        }
        if self.kind == Kind::Descriptors {
            seen.descriptors = descriptors::take(&Until::new(Duration::ZERO, &|| true));
        }
        if of_others.contains(&true) {
            seen.not_seen.push(
                "the incident by itself: another profile was being taken, so the stacks and waits here cover all of its time"
                    .to_owned(),
            );
        }
        folded.sentences = sentences(&seen, moment);
        self.recorder.add(self.number, folded);
        memory_left::give_back();
    }

    /// Samples the threads while the incident lasts. What is over after a moment is seen in that moment alone.
    fn threads(&self) -> Result<Taken<ThreadProfile>, EndpointError> {
        let lasts = || self.kind != Kind::Late || !self.is_over.load(Relaxed);
        own_or_last(&self.profiles.last_threads, permit::threads, |permit| {
            threads::take(permit, WATCHED_FOR, &lasts)
        })
    }

    /// Starts an await profile. Without a thread for it, it is taken later, when the stacks are done.
    fn start_waits(&self) -> Waits {
        let profiles = self.profiles.clone();
        let thread = Builder::new().name("await-profile".to_owned());
        match thread.spawn(move || waits(&profiles)) {
            Ok(thread) => Waits::Running(thread),
            Err(_) => Waits::Later(self.profiles.clone()),
        }
    }
}

/// An await profile that is being taken.
enum Waits {
    Running(JoinHandle<Result<Taken<Profile>, EndpointError>>),
    Later(Profiles),
}

impl Waits {
    fn finish(self) -> Result<Taken<Profile>, EndpointError> {
        match self {
            Self::Running(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(EndpointError::failed("its thread panicked"))),
            Self::Later(profiles) => waits(&profiles),
        }
    }
}

fn waits(profiles: &Profiles) -> Result<Taken<Profile>, EndpointError> {
    own_or_last(&profiles.last_waits, permit::waits, |_| {
        memory_left::is_enough()?;
        let options = ProfileOptions::lasting(WATCHED_FOR).captures_per_second(CAPTURES);
        match profiles.profiler.profile_blocking(&options) {
            Err(ProfileError::Busy) => Err(EndpointError::Busy("await profile")),
            other => other.map_err(EndpointError::failed),
        }
    })
}

/// A profile of an incident.
struct Taken<T> {
    profile: Arc<T>,
    /// True if somebody else took it, for longer than the incident.
    is_of_others: bool,
}

/// Takes a profile. While somebody else takes one, such as a look, waits for that: it covers the incident, too.
fn own_or_last<T>(
    last: &Last<T>,
    permit: impl Fn() -> Result<Permit, EndpointError>,
    take: impl FnOnce(&Permit) -> Result<T, EndpointError>,
) -> Result<Taken<T>, EndpointError> {
    let began = Instant::now();
    let mut was_busy = false;
    let permit = loop {
        match permit() {
            Ok(permit) => break permit,
            Err(EndpointError::Busy(_)) if began.elapsed() < PATIENCE => {
                was_busy = true;
                std::thread::sleep(PAUSE);
            }
            Err(why) => return Err(why),
        }
    };
    // Whoever had the permit keeps its profile a moment later.
    let patience = Instant::now() + KEPT_WITHIN;
    while was_busy && Instant::now() < patience {
        if let Some(profile) = last.since(began) {
            return Ok(Taken {
                profile,
                is_of_others: true,
            });
        }
        std::thread::sleep(PAUSE);
    }
    Ok(Taken {
        profile: Arc::new(take(&permit)?),
        is_of_others: false,
    })
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
