//! Choosing requests, and gathering what they answer.
//!
//! # Why the shares are unbiased
//!
//! Samples are taken at random moments (a Poisson process), so they see the
//! service as it is on average over time, and no period of its own can be in step
//! with them. At each moment one request is chosen from those in flight, each with
//! the same probability, and weighs as much as there were to choose from: a moment
//! with a thousand requests tells of a thousand times as much waiting as a moment
//! with one. A sample is settled at its moment: a request that runs or is ready
//! to run is counted as such, and one that waits is asked where. It answers at its
//! next poll, which the sampler causes. If it is woken, or gone, before that
//! poll, the sample is counted as what it is; nothing is replaced by another try.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::profile::Profile;
use crate::profiler::{ProfileOptions, Running};
use crate::session::{Answer, RawStack, Session};
use crate::slot::{Mark, NotWaiting, Slot};

/// How long requests already in flight are given to show that they are waiting.
const SETTLE: Duration = Duration::from_millis(200);
/// How many of them are woken at once, and how long the others then wait.
const SETTLE_BATCH: usize = 256;
const SETTLE_PAUSE: Duration = Duration::from_millis(1);
/// How long the last samples have for being answered.
const GRACE: Duration = Duration::from_millis(500);
/// The sampler looks at least this often whether it is still wanted.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// Moments closer than this are taken together: a thread that is woken costs more
/// than the look it takes.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// Moments missed in excess of this are given up rather than made up for.
const MAX_BACKLOG: u32 = 64;

/// Index of a stack among the distinct ones.
pub(crate) type StackId = u32;

/// One moment, and what was learned of the request that was chosen.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Requests in flight at that moment.
    pub(crate) in_flight: u32,
    pub(crate) route: Arc<str>,
    pub(crate) seen: SeenAs,
    /// Stacks of the child that was chosen with it.
    pub(crate) child: Vec<StackId>,
}

/// The state in which a sample found its request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SeenAs {
    Waiting(Vec<StackId>),
    Unregistered,
    Unasked,
    Ready,
    Running,
    WokenFirst,
    Finished,
    /// It waited, and its executor did not poll it before the profile ended.
    Unanswered,
}

/// Everything a profile is made from, with addresses still unresolved.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) samples: Vec<Sample>,
    /// Moments at which nothing was in flight.
    pub(crate) idle: u64,
    /// Moments given up because the sampler itself got no processor.
    pub(crate) missed: u64,
    pub(crate) stacks: Vec<RawStack>,
    ids: HashMap<RawStack, StackId>,
    pub(crate) delays: Vec<Duration>,
    pub(crate) costs: Vec<Duration>,
    pub(crate) elapsed: Duration,
}

pub(crate) struct Sampler<'a> {
    running: &'a Running,
    generation: u32,
    session: Arc<Session>,
    random: fastrand::Rng,
    pub(crate) collected: Collected,
    unanswered: usize,
}

/// Takes a profile, from switching on to resolving names.
pub(crate) fn run(
    running: &Running,
    options: &ProfileOptions,
    cancelled: &dyn Fn() -> bool,
) -> Profile {
    let mut sampler = Sampler::start(running, options.seed);
    sampler.settle();
    let start = Instant::now();
    sampler.sample_for(options, cancelled);
    sampler.collected.elapsed = start.elapsed();
    let routes = running.shared.registry.routes();
    if !cancelled() {
        sampler.await_answers();
    }
    running.switch_off();
    let collected = sampler.finish();
    Profile::new(running.shared, options, collected, routes)
}

impl<'a> Sampler<'a> {
    pub(crate) fn start(running: &'a Running, seed: Option<u64>) -> Self {
        Sampler {
            running,
            generation: running.switch_on(),
            session: Arc::default(),
            random: seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            collected: Collected::default(),
            unanswered: 0,
        }
    }

    /// Has every request in flight polled once, so that from then on its waker is
    /// one that notes wakes. Without this, a request could be woken unnoticed.
    pub(crate) fn settle(&self) {
        let registry = &self.running.shared.registry;
        let untracked = |slot: &Arc<Slot>| {
            !self.is_tracked(slot) && slot.not_waiting() != Some(NotWaiting::Gone)
        };
        let mut unsettled: Vec<_> = registry
            .each_shard()
            .flatten()
            .filter(untracked)
            .enumerate()
            .map(|(woken, slot)| {
                if woken % SETTLE_BATCH == SETTLE_BATCH - 1 {
                    thread::sleep(SETTLE_PAUSE);
                }
                slot.wake();
                slot
            })
            .collect();
        let deadline = Instant::now() + SETTLE;
        while !unsettled.is_empty() && Instant::now() < deadline {
            thread::sleep(SETTLE_PAUSE);
            unsettled.retain(untracked);
        }
    }

