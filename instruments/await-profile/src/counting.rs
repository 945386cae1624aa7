//! Counts, all the time, the seconds that requests spend in each kind of wait.
//!
//! # Why the sums are unbiased
//!
//! Time is divided into tenths of a second. In each of them one moment is chosen at random, and at that moment one
//! request in flight, each with the same probability. It stands for all requests in flight, for a tenth of a second. So
//! the sum over all kinds of waits is the time that requests were in flight, and each kind has its share of it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use ecosystem::{PathMeaning, WaitKind};

use crate::collected::{Outcome, Sample, StackId, Waits};
use crate::frame_kind::FrameKind;
use crate::latency::{Latencies, RouteLatency};
use crate::lock::lock;
use crate::options::ProfileOptions;
use crate::routes::OTHER_ROUTES;
use crate::sampler::Sampler;
use crate::shared::Permit;
use crate::stack::{Frames, Stack};
use crate::symbols;
use crate::waits_table::wait_of;

/// Time between two samples, on average.
const PERIOD: Duration = Duration::from_millis(100);
/// Most periods that one sample stands for, if the thread got no CPU.
const MOST_PERIODS: u32 = 100;
/// Most routes with counts of their own; those of all further ones are added up.
const MOST_ROUTES: usize = 32;
/// Most distinct stacks of waits, and of wakes, whose end is kept. Further ones count as other waits. A stack has
/// at most two kilobytes.
const MOST_STACKS: usize = 2_000;
/// Time after which a sample counts as another wait if its request was not polled.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Most samples that wait for an answer or for names. Beyond them, all count as other waits.
const MOST_OPEN: usize = 6_000;
/// Shortest time between two look-ups of names, and longest.
const NAMES_EVERY: Duration = Duration::from_secs(10);
const NAMES_WITHIN: Duration = Duration::from_secs(300);
/// Largest share of the time that look-ups of names take: one of so many. Each reads debug information anew.
const SPARED: u32 = 1_000;
/// Two of these bounds while somebody asks for recent waits, and time for which one question counts.
const NAMES_EVERY_WATCHED: Duration = Duration::from_secs(1);
const SPARED_WATCHED: u32 = 20;
const WATCHED_FOR: Duration = Duration::from_secs(10);
/// Most samples, or parts of them, that are kept one by one: those of five minutes.
const MOST_RECENT: usize = 3_000;

/// Time that requests of one route spent in one kind of wait, estimated from samples.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CountedWait {
    /// Label of the route. Beyond 32 routes, the others are added up as `(other routes)`.
    pub route: Arc<str>,
    /// Kind of the wait. `Running` and `Ready` are no waits: a thread polls the request, or the request waits to be polled.
    /// None if the wait is not well known, or was over before it could be seen.
    pub wait: Option<WaitKind>,
    /// Seconds that all requests of the route together spent there since counting began.
    pub seconds: f64,
}

/// A sample of the last minutes, or a part of one if its request waited for several things at once.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecentWait {
    /// Time since the sample was taken.
    pub ago: Duration,
    /// Label of the route.
    pub route: Arc<str>,
    /// Kind of the wait, as in [`CountedWait::wait`].
    pub wait: Option<WaitKind>,
    /// Function of the service that waits, with its file and line. Outside of the service's own code it is the innermost
    /// function. None for a request that does not wait, or whose wait is not known.
    pub place: Option<Arc<str>>,
    /// Seconds that the requests in flight spent there by this sample. Their sum over an interval, divided by its length,
    /// is the mean number of requests.
    pub seconds: f64,
    /// Part of the sample: 1 unless its request waited for several things.
    pub samples: f64,
}

/// Samples of the last minutes, from [`WaitCounts::recent`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RecentWaits {
    /// Time since counting began.
    pub counted_for: Duration,
    /// The last 3,000 samples or parts of samples, which is five minutes if something is always in flight.
    pub waits: Vec<RecentWait>,
    /// Number of samples whose place is not known yet, because its name is being looked up or its request was not polled.
    pub open: usize,
}

