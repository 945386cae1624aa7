//! Stacks of threads, added up by function, and what they show about a lock.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use ecosystem::{
    Frame as Told, PartMeaning, Role, Work, carries_requests, crate_of, is_awaited, is_of_runtime,
    makes_client, work_of,
};

use super::cpu_samples::CpuSamples;
use super::profile::{Frame, Stack, State, Thread, ThreadProfile, called_library};
use crate::thresholds::{FEWEST_INSIDE, FEWEST_SAMPLES, MUCH_COMPUTING, PAST_LOCK};

/// Most places that a list names.
const MOST_PLACES: usize = 3;

/// Name of the thread that takes await profiles: it computes while it is asked, and not for the service.
const SAMPLER: &str = "await-profile";

impl ThreadProfile {
    /// Returns the stacks of all threads.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = &Stack> {
        self.threads.iter().flat_map(|thread| &thread.stacks)
    }

    /// Returns the threads that drive tasks.
    pub(crate) fn drive(&self) -> Vec<&Thread> {
        let threads = self.threads.iter();
        threads.filter(|thread| thread.is_runtime).collect()
    }

    /// Returns the threads that drive tasks and began requests, or all that drive tasks if none is known to have begun
    /// any. Others may be a runtime for computing, where computing is no fault.
    pub(crate) fn run_requests(&self) -> Vec<&Thread> {
        let mut threads = self.drive();
        if threads.iter().any(|thread| thread.began_requests) {
            threads.retain(|thread| thread.began_requests);
        }
        threads
    }

    /// Lists the places where threads compute most, with their share of all computing, or `None` if no place stands
    /// out.
    pub fn computing(&self) -> Option<Places> {
        let threads = self.threads.iter();
        let all: Vec<&Thread> = threads.filter(|thread| thread.name != SAMPLER).collect();
        listed(by_function(in_state(&all, State::Running)))
    }

    /// Lists the places where threads that run requests compute or are blocked most, with their share of that time.
    pub fn at_work(&self) -> Option<Places> {
        let all = self.run_requests();
        let stacks = in_state(&all, State::Running).chain(in_state(&all, State::Blocked));
        listed(by_function(stacks))
    }

    /// Returns where busy threads of the blocking pool most often are.
    pub(crate) fn on_blocking_threads(&self) -> Option<Seen<'_>> {
        let mut stacks: Vec<&Stack> = Vec::new();
        for thread in &self.threads {
            if thread.is_of(Role::Blocking) {
                stacks.extend(&thread.stacks);
            }
        }
        stacks.retain(|stack| stack.state != State::Idle);
        let (found, _) = most_frequent(stacks.into_iter())?;
        Some(found)
    }

    /// Returns the share of the time in which threads that run requests had a CPU, of the time in which they wanted
    /// one.
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

impl CpuSamples {
    /// Lists the places where threads that run requests use most CPU time, with their share of it.
    pub(crate) fn at_work(&self) -> Option<Places> {
        let threads = self.run_requests().into_iter();
        listed(by_function(threads.flat_map(|thread| &thread.stacks)))
    }
}

/// Returns where threads that run requests make clients, if one was seen to.
pub(crate) fn client_made_at(threads: &ThreadProfile) -> Option<Spot> {
    for thread in threads.run_requests() {
        for stack in &thread.stacks {
            let mut frames = stack.frames.iter();
            let makes_client = frames.any(|frame| makes_client(&frame.function));
            if makes_client && is_told(stack) && own(stack).is_some() {
                return Some(place(stack));
            }
        }
    }
    None
}

/// Returns where tasks that are no requests run or are blocked, or `None` if that was hardly seen.
pub(crate) fn in_other_tasks(
    threads: Option<&ThreadProfile>,
    cpu: Option<&CpuSamples>,
) -> Option<Inside> {
    let stacks = of_tasks(threads, cpu).into_iter();
    Inside::of(stacks.filter(|stack| is_other_task(stack)))
}

