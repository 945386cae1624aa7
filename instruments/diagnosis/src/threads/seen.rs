//! Stacks of threads, added up by function, and what they say of a lock.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use ecosystem::{PartMeaning, Role, carries_requests};

use super::profile::{Frame, Stack, State, Thread, ThreadProfile};
use crate::thresholds::{FEWEST_SAMPLES, MUCH_COMPUTING, PAST_LOCK};

/// At most so many places are told.
const MOST_PLACES: usize = 3;

/// The call in which threads wait for each other.
pub(crate) const FUTEX: &str = "futex";

impl ThreadProfile {
    /// Stacks of all threads.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = &Stack> {
        self.threads.iter().flat_map(|thread| &thread.stacks)
    }

    /// Threads that drive tasks.
    pub(crate) fn drive(&self) -> Vec<&Thread> {
        let threads = self.threads.iter();
        threads.filter(|thread| thread.is_runtime).collect()
    }

    /// Those of them that began requests, or all if none is known to. A runtime of its own is where computing belongs.
    pub(crate) fn run_requests(&self) -> Vec<&Thread> {
        let mut threads = self.drive();
        if threads.iter().any(|thread| thread.began_requests) {
            threads.retain(|thread| thread.began_requests);
        }
        threads
    }

    /// Where threads compute most, with the share of all computing; nothing if it is nowhere in particular.
    pub fn computing(&self) -> Option<String> {
        let all: Vec<&Thread> = self.threads.iter().collect();
        listed(by_function(in_state(&all, State::Running)))
    }

    /// Where threads that run requests compute or are blocked most, with the share of that time.
    pub fn at_work(&self) -> Option<String> {
        let all = self.run_requests();
        let stacks = in_state(&all, State::Running).chain(in_state(&all, State::Blocked));
        listed(by_function(stacks))
    }

    /// Where tasks run that are no requests, with the share of their samples.
    pub(crate) fn in_other_tasks(&self) -> Option<String> {
        let mut stacks = Vec::new();
        for stack in self.drive().into_iter().flat_map(|thread| &thread.stacks) {
            let is_task = passes(stack, PartMeaning::Task);
            let mut frames = stack.frames.iter();
            let is_request = frames.any(|frame| carries_requests(&frame.function));
            if stack.state != State::Idle && is_task && !is_request && own(stack).is_some() {
                stacks.push(stack);
            }
        }
        listed(by_function(stacks.into_iter()))
    }

    /// Where most of the blocking threads are that have something to do.
    pub(crate) fn at_work_on_blocking_threads(&self) -> Option<String> {
        let threads = self.threads.iter();
        let threads = threads.filter(|thread| thread.role == Role::Blocking.name());
        let stacks = threads.flat_map(|thread| &thread.stacks);
        let (found, _) = most_frequent(stacks.filter(|stack| stack.state != State::Idle))?;
        Some(format!("{} {}", place(found.most), found.text()))
    }

    /// Share of the time in which threads that run requests wanted a CPU and had one.
    pub(crate) fn cpu_share(&self) -> f64 {
        let (mut ran, mut delayed) = (0.0, 0.0);
        for thread in self.run_requests() {
            ran += thread.ran_s;
            delayed += thread.delayed_s;
        }
        if ran + delayed > 0.0 {
            ran / (ran + delayed)
        } else {
            1.0
        }
    }
}

/// Places with a good part of the samples: `40 % at shop::rank (src/rank.rs:7); …`.
fn listed(functions: Vec<Seen<'_>>) -> Option<String> {
    let all: u64 = functions.iter().map(|function| function.samples).sum();
    let mut places = Vec::new();
    for function in functions {
        let share = function.samples as f64 / all.max(1) as f64;
        let is_much = function.samples >= FEWEST_SAMPLES && share >= MUCH_COMPUTING;
        if is_much && is_told(function.most) && places.len() < MOST_PLACES {
            places.push(format!(
                "{:.0} % at {}",
                share * 100.0,
                place(function.most)
            ));
        }
    }
    (!places.is_empty()).then(|| places.join("; "))
}

