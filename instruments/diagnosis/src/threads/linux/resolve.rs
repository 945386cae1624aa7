//! Names for sampled addresses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ecosystem::carries_requests;

use super::calls::{CLIENTS, EVENTS, SEMAPHORE, SIGNALS, call_by_name, call_name, passes, text};
use super::sampler::{Moment, Running, Sampled, Samples};
use crate::threads::cpu_samples::{CpuMoment, CpuSamples, CpuThread};
use crate::threads::profile::{Frame, Hold, Stack, State, Thread, ThreadProfile};
use crate::threads::roles::{Role, Whose, idle, is_of_profiler, label, role_of};
use crate::threads::seen::is_main;

/// One function at an address.
#[derive(Clone, Debug)]
pub struct NamedFrame {
    /// Its name, as the compiler writes it.
    pub function: String,
    /// The file it was compiled from; empty if unknown.
    pub file: String,
    /// Line in the file; 0 if unknown.
    pub line: u32,
    /// True if it was compiled from a library or the toolchain.
    pub is_foreign: bool,
}

/// Source of names for addresses of a process.
pub trait Names {
    /// Returns the functions at an address, innermost first: several if one is inlined into another.
    fn functions(&mut self, address: usize) -> Vec<NamedFrame>;

    /// Returns a label for an address without a name, by its place in its file.
    fn nameless(&self, address: usize) -> String;

    /// Returns a note on missing names for the reader, if there is one, such as that the program is stripped.
    fn note(&self, known: &HashMap<usize, Vec<NamedFrame>>) -> Option<String>;

    /// Returns whether a request was begun on this thread.
    fn has_begun_requests(&self, _tid: i32) -> bool {
        false
    }
}

impl ThreadProfile {
    /// Makes the profile of these samples, and looks each name up once.
    pub fn new(samples: Samples, duration: Duration, names: &mut dyn Names) -> Self {
        let mut known: HashMap<usize, Vec<NamedFrame>> = HashMap::new();
        for &address in samples.stacks.iter().flatten() {
            known
                .entry(address)
                .or_insert_with(|| names.functions(address));
        }
        let mut stacks: Vec<Vec<Frame>> = Vec::new();
        for stack in &samples.stacks {
            stacks.push(frames(stack, &known, names));
        }
        let mut threads = Vec::new();
        for (tid, seen) in samples.threads {
            let began_requests = names.has_begun_requests(tid);
            threads.push(Thread::new(tid, seen, &stacks, began_requests));
        }
        let note = match samples.refused {
            Some(why) if !samples.has_stacks => Some(format!("No stacks: {why}.")),
            _ => names.note(&known),
        };
        Self {
            seconds: duration.as_secs_f64(),
            moments: samples.moments,
            stops: samples.stops,
            stop_us: samples.stopped.as_secs_f64() * 1e6 / samples.stops.max(1) as f64,
            longest_stop_us: samples.longest_stop.as_secs_f64() * 1e6,
            note,
            threads,
        }
    }
}

/// Most stacks of CPU samples that are kept, the most frequent ones, of some ten kilobytes each.
const MOST_CPU_STACKS: usize = 1_000;

