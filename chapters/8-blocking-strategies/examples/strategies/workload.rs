//! What the published benchmark did by each strategy.

use std::hint::black_box;
use std::time::Duration;

use rand::seq::SliceRandom;
use rand_pcg::Pcg32;

/// An operation that blocks, or is said to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Nothing at all: what is left is the strategy's own cost.
    Noop,
    /// Shuffles and sorts 300 numbers.
    Expensive,
    /// Sleeps for some microseconds.
    Sleep,
}

/// Microseconds of the published sleeps: short ones mostly, and a long one now and then. The kernel
/// adds its timer's slack to each, about 50.
const SLEEPS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 49];

impl Workload {
    pub(crate) const ALL: [Self; 3] = [Self::Noop, Self::Expensive, Self::Sleep];

    /// As the published figures call it.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Expensive => "expensive",
            Self::Sleep => "sleep",
        }
    }

    /// Operations in a batch, all at once.
    pub(crate) fn batch(self) -> usize {
        match self {
            Self::Noop | Self::Expensive => 100,
            Self::Sleep => 200,
        }
    }

    /// Extra threads or permits, beside the runtime's workers.
    pub(crate) fn extra(self) -> usize {
        match self {
            Self::Noop | Self::Expensive => 4,
            Self::Sleep => 40,
        }
    }

    /// The `number`-th operation of a batch.
    pub(crate) fn run(self, number: usize) {
        match self {
            Self::Noop => {
                black_box(number);
            }
            Self::Expensive => {
                let mut numbers: [usize; 300] = std::array::from_fn(|i| i);
                numbers.shuffle(&mut Pcg32::new(number as u64, 1));
                black_box(&mut numbers).sort_unstable();
                black_box(&numbers);
            }
            Self::Sleep => {
                let micros = SLEEPS[number % SLEEPS.len()];
                std::thread::sleep(Duration::from_micros(micros));
            }
        }
    }
}
