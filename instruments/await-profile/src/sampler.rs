//! Chooses requests in flight at random, and collects where they wait.
//!
//! # Why the shares are unbiased
//!
//! Samples are taken at random moments (a Poisson process). So they see the service
//! as it is on average over time, and cannot fall into step with a period of its own.
//! At each moment one request in flight is chosen, each with the same probability. It
//! is weighted by the number in flight: a moment with a thousand requests stands for a
//! thousand times as much waiting as a moment with one.
//!
//! The state at that moment counts. A request that runs or is ready to run counts as such.
//! A request that waits is marked and woken, and its next poll answers where it waited.
//! If something else wakes it before that poll, or it ends, the sample counts as that.
//! No other sample is taken in its place.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::collected::{Collected, Outcome, Sample, Waits};
use crate::interval::RunEnd;
use crate::options::ProfileOptions;
use crate::percentile::Percentile;
use crate::session::{Answer, FollowUp, Mark, Session, Whose};
use crate::shared::{Permit, Shared};
use crate::slot::{NotWaiting, Slot};
use crate::tail_times::TailTimes;

/// Longest wait at the start of a profile for all requests in flight to be polled once.
const TRACKING_TIMEOUT: Duration = Duration::from_millis(200);
/// Number of these requests that are woken at once, before a pause.
const TRACKING_BATCH: usize = 256;
/// Longest wait at the end of a profile for the last samples to be answered.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest sleep of the sampler between two checks for a cancellation by its caller.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// Shortest sleep of the sampler. Moments closer than this are sampled together: waking a thread
/// costs more than taking a sample.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// Most samples of a profile, which ends when it has them. Each takes some hundred bytes. With this many
/// independent samples, the 95 % interval of a share of one half is 0.14 percentage points to either side.
const MAX_SAMPLES: usize = 500_000;
/// Most overdue moments that the sampler catches up on; it passes over the others.
const MAX_BACKLOG: u32 = 64;

pub(crate) struct Sampler {
    shared: Arc<Shared>,
    generation: u32,
    session: Arc<Session>,
    random: fastrand::Rng,
    pub(crate) collected: Collected,
    /// [`MAX_SAMPLES`], or fewer in a test.
    pub(crate) most_samples: usize,
    unanswered: usize,
    began: Instant,
}

/// Samples for as long as the options say, or until `cancelled` returns true.
pub(crate) fn collect(
    permit: &Permit,
    options: &ProfileOptions,
    cancelled: &dyn Fn() -> bool,
) -> Collected {
    let mut sampler = Sampler::start(permit, fastrand::Rng::new());
    sampler.track_in_flight();
    let start = sampler.begin();
    let following = options.tail.map(|tail| sampler.follow(tail));
    sampler.sample_for(options, cancelled);
    sampler.end(start.elapsed());
    if !cancelled() {
        sampler.await_answers();
    }
    permit.switch_off();
    let collected = sampler.finish();
    drop(following);
    collected
}

/// Returns whether `moment` comes before the end of a profile, which may have none.
fn is_before(moment: Instant, end: Option<Instant>) -> bool {
    match end {
        Some(end) => moment < end,
        None => true,
    }
}

/// Returns what a sample finds if its request does not wait. None if it has just ended.
fn outcome_of(state: NotWaiting) -> Option<Outcome> {
    match state {
        NotWaiting::Gone => None,
        NotWaiting::Running => Some(Outcome::Running),
        NotWaiting::Ready => Some(Outcome::Ready),
        NotWaiting::Backpressured => Some(Outcome::Backpressured),
    }
}

/// Follows each request from its begin to its end, until this is dropped.
pub(crate) struct Following(Arc<Shared>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.registry.unfollow();
    }
}

impl Sampler {
    pub(crate) fn start(permit: &Permit, random: fastrand::Rng) -> Self {
        Sampler {
            shared: permit.shared.clone(),
            generation: permit.switch_on(),
            session: Arc::new(Session::new(permit.purpose)),
            random,
            collected: Collected::default(),
            most_samples: MAX_SAMPLES,
            unanswered: 0,
            began: Instant::now(),
        }
    }

    /// Starts the counts of finished requests, so that Little's law covers the same time as the
    /// samples.
    pub(crate) fn begin(&mut self) -> Instant {
        self.shared.registry.reset_counts();
        self.began = Instant::now();
        self.began
    }

    /// Makes this a tail profile: the time of every request that begins from now on is known.
    pub(crate) fn follow(&mut self, percentile: Percentile) -> Following {
        let since = self.shared.registry.follow();
        self.collected.tail = Some(TailTimes::new(percentile, since));
        Following(self.shared.clone())
    }

