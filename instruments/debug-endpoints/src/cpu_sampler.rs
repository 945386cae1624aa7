//! Samples of the CPU time of all threads, by a [timer](crate::cpu_timer) for each.
//!
//! The default is 99 samples a second of CPU time. That number is not in step with other timers, and lower than the
//! number of the kernel's ticks.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use cpu_time::ProcessTime;
use diagnosis::Process;
use diagnosis::threads::{CpuMoment, CpuSamples, Unwinder};

use crate::cpu_names;
use crate::cpu_profile::CpuProfile;
use crate::cpu_samples::{Sampled, Stack};
use crate::cpu_signal::{Handler, NoHandler, Sample};
use crate::cpu_timer::{Timer, own_tid, ticks_per_second};
use crate::error::EndpointError;
use crate::own_thread::OwnThread;
use crate::permit::Permit;

/// Time between two reads of samples.
const PAUSE: Duration = Duration::from_millis(10);

/// Shortest time between two looks for new threads and files.
const PAUSE_OF_LOOKS: Duration = Duration::from_millis(50);

/// Pause after a look for threads, as a multiple of the look's own time, so that looks take at most 1/50 of a CPU.
const PART_OF_LOOKS: u32 = 50;

/// Most different stacks that one profile keeps, of about half a kilobyte each.
const MOST_STACKS: usize = 50_000;

/// Most samples of which the order is kept, of 24 bytes each.
const MOST_MOMENTS: usize = 200_000;

static THREAD: OwnThread = OwnThread::new("cpu-profiles");

/// Samples for `duration`. The permit is kept until the last symbol is looked up, even if nobody waits for the profile
/// any more.
pub(crate) async fn record(
    duration: Duration,
    frequency: u32,
    permit: Permit,
) -> Result<(CpuProfile, CpuSamples), EndpointError> {
    let profile = THREAD.run(move |is_awaited| {
        let _permit = permit;
        let sampled = sample(duration, frequency, is_awaited)?;
        if is_awaited() {
            Ok(cpu_names::profile(sampled))
        } else {
            Err(EndpointError::failed("nobody waits for it"))
        }
    });
    profile.await?
}

fn sample(
    duration: Duration,
    frequency: u32,
    is_awaited: &dyn Fn() -> bool,
) -> Result<Sampled, EndpointError> {
    let mut sampler = Sampler::begin(frequency)?;
    let (began, before) = (SystemTime::now(), ProcessTime::now());
    let start = Instant::now();
    let mut looks_due = start;
    while start.elapsed() < duration && is_awaited() {
        let now = Instant::now();
        if looks_due <= now {
            // If no file descriptor is left, threads that began since are not seen for now.
            let _ = sampler.look();
            looks_due = now + PAUSE_OF_LOOKS.max(now.elapsed() * PART_OF_LOOKS);
        }
        std::thread::sleep(PAUSE.min(duration.saturating_sub(start.elapsed())));
        sampler.read();
        sampler.yield_to_another_profiler();
    }
    let (duration, cpu_time) = (start.elapsed(), before.elapsed());
    sampler.timers.clear();
    sampler.read();
    Ok(Sampled {
        moments: std::mem::take(&mut sampler.moments),
        began,
        duration,
        cpu_time,
        frequency: sampler.frequency,
        notes: sampler.notes(frequency),
        stacks: sampler.stacks(),
    })
}

/// State of a profile that is being taken.
struct Sampler {
    /// Timers of threads, dropped before the handler.
    timers: HashMap<i32, Timer>,
    handler: Handler,
    unwinder: Unwinder,
    frequency: u32,
    own: i32,
    started: u64,
    /// Reason why some thread has no timer.
    without_timer: Option<String>,
    /// True if the service has installed a handler of its own since.
    has_yielded: bool,
    without_stack: u64,
    names: HashMap<i32, String>,
    /// Each stack with its number, and how often it was seen.
    seen: HashMap<(i32, Vec<usize>), (usize, u64)>,
    moments: Vec<CpuMoment>,
}

impl Sampler {
    fn begin(frequency: u32) -> Result<Self, EndpointError> {
        let handler = Handler::install().map_err(|error| {
            EndpointError::Unavailable(match error {
                NoHandler::InUse => "another profiler in this process handles SIGPROF: stop that one, or take the CPU \
                                     profile with it"
                    .to_owned(),
                NoHandler::Io(error) => {
                    format!("the system does not let this process take a CPU profile ({error})")
                }
            })
        })?;
        let mut sampler = Self {
            timers: HashMap::new(),
            handler,
            unwinder: Unwinder::new(Process::this()),
            frequency: frequency.min(ticks_per_second()),
            own: own_tid(),
            started: 0,
            without_timer: None,
            has_yielded: false,
            without_stack: 0,
            names: HashMap::new(),
            seen: HashMap::new(),
            moments: Vec::new(),
        };
        // Read the tables before the time begins; that takes longer than a later look.
        sampler.look().map_err(|error| {
            EndpointError::Unavailable(format!(
                "the threads of this process cannot be listed ({error}): a CPU profile needs /proc and some file descriptors"
            ))
        })?;
        if let Some(why) = &sampler.without_timer
            && sampler.timers.is_empty()
        {
            return Err(EndpointError::Unavailable(format!(
                "no thread can be sampled: {why}"
            )));
        }
        Ok(sampler)
    }

