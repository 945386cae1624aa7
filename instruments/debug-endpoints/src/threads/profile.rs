//! A finished profile of threads, and the formats in which it is given out.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use await_profile::plumbing::crate_of;
use serde::Serialize;

use super::sampler::{Moment, Sampled, Samples};
use crate::cpu_names::{self, Functions, Mapping};
use crate::error::EndpointError;
use crate::thread_roles::{Role, Whose, carries_requests, idle, is_of_profiler, waits_for_others};

/// What the threads of a process did for some time.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadProfile {
    pub(crate) seconds: f64,
    /// How often all threads were looked at.
    pub(crate) moments: u64,
    /// How often a thread was stopped for its stack.
    pub(crate) stops: u64,
    /// How long such a stop took at most, on average and in microseconds: until the thread went on, from when it was
    /// told to stop, which takes longer where all CPUs are busy.
    pub(crate) stop_us: f64,
    /// What a reader has to know of it, if anything.
    pub(crate) note: Option<String>,
    pub(crate) threads: Vec<Thread>,
}

/// One thread.
#[derive(Debug, Serialize)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    pub(crate) name: String,
    /// What it is for, by what its stack begins with; its name, where that tells nothing.
    pub(crate) role: String,
    /// The first frame of its stacks.
    #[serde(skip)]
    label: String,
    /// Whether all tasks that it drives wait while it is held.
    pub(crate) is_runtime: bool,
    /// Whether a request was begun on it that await profiles see.
    #[serde(skip)]
    pub(super) began_requests: bool,
    /// Moments in which it was there.
    pub(crate) samples: u64,
    /// How often it was stopped for its stack.
    pub(crate) stops: u64,
    /// Shares of them.
    pub(crate) blocked: f64,
    pub(crate) running: f64,
    pub(crate) idle: f64,
    /// What it did, most often first.
    pub(crate) stacks: Vec<Stack>,
}

/// What a thread did in some of the moments.
#[derive(Debug, Serialize)]
pub(crate) struct Stack {
    pub(crate) samples: u64,
    pub(crate) state: State,
    /// The state in words, as in the folded stacks.
    pub(crate) text: String,
    /// The system call that it was in, by name.
    pub(crate) call: Option<String>,
    /// Where in the kernel it waited.
    pub(crate) wchan: Option<String>,
    /// The innermost function of the service's own code, with file and line where they are known.
    pub(crate) own: Option<String>,
    /// From the outermost inwards; none where it was not stopped.
    pub(crate) frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Blocked,
    Running,
    Idle,
}

/// One function of a stack.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Frame {
    pub(crate) function: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// Whether it is the service's own code.
    pub(crate) own: bool,
    #[serde(skip)]
    whose: Whose,
}

impl Frame {
    /// Own code with its line.
    pub(super) fn label(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) if self.own => format!("{} ({file}:{line})", self.function),
            _ => self.function.clone(),
        }
    }
}

impl ThreadProfile {
    /// Looks up names, each once.
    pub(crate) fn new(samples: Samples, duration: Duration) -> Self {
        let mappings = Mapping::all();
        let mut known: HashMap<usize, Functions> = HashMap::new();
        for &address in samples.stacks.iter().flatten() {
            known
                .entry(address)
                .or_insert_with(|| cpu_names::functions(address));
        }
        backtrace::clear_symbol_cache();
        let stacks = samples.stacks.iter();
        let stacks: Vec<Vec<Frame>> = stacks
            .map(|stack| frames(stack, &known, &mappings))
            .collect();
        let threads = samples.threads.into_iter();
        let threads = threads.map(|(tid, seen)| Thread::new(tid, seen, &stacks));
        let refused = samples.refused.filter(|_| samples.stops == 0);
        let refused = refused.map(|why| format!("No stacks: {why}."));
        Self {
            seconds: duration.as_secs_f64(),
            moments: samples.moments,
            stops: samples.stops,
            stop_us: samples.stopped.as_secs_f64() * 1e6 / samples.stops.max(1) as f64,
            note: refused.or_else(|| cpu_names::note(&known, &mappings)),
            threads: threads.collect(),
        }
    }

    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Folded stacks, a line each: who is blocked first, and of those the workers of a runtime, then who runs; `idle`
    /// adds who has nothing to do. `all` has every frame, and else those that the service's code wrote or called.
    pub(crate) fn folded(&self, idle: bool, all: bool) -> String {
        let mut lines: BTreeMap<(State, bool, String), u64> = BTreeMap::new();
        for thread in &self.threads {
            for stack in thread
                .stacks
                .iter()
                .filter(|stack| idle || stack.state != State::Idle)
            {
                let frames = if all {
                    stack.frames.iter().map(Frame::label).collect()
                } else {
                    shown(&stack.frames)
                };
                let mut line = String::new();
                for frame in [&thread.label, &stack.text].into_iter().chain(&frames) {
                    line.push_str(&frame.replace([';', '\n'], ","));
                    line.push(';');
                }
                line.pop();
                *lines
                    .entry((stack.state, !thread.is_runtime, line))
                    .or_default() += stack.samples;
            }
        }
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines
            .sort_by_key(|((state, is_other, _), samples)| (*state, *is_other, u64::MAX - samples));
        let lines = lines
            .into_iter()
            .map(|((_, _, line), samples)| format!("{line} {samples}\n"));
        lines.collect()
    }