/// Returns where threads run a function of the service and all that it calls, or `None` if that was hardly seen.
pub(crate) fn inside(
    threads: Option<&ThreadProfile>,
    cpu: Option<&CpuSamples>,
    function: &str,
) -> Option<Inside> {
    let mut stacks = Vec::new();
    let (mut samples, mut of_sets) = (0, 0);
    for stack in of_tasks(threads, cpu) {
        let mut frames = stack.frames.iter();
        if !frames.any(|frame| is_function(frame, function)) {
            continue;
        }
        samples += stack.samples;
        // The rest of the frames is inside of the function.
        if frames.any(|frame| PartMeaning::Set.fits(&frame.function)) {
            of_sets += stack.samples;
        }
        stacks.push(stack);
    }
    let inside = Inside::of(stacks.into_iter())?;
    Some(Inside {
        runs_a_set: of_sets as f64 >= MUCH_COMPUTING * samples as f64,
        ..inside
    })
}

/// A function of the service that receives datagrams.
pub(crate) struct Receives<'a> {
    /// The line at which it does.
    pub(crate) at: Told,
    /// Where it is most when it does not receive.
    pub(crate) elsewhere: Seen<'a>,
}

/// Returns the function that receives datagrams, as any of `all` shows, and that most of the `counted` stacks run without
/// receiving.
pub(crate) fn receives<'a>(all: &[&Stack], counted: &[&'a Stack]) -> Option<Receives<'a>> {
    let (mut done, mut found): (Vec<&str>, Option<Receives<'a>>) = (Vec::new(), None);
    for stack in all {
        let mut frames = stack.frames.iter();
        let receives = frames.position(|frame| receives_datagrams(&frame.function));
        let own = receives.and_then(|at| stack.frames[..at].iter().rfind(|frame| frame.own));
        let Some(own) = own.filter(|own| !done.contains(&own.function.as_str())) else {
            continue;
        };
        done.push(&own.function);
        let elsewhere = counted.iter().copied().filter(|other| {
            let mut frames = other.frames.iter();
            other.state != State::Idle
                && frames.any(|frame| frame.own && frame.function == own.function)
                && !passes(other, PartMeaning::ReceivesDatagrams)
        });
        if let Some((elsewhere, _)) = most_frequent(elsewhere)
            && found
                .as_ref()
                .is_none_or(|found| elsewhere.samples > found.elsewhere.samples)
        {
            let at = own.told();
            found = Some(Receives { at, elsewhere });
        }
    }
    found
}

/// Returns whether a function takes datagrams out of a socket, or waits until it can.
pub(crate) fn receives_datagrams(function: &str) -> bool {
    PartMeaning::ReceivesDatagrams.fits(function)
}

/// Returns the stacks of threads that drive tasks, at work.
fn of_tasks<'a>(threads: Option<&'a ThreadProfile>, cpu: Option<&'a CpuSamples>) -> Vec<&'a Stack> {
    let mut stacks = Vec::new();
    for thread in threads.map(ThreadProfile::drive).unwrap_or_default() {
        let all = thread.stacks.iter();
        stacks.extend(all.filter(|stack| stack.state != State::Idle));
    }
    if let Some(cpu) = cpu {
        stacks.extend(cpu.of_tasks());
    }
    stacks
}

/// Returns whether a stack is of a task that serves no request: what called the service's code is no framework. A
/// connection that was upgraded is no request any more.
pub(crate) fn is_other_task(stack: &Stack) -> bool {
    let mut frames = stack.frames.iter();
    let Some(first) = frames.position(|frame| frame.own && !is_main(&frame.function)) else {
        return false;
    };
    let mut callers = stack.frames[..first].iter();
    let is_request = callers.any(|frame| {
        carries_requests(&frame.function) && !PartMeaning::Upgraded.fits(&frame.function)
    });
    !is_request && passes(stack, PartMeaning::Task)
}

/// Returns whether a stack is of a request that the await profile watches.
pub(crate) fn is_watched_request(stack: &Stack) -> bool {
    let mut frames = stack.frames.iter();
    frames.any(|frame| crate_of(&frame.function) == "await_profile")
}

/// Returns whether the service's innermost function computes, or calls a library that does, and does not talk to a
/// runtime or a socket.
pub(crate) fn computes(stack: &Stack) -> bool {
    let mut called = inner(stack).iter();
    own(stack).is_some() && !called.any(|frame| is_of_runtime(&frame.function))
}

/// Returns whether the service's innermost function is in what it waits for: a socket, a channel, a timer.
fn awaits(stack: &Stack) -> bool {
    let mut called = inner(stack).iter();
    let is_channel = inner_passes(stack, PartMeaning::Channel);
    is_channel || called.any(|frame| is_awaited(&frame.function))
}