impl CpuSamples {
    /// Makes the samples of these stacks: each has its thread's number, its addresses from the innermost outwards, and its
    /// number of samples. `moments` are the samples in their order. Stacks of profilers are left out.
    pub fn new<'a>(
        stacks: impl Iterator<Item = (i32, &'a [usize], u64)>,
        moments: &[CpuMoment],
        period: Duration,
        names: &mut dyn Names,
    ) -> Self {
        let all: Vec<_> = stacks.collect();
        let mut kept: Vec<usize> = (0..all.len()).collect();
        kept.sort_by_key(|&number| Reverse(all[number].2));
        kept.truncate(MOST_CPU_STACKS);
        let mut known: HashMap<usize, Vec<NamedFrame>> = HashMap::new();
        // Stacks that are left out have no frames.
        let mut frames_of: Vec<Vec<Frame>> = vec![Vec::new(); all.len()];
        for &number in &kept {
            for &address in all[number].1 {
                let entry = known.entry(address);
                entry.or_insert_with(|| names.functions(address));
            }
            let frames = frames(all[number].1, &known, names);
            if !is_of_profiler(functions(&frames).into_iter()) {
                frames_of[number] = frames;
            }
        }
        let mut threads: BTreeMap<i32, CpuThread> = BTreeMap::new();
        for (tid, running) in running(moments, period, |number| all[number].0) {
            let thread = CpuThread {
                began_requests: names.has_begun_requests(tid),
                holds: holds(&running, &frames_of),
                ..CpuThread::default()
            };
            threads.insert(tid, thread);
        }
        for number in kept {
            let (tid, _, samples) = all[number];
            let frames = std::mem::take(&mut frames_of[number]);
            if frames.is_empty() {
                continue;
            }
            let functions = functions(&frames);
            let role = role_of(&functions);
            let thread = threads.entry(tid).or_insert_with(|| CpuThread {
                began_requests: names.has_begun_requests(tid),
                ..CpuThread::default()
            });
            thread.is_runtime |= role.is_some_and(Role::is_runtime);
            thread.stacks.push(Stack {
                samples,
                state: State::Running,
                text: "(running)".to_owned(),
                call: None,
                works_in: works_in(&frames),
                wchan: None,
                own: None,
                frames,
            });
        }
        Self {
            period_s: period.as_secs_f64(),
            threads: threads.into_values().collect(),
        }
    }
}

impl Thread {
    fn new(tid: i32, seen: Sampled, stacks: &[Vec<Frame>], began_requests: bool) -> Self {
        let (name, moments) = (seen.name, seen.moments);
        // A thread's role does not change: take it from the most frequent stack whose root was reached.
        let mut by_samples: Vec<_> = moments.iter().collect();
        by_samples.sort_by_key(|(_, samples)| u64::MAX - **samples);
        let mut roles = by_samples.iter();
        let role = roles.find_map(|(moment, _)| role_of(&functions(frames_at(moment, stacks))));
        let mut did = Vec::new();
        for (moment, samples) in &moments {
            did.push(stack_at(moment, *samples, frames_at(moment, stacks), role));
        }
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
            role: match role {
                Some(role) => role.name().to_owned(),
                None => name.clone(),
            },
            label: label(role, &name),
            is_runtime: role.is_some_and(Role::is_runtime),
            began_requests,
            name,
            samples,
            stops: seen.stops,
            blocked: share(State::Blocked),
            running: share(State::Running),
            idle: share(State::Idle),
            ran_s: seconds(seen.last.ran, seen.first.map(|sched| sched.ran)),
            delayed_s: seconds(seen.last.delayed, seen.first.map(|sched| sched.delayed)),
            holds: holds(&seen.running, stacks),
            stacks: did,
        }
    }
}

/// Returns the frames that a thread had at a moment; none if its stack was not taken.
fn frames_at<'a>(moment: &Moment, stacks: &'a [Vec<Frame>]) -> &'a [Frame] {
    match moment.stack {
        Some(at) => &stacks[at],
        None => &[],
    }
}

/// Returns the names of the functions in these frames.
fn functions(frames: &[Frame]) -> Vec<&str> {
    let mut names = Vec::new();
    for frame in frames {
        names.push(frame.function.as_str());
    }
    names
}

/// Returns the name of the call that the innermost function makes.
fn works_in(frames: &[Frame]) -> Option<String> {
    let call = call_by_name(&frames.last()?.function)?;
    Some(call_name(call))
}