/// The share of the time in which a thread sleeps in calls that hold up what it has in hand.
pub(crate) fn blocked_share(thread: &Thread) -> f64 {
    let stacks = in_state(&[thread], State::Blocked);
    let samples: u64 = stacks.map(|stack| stack.samples).sum();
    samples as f64 / thread.samples.max(1) as f64
}

pub(crate) fn worst(threads: &[&Thread]) -> f64 {
    let shares = threads.iter().map(|thread| blocked_share(thread));
    shares.fold(0.0, f64::max)
}

/// What these threads did in a state, but for handing work over: the runtime's own locks are there, and it is what
/// keeps the thread free.
pub(crate) fn in_state<'a>(
    threads: &[&'a Thread],
    state: State,
) -> impl Iterator<Item = &'a Stack> + use<'a> {
    let threads: Vec<&'a Thread> = threads.to_vec();
    let stacks = threads.into_iter().flat_map(|thread| &thread.stacks);
    stacks.filter(move |stack| stack.state == state && !hands_over(stack))
}

/// What was seen of one function, in one call.
pub(crate) struct Seen<'a> {
    /// The stack with most samples.
    pub(crate) most: &'a Stack,
    pub(crate) samples: u64,
    /// Whether the kernel waited at the same place of the call each time.
    is_same: bool,
}

impl Seen<'_> {
    /// What threads did there, in words.
    pub(crate) fn text(&self) -> String {
        match &self.most.call {
            Some(call) if !self.is_same => format!("(blocked in {call})"),
            _ => self.most.text.clone(),
        }
    }

    /// What a thread does there, in a sentence.
    pub(crate) fn does(&self) -> String {
        let place = place(self.most);
        self.most.in_call().map_or_else(
            || format!("computes at {place}"),
            |call| format!("is in {call} at {place}"),
        )
    }
}

/// The function with most samples, and the samples of all.
pub(crate) fn most_frequent<'a>(
    stacks: impl Iterator<Item = &'a Stack>,
) -> Option<(Seen<'a>, u64)> {
    let functions = by_function(stacks);
    let all = functions.iter().map(|function| function.samples).sum();
    Some((functions.into_iter().next()?, all))
}

/// What was seen of each function and call; the most frequent first. A loop is seen at several of its lines, and a call
/// at several places of the kernel.
pub(crate) fn by_function<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Vec<Seen<'a>> {
    grouped(stacks, |stack| {
        (function(stack), stack.state, stack.call.as_deref())
    })
}

/// What was seen with each of these keys; the most frequent first.
pub(crate) fn grouped<'a, Key: Eq + Hash>(
    stacks: impl Iterator<Item = &'a Stack>,
    key: impl Fn(&'a Stack) -> Key,
) -> Vec<Seen<'a>> {
    let mut groups: HashMap<Key, Seen<'_>> = HashMap::new();
    for stack in stacks {
        let seen = groups.entry(key(stack)).or_insert(Seen {
            most: stack,
            samples: 0,
            is_same: true,
        });
        seen.samples += stack.samples;
        seen.is_same &= seen.most.text == stack.text;
        if seen.most.samples < stack.samples {
            seen.most = stack;
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_cached_key(|seen| (Reverse(seen.samples), place(seen.most)));
    groups
}

/// Where threads are most often that have passed the place at which this one waits: of a lock they hold it.
pub(crate) fn past<'a>(
    waits: &Stack,
    all: impl Iterator<Item = &'a Stack>,
    moments: u64,
) -> Option<Seen<'a>> {
    let is_futex =
        waits.call.as_deref() == Some(FUTEX) && !inner_passes(waits, PartMeaning::Channel);
    let lock = own(waits).filter(|_| is_futex && !is_block_on(waits))?;
    let is_past = |stack: &&Stack| {
        let mut frames = stack.frames.iter().filter(|frame| frame.own);
        frames.any(|frame| frame.function == lock.function && frame.line >= lock.line)
    };
    let waits_too = |stack: &Stack| {
        let is_there = own(stack).is_some_and(|own| own.function == lock.function);
        let is_futex = stack.state == State::Blocked && stack.call == waits.call;
        let is_lock = is_futex || inner_passes(stack, PartMeaning::Lock);
        is_there && is_lock && !inner_passes(stack, PartMeaning::Channel)
    };
    let past =
        all.filter(|stack| stack.state != State::Idle && is_past(stack) && !waits_too(stack));
    let past = grouped(past, |stack| (function(stack), stack.in_call()));
    let found = past.into_iter().next()?;
    let is_often =
        found.samples as f64 >= PAST_LOCK * moments as f64 && found.samples >= FEWEST_SAMPLES;
    is_often.then_some(found)
}