/// Returns whether a function hardly computes: most of its samples are in what it awaits.
pub(crate) fn only_awaits(stacks: &[&Stack], function: &str) -> bool {
    let (mut all, mut awaited) = (0, 0);
    for stack in stacks {
        if stack.state == State::Running && self::function(stack) == Some(function) {
            all += stack.samples;
            awaited += if awaits(stack) { stack.samples } else { 0 };
        }
    }
    awaited * 2 > all
}

/// Returns the service's innermost line that calls what has this meaning, if a stack passes it. Further in, that may call the
/// service back, such as to copy a message.
pub(crate) fn calls_at(stack: &Stack, meaning: PartMeaning) -> Option<Told> {
    let mut frames = stack.frames.iter();
    let at = frames.position(|frame| meaning.fits(&frame.function))?;
    let caller = stack.frames[..at].iter().rfind(|frame| frame.own)?;
    (!is_main(&caller.function)).then(|| caller.told())
}

/// Place of a thread: the service's innermost line and the one that called it, or the function by which a library was
/// called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    frame: Told,
    caller: Option<Told>,
}

impl Spot {
    /// Returns its function as a place, as the findings on computing name theirs.
    pub(crate) fn function(&self) -> Told {
        Told::Function(self.frame.function().unwrap_or_default().to_owned())
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.caller {
            Some(caller) => write!(f, "{}, called by {caller}", self.frame),
            None => self.frame.fmt(f),
        }
    }
}

/// Places of threads, each with its share of the samples: `40 % at shop::rank (src/rank.rs:7); …`.
#[derive(Clone, Debug)]
pub struct Places(Vec<(f64, Spot)>);

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (share, spot)) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}{:.0} % at {spot}", share * 100.0)?;
        }
        Ok(())
    }
}

/// Places at which threads run a task.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    /// The place with most samples.
    pub(crate) most: Spot,
    /// The places with a good part of the samples.
    pub(crate) places: Places,
    /// True if it polls several futures together.
    pub(crate) runs_a_set: bool,
}

impl Inside {
    fn of<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Option<Self> {
        let functions = by_function(stacks);
        let all: u64 = functions.iter().map(|function| function.samples).sum();
        let first = functions.first().filter(|_| all >= FEWEST_INSIDE)?;
        let most = place(first.most);
        let share = first.samples as f64 / all as f64;
        let places = match listed(functions) {
            Some(places) => places,
            None => Places(vec![(share, most.clone())]),
        };
        Some(Self {
            places,
            most,
            runs_a_set: false,
        })
    }
}

/// Lines of one function at which another one is called, for one request.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    function: String,
    file: String,
    lines: Vec<u32>,
}

impl Callers {
    /// Returns the outermost function of the service that calls `function` at several of its lines, each of them with a good
    /// part of the samples.
    pub(crate) fn of(stacks: &[&Stack], function: &str) -> Option<Self> {
        let mut all = 0;
        // By position on the stack, function and line.
        let mut lines: BTreeMap<(usize, &str, &str, u32), u64> = BTreeMap::new();
        for stack in stacks {
            if self::function(stack) != Some(function) {
                continue;
            }
            all += stack.samples;
            let callers = stack.frames.iter().filter(|frame| frame.own);
            for (at, caller) in callers.enumerate() {
                if let (Some(file), Some(line)) = (&caller.file, caller.line)
                    && caller.function != function
                {
                    let key = (at, caller.function.as_str(), file.as_str(), line);
                    *lines.entry(key).or_default() += stack.samples;
                }
            }
        }
        lines.retain(|_, samples| {
            *samples >= FEWEST_SAMPLES && *samples as f64 >= MUCH_COMPUTING * all as f64
        });
        let mut found: Option<Self> = None;
        let mut place = None;
        for (at, function, file, line) in lines.into_keys() {
            if place == Some((at, function))
                && let Some(found) = &mut found
            {
                found.lines.push(line);
                continue;
            }
            if found.as_ref().is_some_and(|found| found.lines.len() > 1) {
                break;
            }
            place = Some((at, function));
            found = Some(Self {
                function: function.to_owned(),
                file: file.to_owned(),
                lines: vec![line],
            });
        }
        found.filter(|found| found.lines.len() > 1)
    }
}

