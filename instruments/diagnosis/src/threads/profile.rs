//! A finished profile of threads, and its output formats.

use std::collections::BTreeMap;

use ecosystem::{
    Frame as Told, Line, PartMeaning, Role, carries_requests, crate_of, waits_for_others,
};
use serde::{Deserialize, Serialize};

use super::roles::{Whose, is_of_profiler};

/// Threads of a process during some time.
#[derive(Debug, Serialize, Deserialize)]
pub struct ThreadProfile {
    /// Length of the profile, in seconds.
    pub seconds: f64,
    /// Number of moments at which all threads were sampled.
    pub moments: u64,
    /// Number of times that a thread was stopped for its stack.
    pub stops: u64,
    /// Mean duration of a stop, in microseconds, from the order to stop until the thread went on. The thread itself
    /// stood still for at most this long: where all CPUs are busy, it takes time to stop.
    pub stop_us: f64,
    /// Duration of the longest stop, in microseconds, counted the same way.
    pub longest_stop_us: f64,
    /// Note for the reader, if there is one, such as why there are no stacks.
    pub note: Option<String>,
    /// Threads that were seen.
    pub threads: Vec<Thread>,
}

/// One thread.
#[derive(Debug, Serialize, Deserialize)]
pub struct Thread {
    /// Its number in the system.
    pub tid: i32,
    /// Its name; the system keeps 15 bytes of it.
    pub name: String,
    /// Its purpose, by the outermost frames of its stack, or else its name.
    pub role: String,
    /// The first frame of its stacks.
    pub(super) label: String,
    /// True if it drives tasks of a runtime, all of which wait while it is held.
    pub is_runtime: bool,
    /// True if a request that await profiles see began on it.
    pub began_requests: bool,
    /// Moments at which it existed.
    pub samples: u64,
    /// Number of times that it was stopped for its stack.
    pub stops: u64,
    /// Share of the samples in which it was blocked.
    pub blocked: f64,
    /// Share of the samples in which it ran.
    pub running: f64,
    /// Share of the samples in which it had nothing to do.
    pub idle: f64,
    /// CPU time that it used, in seconds.
    pub ran_s: f64,
    /// Time for which it waited for a CPU, in seconds.
    pub delayed_s: f64,
    /// The longest times that it was seen in one function without a pause.
    pub holds: Vec<Hold>,
    /// Its stacks, the most frequent first.
    pub stacks: Vec<Stack>,
}

/// A time for which a thread was in one function without a pause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hold {
    /// Number of consecutive moments at which it was seen there.
    pub moments: u64,
    /// CPU time of the thread between the first and the last of these moments, in seconds.
    pub cpu_s: f64,
    /// The service's own function, with its line at the last moment.
    pub place: Told,
}

impl Thread {
    /// Returns whether the thread has this role.
    pub(crate) fn is_of(&self, role: Role) -> bool {
        self.role == role.name()
    }
}

/// A stack and state that a thread had at some of the moments.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stack {
    /// Number of these moments.
    pub samples: u64,
    /// State of the thread.
    pub state: State,
    /// The state in words, as in the folded stacks.
    pub text: String,
    /// Name of the system call in which it waited.
    pub call: Option<String>,
    /// Name of the call that the innermost function makes; a thread may be in it while it runs.
    pub(super) works_in: Option<String>,
    /// Kernel function in which it waited.
    pub wchan: Option<String>,
    /// The innermost function of the service's own code, with file and line if they are known.
    pub own: Option<String>,
    /// Frames from the outermost inwards; empty if the thread was not stopped.
    pub frames: Vec<Frame>,
}

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Sleeps in a call although it has work to do.
    Blocked,
    /// Computes, or is about to.
    Running,
    /// Sleeps in a call, and its stack does not tell whether it has work.
    Unclear,
    /// Stands still because a signal or a debugger has stopped it.
    Stopped,
    /// Has nothing to do.
    Idle,
}

/// One function of a stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// The file it was compiled from.
    pub file: Option<String>,
    /// Line in the file.
    pub line: Option<u32>,
    /// True for the service's own code.
    pub own: bool,
    pub(super) whose: Whose,
}

impl Frame {
    /// Returns the frame as it is told: with file and line if it is the service's own code.
    pub fn told(&self) -> Told {
        match (&self.file, self.line) {
            (Some(file), Some(line)) if self.own => Told::Own(Line {
                function: self.function.clone(),
                file: file.clone(),
                line,
            }),
            _ => Told::Function(self.function.clone()),
        }
    }

    /// Returns the function's name, with file and line if it is the service's own code.
    pub fn label(&self) -> String {
        self.told().to_string()
    }
}

