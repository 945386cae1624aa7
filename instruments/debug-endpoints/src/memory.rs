//! Growth of the memory by parts: live memory, and freed memory that the allocator keeps.

use std::time::{Duration, Instant};

use diagnosis::evidence::{self, Part};
use diagnosis::thresholds::{LITTLE_MEMORY, MOMENTS_OF_RISE, MORE};
use serde::Serialize;

use crate::allocator::{self, Allocator};
use crate::error::EndpointError;
use crate::own_status::{own_status, status_field};
use crate::own_thread::{self, Until};
use crate::runtimes::Watched;

/// Number of moments at which the memory is read: enough to tell growth from memory that comes and goes.
const MOMENTS: u32 = 12;

/// Parts of the memory, in bytes, at the beginning and at the end of some time.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Memory {
    seconds: f64,
    /// Allocator that counts `live`, `glibc` or `jemalloc`; `None` if neither is in use.
    allocator: Option<Allocator>,
    /// Resident memory without files: live values, freed memory that the allocator keeps, and stacks.
    resident: Part,
    /// Memory that was allocated and not freed.
    live: Option<Part>,
    /// Resident memory that is not live: freed memory that the allocator keeps, and stacks.
    cached: Option<Part>,
    /// Tasks of the watched runtimes that were spawned and have not ended.
    tasks: Part,
    /// Time that the allocator took for the last count, in seconds. Glibc holds an arena's lock while it counts there.
    counted_in: f64,
    /// True if the allocator was not asked, because its answer took long, or would have.
    #[serde(skip)]
    is_left_alone: bool,
    /// A sentence that says which part grows.
    says: String,
}

/// Figures of one moment.
struct Moment {
    resident: i64,
    /// Nothing where no one can tell, or it was not asked.
    live: Option<i64>,
    tasks: i64,
}

/// Smallest number of pauses of a count's own length before the next one: counts take at most a twentieth of the time. Ten of
/// them fit into ten seconds unless a count takes longer than 50 ms.
const PAUSES: u32 = 19;

/// Asks the allocator for its live bytes, less often if that takes long.
struct Count {
    due: Instant,
    /// Time that the last count took.
    took: Duration,
}

impl Count {
    /// Returns the live bytes; None if the last count is too recent.
    fn live(&mut self) -> Option<i64> {
        let began = Instant::now();
        if began < self.due {
            return None;
        }
        let live = Allocator::of_this_process().and_then(Allocator::live)?;
        self.took = began.elapsed();
        self.due = Instant::now() + self.took * PAUSES;
        i64::try_from(live).ok()
    }
}

impl Moment {
    fn now(runtimes: &[Watched], count: &mut Count) -> Option<Self> {
        let live = count.live();
        let kib = status_field(&own_status()?, "RssAnon:")?;
        let mut tasks = 0;
        for runtime in runtimes {
            tasks += runtime.handle.metrics().num_alive_tasks();
        }
        Some(Self {
            #[allow(clippy::cast_possible_truncation)] // A whole number of KiB.
            resident: kib as i64 * 1024,
            live,
            tasks: i64::try_from(tasks).unwrap_or(i64::MAX),
        })
    }
}

/// Watches the memory for `duration`.
pub(crate) async fn watch(
    runtimes: Vec<Watched>,
    duration: Duration,
) -> Result<Memory, EndpointError> {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let looking = own_thread::look("memory", &ONE, duration, move |until| {
        take(&runtimes, until)
    });
    looking.await?.ok_or(EndpointError::Unsupported(
        "the parts of the memory are told on Linux only",
    ))
}