impl fmt::Display for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for line in &self.lines {
            lines.push(line.to_string());
        }
        let (function, file, lines) = (&self.function, &self.file, lines.join(", "));
        write!(f, "{function} ({file}:{lines})")
    }
}

/// Returns what a function has libraries compute, or does itself if it is a library's, if half of its samples are of one such
/// work.
pub(crate) fn work_at(stacks: &[&Stack], function: &str) -> Option<&'static Work> {
    let mut all = 0;
    let mut works: Vec<(&'static Work, u64)> = Vec::new();
    for stack in stacks {
        if self::function(stack) != Some(function) {
            continue;
        }
        all += stack.samples;
        let Some(work) = work_of(called(stack).iter().map(|frame| frame.function.as_str())) else {
            continue;
        };
        match works.iter_mut().find(|(one, _)| one.cause == work.cause) {
            Some((_, samples)) => *samples += stack.samples,
            None => works.push((work, stack.samples)),
        }
    }
    let (work, samples) = works.into_iter().max_by_key(|(_, samples)| *samples)?;
    (samples * 2 >= all).then_some(work)
}

/// Returns whether a frame is of this function, which is named without closures.
fn is_function(frame: &Frame, function: &str) -> bool {
    let plain = frame.function.replace(['<', '>'], "");
    let outer = plain.split("::{").next().unwrap_or(&plain);
    frame.own && outer == function
}

/// Returns the places with a good part of the samples.
fn listed(functions: Vec<Seen<'_>>) -> Option<Places> {
    let all: u64 = functions.iter().map(|function| function.samples).sum();
    // A thread is in several states at one place.
    let mut places: Vec<(Spot, u64)> = Vec::new();
    for function in functions {
        if !is_told(function.most) {
            continue;
        }
        let place = place(function.most);
        match places.iter_mut().find(|(other, _)| *other == place) {
            Some((_, samples)) => *samples += function.samples,
            None => places.push((place, function.samples)),
        }
    }
    places.sort_by_key(|(_, samples)| Reverse(*samples));
    let mut listed = Vec::new();
    for (place, samples) in places {
        let share = samples as f64 / all.max(1) as f64;
        let is_much = samples >= FEWEST_SAMPLES && share >= MUCH_COMPUTING;
        if is_much && listed.len() < MOST_PLACES {
            listed.push((share, place));
        }
    }
    if listed.is_empty() {
        return None;
    }
    Some(Places(listed))
}

/// Returns the share of the time in which a thread is blocked in calls, and so holds up its other work.
pub(crate) fn blocked_share(thread: &Thread) -> f64 {
    let stacks = in_state(&[thread], State::Blocked);
    let samples: u64 = stacks.map(|stack| stack.samples).sum();
    samples as f64 / thread.samples.max(1) as f64
}

pub(crate) fn worst(threads: &[&Thread]) -> f64 {
    let mut worst = 0.0_f64;
    for thread in threads {
        worst = worst.max(blocked_share(thread));
    }
    worst
}

/// Returns the stacks of these threads in a state, without those that hand work over. Handing over takes the runtime's
/// own locks, and keeps the thread free.
pub(crate) fn in_state<'a>(
    threads: &[&'a Thread],
    state: State,
) -> impl Iterator<Item = &'a Stack> + use<'a> {
    let threads: Vec<&'a Thread> = threads.to_vec();
    let stacks = threads.into_iter().flat_map(|thread| &thread.stacks);
    stacks.filter(move |stack| stack.state == state && !hands_over(stack))
}

/// Samples of one function in one call.
pub(crate) struct Seen<'a> {
    /// The stack with most samples.
    pub(crate) most: &'a Stack,
    pub(crate) samples: u64,
    /// True if all these stacks have the same state text, so the kernel waited at the same place of the call each time.
    is_same: bool,
}

impl Seen<'_> {
    /// Returns the threads' state there, in words: `blocked in fsync`.
    pub(crate) fn text(&self) -> String {
        match &self.most.call {
            Some(call) if !self.is_same => format!("blocked in {call}"),
            _ => self.most.text.trim_matches(['(', ')']).to_owned(),
        }
    }

    /// Returns what a thread does there.
    pub(crate) fn does(&self) -> Does {
        Does {
            call: self.most.in_call().map(str::to_owned),
            at: place(self.most),
        }
    }
}