    /// Gives new threads a timer, and reads the tables of new files.
    fn look(&mut self) -> io::Result<()> {
        if self.has_yielded {
            return Ok(());
        }
        let threads = threads()?;
        self.unwinder.look();
        self.timers.retain(|tid, _| threads.contains(tid));
        let period = Duration::from_secs(1) / self.frequency;
        for tid in threads {
            if tid == self.own || self.timers.contains_key(&tid) {
                continue;
            }
            // Threads that begin together should not be sampled together. A thread that uses less than a period of CPU
            // time should still get its share of samples. So first samples are spread by the golden ratio.
            self.started += 1;
            let part = (self.started as f64 * 0.618_033_988_749).fract();
            let first = period.mul_f64(part).max(Duration::from_nanos(1));
            match Timer::start(tid, first, period) {
                Ok(timer) => {
                    self.timers.insert(tid, timer);
                    self.names.insert(tid, name_of(tid).unwrap_or_default());
                }
                // The thread has just ended.
                Err(error)
                    if [libc::EINVAL, libc::ESRCH]
                        .map(Some)
                        .contains(&error.raw_os_error()) => {}
                Err(error) => self.without_timer = Some(why_no_timer(&error)),
            }
        }
        Ok(())
    }

    /// Ends all timers if the service has installed a handler of its own: their signals would go to that one, or end the
    /// service once it is removed.
    fn yield_to_another_profiler(&mut self) {
        if !self.has_yielded && !self.handler.is_in_force() {
            self.has_yielded = true;
            self.timers.clear();
        }
    }

    /// Counts the samples that were taken since the last call.
    fn read(&mut self) {
        let Self {
            handler,
            unwinder,
            names,
            seen,
            moments,
            without_stack,
            ..
        } = self;
        handler.read(|sample| {
            if !sample.has_stack() {
                *without_stack += sample.periods;
            }
            let mut key = (sample.tid, callers(unwinder, sample));
            if seen.len() >= MOST_STACKS && !seen.contains_key(&key) {
                // Keep only the innermost address.
                key.1.truncate(1);
            }
            let next = seen.len();
            let (stack, times) = seen.entry(key).or_insert_with(|| {
                // A thread may have named itself since it began.
                if let Some(name) = name_of(sample.tid) {
                    names.insert(sample.tid, name);
                }
                (next, 0)
            });
            *times += sample.periods;
            if moments.len() < MOST_MOMENTS {
                moments.push(CpuMoment {
                    stack: *stack,
                    slept: sample.slept,
                    periods: sample.periods,
                });
            }
        });
    }

    /// Returns the stacks in the order of their numbers.
    fn stacks(self) -> Vec<Stack> {
        let mut seen: Vec<_> = self.seen.into_iter().collect();
        seen.sort_by_key(|(_, (number, _))| *number);
        let mut stacks = Vec::new();
        for ((tid, addresses), (_, samples)) in seen {
            let thread = match self.names.get(&tid) {
                Some(name) if !name.is_empty() => name.clone(),
                _ => tid.to_string(),
            };
            stacks.push(Stack {
                thread,
                tid,
                addresses,
                samples,
            });
        }
        stacks
    }

    fn notes(&self, asked: u32) -> Vec<String> {
        let mut notes = Vec::new();
        if self.frequency < asked {
            notes.push(format!(
                "This kernel allows {} samples a second of CPU time, not {asked}.",
                self.frequency
            ));
        }
        if self.handler.lost() > 0 {
            notes.push(format!(
                "{} samples were lost: ask for a lower frequency.",
                self.handler.lost()
            ));
        }
        if self.without_stack > 0 {
            notes.push(format!(
                "{} samples have no callers: the system does not allow process_vm_readv, as some seccomp profiles do.",
                self.without_stack
            ));
        }
        if self.has_yielded {
            notes.push(
                "This profile ended early: the service began a profiler of its own, which handles SIGPROF.".to_owned(),
            );
        }
        if let Some(why) = &self.without_timer {
            notes.push(format!("Some threads are missing: {why}."));
        }
        notes
    }
}

fn callers(unwinder: &mut Unwinder, sample: Sample<'_>) -> Vec<usize> {
    unwinder.callers(sample.registers, |address| sample.word(address))
}

fn threads() -> io::Result<HashSet<i32>> {
    let mut threads = HashSet::new();
    for thread in fs::read_dir("/proc/self/task")? {
        let name = thread?.file_name();
        if let Some(Ok(tid)) = name.to_str().map(str::parse) {
            threads.insert(tid);
        }
    }
    Ok(threads)
}

fn name_of(tid: i32) -> Option<String> {
    let name = fs::read(format!("/proc/self/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

fn why_no_timer(error: &io::Error) -> String {
    if error.raw_os_error() == Some(libc::EAGAIN) {
        format!(
            "the system gives this user no more timers ({error}); `ulimit -i` says how many there are"
        )
    } else {
        format!("the system does not allow timers ({error}), as some seccomp profiles do")
    }
}
