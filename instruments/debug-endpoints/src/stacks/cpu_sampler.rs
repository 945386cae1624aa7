//! Samples of the CPU time of all threads, by a [timer](crate::stacks::cpu_timer) for each.
//!
//! The default is 99 samples a second of CPU time. That number is not in step with other timers, and lower than the
//! number of the kernel's ticks.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use cpu_time::{ProcessTime, ThreadTime};
use diagnosis::Process;
use diagnosis::threads::{CpuMoment, CpuSamples, Unwinder};

use crate::cpu_profile::CpuProfile;
use crate::error::EndpointError;
use crate::own_thread::OwnThread;
use crate::permit::Permit;
use crate::stacks::cpu_apart::{Apart, LONGEST, blocks_the_signal, listed};
use crate::stacks::cpu_names;
use crate::stacks::cpu_samples::{Sampled, Stack};
use crate::stacks::cpu_signal::{Handler, NoHandler, Sample};
use crate::stacks::cpu_timer::{Timer, own_tid, ticks_per_second, used_by};

/// Time between two reads of samples.
const PAUSE: Duration = Duration::from_millis(10);

/// Shortest time between two looks for new threads and files.
const PAUSE_OF_LOOKS: Duration = Duration::from_millis(50);

/// Pause after a look for threads, as a multiple of the look's own time, so that looks take at most 1/50 of a CPU.
const PART_OF_LOOKS: u32 = 50;

/// Longest time from the end of a profile to its answer.
const PATIENCE: Duration = Duration::from_secs(55);

/// Longest time before a profile begins. In a process of many threads that allocate, each allocation of this thread's may
/// wait for theirs.
const LONGEST_START: Duration = Duration::from_secs(1);

/// Most different stacks that one profile keeps, of about half a kilobyte each.
const MOST_STACKS: usize = 50_000;

/// Most samples of which the order is kept, of 24 bytes each.
const MOST_MOMENTS: usize = 200_000;

/// Periods of a thread's CPU time without a sample after which this looks why its signal does not come.
const MISSING: u32 = 3;

/// Fewest periods without a sample, and smallest share of all CPU time, that are told. Less is usual: samples fall on the
/// kernel's ticks, and work that a timer started on a tick is often done before the next.
const FEWEST_UNSEEN: f64 = 30.0;
const SHARE_UNSEEN: f64 = 0.5;

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
    match tokio::time::timeout(duration + PATIENCE, profile).await {
        Ok(profile) => profile?,
        Err(_) => Err(EndpointError::Unavailable(format!(
            "the profile was not ready {} s after its end: its thread waits for a CPU, or for the allocator, which many \
             threads of this process use. Take it from outside, with perf",
            PATIENCE.as_secs()
        ))),
    }
}