    /// Ends the counts after sampling for `elapsed`. Requests that finish later do not count.
    pub(crate) fn end(&mut self, elapsed: Duration) {
        self.collected.elapsed = elapsed;
        self.collected.routes = self.shared.registry.routes();
        let end = self.run_end(elapsed);
        self.collected.runs.close(end);
    }

    fn run_end(&self, time: Duration) -> RunEnd {
        let mut end = RunEnd {
            moments: self.collected.moments(),
            time,
            requests: 0,
            finished: HashMap::new(),
        };
        for (name, count) in self.shared.registry.routes() {
            if !count.is_part {
                end.requests += count.finished;
            }
            end.finished.insert(name, count.finished);
        }
        end
    }

    fn is_tracked(&self, slot: &Slot) -> bool {
        slot.is_tracked_in(self.generation)
    }

    /// Returns whether the request goes on, and its wakes are not recorded yet.
    fn is_untracked(&self, slot: &Slot) -> bool {
        !self.is_tracked(slot) && slot.not_waiting() != Some(NotWaiting::Gone)
    }

    /// Wakes every request in flight, so that its next poll gives it a waker that records wakes.
    /// Without this, a request could be woken unnoticed.
    pub(crate) fn track_in_flight(&self) {
        let mut untracked = Vec::new();
        for slot in self.shared.registry.each_shard().flatten() {
            if self.is_untracked(&slot) {
                slot.wake();
                untracked.push(slot);
                if untracked.len() % TRACKING_BATCH == 0 {
                    thread::sleep(SHORTEST_SLEEP);
                }
            }
        }
        let deadline = Instant::now() + TRACKING_TIMEOUT;
        while !untracked.is_empty() && Instant::now() < deadline {
            thread::sleep(SHORTEST_SLEEP);
            untracked.retain(|slot| self.is_untracked(slot));
        }
    }

    pub(crate) fn sample_for(&mut self, options: &ProfileOptions, cancelled: &dyn Fn() -> bool) {
        // None if the profile runs until it is cancelled.
        let end = Instant::now().checked_add(options.duration);
        let mean_gap = 1.0 / f64::from(options.captures_per_second.max(1));
        let mut next = Instant::now() + self.gap(mean_gap);
        while is_before(next, end) && self.collected.samples.len() < self.most_samples {
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                if wait.is_zero() {
                    break;
                }
                if cancelled() {
                    return;
                }
                thread::sleep(wait.clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
                self.gather();
            }
            let now = Instant::now();
            let mut backlog = 0;
            while next <= now && is_before(next, end) {
                if backlog < MAX_BACKLOG {
                    self.sample_once();
                } else {
                    self.collected.missed += 1;
                }
                backlog += 1;
                next += self.gap(mean_gap);
            }
        }
    }

    /// Returns a random time to the next moment of a Poisson process.
    fn gap(&mut self, mean: f64) -> Duration {
        Duration::from_secs_f64(-mean * (1.0 - self.random.f64()).ln())
    }

    /// Takes one sample now.
    pub(crate) fn sample_once(&mut self) {
        self.take_sample();
        if self.collected.runs.end_at(self.collected.moments()) {
            let end = self.run_end(self.began.elapsed());
            self.collected.runs.push(end);
        }
    }

    /// Takes one sample now, apart from the runs by which intervals are computed.
    pub(crate) fn take_sample(&mut self) {
        loop {
            let Some((slot, route, in_flight)) = self.shared.registry.any(&mut self.random) else {
                self.collected.idle += 1;
                return;
            };
            let Some((outcome, has_several_children)) = self.ask(&slot) else {
                continue;
            };
            let (mut request, mut meanwhile) = (None, None);
            if let Some(tail) = &mut self.collected.tail {
                request = tail.request_of(&slot);
            }
            if request.is_some() {
                meanwhile = self.shared.registry.running();
            }
            self.collected.samples.push(Sample {
                moment: self.collected.moments(),
                in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
                route,
                request,
                outcome,
                delay: Duration::ZERO,
                meanwhile,
                child: Waits::default(),
                child_is_member: false,
                has_several_children,
                release: None,
                releaser: None,
                is_followed: false,
            });
            return;
        }
    }

