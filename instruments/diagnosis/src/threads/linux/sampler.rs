//! Sampler of a process's threads: it looks at them several times a second.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;

use super::stops::{self, Call, Outcome, Stop};
use super::unwinder::Unwinder;
use crate::Process;

/// Time between two moments: 19 a second, which is in step with few timers.
const PERIOD: Duration = Duration::from_millis(53);

/// Most threads that one child stops.
const AT_ONCE: usize = 16;

/// Most different stacks of one profile, of up to four kilobytes each.
const MOST_STACKS: usize = 20_000;

/// Most moments of running threads that one profile keeps, of 24 bytes each.
const MOST_RUNNING: usize = 200_000;

/// Most threads of one profile, including threads that have ended.
const MOST_THREADS: usize = 10_000;

/// Activity of a thread at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Moment {
    /// Index of its stack, if one was taken.
    pub(super) stack: Option<usize>,
    /// State by the kernel's letters: `R` runs, `S` sleeps, `D` waits for a disk, `T` and `t` are stopped.
    pub(super) state: char,
    pub(super) call: Option<i64>,
    /// Kernel function in which it waits.
    pub(super) wchan: Option<String>,
}

/// Scheduler's times of a thread, in nanoseconds, and the number of times that it began to run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sched {
    pub(super) ran: u64,
    pub(super) delayed: u64,
    slices: u64,
}

impl Sched {
    /// Reads the line of the file `schedstat`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        Some(Self {
            ran: words.next()?.parse().ok()?,
            delayed: words.next()?.parse().ok()?,
            slices: words.next()?.parse().ok()?,
        })
    }
}

/// A thread that was seen to run at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) moment: u64,
    pub(super) stack: usize,
    /// CPU time that it had used by that moment, in nanoseconds.
    pub(super) ran: u64,
}

/// Samples of one thread.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    pub(super) name: String,
    /// Number of times that it was stopped.
    pub(super) stops: u64,
    /// Scheduler's times when it was first examined closely; `last` is from the last time.
    pub(super) first: Option<Sched>,
    pub(super) last: Sched,
    /// Moments at which it ran, with its stack.
    pub(super) running: Vec<Running>,
    pub(super) moments: HashMap<Moment, u64>,
}

/// Samples of all threads.
#[derive(Debug, Default)]
pub struct Samples {
    pub(super) threads: BTreeMap<i32, Sampled>,
    /// Stacks of addresses, from the innermost outwards.
    pub(super) stacks: Vec<Vec<usize>>,
    pub(super) moments: u64,
    pub(super) stops: u64,
    /// Total time of all stops, each from the order to stop until the thread went on.
    pub(super) stopped: Duration,
    /// The longest of them.
    pub(super) longest_stop: Duration,
    /// Reason why stacks are missing.
    pub(super) refused: Option<String>,
    /// True if any stack could be read.
    pub(super) has_stacks: bool,
}

/// A thread as it was last seen.
struct Known {
    /// Scheduler's times then.
    sched: Option<Sched>,
    /// Number of times that it may have begun to run since because it was stopped.
    caused: u64,
    moment: Moment,
}

/// A thread that may have moved since, and has to be examined.
struct Moved {
    tid: i32,
    name: String,
    state: char,
    sched: Option<Sched>,
    wchan: Option<String>,
}

struct Sampler {
    process: Process,
    /// The calling thread, which cannot stop itself.
    own: i32,
    samples: Samples,
    known: HashMap<i32, Known>,
    unwinder: Unwinder,
    stacks: HashMap<Vec<usize>, usize>,
    stops: Vec<Stop>,
    /// Number of moments of running threads kept so far.
    running: usize,
    /// True if Yama lets only a process's ancestors trace it, and a process that it names.
    has_to_name: bool,
    /// CPU time of the children that take stacks.
    tracing: Duration,
}

/// Samples the threads of `process` until `duration` is over or `is_awaited` returns false. In the calling process, the
/// calling thread is left out.
pub fn sample(process: Process, duration: Duration, is_awaited: &dyn Fn() -> bool) -> Samples {
    let mut sampler = Sampler {
        process,
        own: stops::own_tid(),
        samples: Samples::default(),
        known: HashMap::new(),
        unwinder: Unwinder::new(process),
        stacks: HashMap::new(),
        stops: (0..AT_ONCE).map(|_| Stop::new()).collect(),
        running: 0,
        has_to_name: stops::has_to_name(process),
        tracing: Duration::ZERO,
    };
    // Read the tables before the time begins; that takes longer than a look.
    sampler.unwinder.look();
    let end = Instant::now() + duration;
    loop {
        let (began, used) = (Instant::now(), ThreadTime::now());
        sampler.tracing = Duration::ZERO;
        sampler.look();
        // Sampling and the tracer together use at most a twentieth of a CPU, however many threads there are.
        let pause = PERIOD.saturating_sub(began.elapsed());
        let pause = pause.max((used.elapsed() + sampler.tracing) * 19);
        let left = end.saturating_duration_since(Instant::now());
        if left < pause || !is_awaited() {
            std::thread::sleep(left.min(pause));
            sampler.explain();
            return sampler.samples;
        }
        std::thread::sleep(pause);
    }
}