/// Returns the stack and state that a thread of this role had at a moment which was seen `samples` times.
fn stack_at(moment: &Moment, samples: u64, frames: &[Frame], role: Option<Role>) -> Stack {
    let names = functions(frames);
    let moment = restarted(moment, &names);
    // A worker that has given its tasks away holds up no other task.
    let role = role_of(&names).or(role);
    // Locks, condition variables and channels wait in the same call. The C library's names tell a lock, but not what a
    // semaphore is for. Python's lock for its interpreter is a condition variable.
    let locks = ["pthread_mutex_", "pthread_rwlock_", "take_gil"];
    let waits_for_lock = locks.iter().any(|part| passes(&names, part));
    let is_nameless = frames.iter().any(|frame| frame.whose == Whose::Nameless);
    let own = frames.iter().rev().find(|frame| frame.own);
    let waits_in_library =
        role.is_none() && own.is_none() && !waits_for_lock && moment.call == Some(libc::SYS_futex);
    let is_unclear = waits_in_library && (is_nameless || passes(&names, SEMAPHORE));
    let idle = match moment.state {
        'R' => None,
        _ => why_idle(&moment, &names, role, waits_in_library && !is_unclear),
    };
    let state = match (moment.state, idle) {
        ('R', _) => State::Running,
        ('T' | 't', _) => State::Stopped,
        (_, Some(_)) => State::Idle,
        _ if is_unclear => State::Unclear,
        _ => State::Blocked,
    };
    Stack {
        samples,
        state,
        text: text(&moment, state, idle, &names),
        call: moment.call.map(call_name),
        works_in: works_in(frames),
        wchan: moment.wchan.clone(),
        own: own.map(Frame::label),
        frames: frames.to_vec(),
    }
}

/// Returns why a thread that does not run has nothing to do, or `None` if it has work or nothing tells.
fn why_idle(
    moment: &Moment,
    names: &[&str],
    role: Option<Role>,
    waits_in_library: bool,
) -> Option<&'static str> {
    if names.is_empty() {
        let waits_for_event = moment.call.is_some_and(|call| EVENTS.contains(&call));
        return waits_for_event.then_some("");
    }
    if let Some(why) = idle(role, names) {
        return Some(why);
    }
    match moment.call? {
        _ if role.is_some() => None,
        call if EVENTS.contains(&call) => Some(""),
        call if CLIENTS.contains(&call) => Some("waits for a client"),
        call if SIGNALS.contains(&call) => Some("waits for a signal"),
        _ => waits_in_library.then_some("thread of a library"),
    }
}

/// Returns the moment of a thread with the call that the kernel restarted after a stop, which the innermost function names.
fn restarted(moment: &Moment, names: &[&str]) -> Moment {
    let mut moment = moment.clone();
    if moment.call == Some(libc::SYS_restart_syscall)
        && let Some(name) = names.last()
        && let Some(call) = call_by_name(name)
    {
        moment.call = Some(call);
    }
    moment
}

/// Returns the seconds between two times in nanoseconds; 0 if the first is not known.
fn seconds(now: u64, then: Option<u64>) -> f64 {
    now.saturating_sub(then.unwrap_or(now)) as f64 / 1e9
}

/// Returns the samples of each thread, with its CPU time. Moments follow each other if the thread has not slept in between.
fn running(
    moments: &[CpuMoment],
    period: Duration,
    tid_of: impl Fn(usize) -> i32,
) -> BTreeMap<i32, Vec<Running>> {
    let mut threads: BTreeMap<i32, (u64, Vec<Running>)> = BTreeMap::new();
    #[allow(clippy::cast_possible_truncation)] // a period is at most a second
    let period = period.as_nanos() as u64;
    for moment in moments {
        let (slept, running) = threads.entry(tid_of(moment.stack)).or_default();
        let (mut next, mut ran) = (0, 0);
        if let Some(last) = running.last() {
            next = last.moment + if moment.slept == *slept { 1 } else { 2 };
            ran = last.ran;
        }
        *slept = moment.slept;
        running.push(Running {
            moment: next,
            stack: moment.stack,
            ran: ran + moment.periods * period,
        });
    }
    let mut all = BTreeMap::new();
    for (tid, (_, running)) in threads {
        all.insert(tid, running);
    }
    all
}

