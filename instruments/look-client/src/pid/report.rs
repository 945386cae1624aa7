//! A report on a process that was seen from outside, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use diagnosis::evidence::{Datagrams, Descriptors, Peers};
use diagnosis::threads::{Stack, State, Thread, ThreadProfile};
use diagnosis::{Evidence, Report};
use serde::Serialize;

use super::tasks::Tasks;

/// Most stacks that are shown of the threads of one role.
const MOST_STACKS: usize = 3;

/// Smallest share of the samples of a role's threads at which a stack is shown.
const SHOWN: f64 = 0.05;

/// Smallest share of the time for which threads wait for a CPU that is told.
const TOLD_WAIT: f64 = 0.05;

/// Most frames of a stack that are shown, and most if none is of the program's own code.
const MOST_FRAMES: usize = 6;
const MOST_FOREIGN_FRAMES: usize = 3;

/// Most roles that are shown.
const MOST_ROLES: usize = 12;

/// Parts of the names of the standard library's functions.
const LANGUAGE: [&str; 3] = ["std::", "core::", "alloc::"];

/// Most addresses that are shown.
const MOST_PEERS: usize = 5;

/// Lines for a service's own code that show its requests and waits.
const THREE_LINES: &str = "    let debug = debug_endpoints::DebugEndpoints::new();\n    \
     debug.listen(\"127.0.0.1:6060\")?;\n    \
     let app = app.layer(debug.layer());";

/// The report.
#[derive(Serialize)]
pub(crate) struct Outside {
    #[serde(flatten)]
    report: Report,
    pid: u32,
    name: String,
    /// Number of times that a thread was stopped, the mean duration and the longest, in microseconds.
    stops: Stops,
    /// Threads by their role.
    roles: Vec<Role>,
    /// Places where threads compute most, with their share of all computing.
    cpu_by_place: Option<String>,
    /// Connections to others and from clients.
    upstreams: Vec<Peers>,
    listeners: Vec<Peers>,
    /// UDP sockets.
    datagrams: Vec<Datagrams>,
    /// Resident memory without files at the end, in bytes.
    resident_bytes: Option<i64>,
    /// A sentence on it.
    memory: Option<String>,
    descriptors: Option<Descriptors>,
    tasks: Option<Tasks>,
    text: String,
}

#[derive(Default, Serialize)]
struct Stops {
    /// Looks at all threads.
    looks: u64,
    count: u64,
    threads: usize,
    mean_us: f64,
    longest_us: f64,
}

/// Threads of one role.
#[derive(Serialize)]
struct Role {
    #[serde(rename = "role")]
    name: String,
    /// Number of threads that were seen in it.
    threads: usize,
    /// Shares of the samples.
    blocked: f64,
    running: f64,
    idle: f64,
    /// Share in which a thread waited, and its stack does not tell for what.
    unclear: f64,
    /// Share in which a signal or a debugger had stopped a thread.
    stopped: f64,
    /// Share of the time in which a thread waited for a CPU that other threads had.
    waited_for_cpu: f64,
    /// The most frequent stacks.
    stacks: Vec<Shown>,
}

/// A stack of some threads.
#[derive(Serialize)]
struct Shown {
    /// Share of the samples of these threads.
    share: f64,
    /// State, in words.
    state: String,
    /// Frames from the innermost outwards.
    frames: Vec<String>,
}

impl Outside {
    pub(crate) fn new(evidence: &Evidence, tasks: Option<Tasks>) -> Self {
        let process = evidence.process.clone().unwrap_or_default();
        let threads = evidence.threads.as_deref();
        let connections = evidence.connections.clone().unwrap_or_default();
        let mut outside = Self {
            report: Report::new(evidence),
            pid: process.pid,
            name: process.name,
            stops: Stops::of(threads),
            roles: threads.map(roles).unwrap_or_default(),
            cpu_by_place: threads
                .and_then(ThreadProfile::computing)
                .map(|places| places.to_string()),
            resident_bytes: evidence.memory.as_ref().map(|memory| memory.live.to),
            memory: evidence.memory.as_ref().map(|memory| memory.says.clone()),
            descriptors: evidence.descriptors.clone(),
            tasks,
            text: String::new(),
            upstreams: connections.upstreams,
            listeners: connections.listeners,
            datagrams: connections.datagrams,
        };
        outside.text = outside.to_string();
        outside
    }
}