fn take(runtimes: &[Watched], until: &Until<'_>) -> Option<Memory> {
    let began = Instant::now();
    let step = until.end.saturating_duration_since(began) / (MOMENTS - 1);
    let mut count = Count {
        due: began,
        took: Duration::ZERO,
    };
    let mut moments = vec![Moment::now(runtimes, &mut count)?];
    loop {
        let is_over = until.is_over();
        until.sleep(step);
        moments.push(Moment::now(runtimes, &mut count)?);
        if is_over || until.is_over() {
            break;
        }
    }
    // The allocator is not asked at every moment.
    let (mut live, mut cached) = (Vec::new(), Vec::new());
    for moment in &moments {
        if let Some(bytes) = moment.live {
            live.push(bytes);
            cached.push((moment.resident - bytes).max(0));
        }
    }
    let mut memory = Memory {
        seconds: began.elapsed().as_secs_f64(),
        allocator: Allocator::of_this_process(),
        resident: Part::of(moments.iter().map(|moment| moment.resident)),
        live: None,
        cached: None,
        tasks: Part::of(moments.iter().map(|moment| moment.tasks)),
        counted_in: count.took.as_secs_f64(),
        is_left_alone: allocator::rests(),
        says: String::new(),
    };
    // One count, after which the allocator is left alone, does not tell what grows.
    let is_told = live.len() > 1 || !memory.is_left_alone;
    if moments.first()?.live.is_some() && is_told {
        let counts = live.len();
        let live = Part::of(live.into_iter());
        memory.live = Some(if counts < MOMENTS_OF_RISE {
            confirmed(live, memory.resident)
        } else {
            live
        });
        memory.cached = Some(Part::of(cached.into_iter()));
    }
    memory.says = memory.sentence();
    Some(memory)
}

/// Returns live memory that was counted too seldom to tell a rise, with the rise of resident memory, which is read at every
/// moment, if live memory makes up most of it.
fn confirmed(live: Part, resident: Part) -> Part {
    if !resident.is_steady || live.growth() * 2 < resident.growth() {
        return live;
    }
    Part {
        rise: resident.rise.min(live.growth()),
        is_steady: true,
        ..live
    }
}