/// Most holds of a thread that are kept.
const MOST_HOLDS: usize = 4;

/// Returns the longest holds of a thread: times in one of the service's functions at consecutive moments.
fn holds(running: &[Running], stacks: &[Vec<Frame>]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = Vec::new();
    let mut rest = running;
    while let Some(first) = rest.first() {
        let mut common = own_functions(&stacks[first.stack]);
        let mut length = 1;
        for pair in rest.windows(2) {
            let next = own_functions(&stacks[pair[1].stack]);
            let mut shared = common.clone();
            shared.retain(|name| next.contains(name));
            if pair[1].moment != pair[0].moment + 1 || shared.is_empty() {
                break;
            }
            common = shared;
            length += 1;
        }
        let last = rest[length - 1];
        let frames = stacks[last.stack].iter().rev();
        let mut own = frames.filter(|frame| frame.own && common.contains(&frame.function.as_str()));
        if let Some(frame) = own.next() {
            holds.push(Hold {
                moments: length as u64,
                cpu_s: seconds(last.ran, Some(first.ran)),
                place: frame.told(),
            });
        }
        rest = &rest[length..];
    }
    holds.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
    holds.truncate(MOST_HOLDS);
    holds
}

/// Returns the service's own functions in a stack, without `main`, which is the whole program, and without a middleware
/// around another function: it is in the stacks of many requests, so its time is not that of one.
fn own_functions(stack: &[Frame]) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_carried = false;
    for frame in stack {
        if frame.own && !is_main(&frame.function) {
            if is_carried {
                names.clear();
            }
            is_carried = false;
            names.push(frame.function.as_str());
        } else {
            is_carried |= carries_requests(&frame.function);
        }
    }
    names
}