/// State of a thread, as a clause: `is in fsync at shop::append`, `computes at shop::rank`.
#[derive(Clone, Debug)]
pub(crate) struct Does {
    call: Option<String>,
    at: Spot,
}

impl fmt::Display for Does {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call {
            Some(call) => write!(f, "is in {call} at {}", self.at),
            None => write!(f, "computes at {}", self.at),
        }
    }
}

/// Returns the function with most samples, and the number of samples of all functions.
pub(crate) fn most_frequent<'a>(
    stacks: impl Iterator<Item = &'a Stack>,
) -> Option<(Seen<'a>, u64)> {
    let functions = by_function(stacks);
    let all = functions.iter().map(|function| function.samples).sum();
    Some((functions.into_iter().next()?, all))
}

/// Adds up samples by function, state and call, the most frequent first. A loop is seen at several of its lines, and a
/// call at several places of the kernel.
pub(crate) fn by_function<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Vec<Seen<'a>> {
    grouped(stacks, |stack| {
        (function(stack), stack.state, stack.call.as_deref())
    })
}

/// Adds up samples by key, the most frequent first, and equal ones in the order of their keys.
pub(crate) fn grouped<'a, Key: Ord>(
    stacks: impl Iterator<Item = &'a Stack>,
    key: impl Fn(&'a Stack) -> Key,
) -> Vec<Seen<'a>> {
    let mut groups: BTreeMap<Key, Seen<'_>> = BTreeMap::new();
    // A line calls many functions, so many stacks may be of one line.
    let mut lines: BTreeMap<(Key, Option<u32>), (u64, &Stack)> = BTreeMap::new();
    for stack in stacks {
        let line = own(stack).and_then(|own| own.line);
        let (samples, most) = lines.entry((key(stack), line)).or_insert((0, stack));
        *samples += stack.samples;
        if most.samples < stack.samples {
            *most = stack;
        }
        let seen = groups.entry(key(stack)).or_insert(Seen {
            most: stack,
            samples: 0,
            is_same: true,
        });
        seen.samples += stack.samples;
        seen.is_same &= seen.most.text == stack.text;
    }
    let mut most: BTreeMap<Key, u64> = BTreeMap::new();
    for ((key, _), (samples, stack)) in lines {
        let Some(seen) = groups.get_mut(&key) else {
            continue;
        };
        let is_first = place(stack) < place(seen.most);
        let is_more = match most.get(&key) {
            Some(before) => samples > *before || samples == *before && is_first,
            None => true,
        };
        if is_more {
            seen.most = stack;
            most.insert(key, samples);
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_cached_key(|seen| (Reverse(seen.samples), place(seen.most)));
    groups
}

/// Returns where threads most often are that are past the lock at which `waits` waits: they hold that lock.
pub(crate) fn past<'a>(
    waits: &Stack,
    all: impl Iterator<Item = &'a Stack>,
    moments: u64,
) -> Option<Seen<'a>> {
    let is_futex = waits.is_in_futex() && !inner_passes(waits, PartMeaning::Channel);
    let lock = own(waits).filter(|_| is_futex && !is_block_on(waits))?;
    let past = all.filter(|stack| {
        stack.state != State::Idle && is_past(stack, lock) && !waits_too(stack, lock)
    });
    let functions = grouped(past, |stack| (function(stack), stack.in_call()));
    let found = functions.into_iter().next()?;
    if (found.samples as f64) < PAST_LOCK * moments as f64 || found.samples < FEWEST_SAMPLES {
        return None;
    }
    Some(found)
}

/// Returns whether a thread is in the function that takes the lock, at the line of the lock or further on.
fn is_past(stack: &Stack, lock: &Frame) -> bool {
    let mut frames = stack.frames.iter().filter(|frame| frame.own);
    frames.any(|frame| frame.function == lock.function && frame.line >= lock.line)
}

/// Returns whether a thread waits in the function that takes the lock, as for the lock itself.
fn waits_too(stack: &Stack, lock: &Frame) -> bool {
    let is_there = own(stack).is_some_and(|own| own.function == lock.function);
    let is_futex = stack.state == State::Blocked && stack.is_in_futex();
    let is_lock = is_futex || inner_passes(stack, PartMeaning::Lock);
    is_there && is_lock && !inner_passes(stack, PartMeaning::Channel)
}

