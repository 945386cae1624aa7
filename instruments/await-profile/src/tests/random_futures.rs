//! Futures that do anything that a future may do, at random, driven by a seed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{Task, Wakers, permit, sampler};
use crate::lock::lock;
use crate::sampler::Sampler;
use crate::shared::Permit;
use crate::{AwaitProfiler, Profile, ProfileOptions, Tracked, inherit};

/// Number of seeds; fewer under Miri, which is slow.
const SEEDS: u64 = if cfg!(miri) { 6 } else { 100 };
const STEPS: usize = if cfg!(miri) { 60 } else { 400 };

struct Chaos {
    random: fastrand::Rng,
    kept: Wakers,
    /// Child that is polled within this future.
    child: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Future for Chaos {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(child) = &mut self.child
            && child.as_mut().poll(cx).is_ready()
        {
            self.child = None;
        }
        for _ in 0..self.random.usize(..3) {
            match self.random.u8(..9) {
                0 => cx.waker().wake_by_ref(),
                1 => {
                    let clone = cx.waker().clone();
                    clone.wake();
                }
                2 => drop(cx.waker().clone()),
                3 | 4 => lock(&self.kept).push(cx.waker().clone()),
                5 => {
                    // Another thread clones, wakes and drops the waker, during the poll and after it.
                    let waker = cx.waker();
                    let theirs = waker.clone();
                    std::thread::scope(|scope| {
                        scope.spawn(move || {
                            let clone = waker.clone();
                            clone.wake();
                        });
                    });
                    let thread = std::thread::spawn(move || theirs.wake());
                    thread.join().unwrap();
                }
                6 if self.child.is_none() => {
                    let (random, kept) = (self.random.fork(), self.kept.clone());
                    self.child = Some(Box::pin(inherit(Chaos {
                        random,
                        kept,
                        child: None,
                    })));
                }
                7 if self.random.u8(..8) == 0 => panic!("as it should"),
                8 if self.random.u8(..4) == 0 => return Poll::Ready(()),
                _ => {}
            }
        }
        Poll::Pending
    }
}

type Spawned = (Pin<Box<Tracked<Chaos>>>, Arc<Task>);

struct World<'a> {
    random: fastrand::Rng,
    profiler: &'a AwaitProfiler,
    permit: &'a Permit,
    sampler: Option<Sampler>,
    sampled: usize,
    kept: Wakers,
    futures: Vec<Spawned>,
}

impl World<'_> {
    fn step(&mut self) {
        match self.random.u8(..12) {
            0 | 1 => {
                let chaos = Chaos {
                    random: self.random.fork(),
                    kept: self.kept.clone(),
                    child: None,
                };
                self.futures
                    .push((Box::pin(self.profiler.wrap("GET /", chaos)), Arc::default()));
            }
            2..=5 => self.poll_one(),
            6 => {
                let waker = lock(&self.kept).pop();
                if let Some(waker) = waker.filter(|_| self.random.bool()) {
                    waker.wake();
                }
            }
            7 => drop(self.pick().map(|chosen| self.futures.swap_remove(chosen))),
            8 | 9 => {
                if let Some(sampler) = &mut self.sampler {
                    sampler.sample_once();
                    self.sampled += 1;
                }
            }
            10 => {
                if let Some(sampler) = &mut self.sampler {
                    sampler.gather();
                }
            }
            _ if self.random.u8(..8) == 0 => self.switch(),
            _ => {}
        }
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.futures.is_empty()).then(|| self.random.usize(..self.futures.len()))
    }

    fn poll_one(&mut self) {
        let Some(chosen) = self.pick() else { return };
        let (future, task) = &mut self.futures[chosen];
        // Executors may move a task to another waker.
        if self.random.u8(..6) == 0 {
            *task = Arc::default();
        }
        let waker = Waker::from(task.clone());
        let poll =
            std::panic::AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        if !matches!(std::panic::catch_unwind(poll), Ok(Poll::Pending)) {
            drop(self.futures.swap_remove(chosen));
        }
    }

    /// Ends a profile, or begins one.
    fn switch(&mut self) {
        match self.sampler.take() {
            None => self.sampler = Some(sampler(self.permit, self.random.u64(..))),
            Some(sampler) => {
                self.permit.switch_off();
                let mut collected = sampler.finish();
                for stacks in [&mut collected.waits, &mut collected.releases] {
                    stacks.distinct.fill(Box::default());
                }
                collected.elapsed = Duration::from_secs(1);
                let symbols = &mut lock(&self.profiler.shared.symbols);
                let profile = Profile::new(collected, &ProfileOptions::default(), symbols);
                let found = profile.summary().samples;
                assert_eq!(
                    found.of_requests() + found.idle,
                    self.sampled as u64,
                    "{found:?}"
                );
                self.sampled = 0;
            }
        }
    }
}

#[test]
fn every_sample_is_accounted_for_whatever_futures_do() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for seed in 0..SEEDS {
        let profiler = AwaitProfiler::new();
        let permit = permit(&profiler);
        let mut random = fastrand::Rng::with_seed(seed);
        if random.bool() {
            profiler.arm();
        }
        let mut world = World {
            random,
            profiler: &profiler,
            permit: &permit,
            sampler: None,
            sampled: 0,
            kept: Wakers::default(),
            futures: Vec::new(),
        };
        for _ in 0..STEPS {
            world.step();
        }
        let World {
            futures,
            kept,
            sampler,
            ..
        } = world;
        let tasks: Vec<_> = futures.iter().map(|(_, task)| task.clone()).collect();
        drop(futures);
        assert_eq!(profiler.in_flight(), 0, "seed {seed}: everything is gone");
        let others = tasks
            .iter()
            .filter(|task| Arc::strong_count(task) > 1)
            .count();
        assert!(
            others <= lock(&kept).len(),
            "seed {seed}: only kept wakers keep tasks"
        );
        // The waker of a future that is gone may still be woken.
        let wakers = std::mem::take(&mut *lock(&kept));
        wakers.into_iter().for_each(Waker::wake);
        drop(sampler);
        assert!(
            tasks.iter().all(|task| Arc::strong_count(task) == 1),
            "seed {seed}: nothing is kept"
        );
    }
    std::panic::set_hook(hook);
}