impl Stops {
    fn of(threads: Option<&ThreadProfile>) -> Self {
        let Some(threads) = threads else {
            return Self::default();
        };
        Self {
            looks: threads.moments,
            count: threads.stops,
            threads: threads.threads.len(),
            mean_us: threads.stop_us,
            longest_us: threads.longest_stop_us,
        }
    }
}

/// Returns the name of a thread's role. Threads that differ in the numbers of their names have one role: `job-*`.
fn role_name(thread: &Thread) -> String {
    let stem = thread.role.trim_end_matches(|c: char| c.is_ascii_digit());
    // In a name such as `python3` the number says something.
    if stem != thread.role && stem.ends_with(['-', '_', '#', ' ', '/']) {
        format!("{stem}*")
    } else {
        thread.role.clone()
    }
}

/// Groups threads by role, the roles with most blocked or running samples first.
fn roles(profile: &ThreadProfile) -> Vec<Role> {
    let mut by_role: BTreeMap<String, Vec<&Thread>> = BTreeMap::new();
    for thread in &profile.threads {
        by_role.entry(role_name(thread)).or_default().push(thread);
    }
    let mut roles = Vec::new();
    for (name, threads) in by_role {
        let samples: u64 = threads.iter().map(|thread| thread.samples).sum();
        let all = samples.max(1) as f64;
        let delayed: f64 = threads.iter().map(|thread| thread.delayed_s).sum();
        let mut by_stack: BTreeMap<(String, Vec<String>), u64> = BTreeMap::new();
        let mut in_state: BTreeMap<State, u64> = BTreeMap::new();
        for stack in threads.iter().flat_map(|thread| &thread.stacks) {
            *in_state.entry(stack.state).or_default() += stack.samples;
            if stack.state != State::Idle {
                *by_stack
                    .entry((stack.text.clone(), frames(stack)))
                    .or_default() += stack.samples;
            }
        }
        let mut stacks: Vec<_> = by_stack.into_iter().collect();
        stacks.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
        let mut shown = Vec::new();
        for ((state, frames), samples) in stacks.into_iter().take(MOST_STACKS) {
            let share = samples as f64 / all;
            if share >= SHOWN {
                shown.push(Shown {
                    share,
                    state,
                    frames,
                });
            }
        }
        let share = |state| in_state.get(&state).copied().unwrap_or_default() as f64 / all;
        roles.push(Role {
            name,
            threads: threads.len(),
            blocked: share(State::Blocked),
            running: share(State::Running),
            idle: share(State::Idle),
            unclear: share(State::Unclear),
            stopped: share(State::Stopped),
            waited_for_cpu: delayed
                / (profile.seconds * threads.len() as f64).max(f64::MIN_POSITIVE),
            stacks: shown,
        });
    }
    roles.sort_by(|a, b| a.idle.total_cmp(&b.idle));
    roles
}