impl Sampler {
    fn look(&mut self) {
        self.samples.moments += 1;
        let tids = self.tids();
        self.known.retain(|tid, _| tids.contains(tid));
        let mut moved = Vec::new();
        for tid in tids {
            moved.extend(self.moved(tid));
        }
        if moved.is_empty() {
            return;
        }
        self.unwinder.look();
        let mut rest = &moved[..];
        while !rest.is_empty() {
            let mut stops = std::mem::take(&mut self.stops);
            for (stop, thread) in stops.iter_mut().zip(rest) {
                stop.aim(self.process, thread.tid);
            }
            let some = &mut stops[..rest.len().min(AT_ONCE)];
            let taken = stops::take(self.process, some, &self.unwinder.stacks, self.has_to_name);
            let is_started = taken.is_ok();
            match taken {
                Ok(cpu_time) => self.tracing += cpu_time,
                Err(error) => self.refuse(format!(
                    "no process can be started that would take stacks ({error})"
                )),
            }
            // If none was tried, the child was killed, and all go without a stack.
            let tried = some
                .iter()
                .take_while(|stop| stop.outcome != Outcome::NotTried)
                .count();
            if tried == 0 && is_started {
                self.refuse(
                    "the process that takes stacks was killed, as by a seccomp filter that does not allow ptrace: \
                     allow ptrace and process_vm_readv there"
                        .to_owned(),
                );
            }
            let tried = if tried == 0 { some.len() } else { tried };
            for (stop, thread) in some.iter().zip(&rest[..tried]) {
                self.count_stopped(thread, stop);
            }
            rest = &rest[tried..];
            self.stops = stops;
        }
    }

    /// Returns the numbers of the process's threads, without the calling one.
    fn tids(&self) -> Vec<i32> {
        let mut tids = Vec::new();
        let tasks = fs::read_dir(self.process.path("task"));
        for task in tasks.into_iter().flatten().flatten() {
            if let Some(name) = task.file_name().to_str()
                && let Ok(tid) = name.parse()
                && tid != self.own
            {
                tids.push(tid);
            }
        }
        tids
    }

    /// Returns a thread that has to be examined closely. A thread that still sleeps is counted at once.
    fn moved(&mut self, tid: i32) -> Option<Moved> {
        let file = |name| self.process.text(&format!("task/{tid}/{name}"));
        let stat = file("stat").ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        let state = rest
            .chars()
            .next()
            .filter(|state| !matches!(state, 'X' | 'Z'))?;
        let sched = match file("schedstat") {
            Ok(line) => Sched::parse(&line),
            Err(_) => None,
        };
        if let Some(known) = self.known.get_mut(&tid) {
            let is_by_stops = match (sched, known.sched) {
                (Some(now), Some(then)) => now.slices.saturating_sub(then.slices) <= known.caused,
                _ => false,
            };
            let still_sleeps = state == known.moment.state && state != 'R';
            if still_sleeps && is_by_stops {
                (known.sched, known.caused) = (sched, 0);
                let moment = known.moment.clone();
                self.count(tid, name, moment);
                return None;
            }
        }
        let wchan = file("wchan")
            .ok()
            .filter(|wchan| !matches!(wchan.as_str(), "0" | ""));
        let name = name.to_owned();
        Some(Moved {
            tid,
            name,
            state,
            sched,
            wchan,
        })
    }

