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

mod collected;
mod settle;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::options::ProfileOptions;
use crate::profile::Profile;
use crate::session::{Answer, Session};
use crate::shared::Running;
use crate::slot::{Mark, NotWaiting, Slot};

pub(crate) use collected::{Collected, Sample, SeenAs, StackId};

/// How long the last samples have for being answered.
const GRACE: Duration = Duration::from_millis(500);
/// The sampler looks at least this often whether it is still wanted.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// Moments closer than this are taken together: a thread that is woken costs more
/// than the look it takes.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// Moments missed in excess of this are given up rather than made up for.
const MAX_BACKLOG: u32 = 64;

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
            thread::sleep(SHORTEST_SLEEP);
            self.gather();
        }
    }

    pub(crate) fn finish(mut self) -> Collected {
        self.gather();
        self.collected
    }
}

#[cfg(test)]
mod known_waits;
#[cfg(test)]
mod random_lives;
#[cfg(test)]
mod wakers;