    fn is_tracked(&self, slot: &Slot) -> bool {
        slot.is_tracked_in(self.generation)
    }

    fn sample_for(&mut self, options: &ProfileOptions, cancelled: &dyn Fn() -> bool) {
        let end = Instant::now() + options.duration;
        let mean_gap = 1.0 / f64::from(options.captures_per_second.max(1));
        let mut next = Instant::now() + self.gap(mean_gap);
        while next < end {
            while let Some(wait) = next
                .checked_duration_since(Instant::now())
                .filter(|wait| !wait.is_zero())
            {
                if cancelled() {
                    return;
                }
                thread::sleep(wait.clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
                self.gather();
            }
            let now = Instant::now();
            let mut backlog = 0;
            while next <= now && next < end {
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

    /// Time to the next moment of a Poisson process.
    fn gap(&mut self, mean: f64) -> Duration {
        Duration::from_secs_f64(-mean * (1.0 - self.random.f64()).ln())
    }

    /// Takes one sample, now.
    pub(crate) fn sample_once(&mut self) {
        let registry = &self.running.shared.registry;
        loop {
            let Some((slot, route, in_flight)) = registry.any(&mut self.random) else {
                self.collected.idle += 1;
                return;
            };
            let Some(seen) = self.ask(&slot) else {
                continue;
            };
            self.collected.samples.push(Sample {
                in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
                route,
                seen,
                child: Vec::new(),
            });
            return;
        }
    }

    /// What the request is doing; asks it if it waits. None if it has just ended.
    fn ask(&mut self, slot: &Arc<Slot>) -> Option<SeenAs> {
        if !self.is_tracked(slot) && slot.not_waiting().is_none() {
            // Woken when the profile began, and not polled since.
            return Some(SeenAs::Ready);
        }
        let child = slot.any_child(&mut self.random);
        match slot.try_mark(self.mark(), child.is_some()) {
            Ok(()) => {}
            Err(NotWaiting::Gone) => return None,
            Err(NotWaiting::Running) => return Some(SeenAs::Running),
            Err(NotWaiting::Ready) => return Some(SeenAs::Ready),
            Err(NotWaiting::Unasked) => return Some(SeenAs::Unasked),
        }
        self.unanswered += 1;
        // The child is asked first: if both live in one task, one poll serves both.
        if let Some(child) = child.filter(|child| child.try_mark(self.mark(), false).is_ok()) {
            child.wake();
        }
        slot.wake();
        Some(SeenAs::Unanswered)
    }

    fn mark(&self) -> Mark {
        let sample = u32::try_from(self.collected.samples.len()).unwrap_or(u32::MAX);
        Mark {
            session: self.session.clone(),
            sample,
            at: Instant::now(),
        }
    }

    /// Enters the answers that have come in.
    pub(crate) fn gather(&mut self) {
        for event in self.session.take_events() {
            self.collected.costs.extend(event.costs);
            let seen = match event.answer {
                Answer::Waiting(stacks) => SeenAs::Waiting(
                    stacks
                        .into_iter()
                        .map(|stack| self.collected.intern(stack))
                        .collect(),
                ),
                Answer::Unregistered => SeenAs::Unregistered,
                Answer::WokenFirst => SeenAs::WokenFirst,
                Answer::Finished => SeenAs::Finished,
            };
            for (index, delay) in event.samples {
                let Some(sample) = self.collected.samples.get_mut(index as usize) else {
                    continue;
                };
                if event.from_child {
                    if let SeenAs::Waiting(stacks) = &seen {
                        sample.child.clone_from(stacks);
                    }
                    continue;
                }
                self.unanswered -= 1;
                self.collected.delays.push(delay);
                sample.seen = match &seen {
                    SeenAs::Waiting(stacks) => SeenAs::Waiting(stacks.clone()),
                    SeenAs::Unregistered => SeenAs::Unregistered,
                    SeenAs::WokenFirst => SeenAs::WokenFirst,
                    _ => SeenAs::Finished,
                };
            }
        }
    }

    fn await_answers(&mut self) {
        let deadline = Instant::now() + GRACE;
        self.gather();
        while self.unanswered > 0 && Instant::now() < deadline {
            thread::sleep(SETTLE_PAUSE);
            self.gather();
        }
    }

    pub(crate) fn finish(mut self) -> Collected {
        self.gather();
        self.collected
    }
}

impl Collected {
    fn intern(&mut self, stack: RawStack) -> StackId {
        if let Some(&id) = self.ids.get(&stack) {
            return id;
        }
        let id = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
        self.stacks.push(stack.clone());
        self.ids.insert(stack, id);
        id
    }
}

#[cfg(test)]
mod known_waits;
#[cfg(test)]
mod random_lives;