/// Returns the innermost frame of the service's own code.
pub(crate) fn own(stack: &Stack) -> Option<&Frame> {
    stack.frames.iter().rev().find(|frame| frame.own)
}

/// Returns the frames below the service's innermost function: what it called.
fn inner(stack: &Stack) -> &[Frame] {
    match stack.frames.iter().rposition(|frame| frame.own) {
        Some(own) => &stack.frames[own + 1..],
        None => &[],
    }
}

/// Returns what the service's innermost function called, or the call of a library if there is no such function.
fn called(stack: &Stack) -> &[Frame] {
    match own(stack) {
        Some(_) => inner(stack),
        None => called_library(&stack.frames),
    }
}

pub(crate) fn inner_passes(stack: &Stack, meaning: PartMeaning) -> bool {
    let mut frames = inner(stack).iter();
    frames.any(|frame| meaning.fits(&frame.function))
}

/// Returns whether a thread gives work to a blocking thread, or waits for the lock of the runtime to which it gives a
/// task.
pub(crate) fn hands_over(stack: &Stack) -> bool {
    inner_passes(stack, PartMeaning::HandsOver)
        || stack.state == State::Blocked && inner_passes(stack, PartMeaning::Scheduler)
}

/// Returns whether a thread waits for a lock, and not on a channel as idle threads do.
pub(crate) fn waits_for_lock(stack: &Stack) -> bool {
    stack.state == State::Blocked
        && stack.is_in_futex()
        && inner_passes(stack, PartMeaning::Lock)
        && !inner_passes(stack, PartMeaning::Channel)
        && !hands_over(stack)
}

/// Returns whether a function that is not async waits for a future.
pub(crate) fn is_block_on(stack: &Stack) -> bool {
    inner_passes(stack, PartMeaning::BlockOn)
}

/// Returns whether the place of a stack says anything: it is own code outside `main`, or the call of a library.
pub(crate) fn is_told(stack: &Stack) -> bool {
    match own(stack) {
        // A function that awaits all of the service by `block_on` does not compute: the runtime in it does.
        Some(_) if stack.state == State::Running && is_block_on(stack) => false,
        Some(own) => !is_main(&own.function),
        None => stack.called_library().is_some(),
    }
}

/// Returns the service's innermost function, or the function by which a library was called.
pub(crate) fn function(stack: &Stack) -> Option<&str> {
    let told = own(stack).or_else(|| stack.called_library());
    let frame = told.or(stack.frames.last())?;
    Some(&frame.function)
}

/// Returns the service's innermost line and the one that called it, or the function by which a library was called.
pub(crate) fn place(stack: &Stack) -> Spot {
    let Some(innermost) = own(stack) else {
        let frame = match function(stack) {
            Some(function) => Told::Function(function.to_owned()),
            None => Told::State("an unknown place".to_owned()),
        };
        return Spot {
            frame,
            caller: None,
        };
    };
    let mut own = stack.frames.iter().filter(|frame| frame.own);
    let caller = own.rfind(|frame| frame.function != innermost.function);
    let caller = caller.filter(|caller| !is_main(&caller.function));
    Spot {
        frame: innermost.told(),
        caller: caller.map(Frame::told),
    }
}

/// Returns the service's innermost line that is no implementation of `Deserialize`, which readers call back.
pub(crate) fn reads_at(stack: &Stack) -> Option<Told> {
    let mut frames = stack.frames.iter().rev();
    let reader = frames.find(|frame| frame.own && !frame.function.contains("Deserialize"))?;
    Some(reader.told())
}

/// Returns the function of a stack as a place.
pub(crate) fn function_at(stack: &Stack) -> Told {
    Told::Function(function(stack).unwrap_or_default().to_owned())
}

/// Returns whether this is the `main` function, in which everything is.
pub(crate) fn is_main(function: &str) -> bool {
    function.contains("::main")
}

pub(crate) fn passes(stack: &Stack, meaning: PartMeaning) -> bool {
    let mut frames = stack.frames.iter();
    frames.any(|frame| meaning.fits(&frame.function))
}
