//! A finished profile of threads, and the formats in which it is given out.

use std::collections::BTreeMap;

use ecosystem::{carries_requests, crate_of, waits_for_others};
use serde::Serialize;

use super::roles::{Whose, is_of_profiler};

/// Threads of a process during some time.
#[derive(Debug, Serialize)]
pub struct ThreadProfile {
    /// How long was looked.
    pub seconds: f64,
    /// How often all threads were looked at.
    pub moments: u64,
    /// How often a thread was stopped for its stack.
    pub stops: u64,
    /// How long such a stop took at most, on average and in microseconds: until the thread went on, from when it was
    /// told to stop, which takes longer where all CPUs are busy.
    pub stop_us: f64,
    /// What a reader has to know of it, if anything.
    pub note: Option<String>,
    /// Each thread that was seen.
    pub threads: Vec<Thread>,
}

/// One thread.
#[derive(Debug, Serialize)]
pub struct Thread {
    /// Its number.
    pub tid: i32,
    /// Its name, of which the system keeps 15 bytes.
    pub name: String,
    /// What it is for, by what its stack begins with; its name, where that tells nothing.
    pub role: String,
    /// The first frame of its stacks.
    #[serde(skip)]
    pub(super) label: String,
    /// Whether all tasks that it drives wait while it is held.
    pub is_runtime: bool,
    /// Whether a request was begun on it that await profiles see.
    #[serde(skip)]
    pub began_requests: bool,
    /// Moments in which it was there.
    pub samples: u64,
    /// How often it was stopped for its stack.
    pub stops: u64,
    /// Share of the samples in which it was blocked.
    pub blocked: f64,
    /// Share in which it ran.
    pub running: f64,
    /// Share in which it had nothing to do.
    pub idle: f64,
    /// Seconds for which it had a CPU meanwhile.
    pub ran_s: f64,
    /// Seconds for which it wanted a CPU and had none.
    pub delayed_s: f64,
    /// The longest times for which it was in one function without a pause, as far as that was seen.
    pub holds: Vec<Hold>,
    /// What it did, most often first.
    pub stacks: Vec<Stack>,
}

/// A time for which a thread was in one function without a pause.
#[derive(Clone, Debug, Serialize)]
pub struct Hold {
    /// Consecutive moments in which it was seen there.
    pub moments: u64,
    /// CPU time of the thread between the first and the last of them, in seconds.
    pub cpu_s: f64,
    /// The service's own function, with its line at the last moment.
    pub place: String,
}

/// One thing that a thread did in some of the moments.
#[derive(Debug, Serialize)]
pub struct Stack {
    /// Moments in which it did this.
    pub samples: u64,
    /// Its state then.
    pub state: State,
    /// The state in words, as in the folded stacks.
    pub text: String,
    /// The system call that it was in, by name.
    pub call: Option<String>,
    /// The call by the name of its innermost function, which a thread may be in while it runs.
    #[serde(skip)]
    pub(super) works_in: Option<String>,
    /// Where in the kernel it waited.
    pub wchan: Option<String>,
    /// The innermost function of the service's own code, with file and line where they are known.
    pub own: Option<String>,
    /// From the outermost inwards; none where it was not stopped.
    pub frames: Vec<Frame>,
}

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Sleeps in a call, with work to do.
    Blocked,
    /// Computes, or is about to.
    Running,
    /// Has nothing to do.
    Idle,
}

/// One function of a stack.
#[derive(Clone, Debug, Serialize)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// The file it was compiled from.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// Whether it is the service's own code.
    pub own: bool,
    #[serde(skip)]
    pub(super) whose: Whose,
}

impl Frame {
    /// Own code with its line.
    pub fn label(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) if self.own => format!("{} ({file}:{line})", self.function),
            _ => self.function.clone(),
        }
    }
}

impl ThreadProfile {
    /// What a reader has to know of it, if anything.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Folded stacks, a line each: who is blocked first, and of those the workers of a runtime, then who runs; `idle`
    /// adds who has nothing to do. `all` has every frame, and else those that the service's code wrote or called.
    pub fn folded(&self, idle: bool, all: bool) -> String {
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
}

impl Stack {
    /// The function by which a library was entered for its work, and not to bring a request to its handler; `None` if it
    /// works for a profiler.
    pub(crate) fn called_library(&self) -> Option<&Frame> {
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
    pub fn in_call(&self) -> Option<&str> {
        self.call.as_deref().or(self.works_in.as_deref())
    }
}

#[cfg(test)]
impl Stack {
    /// One of these functions, of which those of `shop` are the service's own.
    pub(crate) fn of(samples: u64, state: State, functions: &[&str]) -> Self {
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
            works_in: functions
                .last()
                .and_then(|name| name.strip_prefix("__GI_"))
                .map(str::to_owned),
            wchan: None,
            own: None,
            frames: functions.iter().map(frame).collect(),
        }
    }

    /// The same in a call.
    pub(crate) fn calling(mut self, call: &str) -> Self {
        self.text = format!("(blocked in {call})");
        self.call = Some(call.to_owned());
        self
    }
}

#[cfg(test)]
impl Thread {
    /// One that did this.
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
            note: None,
            threads,
        }
    }
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