/// Returns bytes in MiB.
fn mib(bytes: i64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Memory {
    /// Returns the figures that the rules judge.
    pub(crate) fn evidence(self) -> evidence::Memory {
        evidence::Memory {
            seconds: self.seconds,
            live: self.live.unwrap_or(self.resident),
            tasks: self.tasks,
            says: self.says,
            kept: Vec::new(),
        }
    }

    /// Returns the growth of a part, in MiB a second.
    fn rate(&self, part: Part) -> f64 {
        mib(part.growth()) / self.seconds
    }

    fn sentence(&self) -> String {
        let resident = mib(self.resident.to);
        let (Some(live), Some(cached)) = (self.live, self.cached) else {
            let grows = if self.resident.grows() {
                format!("grows by {:.1} MiB a second", self.rate(self.resident))
            } else {
                "does not grow".to_owned()
            };
            let why = if self.is_left_alone {
                "the allocator was not asked what is live: it has so many free pieces that other threads would wait while it counts"
            } else {
                "this process' allocator does not tell what is live"
            };
            return format!("{resident:.0} MiB are resident, which {grows}; {why}");
        };
        let says = if live.grows() {
            format!(
                "live memory grows by {:.1} MiB a second: something keeps what it allocates, and a heap profile says who",
                self.rate(live)
            )
        } else if live.growth() > LITTLE_MEMORY.max(live.from / 5) {
            format!(
                "live memory went from {:.0} to {:.0} MiB, not steadily: look for longer to see whether it grows",
                mib(live.from),
                mib(live.to)
            )
        } else if cached.grows() && cached.rise > 16 * LITTLE_MEMORY {
            format!(
                "what the allocator keeps grows by {:.1} MiB a second, and live memory does not",
                self.rate(cached)
            )
        } else if cached.to > live.to && mib(cached.to) > 32.0 {
            format!(
                "nothing grows; {:.0} of {resident:.0} MiB are not live: the allocator keeps them since a peak",
                mib(cached.to)
            )
        } else {
            format!(
                "nothing grows; {:.0} of {resident:.0} MiB are live",
                mib(live.to)
            )
        };
        if self.tasks.rise > MORE.max(self.tasks.from / 20) {
            let rate = self.tasks.growth() as f64 / self.seconds;
            return format!("{says}; the tasks become more, by {rate:.0} a second");
        }
        says
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn seen(first: [i64; 3], last: [i64; 3]) -> String {
        let mib = |part: usize| {
            let (first, last) = (first[part] << 20, last[part] << 20);
            Part::of((0..=10).map(|tenth| first + (last - first) * tenth / 10))
        };
        let memory = Memory {
            seconds: 10.0,
            allocator: Some(Allocator::Glibc),
            resident: mib(0),
            live: Some(mib(1)),
            cached: Some(mib(2)),
            tasks: Part::of(std::iter::once(5)),
            counted_in: 0.0,
            is_left_alone: false,
            says: String::new(),
        };
        memory.sentence()
    }

    #[test]
    fn a_sentence_says_which_part_grows() {
        for (first, last, says) in [
            (
                [100, 80, 20],
                [200, 175, 25],
                "live memory grows by 9.5 MiB a second",
            ),
            (
                [100, 80, 20],
                [200, 82, 118],
                "what the allocator keeps grows by 9.8",
            ),
            (
                [300, 20, 280],
                [300, 21, 279],
                "279 of 300 MiB are not live",
            ),
            (
                [100, 80, 20],
                [101, 81, 20],
                "nothing grows; 81 of 101 MiB are live",
            ),
        ] {
            let seen = seen(first, last);
            assert!(seen.contains(says), "{seen}");
        }
    }

    /// Reported of a service that kept 64 MB in 8 s, of which the allocator was asked four times.
    #[test]
    fn a_leak_that_is_seldom_counted_grows_as_resident_memory_does() {
        let mib = |values: &[i64]| Part::of(values.iter().map(|mib| mib << 20));
        let line: Vec<i64> = (0..12).map(|moment| 40 + 6 * moment).collect();
        let counts = mib(&[33, 55, 76, 97]);
        assert!(!counts.grows());
        assert!(confirmed(counts, mib(&line)).grows());
        // The allocator keeps what was freed, and live memory is the same.
        assert!(!confirmed(mib(&[33, 34, 33, 34]), mib(&line)).grows());
        assert!(!confirmed(counts, mib(&[40; 12])).grows());
    }

    #[test]
    fn what_comes_and_goes_does_not_grow() {
        let mib = |values: [i64; 9]| Part::of(values.map(|mib| mib << 20).into_iter());
        assert!(!mib([10, 30, 10, 30, 10, 30, 10, 30, 10]).grows());
        assert!(mib([10, 12, 11, 15, 13, 17, 20, 18, 25]).grows());
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn what_is_kept_and_what_was_freed_are_told_apart() {
        if cfg!(feature = "heap") {
            return;
        }
        // Another test may give memory back at the same time.
        assert!((0..3).any(|_| are_told_apart()));
    }

    #[cfg(target_env = "gnu")]
    fn are_told_apart() -> bool {
        let seen = |until: &Until<'_>| take(&[], until).expect("this is Linux");
        let over = Until::new(Duration::ZERO, &|| true);
        let before = seen(&over);
        assert_eq!(before.allocator, Some(Allocator::Glibc));
        // These pieces are too small to be mapped each by itself, so the allocator keeps them when they are freed.
        let pieces: Vec<_> = (0..100_000_u32).map(|_| vec![1_u8; 1000]).collect();
        let pieces = std::hint::black_box(pieces);
        let kept = seen(&over);
        let more = |one: &Memory| one.live.expect("glibc").to / 1_000_000;
        println!("{before:?} {kept:?}");
        let is_kept = more(&kept) - more(&before) > 90;
        // The last one keeps the allocator from giving back what is below it.
        let last = std::hint::black_box(pieces.into_iter().last());
        let freed = seen(&over);
        println!("{freed:?}");
        let is_freed = more(&kept) - more(&freed) > 90;
        let cached = freed.cached.expect("glibc").to / 1_000_000;
        drop(last);
        is_kept && is_freed && cached > 50
    }
}