/// Handle of counted waits. Counting ends with its last clone. Made by
/// [`AwaitProfiler::count_waits`](crate::AwaitProfiler::count_waits).
#[derive(Clone, Debug)]
pub struct WaitCounts {
    sums: Arc<Mutex<Sums>>,
}

impl WaitCounts {
    /// Returns the counts of all routes, in the order of their names. There are at most 33 routes, and at most 22 kinds
    /// of waits of each.
    pub fn all(&self) -> Vec<CountedWait> {
        let sums = lock(&self.sums);
        let mut all = Vec::new();
        for (route, waits) in &sums.routes {
            for (wait, seconds) in waits {
                all.push(CountedWait {
                    route: route.clone(),
                    wait: *wait,
                    seconds: *seconds,
                });
            }
        }
        all
    }

    /// Returns the number of samples behind the counts.
    pub fn samples(&self) -> u64 {
        let sums = lock(&self.sums);
        sums.samples
    }

    /// Returns the samples of the last minutes. While somebody asks, names of new places are looked up within seconds: look-ups
    /// then take up to a twentieth of the time.
    pub fn recent(&self) -> RecentWaits {
        let now = Instant::now();
        let mut sums = lock(&self.sums);
        sums.asked = Some(now);
        let mut waits = Vec::new();
        for kept in &sums.recent {
            waits.push(RecentWait {
                ago: now.saturating_duration_since(kept.taken),
                route: kept.route.clone(),
                wait: kept.part.wait,
                place: kept.part.place.clone(),
                seconds: kept.seconds,
                samples: kept.part.share,
            });
        }
        RecentWaits {
            counted_for: sums.began.map_or(Duration::ZERO, |began| now - began),
            waits,
            open: sums.open,
        }
    }

    /// Returns the delays between waking a sampled request and its next poll: how late the runtime is. The quantiles are
    /// those of the last 30 to 60 seconds. None if no sample has found a waiting request.
    pub fn poll_delays(&self) -> Option<RouteLatency> {
        let mut sums = lock(&self.sums);
        sums.delays.all(Instant::now()).pop()
    }
}

/// Seconds by route and kind, and the delays of polls.
#[derive(Debug, Default)]
struct Sums {
    samples: u64,
    delays: Latencies,
    routes: BTreeMap<Arc<str>, BTreeMap<Option<WaitKind>, f64>>,
    /// The last samples, one by one.
    recent: VecDeque<Kept>,
    began: Option<Instant>,
    /// Number of samples that are not in these sums yet.
    open: usize,
    /// Moment at which somebody asked for the last samples.
    asked: Option<Instant>,
}

/// A part of a sample that is kept.
#[derive(Debug)]
struct Kept {
    taken: Instant,
    route: Arc<str>,
    part: Part,
    seconds: f64,
}

impl Sums {
    fn add(&mut self, route: &Arc<str>, parts: Vec<Part>, open: &Open) {
        let has_room = self.routes.len() < MOST_ROUTES || self.routes.contains_key(route);
        let route = if has_room {
            route.clone()
        } else {
            OTHER_ROUTES.into()
        };
        self.samples += 1;
        let waits = self.routes.entry(route.clone()).or_default();
        for part in parts {
            let seconds = open.seconds * part.share;
            *waits.entry(part.wait).or_default() += seconds;
            if self.recent.len() >= MOST_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(Kept {
                taken: open.taken,
                route: route.clone(),
                part,
                seconds,
            });
        }
    }
}

/// A kind of wait and its place, and the part of a sample that they have.
#[derive(Clone, Debug)]
struct Part {
    wait: Option<WaitKind>,
    place: Option<Arc<str>>,
    share: f64,
}

impl Part {
    /// Returns a whole sample whose place is not known.
    fn whole(wait: Option<WaitKind>) -> Self {
        Self {
            wait,
            place: None,
            share: 1.0,
        }
    }
}