fn sample(
    duration: Duration,
    frequency: u32,
    is_awaited: &dyn Fn() -> bool,
) -> Result<Sampled, EndpointError> {
    let mut sampler = Sampler::begin(frequency)?;
    let (began, before, own) = (SystemTime::now(), ProcessTime::now(), ThreadTime::now());
    let start = Instant::now();
    let mut looks_due = start;
    while start.elapsed() < duration && is_awaited() {
        let now = Instant::now();
        if looks_due <= now {
            // If no file descriptor is left, threads that began since are not seen for now.
            let _ = sampler.look(LONGEST);
            looks_due = now + PAUSE_OF_LOOKS;
            if !sampler.is_behind {
                looks_due = looks_due.max(now + now.elapsed() * PART_OF_LOOKS);
            }
        }
        std::thread::sleep(PAUSE.min(duration.saturating_sub(start.elapsed())));
        sampler.read();
        sampler.yield_to_another_profiler();
    }
    let (duration, cpu_time) = (start.elapsed(), before.elapsed());
    // The calling thread takes no sample of itself.
    let of_others = cpu_time.saturating_sub(own.elapsed());
    sampler.read();
    let (unseen, why_unseen) = sampler.unseen(of_others).unzip();
    sampler.timers.clear();
    sampler.read();
    Ok(Sampled {
        moments: std::mem::take(&mut sampler.counted.moments),
        unseen: unseen.unwrap_or_default(),
        why_unseen,
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
    /// Timers of threads, dropped before the handler. Each comes with the CPU time that its thread had used before.
    timers: HashMap<i32, (Timer, Duration)>,
    handler: Handler,
    /// Threads that get no signal.
    apart: Apart,
    unwinder: Unwinder,
    frequency: u32,
    own: i32,
    started: u64,
    /// True if the last look had no time for all threads.
    is_behind: bool,
    /// Reason why some thread has no timer.
    without_timer: Option<String>,
    /// True if the service has installed a handler of its own since.
    has_yielded: bool,
    without_stack: u64,
    counted: Counted,
}

/// Samples so far.
#[derive(Default)]
struct Counted {
    names: HashMap<i32, String>,
    /// Each stack with its number, and how often it was seen.
    seen: HashMap<(i32, Vec<usize>), (usize, u64)>,
    /// Samples of each thread.
    by_thread: HashMap<i32, u64>,
    moments: Vec<CpuMoment>,
}

impl Counted {
    /// Counts a sample that stands for so many periods, and returns the number of its stack.
    fn count(&mut self, tid: i32, periods: u64, callers: Vec<usize>) -> usize {
        let mut key = (tid, callers);
        if self.seen.len() >= MOST_STACKS && !self.seen.contains_key(&key) {
            // Keep only the innermost address.
            key.1.truncate(1);
        }
        let next = self.seen.len();
        let (stack, times) = self.seen.entry(key).or_insert_with(|| {
            // A thread may have named itself since it began.
            if let Some(name) = name_of(tid) {
                self.names.insert(tid, name);
            }
            (next, 0)
        });
        *times += periods;
        *self.by_thread.entry(tid).or_default() += periods;
        *stack
    }

    /// Returns the name of a thread, or its number if it has none.
    fn name(&self, tid: i32) -> String {
        match self.names.get(&tid) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => tid.to_string(),
        }
    }
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
            apart: Apart::new(),
            unwinder: Unwinder::new(Process::this()),
            frequency: frequency.min(ticks_per_second()),
            own: own_tid(),
            started: 0,
            is_behind: false,
            without_timer: None,
            has_yielded: false,
            without_stack: 0,
            counted: Counted::default(),
        };
        // Read the tables before the time begins; that takes longer than a later look.
        sampler.look(LONGEST_START).map_err(|error| {
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
    /// It stops giving timers after `longest`, and then goes on at the next look.
    fn look(&mut self, longest: Duration) -> io::Result<()> {
        if self.has_yielded {
            return Ok(());
        }
        let threads = threads()?;
        self.unwinder.look();
        self.timers.retain(|tid, _| threads.contains(tid));
        self.apart.retain(|tid| threads.contains(&tid));
        self.set_apart();
        let (period, began) = (self.period(), Instant::now());
        self.is_behind = false;
        for tid in threads {
            if tid == self.own || self.timers.contains_key(&tid) || self.apart.has(tid) {
                continue;
            }
            let Some(used) = used_by(tid) else { continue };
            if began.elapsed() > longest {
                self.is_behind = true;
                break;
            }
            let name = name_of(tid).unwrap_or_default();
            self.counted.names.insert(tid, name);
            match self.apart.has_small_stack(tid, &mut self.unwinder) {
                Some(false) => {}
                Some(true) => {
                    self.apart.add(tid, used);
                    continue;
                }
                None => continue,
            }
            // Threads that begin together should not be sampled together. A thread that uses less than a period of CPU
            // time should still get its share of samples. So first samples are spread by the golden ratio.
            self.started += 1;
            let part = (self.started as f64 * 0.618_033_988_749).fract();
            let first = period.mul_f64(part).max(Duration::from_nanos(1));
            match Timer::start(tid, first, period) {
                Ok(timer) => {
                    self.timers.insert(tid, (timer, used));
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

    /// Ends the timers of threads that use CPU time and whose signal does not come, and sets these threads apart.
    fn set_apart(&mut self) {
        let mut apart: Vec<i32> = Handler::without_room().into_iter().collect();
        for (tid, missing) in self.missing() {
            if missing > self.period() * MISSING && blocks_the_signal(tid) {
                apart.push(tid);
            }
        }
        for tid in apart {
            if let Some((_, used)) = self.timers.remove(&tid) {
                self.apart.add(tid, used + self.sampled_of(tid));
            }
        }
    }

    /// Returns the CPU time without a sample of each thread that has a timer.
    fn missing(&self) -> Vec<(i32, Duration)> {
        let mut missing = Vec::new();
        for (tid, (_, before)) in &self.timers {
            if let Some(used) = used_by(*tid) {
                let used = used.saturating_sub(*before);
                missing.push((*tid, used.saturating_sub(self.sampled_of(*tid))));
            }
        }
        missing
    }

    /// Returns the CPU time that the samples of a thread stand for.
    fn sampled_of(&self, tid: i32) -> Duration {
        let samples = self.counted.by_thread.get(&tid).copied();
        self.period().mul_f64(samples.unwrap_or_default() as f64)
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1) / self.frequency
    }

    /// Ends all timers if the service has installed a handler of its own: their signals would go to that one, or end the
    /// service once it is removed.
    fn yield_to_another_profiler(&mut self) {
        if !self.has_yielded && !Handler::is_in_force() {
            self.has_yielded = true;
            self.timers.clear();
        }
    }

    /// Counts the samples that were taken since the last call, and samples the threads that get no signal.
    fn read(&mut self) {
        let period = self.period();
        let Self {
            handler,
            unwinder,
            apart,
            counted,
            without_stack,
            ..
        } = self;
        handler.read(|sample| {
            if !sample.has_stack() {
                *without_stack += sample.periods;
            }
            let callers = callers(unwinder, sample);
            let stack = counted.count(sample.tid, sample.periods, callers);
            if counted.moments.len() < MOST_MOMENTS {
                counted.moments.push(CpuMoment {
                    stack,
                    slept: sample.slept,
                    periods: sample.periods,
                });
            }
        });
        // They have no moments: a stop counts as a sleep.
        apart.sample(period, unwinder, |tid, periods, callers| {
            counted.count(tid, periods, callers);
            counted.name(tid)
        });
    }

    /// Returns the number of samples that are missing for `used` CPU time, and a sentence on it, if they are many.
    fn unseen(&self, used: Duration) -> Option<(u64, String)> {
        let taken: u64 = self.counted.by_thread.values().sum();
        let due = used.as_secs_f64() * f64::from(self.frequency);
        let unseen = due - (taken + self.handler.lost()) as f64;
        if self.has_yielded || unseen < FEWEST_UNSEEN || unseen < due * SHARE_UNSEEN {
            return None;
        }
        let mut missing = self.missing();
        missing.extend(self.apart.missing());
        missing.retain(|(_, missing)| *missing > self.period() * MISSING);
        missing.sort_by_key(|(_, missing)| std::cmp::Reverse(*missing));
        let names: Vec<String> = missing
            .iter()
            .map(|(tid, _)| self.counted.name(*tid))
            .collect();
        let mut says = format!(
            "No sample was taken of {:.0} % of the CPU time ({:.1} of {:.1} s)",
            100.0 * unseen / due,
            unseen / f64::from(self.frequency),
            used.as_secs_f64()
        );
        if !names.is_empty() {
            says = format!(
                "{says}, most of it by {}",
                listed(names.iter().map(String::as_str))
            );
        }
        if let Some(why) = self.apart.refused() {
            says = format!("{says}. Threads that get no signal cannot be stopped either: {why}");
        } else if names.is_empty() {
            says = format!(
                "{says}: it was used in pieces that are shorter than the time between two samples"
            );
        }
        // It is positive, and part of a sample does not count.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some((unseen as u64, format!("{says}.")))
    }

    /// Returns the stacks in the order of their numbers.
    fn stacks(self) -> Vec<Stack> {
        let mut stacks = Vec::new();
        let mut seen: Vec<_> = self.counted.seen.iter().collect();
        seen.sort_by_key(|(_, (number, _))| *number);
        for ((tid, addresses), (_, samples)) in seen {
            stacks.push(Stack {
                thread: self.counted.name(*tid),
                tid: *tid,
                addresses: addresses.clone(),
                samples: *samples,
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
        notes.extend(self.apart.note());
        if self.has_yielded {
            notes.push(
                "This profile ended early: the service began its own profiler, which handles SIGPROF.".to_owned(),
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