    fn count_stopped(&mut self, thread: &Moved, stop: &Stop) {
        let mut caused = 0;
        let mut stack = None;
        match stop.outcome {
            Outcome::Taken => {
                self.samples.stops += 1;
                self.samples.has_stacks |= stop.has_stack();
                self.samples.stopped += stop.took;
                self.samples.longest_stop = self.samples.longest_stop.max(stop.took);
                // The thread has run once to stop, and once to go on.
                caused = 2;
                let callers = self
                    .unwinder
                    .callers(stop.registers(), |address| stop.word(address));
                let next = self.stacks.len();
                stack = match self.stacks.get(&callers) {
                    Some(known) => Some(*known),
                    None if next == MOST_STACKS => None,
                    None => {
                        self.stacks.insert(callers.clone(), next);
                        self.samples.stacks.push(callers);
                        Some(next)
                    }
                };
            }
            Outcome::Refused(error) => self.refuse(why_refused(self.process, error)),
            Outcome::NotTried | Outcome::Spared | Outcome::Missed => {}
        }
        let call = match stop.outcome {
            Outcome::NotTried => {
                let file = self.process.path(&format!("task/{}/syscall", thread.tid));
                match fs::read(file) {
                    Ok(line) => Call::parse(&line),
                    Err(_) => None,
                }
            }
            _ => Some(stop.call),
        };
        let mut moment = Moment {
            stack,
            state: thread.state,
            call: None,
            wchan: thread.wchan.clone(),
        };
        match call {
            Some(Call::Running) => (moment.state, moment.wchan) = ('R', None),
            Some(Call::Number(number, _)) => {
                moment.call = Some(number);
                // A call with a time-out that was stopped goes on under another number.
                if number == libc::SYS_restart_syscall
                    && let Some(earlier) = self.before_restart(thread)
                {
                    moment.call = Some(earlier);
                }
                if moment.state == 'R' {
                    moment.state = 'S';
                }
            }
            Some(Call::None) | None => {}
        }
        let known = Known {
            sched: thread.sched,
            caused,
            moment: moment.clone(),
        };
        self.known.insert(thread.tid, known);
        self.count(thread.tid, &thread.name, moment.clone());
        if let Some(sampled) = self.samples.threads.get_mut(&thread.tid) {
            sampled.stops += u64::from(stop.outcome == Outcome::Taken);
            if let Some(sched) = thread.sched {
                sampled.first.get_or_insert(sched);
                sampled.last = sched;
                let runs = moment.state == 'R' && self.running < MOST_RUNNING;
                if let (true, Some(stack)) = (runs, moment.stack) {
                    self.running += 1;
                    sampled.running.push(Running {
                        moment: self.samples.moments,
                        stack,
                        ran: sched.ran,
                    });
                }
            }
        }
    }

    /// Returns the call that the kernel has restarted: the thread's last one, or what its kernel function tells.
    fn before_restart(&self, thread: &Moved) -> Option<i64> {
        if let Some(known) = self.known.get(&thread.tid)
            && let Some(call) = known.moment.call
        {
            return Some(call);
        }
        restarted(thread.wchan.as_deref()?)
    }

    fn count(&mut self, tid: i32, name: &str, moment: Moment) {
        if self.samples.threads.len() < MOST_THREADS || self.samples.threads.contains_key(&tid) {
            let thread = self.samples.threads.entry(tid).or_default();
            if thread.name != name {
                name.clone_into(&mut thread.name);
            }
            *thread.moments.entry(moment).or_default() += 1;
        }
    }

    /// Sets the reason for missing stacks if threads were stopped in vain.
    fn explain(&mut self) {
        if self.samples.stops > 0 && !self.samples.has_stacks {
            self.refuse(
                "the system does not allow process_vm_readv, as seccomp profiles of containers do: allow it there"
                    .to_owned(),
            );
        }
    }

    fn refuse(&mut self, why: String) {
        self.samples.refused.get_or_insert(why);
    }
}

/// Returns the call that the kernel has restarted, by the kernel function in which it waits.
fn restarted(wchan: &str) -> Option<i64> {
    let calls = [
        ("futex", libc::SYS_futex),
        ("nanosleep", libc::SYS_clock_nanosleep),
        ("poll", libc::SYS_ppoll),
    ];
    let found = calls.iter().find(|(part, _)| wchan.contains(part));
    found.map(|(_, call)| *call)
}

/// Returns the reason why a process cannot be traced.
pub fn why_refused(process: Process, error: i32) -> String {
    let status = process.text("status").unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match (tracer.map(str::trim), scope.trim()) {
        (Some(tracer), _) if tracer != "0" => {
            format!("process {tracer} traces this one already, such as gdb or strace: end it, and ask again")
        }
        (_, scope @ ("2" | "3")) => {
            format!("/proc/sys/kernel/yama/ptrace_scope is {scope}: nobody may look into processes, or root alone")
        }
        _ if process.is_this() && !stops::is_dumpable() => {
            "this process is not dumpable, as is one whose file has capabilities or another user's rights: \
             prctl(PR_SET_DUMPABLE, 1) in it lets its stacks be taken"
                .to_owned()
        }
        // The process that takes stacks counts as a thread of its user.
        _ if error == libc::EAGAIN => format!(
            "this takes a thread in a separate process, and the system starts none ({}): raise the limit, `ulimit -u` or \
             pids.max of the container",
            std::io::Error::from_raw_os_error(error)
        ),
        _ => format!(
            "the system does not allow ptrace ({}), as seccomp profiles of containers do: allow ptrace and \
             process_vm_readv there",
            std::io::Error::from_raw_os_error(error)
        ),
    }
}