    /// An SVG that zooms and searches.
    #[cfg(feature = "flamegraph")]
    pub(crate) fn flamegraph(&self, idle: bool, all: bool) -> Result<String, EndpointError> {
        let left_out = (!idle).then(|| {
            "Threads that have nothing to do are left out: &idle=true draws them.".to_owned()
        });
        let drawing = await_profile::drawing::Drawing {
            title: "Threads: where they are blocked, and where they run".to_owned(),
            captions: self.note.iter().cloned().chain(left_out).take(2).collect(),
            unit: "samples".to_owned(),
            theme: await_profile::drawing::Theme::Wait,
            ..Default::default()
        };
        drawing
            .draw(&self.folded(idle, all))
            .map_err(EndpointError::failed)
    }

    #[cfg(not(feature = "flamegraph"))]
    #[allow(clippy::unused_self)] // one signature for both
    pub(crate) fn flamegraph(&self, _: bool, _: bool) -> Result<String, EndpointError> {
        Err(EndpointError::Unsupported("this build draws no pictures"))
    }
}

impl Thread {
    fn new(tid: i32, seen: Sampled, stacks: &[Vec<Frame>]) -> Self {
        let frames = |moment: &Moment| moment.stack.map_or(&[][..], |at| &stacks[at]);
        let names = |moment| -> Vec<&str> {
            let frames = frames(moment).iter();
            frames.map(|frame| frame.function.as_str()).collect()
        };
        let (name, moments) = (seen.name, seen.moments);
        // What it is for does not change: the most frequent stack whose root was reached tells it.
        let mut by_samples: Vec<_> = moments.iter().collect();
        by_samples.sort_by_key(|(_, samples)| u64::MAX - **samples);
        let mut roles = by_samples.iter();
        let role = roles.find_map(|(moment, _)| Role::of(&names(moment)));
        let mut did: Vec<Stack> = moments
            .iter()
            .map(|(moment, samples)| {
                let frames = frames(moment);
                // A worker that has given its tasks away blocks nobody.
                let names = names(moment);
                let role_now = Role::of(&names).or(role);
                let is_in = |calls: &[i64]| moment.call.is_some_and(|call| calls.contains(&call));
                let idle = match moment.state {
                    'R' => None,
                    _ if frames.is_empty() => is_in(EVENTS).then_some(""),
                    _ => idle(role_now, &names).or_else(|| {
                        let is_own = frames.iter().any(|frame| frame.own);
                        let waits = role_now.is_none() && !is_own && is_in(&[libc::SYS_futex]);
                        waits.then_some("thread of a library")
                    }),
                };
                let state = match (moment.state, idle) {
                    ('R', _) => State::Running,
                    (_, Some(_)) => State::Idle,
                    _ => State::Blocked,
                };
                let own = frames.iter().rev().find(|frame| frame.own);
                Stack {
                    samples: *samples,
                    state,
                    text: text(moment, idle),
                    call: moment.call.map(call_name),
                    wchan: moment.wchan.clone(),
                    own: own.map(Frame::label),
                    frames: frames.to_vec(),
                }
            })
            .collect();
        did.sort_by(|a, b| {
            (b.samples, a.state, &a.text, &a.own).cmp(&(a.samples, b.state, &b.text, &b.own))
        });
        let samples: u64 = did.iter().map(|stack| stack.samples).sum();
        let share = |state| {
            let of_state = did.iter().filter(|stack| stack.state == state);
            of_state.map(|stack| stack.samples).sum::<u64>() as f64 / samples.max(1) as f64
        };
        Self {
            tid,
            role: role.map_or_else(|| name.clone(), |role| role.name().to_owned()),
            label: Role::label(role, &name),
            is_runtime: role.is_some_and(Role::is_runtime),
            began_requests: await_profile::has_begun_requests(tid),
            name,
            samples,
            stops: seen.stops,
            blocked: share(State::Blocked),
            running: share(State::Running),
            idle: share(State::Idle),
            stacks: did,
        }
    }
}