/// The service's own that is innermost.
pub(crate) fn own(stack: &Stack) -> Option<&Frame> {
    stack.frames.iter().rev().find(|frame| frame.own)
}

/// What the service's innermost function has called.
fn inner(stack: &Stack) -> &[Frame] {
    let own = stack.frames.iter().rposition(|frame| frame.own);
    own.map_or(&[], |own| &stack.frames[own + 1..])
}

pub(crate) fn inner_passes(stack: &Stack, meaning: PartMeaning) -> bool {
    let mut frames = inner(stack).iter();
    frames.any(|frame| meaning.fits(&frame.function))
}

/// Whether it gives work to a blocking thread, or waits for the lock of the runtime to which it gives a task.
pub(crate) fn hands_over(stack: &Stack) -> bool {
    inner_passes(stack, PartMeaning::HandsOver)
        || stack.state == State::Blocked && inner_passes(stack, PartMeaning::Scheduler)
}

/// Whether it waits for a lock, and not for what idle threads wait for.
pub(crate) fn waits_for_lock(stack: &Stack) -> bool {
    stack.state == State::Blocked
        && stack.call.as_deref() == Some(FUTEX)
        && inner_passes(stack, PartMeaning::Lock)
        && !inner_passes(stack, PartMeaning::Channel)
        && !hands_over(stack)
}

/// Whether a function that is not async waits for a future.
pub(crate) fn is_block_on(stack: &Stack) -> bool {
    inner_passes(stack, PartMeaning::BlockOn)
}

/// Whether its place says anything: where the work is not all that the process does, or a library's.
pub(crate) fn is_told(stack: &Stack) -> bool {
    match own(stack) {
        Some(own) => !is_main(&own.function),
        None => stack.called_library().is_some(),
    }
}

/// The service's own that is innermost, or what a library was called for.
pub(crate) fn function(stack: &Stack) -> Option<&str> {
    let frame = own(stack).or_else(|| stack.called_library());
    let frame = frame.or(stack.frames.last())?;
    Some(&frame.function)
}

/// The line of the service's and the one that called it, or what a library was called for.
pub(crate) fn place(stack: &Stack) -> String {
    let Some(innermost) = own(stack) else {
        let function = function(stack);
        return function.unwrap_or("an unknown place").to_owned();
    };
    let mut own = stack.frames.iter().filter(|frame| frame.own);
    let called_by = own.rfind(|frame| frame.function != innermost.function);
    let called_by = called_by.filter(|frame| !is_main(&frame.function));
    let called_by = called_by.map(|frame| format!(", called by {}", frame.label()));
    innermost.label() + &called_by.unwrap_or_default()
}

/// Whether everything is in this function.
pub(crate) fn is_main(function: &str) -> bool {
    function.contains("::main")
}

pub(crate) fn passes(stack: &Stack, meaning: PartMeaning) -> bool {
    let mut frames = stack.frames.iter();
    frames.any(|frame| meaning.fits(&frame.function))
}