/// Returns the functions at these addresses, from the outermost inwards.
fn frames(
    addresses: &[usize],
    known: &HashMap<usize, Vec<NamedFrame>>,
    names: &dyn Names,
) -> Vec<Frame> {
    let mut frames = Vec::new();
    for address in addresses.iter().rev() {
        let functions = known.get(address).map(Vec::as_slice).unwrap_or_default();
        if functions.is_empty() {
            frames.push(Frame {
                function: names.nameless(*address),
                file: None,
                line: None,
                own: false,
                whose: Whose::Nameless,
            });
        }
        for named in functions.iter().rev() {
            let whose = Whose::of(&named.function, &named.file, named.is_foreign);
            frames.push(Frame {
                function: named.function.clone(),
                file: Some(named.file.clone()).filter(|file| !file.is_empty()),
                line: Some(named.line).filter(|line| *line > 0),
                own: whose == Whose::Own,
                whose,
            });
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_one_function_in_moments_that_follow_each_other() {
        let frame = |function: &str| Frame {
            function: function.to_owned(),
            file: Some("src/shop.rs".to_owned()),
            line: Some(7),
            own: true,
            whose: Whose::Own,
        };
        let stacks = [
            vec![frame("shop::metrics"), frame("shop::encode")],
            vec![frame("shop::metrics"), frame("shop::write")],
            vec![frame("shop::order")],
        ];
        let seen = |moment, stack, ms: u64| Running {
            moment,
            stack,
            ran: ms * 1_000_000,
        };
        let running = [
            seen(1, 0, 0),
            seen(2, 1, 50),
            seen(3, 0, 100),
            seen(4, 2, 150),
            seen(9, 2, 160),
        ];
        let holds = holds(&running, &stacks);
        assert_eq!((holds.len(), holds[0].moments), (3, 3), "{holds:?}");
        assert_eq!(holds[0].place, "shop::metrics (src/shop.rs:7)");
        assert!((holds[0].cpu_s - 0.1).abs() < 1e-9, "{holds:?}");
    }

    #[test]
    fn a_middleware_around_all_requests_does_not_hold_a_thread() {
        let frame = |function: &str| {
            let whose = Whose::of(function, "", false);
            Frame {
                function: function.to_owned(),
                file: None,
                line: None,
                own: whose == Whose::Own,
                whose,
            }
        };
        let carried = |handler: &[&str]| {
            let mut stack = vec![
                frame("shop::trace::{{closure}}"),
                frame("<axum::middleware::from_fn::Next>::run"),
            ];
            stack.extend(handler.iter().map(|function| frame(function)));
            stack
        };
        let stacks = [
            carried(&["shop::login"]),
            carried(&["shop::list"]),
            // The framework's own work for it.
            carried(&["axum::json::Json"]),
        ];
        let at = |moment, stack| Running {
            moment,
            stack,
            ran: moment * 10_000_000,
        };
        let running = [at(1, 1), at(2, 0), at(3, 0), at(4, 0), at(5, 2), at(6, 1)];
        let holds = holds(&running, &stacks);
        assert_eq!(holds[0].place, "shop::login", "{holds:?}");
        assert_eq!(holds[0].moments, 3, "{holds:?}");
        assert!(holds[1..].iter().all(|hold| hold.moments == 1), "{holds:?}");
    }

    #[test]
    fn samples_of_cpu_time_follow_each_other_until_the_thread_sleeps() {
        let at = |stack, slept, periods| CpuMoment {
            stack,
            slept,
            periods,
        };
        // Stacks 0 and 2 are of one thread, 1 is of another.
        let moments = [at(0, 4, 1), at(1, 9, 1), at(2, 4, 2), at(0, 5, 1)];
        let threads = running(&moments, Duration::from_millis(10), |stack| {
            [7, 8, 7][stack]
        });
        let mut seen = Vec::new();
        for of_thread in &threads[&7] {
            seen.push((of_thread.moment, of_thread.stack, of_thread.ran / 1_000_000));
        }
        assert_eq!(seen, [(0, 0, 10), (1, 2, 30), (3, 0, 40)]);
        assert_eq!(threads[&8].len(), 1);
    }

    /// A program in C: the C library's functions have names, and the program's own have none.
    #[test]
    fn what_a_foreign_thread_waits_for_is_told_by_the_c_librarys_names() {
        for (call, waits_in, state, text) in [
            (
                libc::SYS_rt_sigsuspend,
                "__GI___sigsuspend",
                State::Idle,
                "(idle: waits for a signal)",
            ),
            (
                libc::SYS_futex,
                "__pthread_cond_wait_common",
                State::Unclear,
                "(waits in futex: a condition variable)",
            ),
            (
                libc::SYS_futex,
                "___pthread_mutex_lock",
                State::Blocked,
                "(blocked in futex)",
            ),
            (
                libc::SYS_restart_syscall,
                "__GI___clock_nanosleep",
                State::Blocked,
                "(blocked in clock_nanosleep)",
            ),
            (
                libc::SYS_futex,
                "__new_sem_wait_slow64",
                State::Unclear,
                "(waits in futex: a semaphore)",
            ),
            (
                libc::SYS_futex,
                "take_gil",
                State::Blocked,
                "(blocked in futex)",
            ),
            (
                libc::SYS_futex,
                "syscall",
                State::Unclear,
                "(waits in futex: a lock, a condition variable or a channel)",
            ),
        ] {
            let moment = Moment {
                stack: Some(0),
                state: 'S',
                call: Some(call),
                wchan: None,
            };
            let seen = Sampled {
                moments: HashMap::from([(moment, 9)]),
                ..Sampled::default()
            };
            let frame = |function: &str, whose| Frame {
                function: function.to_owned(),
                file: None,
                line: None,
                own: false,
                whose,
            };
            let stack = vec![
                frame("[server+0x1234]", Whose::Nameless),
                frame(waits_in, Whose::Plumbing),
            ];
            let thread = Thread::new(7, seen, &[stack], false);
            assert_eq!(thread.stacks[0].state, state, "{waits_in}");
            assert_eq!(thread.stacks[0].text, text);
        }
    }
}