/// A wait whose names are known.
#[derive(Clone)]
struct Known {
    end: WaitEnd,
    place: Option<Arc<str>>,
}

impl Known {
    fn of(stack: &Stack) -> Self {
        let frames = stack.frames(Frames::Own);
        let own = frames.iter().rfind(|frame| frame.kind == FrameKind::Own);
        // The names of well-known waits are no places.
        let innermost = || frames.iter().rfind(|frame| frame.kind != FrameKind::Remark);
        Self {
            end: WaitEnd::of(stack),
            place: own.or_else(innermost).map(|frame| frame.label().into()),
        }
    }
}

/// Innermost place of a stack of a wait, as far as counting needs it.
#[derive(Clone, Copy, PartialEq)]
enum WaitEnd {
    Wait(Option<WaitKind>),
    /// The timer of a deadline.
    Deadline,
    /// A handle of something spawned. Only the thread that ends the wait tells whether it is a task, or a closure on a
    /// blocking thread.
    Handle,
    /// A handle of a task.
    Task,
    /// Futures that are polled together.
    Set,
}

impl WaitEnd {
    fn of(stack: &Stack) -> Self {
        let frames = stack.frames(Frames::Own);
        let leaf = frames.last().map_or("", |leaf| leaf.path.as_str());
        if stack.is_timeout {
            Self::Deadline
        } else if leaf == "tokio::task::JoinHandle" {
            Self::Handle
        } else if PathMeaning::Handle.fits(leaf) {
            Self::Task
        } else if PathMeaning::Set.fits(leaf) {
            Self::Set
        } else {
            Self::Wait(wait_of(frames).map(|wait| wait.kind))
        }
    }

    fn kind(self) -> Option<WaitKind> {
        match self {
            Self::Wait(kind) => kind,
            Self::Deadline => Some(WaitKind::Timer),
            Self::Handle | WaitEnd::Task => Some(WaitKind::Task),
            Self::Set => Some(WaitKind::Set),
        }
    }
}

/// Ends of the stacks that were seen.
#[derive(Default)]
struct WaitEnds {
    /// Waits, by the ID of their stack.
    waits: Vec<Known>,
    /// Stacks that ended waits for a handle: true if a thread of the blocking pool did, None if the names are not known.
    releases: HashMap<StackId, Option<bool>>,
}

impl WaitEnds {
    /// Returns the kinds of waits that a sample counts to, or None if they are not known yet. `is_late` says that
    /// nothing more is to be awaited from the request.
    fn parts(&mut self, sample: &Sample, is_late: bool) -> Option<Vec<Part>> {
        let kind = match &sample.outcome {
            Outcome::Waiting(waits) => return self.of_waiting(sample, waits, is_late),
            Outcome::Unanswered if !is_late => return None,
            Outcome::Running => Some(WaitKind::Running),
            Outcome::Ready => Some(WaitKind::Ready),
            Outcome::Backpressured => Some(WaitKind::Client),
            Outcome::Unanswered
            | Outcome::Unregistered
            | Outcome::WokenFirst
            | Outcome::Finished => None,
        };
        Some(vec![Part::whole(kind)])
    }

    fn of_waiting(&mut self, sample: &Sample, waits: &Waits, is_late: bool) -> Option<Vec<Part>> {
        if let (&[stack], Some(WaitEnd::Handle)) = (&waits.stacks[..], self.first(waits)) {
            self.find_out(stack, sample.release, is_late)?;
        }
        let own = self.ends(waits)?;
        let waits_for_child = own.iter().any(|known| match known.end {
            WaitEnd::Handle | WaitEnd::Task => !sample.child_is_member,
            WaitEnd::Set => true,
            WaitEnd::Wait(_) | WaitEnd::Deadline => false,
        });
        if sample.child.stacks.is_empty() || !waits_for_child {
            return Some(shared(&own, waits.uncaptured));
        }
        let of_child = self.ends(&sample.child)?;
        Some(shared(&of_child, sample.child.uncaptured))
    }