impl Stack {
    /// The function by which a library was entered for its work, and not to bring a request to its handler; `None` if it
    /// works for a profiler.
    pub(super) fn called_library(&self) -> Option<&Frame> {
        let functions = self.frames.iter().map(|frame| frame.function.as_str());
        if is_of_profiler(functions) {
            return None;
        }
        let carries = |frame: &Frame| carries_requests(&frame.function);
        let handler = self.frames.iter().rposition(carries);
        let mut called = self.frames[handler.map_or(0, |last| last + 1)..].iter();
        called.find(|frame| {
            frame.whose == Whose::Library && !waits_for_others(crate_of(&frame.function))
        })
    }

    /// The call that it is in, also while the kernel works for it there.
    pub(super) fn in_call(&self) -> Option<&str> {
        let innermost = self.frames.last().map_or("", |frame| &frame.function);
        let name = innermost.trim_start_matches("__GI_");
        let name = name.trim_start_matches('_').trim_start_matches("libc_");
        let mut calls = CALLS.iter().chain(OLD_CALLS);
        let is_call = calls.any(|(call, _)| call.strip_prefix("SYS_") == Some(name));
        self.call.as_deref().or(is_call.then_some(name))
    }
}

#[cfg(test)]
impl Stack {
    /// One of these functions, of which those of `shop` are the service's own.
    pub(super) fn of(samples: u64, state: State, functions: &[&str]) -> Self {
        let frame = |function: &&str| {
            let whose = Whose::of(function, "", !function.starts_with("shop::"));
            Frame {
                function: (*function).to_owned(),
                file: None,
                line: None,
                own: whose == Whose::Own,
                whose,
            }
        };
        Self {
            samples,
            state,
            text: String::new(),
            call: None,
            wchan: None,
            own: None,
            frames: functions.iter().map(frame).collect(),
        }
    }

    /// The same in a call.
    pub(super) fn calling(mut self, call: &str) -> Self {
        self.text = format!("(blocked in {call})");
        self.call = Some(call.to_owned());
        self
    }
}

#[cfg(test)]
impl Thread {
    /// One that did this.
    pub(super) fn of(role: &str, did: Vec<Stack>) -> Self {
        let samples = did.iter().map(|stack| stack.samples).sum();
        Self {
            tid: 0,
            name: role.to_owned(),
            role: role.to_owned(),
            label: role.to_owned(),
            is_runtime: role == Role::Worker.name(),
            began_requests: false,
            samples,
            stops: samples,
            blocked: 0.0,
            running: 0.0,
            idle: 0.0,
            stacks: did,
        }
    }
}

#[cfg(test)]
impl ThreadProfile {
    pub(super) fn of(moments: u64, threads: Vec<Thread>) -> Self {
        Self {
            seconds: 1.0,
            moments,
            stops: 0,
            stop_us: 0.0,
            note: None,
            threads,
        }
    }
}

/// The functions at these addresses, from the outermost inwards.
fn frames(
    addresses: &[usize],
    known: &HashMap<usize, Functions>,
    mappings: &[Mapping],
) -> Vec<Frame> {
    let mut frames = Vec::new();
    for address in addresses.iter().rev() {
        let functions = known.get(address).map(Vec::as_slice).unwrap_or_default();
        if functions.is_empty() {
            let function = cpu_names::nameless(*address, mappings);
            frames.push(Frame {
                function,
                file: None,
                line: None,
                own: false,
                whose: Whose::Plumbing,
            });
        }
        for (function, line) in functions.iter().rev() {
            let whose = Whose::of(&function.name, &function.file, function.is_foreign);
            frames.push(Frame {
                function: function.name.clone(),
                file: Some(function.file.clone()).filter(|file| !file.is_empty()),
                line: Some(*line).filter(|line| *line > 0),
                own: whose == Whose::Own,
                whose,
            });
        }
    }
    frames
}