/// Returns the innermost frames from the inside outwards: from the program's own code on, if any is on the stack.
fn frames(stack: &Stack) -> Vec<String> {
    let has_own = stack.frames.iter().any(|frame| frame.own);
    let most = if has_own {
        MOST_FRAMES
    } else {
        MOST_FOREIGN_FRAMES
    };
    let mut shown: Vec<String> = Vec::new();
    for frame in stack.frames.iter().rev() {
        // Below a library's call, the standard library has many functions that say nothing.
        let is_standard = LANGUAGE.iter().any(|part| frame.function.contains(part));
        // A call's name stands before the frames; the C library's own functions around it say nothing more.
        let is_c_librarys = stack.call.is_some() && frame.function.starts_with("__");
        let is_shown = if has_own {
            frame.own
        } else {
            !is_standard && !is_c_librarys
        };
        let label = frame.label();
        if is_shown && shown.last() != Some(&label) {
            shown.push(label);
        }
        if shown.len() == most {
            break;
        }
    }
    shown
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.report)?;
        writeln!(
            f,
            "\nProcess {} ({}), seen from outside:",
            self.pid, self.name
        )?;
        for role in self.roles.iter().take(MOST_ROLES) {
            writeln!(f, "  {role}")?;
        }
        let rest = self.roles.get(MOST_ROLES..).unwrap_or_default();
        if !rest.is_empty() {
            let threads: usize = rest.iter().map(|role| role.threads).sum();
            writeln!(f, "  {threads:>3} others: --format json lists all")?;
        }
        if let Some(places) = &self.cpu_by_place {
            writeln!(f, "  CPU by place: {places}.")?;
        }
        for (title, peers) in [
            ("accepts on", &self.listeners),
            ("connects to", &self.upstreams),
        ] {
            for one in peers.iter().take(MOST_PEERS) {
                writeln!(f, "  {title} {}", line_of(one))?;
            }
        }
        for one in self.datagrams.iter().take(MOST_PEERS) {
            let (address, dropped) = (&one.address, one.dropped);
            writeln!(f, "  UDP at {address}: {dropped} datagrams dropped")?;
        }
        if let Some(memory) = &self.memory {
            writeln!(f, "  Memory: {memory}.")?;
        }
        if let Some(descriptors) = &self.descriptors {
            writeln!(
                f,
                "  Descriptors: {} of {} open.",
                descriptors.most_open, descriptors.limit
            )?;
        }
        writeln!(f, "  {}", self.stops)?;
        if let Some(tasks) = &self.tasks {
            writeln!(f, "\n{tasks}")?;
        }
        let missing = match &self.tasks {
            Some(Tasks::Seen(_) | Tasks::Saved(_)) => "requests, and how long they take",
            Some(Tasks::NotSeen(_)) | None => "requests, and what they await",
        };
        writeln!(
            f,
            "Not seen from outside: {missing}. In a Rust service, three lines show them (debug-endpoints):\n{THREE_LINES}"
        )
    }
}

impl fmt::Display for Stops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Looks: {}. Threads: {}. ", self.looks, self.threads)?;
        if self.count == 0 {
            return write!(f, "No thread was stopped.");
        }
        write!(
            f,
            "Stops: {}, {:.0} µs each on average, {:.0} µs the longest; no thread more than 19 times a second.",
            self.count, self.mean_us, self.longest_us
        )
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>3} {}: {:.0} % blocked, {:.0} % running, {:.0} % idle",
            self.threads,
            self.name,
            self.blocked * 100.0,
            self.running * 100.0,
            self.idle * 100.0
        )?;
        if self.unclear > 0.0 {
            write!(
                f,
                ", {:.0} % waiting for work or for another thread: the stack does not tell which",
                self.unclear * 100.0
            )?;
        }
        if self.stopped > 0.0 {
            write!(f, ", {:.0} % stopped", self.stopped * 100.0)?;
        }
        if self.waited_for_cpu >= TOLD_WAIT {
            let share = self.waited_for_cpu * 100.0;
            write!(f, "; waited for a CPU {share:.0} % of the time")?;
        }
        for stack in &self.stacks {
            let share = stack.share * 100.0;
            let frames = stack.frames.join(" < ");
            let line = format!("{share:.0} % {} {frames}", stack.state);
            write!(f, "\n        {}", line.trim_end())?;
        }
        Ok(())
    }
}

fn line_of(peers: &Peers) -> String {
    let mut line = format!(
        "{}: {} open, {} at most",
        peers.address, peers.open, peers.most_open
    );
    // Writing to a String cannot fail.
    if peers.most_unaccepted > 0 {
        let _ = write!(
            line,
            ", up to {} waiting to be accepted",
            peers.most_unaccepted
        );
    }
    if peers.queued_looks > 0 {
        let _ = write!(
            line,
            ", moments with written data not yet acknowledged: {}",
            peers.queued_looks
        );
    }
    if peers.unread > 0 {
        let (unread, bytes) = (peers.unread, peers.most_unread);
        let _ = write!(line, ", {unread} not read, with up to {bytes} bytes");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_told_only_if_there_were_any() {
        let mut stops = Stops {
            looks: 44,
            threads: 1,
            ..Stops::default()
        };
        assert_eq!(
            stops.to_string(),
            "Looks: 44. Threads: 1. No thread was stopped."
        );
        (stops.count, stops.mean_us, stops.longest_us) = (3, 51.0, 80.0);
        assert!(
            stops
                .to_string()
                .contains("Stops: 3, 51 µs each on average, 80 µs the longest"),
            "{stops}"
        );
    }
}