    fn first(&self, waits: &Waits) -> Option<WaitEnd> {
        let first = waits.stacks.first()?;
        Some(self.waits.get(*first as usize)?.end)
    }

    /// Finds out from the `release` that ended it whether this wait for a handle was for a task or for a blocking thread.
    /// Returns None if that is not known yet.
    fn find_out(&mut self, wait: StackId, release: Option<StackId>, is_late: bool) -> Option<()> {
        let Some(release) = release else {
            return is_late.then_some(());
        };
        let is_pool_thread = (*self.releases.entry(release).or_default())?;
        self.waits[wait as usize].end = if is_pool_thread {
            WaitEnd::Wait(Some(WaitKind::BlockingPool))
        } else {
            WaitEnd::Task
        };
        Some(())
    }

    /// Returns the ends of these waits, without deadlines unless there is nothing else. None if the names of one are
    /// not known yet.
    fn ends(&self, waits: &Waits) -> Option<Vec<&Known>> {
        let mut ends = Vec::new();
        for stack in &waits.stacks {
            ends.push(self.waits.get(*stack as usize)?);
        }
        if ends.iter().any(|known| known.end != WaitEnd::Deadline) {
            ends.retain(|known| known.end != WaitEnd::Deadline);
        }
        Some(ends)
    }
}

/// Gives each of several waits an equal part. `uncaptured` further ones are of no known kind.
fn shared(ends: &[&Known], uncaptured: u32) -> Vec<Part> {
    let share = 1.0 / (ends.len() as f64 + f64::from(uncaptured));
    let mut parts = Vec::new();
    for known in ends {
        parts.push(Part {
            wait: known.end.kind(),
            place: known.place.clone(),
            share,
        });
    }
    if uncaptured > 0 {
        parts.push(Part {
            wait: None,
            place: None,
            share: share * f64::from(uncaptured),
        });
    }
    parts
}

/// A sample that is not counted yet.
struct Open {
    /// Index among the sampler's.
    index: usize,
    taken: Instant,
    /// Seconds that all requests in flight at that moment stand for together.
    seconds: f64,
}

/// Samples for as long as somebody has the counts.
pub(crate) struct Counting {
    sampler: Sampler,
    sums: Weak<Mutex<Sums>>,
    ends: WaitEnds,
    open: Vec<Open>,
    /// Label of the delays, which are not told apart by route.
    all_routes: Arc<str>,
}

impl Counting {
    pub(crate) fn start(permit: &Permit, random: fastrand::Rng) -> (Self, WaitCounts) {
        let mut sampler = Sampler::start(permit, random);
        sampler.collected.waits.most = MOST_STACKS;
        sampler.collected.releases.most = MOST_STACKS;
        let sums = Sums {
            began: Some(Instant::now()),
            ..Sums::default()
        };
        let counts = WaitCounts {
            sums: Arc::new(Mutex::new(sums)),
        };
        let counting = Counting {
            sampler,
            sums: Arc::downgrade(&counts.sums),
            ends: WaitEnds::default(),
            open: Vec::new(),
            all_routes: "".into(),
        };
        (counting, counts)
    }

    /// Counts until all handles of the counts are dropped. Calls `guard` before each look-up of names, and drops its
    /// result after it; without a result, names are looked up later.
    pub(crate) fn run<G>(mut self, permit: &Permit, mut guard: impl FnMut() -> Option<G>) {
        self.sampler.track_in_flight();
        let mut random = fastrand::Rng::new();
        let (began, mut period) = (Instant::now(), 0);
        let mut looked_up = (began, Duration::ZERO);
        while self.sums.strong_count() > 0 {
            let due = began + PERIOD * period + PERIOD.mul_f64(random.f64());
            thread::sleep(due.saturating_duration_since(Instant::now()));
            self.count();
            if looked_up.0.elapsed() >= self.pause(looked_up.1) && self.wants_names() {
                let looking = Instant::now();
                if let Some(_guard) = guard() {
                    self.look_up(permit);
                }
                looked_up = (Instant::now(), looking.elapsed());
            }
            let now = period_at(began.elapsed()).max(period);
            // The sample stands for the periods that passed without one, too.
            self.sample(PERIOD * (now - period + 1).min(MOST_PERIODS));
            period = now + 1;
        }
    }