/// The service's own functions, of each library the one by which it was entered, and what was called last.
fn shown(frames: &[Frame]) -> Vec<String> {
    let is_somebodys = |frame: &Frame| frame.whose != Whose::Plumbing;
    let first = frames.iter().position(|frame| frame.own);
    let first = first.or_else(|| frames.iter().position(is_somebodys));
    let Some(first) = first else {
        // Of the runtime alone; or without names.
        let last = frames
            .iter()
            .rev()
            .find(|frame| frame.function.contains("::"));
        return last.map_or_else(
            || frames.iter().map(Frame::label).collect(),
            |last| vec![last.label()],
        );
    };
    let last = frames.iter().rposition(is_somebodys).unwrap_or(first);
    let mut shown: Vec<&Frame> = Vec::new();
    for frame in &frames[first..=last] {
        let krate = crate_of(&frame.function);
        let is_there = shown.iter().any(|one| one.function == frame.function);
        match (frame.whose, shown.last_mut()) {
            (Whose::Plumbing, _) => {}
            // An async block inside its function: keep the innermost line.
            (Whose::Own, Some(before)) if before.function == frame.function => *before = frame,
            (Whose::Library, Some(before)) if crate_of(&before.function) == krate => {}
            // Libraries that divide work call each other again and again.
            (Whose::Library, _) if is_there => {}
            _ => shown.push(frame),
        }
    }
    let is_named =
        |frame: &&Frame| !frame.function.starts_with("core::") && frame.function.contains("::");
    let called = frames[last + 1..].iter().find(is_named);
    shown.into_iter().chain(called).map(Frame::label).collect()
}

/// What a thread did, in words.
fn text(moment: &Moment, idle: Option<&str>) -> String {
    let call = moment
        .call
        .map_or_else(|| "the kernel".to_owned(), call_name);
    match (moment.state, idle) {
        ('R', _) => "(running)".to_owned(),
        ('T' | 't', _) => "(stopped)".to_owned(),
        (_, Some("")) => format!("(idle: {call})"),
        (_, Some(idle)) => format!("(idle: {idle})"),
        (state, None) => {
            // Where that says more: whether a `write` is to a pipe, a socket or a disk.
            let says_all =
                ["futex", "nanosleep", "clock_nanosleep", "poll", "ppoll"].contains(&&*call);
            let wchan = moment.wchan.as_deref().filter(|_| !says_all);
            let wchan = wchan.map(|wchan| format!(": {wchan}")).unwrap_or_default();
            let disk = if state == 'D' {
                ", uninterruptible"
            } else {
                ""
            };
            format!("(blocked in {call}{wchan}{disk})")
        }
    }
}

macro_rules! calls {
    ($($name:ident)*) => {
        &[$((concat!("", stringify!($name)), libc::$name)),*]
    };
}

/// Calls in which threads wait.
const CALLS: &[(&str, i64)] = calls! {
    SYS_accept SYS_accept4 SYS_clock_nanosleep SYS_clone SYS_close SYS_connect SYS_copy_file_range SYS_epoll_pwait
    SYS_epoll_pwait2 SYS_execve SYS_fallocate SYS_fcntl SYS_fdatasync SYS_flock SYS_fsync SYS_ftruncate SYS_futex
    SYS_getdents64 SYS_getrandom SYS_io_getevents SYS_io_uring_enter SYS_ioctl SYS_linkat SYS_madvise SYS_mkdirat
    SYS_mmap SYS_mprotect SYS_mq_timedreceive SYS_mq_timedsend SYS_msgrcv SYS_msgsnd SYS_munmap SYS_nanosleep
    SYS_newfstatat SYS_openat SYS_ppoll SYS_pread64 SYS_preadv SYS_pselect6 SYS_pwrite64 SYS_pwritev SYS_read SYS_readv
    SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_renameat2 SYS_restart_syscall SYS_rt_sigsuspend SYS_rt_sigtimedwait
    SYS_sched_yield SYS_semop SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_splice SYS_statx
    SYS_sync SYS_syncfs SYS_unlinkat SYS_wait4 SYS_waitid SYS_write SYS_writev
};

/// Those that other processors do without.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(&str, i64)] = calls! {
    SYS_epoll_wait SYS_fork SYS_mkdir SYS_open SYS_pause SYS_poll SYS_rename SYS_select SYS_stat SYS_unlink SYS_vfork
};
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(&str, i64)] = &[];

/// Calls of event loops: whoever is in one waits for anything at all.
const EVENTS: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_io_uring_enter,
];

fn call_name(call: i64) -> String {
    let known = CALLS
        .iter()
        .chain(OLD_CALLS)
        .find(|(_, number)| *number == call);
    known.map_or_else(
        || format!("system call {call}"),
        |(name, _)| name.trim_start_matches("SYS_").to_owned(),
    )
}