impl ThreadProfile {
    /// Returns the note for the reader, if there is one.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns folded stacks, a line each: first blocked threads, then running ones. Workers of a runtime come first in
    /// each group. `idle` adds threads that have nothing to do. `all` keeps every frame; without it only the service's
    /// own frames and the functions that they call are kept.
    pub fn folded(&self, idle: bool, all: bool) -> String {
        let mut lines: BTreeMap<(State, bool, String), u64> = BTreeMap::new();
        for thread in &self.threads {
            for stack in &thread.stacks {
                if stack.state == State::Idle && !idle {
                    continue;
                }
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
}

/// Returns the call of a library for its work, and not to bring a request to its handler: the outermost of its frames, and all
/// inside of it. There are none if a profiler works.
pub(crate) fn called_library(frames: &[Frame]) -> &[Frame] {
    if is_of_profiler(frames.iter().map(|frame| frame.function.as_str())) {
        return &[];
    }
    let carrier = frames
        .iter()
        .rposition(|frame| carries_requests(&frame.function));
    let inside = &frames[carrier.map_or(0, |carrier| carrier + 1)..];
    let called = inside.iter().position(|frame| {
        frame.whose == Whose::Library && !waits_for_others(crate_of(&frame.function))
    });
    called.map_or(&[], |at| &inside[at..])
}

impl Stack {
    /// Returns the function by which a library was called for its work, and not to bring a request to its handler.
    /// Returns `None` for a profiler's work.
    pub(crate) fn called_library(&self) -> Option<&Frame> {
        called_library(&self.frames).first()
    }

    /// Returns whether the thread waits for another one: at a lock, a channel or a condition.
    pub(crate) fn is_in_futex(&self) -> bool {
        self.call.as_deref() == Some("futex")
    }

    /// Returns whether the thread waits until somebody reads from a pipe, or writes to it.
    pub(crate) fn is_in_pipe(&self) -> bool {
        let wchan = self.wchan.as_deref();
        wchan.is_some_and(|function| PartMeaning::Pipe.fits(function))
    }

    /// Returns the call that the thread is in, even if it runs there in the kernel.
    pub fn in_call(&self) -> Option<&str> {
        self.call.as_deref().or(self.works_in.as_deref())
    }
}

#[cfg(test)]
impl Stack {
    /// Makes a stack of these functions; those of `shop` are the service's own.
    pub(crate) fn of(samples: u64, state: State, functions: &[&str]) -> Self {
        let mut frames = Vec::new();
        for function in functions {
            let whose = Whose::of(function, "", !function.starts_with("shop::"));
            frames.push(Frame {
                function: (*function).to_owned(),
                file: None,
                line: None,
                own: whose == Whose::Own,
                whose,
            });
        }
        Self {
            samples,
            state,
            text: String::new(),
            call: None,
            works_in: functions
                .last()
                .and_then(|name| name.strip_prefix("__GI_"))
                .map(str::to_owned),
            wchan: None,
            own: None,
            frames,
        }
    }

    /// Sets the call in which the thread is blocked.
    pub(crate) fn calling(mut self, call: &str) -> Self {
        self.text = format!("(blocked in {call})");
        self.call = Some(call.to_owned());
        self
    }
}

#[cfg(test)]
impl Thread {
    /// Makes a thread with these stacks.
    pub(crate) fn of(role: &str, did: Vec<Stack>) -> Self {
        let samples = did.iter().map(|stack| stack.samples).sum();
        Self {
            tid: 0,
            name: role.to_owned(),
            role: role.to_owned(),
            label: role.to_owned(),
            is_runtime: role == ecosystem::Role::Worker.name(),
            began_requests: false,
            samples,
            stops: samples,
            blocked: 0.0,
            running: 0.0,
            idle: 0.0,
            ran_s: 0.0,
            delayed_s: 0.0,
            holds: Vec::new(),
            stacks: did,
        }
    }
}

#[cfg(test)]
impl ThreadProfile {
    pub(crate) fn of(moments: u64, threads: Vec<Thread>) -> Self {
        Self {
            seconds: 1.0,
            moments,
            stops: 0,
            stop_us: 0.0,
            longest_stop_us: 0.0,
            note: None,
            threads,
        }
    }
}

/// Returns labels of the frames to show: the service's own functions, the entry function of each library, and the last
/// function called.
fn shown(frames: &[Frame]) -> Vec<String> {
    let is_somebodys = |frame: &Frame| matches!(frame.whose, Whose::Own | Whose::Library);
    let own = frames.iter().position(|frame| frame.own);
    let Some(first) = own.or_else(|| frames.iter().position(is_somebodys)) else {
        // Frames of the runtime alone, or without names.
        let mut inwards = frames.iter();
        return match inwards.rfind(|frame| frame.function.contains("::")) {
            Some(last) => vec![last.label()],
            None => frames.iter().map(Frame::label).collect(),
        };
    };
    let last = frames.iter().rposition(is_somebodys).unwrap_or(first);
    let mut shown: Vec<&Frame> = Vec::new();
    for frame in &frames[first..=last] {
        let krate = crate_of(&frame.function);
        let is_there = shown.iter().any(|one| one.function == frame.function);
        match (frame.whose, shown.last_mut()) {
            (Whose::Plumbing | Whose::Nameless, _) => {}
            // An async block inside its function: keep the innermost line.
            (Whose::Own, Some(before)) if before.function == frame.function => *before = frame,
            (Whose::Library, Some(before)) if crate_of(&before.function) == krate => {}
            // Libraries that divide work call each other again and again.
            (Whose::Library, _) if is_there => {}
            _ => shown.push(frame),
        }
    }
    let mut called = frames[last + 1..].iter();
    shown.extend(
        called.find(|frame| !frame.function.starts_with("core::") && frame.function.contains("::")),
    );
    shown.into_iter().map(Frame::label).collect()
}
