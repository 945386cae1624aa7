//! CPU work: a known amount of it, not a sleep.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use cpu_time::ThreadTime;

use crate::counters::Counters;

/// Rounds between two looks at the clock while calibrating.
const BATCH: u64 = 50_000;
/// Times that the amount is measured. The shortest counts, since a neighbour can only slow one down.
const MEASUREMENTS: usize = 9;
/// Pause between two measurements: a neighbour on the same core slows down all that follow each other at once.
const PAUSE: Duration = Duration::from_millis(10);

thread_local! {
    /// Pieces that this thread has done.
    static DONE_HERE: Cell<u64> = const { Cell::new(0) };
}

/// Pieces of work that the calling thread has done so far.
pub(crate) fn done_on_this_thread() -> u64 {
    DONE_HERE.get()
}

/// A piece of work that takes a known CPU time, as a rendering or a checksum would.
///
/// It is a fixed number of rounds of arithmetic, calibrated when the server starts: however busy the machine is later,
/// the work is the same. Clones are cheap and share their counters.
#[derive(Debug, Clone)]
pub struct Work {
    rounds: u64,
    result: u64,
    counters: Arc<Counters>,
}

impl Work {
    /// Work that takes `duration` of a thread's CPU time on this machine.
    pub(crate) fn calibrated(duration: Duration, seed: u64, counters: Arc<Counters>) -> Self {
        // The CPU may have to raise its clock first.
        compute(20 * BATCH);
        let mut shortest = f64::INFINITY;
        for _ in 0..MEASUREMENTS {
            let began = ThreadTime::now();
            compute(20 * BATCH);
            shortest = shortest.min(began.elapsed().as_secs_f64());
            std::thread::sleep(PAUSE);
        }
        let a_round = shortest / (20 * BATCH) as f64;
        // Some millions; never negative.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rounds = (duration.as_secs_f64() / a_round) as u64;
        Self {
            rounds,
            result: 4 + seed,
            counters,
        }
    }

    /// Does the work on the calling thread, which does nothing else until it is done. The result depends on the data
    /// seed alone.
    pub fn run(&self) -> u64 {
        self.finish(self.rounds)
    }

    /// Runs `work` in place of the arithmetic and counts it as a piece. Drops its result, and returns that of
    /// [`Work::run`].
    pub fn run_real<R>(&self, work: impl FnOnce() -> R) -> u64 {
        self.counted(|| {
            black_box(work());
        })
    }

    /// Returns the same work in so many steps, for a loop that does something else between them.
    pub fn in_steps(&self, steps: u64) -> Steps {
        Steps {
            work: self.clone(),
            left: steps.max(1),
            rounds: self.rounds / steps.max(1),
        }
    }

    /// Does the last rounds of a piece, which is done then.
    fn finish(&self, rounds: u64) -> u64 {
        self.counted(|| compute(rounds))
    }

    /// Counts what `work` does as a piece.
    fn counted(&self, work: impl FnOnce()) -> u64 {
        let _running = self.counters.work.begin();
        self.timed(work);
        DONE_HERE.set(DONE_HERE.get() + 1);
        self.result
    }

    fn timed(&self, work: impl FnOnce()) {
        let began = ThreadTime::now();
        work();
        let nanoseconds = began.elapsed().as_nanos().try_into().unwrap_or(u64::MAX);
        let sum = &self.counters.work_nanoseconds;
        sum.fetch_add(nanoseconds, Relaxed);
    }
}

/// A piece of work that is done step by step, and counts when its last step is done.
#[derive(Debug)]
pub struct Steps {
    work: Work,
    left: u64,
    rounds: u64,
}

impl Steps {
    /// Does the next step on the calling thread. Returns the result if it was the last one.
    pub fn run_next(&mut self) -> Option<u64> {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            self.work.timed(|| compute(self.rounds));
            return None;
        }
        Some(self.work.finish(self.rounds))
    }
}

/// Does arithmetic whose result no compiler can foresee (G. Marsaglia's xorshift). It calls nothing,
/// not even functions that would be inlined, so that a profile has one name for it.
#[inline(never)]
fn compute(rounds: u64) {
    let mut number = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut left = rounds;
    while left > 0 {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        left -= 1;
    }
    black_box(number);
}