    /// Returns the state of the request, and whether it has several children. If it waits, marks
    /// and wakes it. Returns None if it has just ended.
    fn ask(&mut self, slot: &Arc<Slot>) -> Option<(Outcome, bool)> {
        if !self.is_tracked(slot) {
            // If it waits, it was woken when the profile began and has not been polled since. By now it may
            // wait again, but wakes of that wait are not recorded, so it must not be marked.
            let state = slot.not_waiting().unwrap_or(NotWaiting::Ready);
            return Some((outcome_of(state)?, false));
        }
        let child = slot.any_child(&mut self.random);
        if let Err(state) = slot.try_mark(self.mark()) {
            return Some((outcome_of(state)?, false));
        }
        self.unanswered += 1;
        // The child first: if both are in one task, one poll answers for both.
        let has_several = matches!(child, Some((_, true)));
        if let Some((child, _)) = child {
            // A child whose wakes are not recorded yet is only polled now, and can be sampled the next time.
            if !self.is_tracked(&child) || child.try_mark(self.mark()).is_ok() {
                slot.wake_child(&child);
            }
        }
        slot.wake();
        Some((Outcome::Unanswered, has_several))
    }

    fn mark(&self) -> Mark {
        let sample = u32::try_from(self.collected.samples.len()).unwrap_or(u32::MAX);
        Mark {
            session: self.session.clone(),
            sample,
            at: Instant::now(),
        }
    }

    /// Records the answers of the polls since the last call.
    pub(crate) fn gather(&mut self) {
        if let Some(tail) = &mut self.collected.tail {
            let registry = &self.shared.registry;
            registry.take_ended(|route, id, took| tail.end(route, id, took));
        }
        for event in self.session.take_events() {
            let room = MAX_SAMPLES.saturating_sub(self.collected.costs.len());
            self.collected
                .costs
                .extend(event.costs.into_iter().take(room));
            let outcome = match event.answer {
                Answer::Waiting { stacks, uncaptured } => {
                    let captured = stacks.len();
                    let kept = self.collected.waits.intern_all(stacks);
                    let lost = u32::try_from(captured - kept.len()).unwrap_or(u32::MAX);
                    Outcome::Waiting(Waits {
                        uncaptured: uncaptured.saturating_add(lost),
                        stacks: kept,
                    })
                }
                Answer::Unregistered => Outcome::Unregistered,
                Answer::WokenFirst => Outcome::WokenFirst,
                Answer::Finished => Outcome::Finished,
            };
            for (index, delay) in event.samples {
                let Some(sample) = self.collected.samples.get_mut(index as usize) else {
                    continue;
                };
                if event.whose == Whose::Request {
                    self.unanswered -= 1;
                    self.collected.delays.push(delay);
                    sample.delay = delay;
                    sample.outcome = outcome.clone();
                } else if let Outcome::Waiting(waits) = &outcome {
                    sample.child.clone_from(waits);
                    sample.child_is_member = event.whose == Whose::Member;
                }
            }
        }
        self.gather_follow_ups();
        for wake in self.session.take_releases() {
            let release = self.collected.releases.intern(wake.stack);
            let (mut is_first, mut by) = (wake.is_first, wake.by);
            for index in wake.samples {
                if let Some(sample) = self.collected.samples.get_mut(index as usize) {
                    sample.release = release;
                    sample.releaser = by.take();
                    sample.is_followed = std::mem::take(&mut is_first);
                }
            }
        }
    }

    /// Records what later polls of sampled requests showed.
    fn gather_follow_ups(&mut self) {
        let Collected {
            waits,
            releases,
            follow_ups,
            ..
        } = &mut self.collected;
        for follow_up in self.session.take_follow_ups() {
            if follow_ups.len() == MAX_SAMPLES {
                return;
            }
            let mut left = Vec::new();
            for (stack, time) in follow_up.left {
                if let Some(stack) = waits.intern(stack) {
                    left.push((stack, time));
                }
            }
            follow_ups.push(FollowUp {
                sample: follow_up.sample,
                at: follow_up.at,
                woken_from: match follow_up.woken_from {
                    Some(stack) => releases.intern(stack),
                    None => None,
                },
                left,
                waits: waits.intern_all(follow_up.waits),
                open: waits.intern_all(follow_up.open),
            });
        }
    }

    fn await_answers(&mut self) {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        self.gather();
        while self.unanswered > 0 && Instant::now() < deadline {
            thread::sleep(SHORTEST_SLEEP);
            self.gather();
        }
    }

    /// Forgets all samples, and the answers to them that come later. Keeps the stacks.
    pub(crate) fn forget(&mut self) {
        self.session = Arc::new(Session::new(self.session.purpose));
        self.unanswered = 0;
        self.collected.samples.clear();
        self.collected.costs.clear();
        self.collected.delays.clear();
    }

    pub(crate) fn finish(mut self) -> Collected {
        self.gather();
        (self.collected.late, self.collected.late_time) = self.shared.late();
        if let Some(tail) = &mut self.collected.tail {
            tail.left_out = self.shared.registry.left_out();
        }
        self.collected
    }
}