    /// Returns the time until the next look-up of names, after one that took `took`.
    fn pause(&self, took: Duration) -> Duration {
        let sums = self.sums.upgrade();
        let asked = sums.and_then(|sums| lock(&sums).asked);
        if asked.is_some_and(|asked| asked.elapsed() < WATCHED_FOR) {
            (took * SPARED_WATCHED).clamp(NAMES_EVERY_WATCHED, NAMES_WITHIN)
        } else {
            (took * SPARED).clamp(NAMES_EVERY, NAMES_WITHIN)
        }
    }

    /// Takes a sample that stands for `time`.
    pub(crate) fn sample(&mut self, time: Duration) {
        let index = self.sampler.collected.samples.len();
        self.sampler.take_sample();
        // There is none if nothing is in flight.
        if let Some(sample) = self.sampler.collected.samples.get(index) {
            self.open.push(Open {
                index,
                taken: Instant::now(),
                seconds: f64::from(sample.in_flight) * time.as_secs_f64(),
            });
        }
    }

    /// Adds the samples whose wait is known to the sums.
    pub(crate) fn count(&mut self) {
        self.sampler.gather();
        let Some(sums) = self.sums.upgrade() else {
            return;
        };
        let samples = &self.sampler.collected.samples;
        let is_full = samples.len() >= MOST_OPEN;
        let mut sums = lock(&sums);
        let now = Instant::now();
        for delay in self.sampler.collected.delays.drain(..) {
            sums.delays.add(&self.all_routes, delay, now);
        }
        for open in mem::take(&mut self.open) {
            let sample = &samples[open.index];
            let is_late = now.saturating_duration_since(open.taken) >= ANSWERED_WITHIN;
            match self.ends.parts(sample, is_late) {
                Some(parts) => sums.add(&sample.route, parts, &open),
                None if is_full => sums.add(&sample.route, vec![Part::whole(None)], &open),
                None => self.open.push(open),
            }
        }
        sums.open = self.open.len();
        if is_full || self.open.is_empty() && samples.len() >= MOST_OPEN / 10 {
            self.sampler.forget();
        }
    }

    fn wants_names(&self) -> bool {
        let known = self.ends.waits.len();
        known < self.sampler.collected.waits.distinct.len()
            || self.ends.releases.values().any(Option::is_none)
    }

    /// Looks up the names of all stacks that have none yet.
    pub(crate) fn look_up(&mut self, permit: &Permit) {
        let collected = &self.sampler.collected;
        let options = ProfileOptions::default();
        let mut known = lock(&permit.shared.symbols);
        for stack in &collected.waits.distinct[self.ends.waits.len()..] {
            let stack = Stack::new(&known.resolve_all(stack), &options);
            self.ends.waits.push(Known::of(&stack));
        }
        for (id, is_pool_thread) in &mut self.ends.releases {
            if is_pool_thread.is_none() {
                let stack = &collected.releases.distinct[*id as usize];
                let stack = Stack::of_release(&known.resolve_all(stack), &options);
                *is_pool_thread = Some(stack.is_of_pool_thread());
            }
        }
        symbols::forget();
    }
}

/// Returns the number of the period in which counting is after this time.
fn period_at(time: Duration) -> u32 {
    let periods = time.as_millis() / PERIOD.as_millis();
    u32::try_from(periods).unwrap_or(u32::MAX)
}
