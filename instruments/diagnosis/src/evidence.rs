//! What was seen of a process, as plain data: instruments fill it, rules judge it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecosystem::{Wait, WaitKind};
use serde::Serialize;

use crate::threads::ThreadProfile;
use crate::thresholds::LITTLE_MEMORY;

/// All that was seen of a process during some time. What is missing was not looked at.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// How long was looked, in seconds.
    pub seconds: f64,
    /// CPUs that there are.
    pub cpus: usize,
    /// CPUs that the process kept busy, on average.
    pub cpus_used: f64,
    /// What became of requests, and where they waited.
    pub requests: Option<Requests>,
    /// What threads did.
    pub threads: Option<Arc<ThreadProfile>>,
    /// Async runtimes that were watched.
    pub runtimes: Vec<Runtime>,
    /// Memory and tasks.
    pub memory: Option<Memory>,
    /// TCP connections.
    pub connections: Option<Connections>,
    /// File descriptors.
    pub descriptors: Option<Descriptors>,
    /// The functions with most samples of a CPU profile that was taken meanwhile.
    pub cpu_profile: Option<String>,
    /// What was not seen, and why.
    pub not_seen: Vec<String>,
}

impl Evidence {
    /// Returns whether the CPUs have next to nothing left to give.
    pub fn is_cpu_limit(&self) -> bool {
        self.cpus_used >= crate::thresholds::CPU_LIMIT * self.cpus as f64
    }

    /// Connections to other services that were open at a time; 1 where that is not known.
    pub fn open_upstreams(&self) -> usize {
        let mut open = 0;
        if let Some(connections) = &self.connections {
            for peers in &connections.upstreams {
                open += peers.most_open;
            }
        }
        open.max(1)
    }
}

/// Requests during some time.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Requests in flight, averaged over time.
    pub in_flight: f64,
    /// Mean time of a request, over all routes.
    pub latency_ms: Option<f64>,
    /// Connections that went on as another protocol since the process began: WebSockets.
    pub upgraded: u64,
    /// Routes, and bodies of answers, with most requests in flight first.
    pub routes: Vec<Route>,
    /// Where requests were, most of them first.
    pub places: Vec<Place>,
    /// Who let go of what requests waited for; of each place the largest part first.
    pub releases: Vec<Release>,
    /// Futures that requests had and did not poll.
    pub unpolled: Vec<Unpolled>,
}

/// One route.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// Bodies of answers, or waits for a service, which are no requests.
    pub is_part: bool,
    /// Requests in flight, averaged over time.
    pub in_flight: f64,
    /// Requests that had an answer.
    pub finished: u64,
    /// Requests that were dropped before, as when their clients leave.
    pub dropped: u64,
    /// Mean time after which they were.
    pub dropped_after_ms: Option<f64>,
    /// Answers by status.
    pub answers: Answers,
    /// Mean time of a request.
    pub latency_ms: Option<f64>,
    /// The longest time of a request that was measured.
    pub longest_ms: Option<f64>,
    /// The longest time, in seconds, in which requests were in flight and none finished.
    pub standstill: f64,
}

/// Numbers of answers by the class of their HTTP status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// 101.
    pub upgraded: u64,
    /// 2xx.
    pub successful: u64,
    /// 3xx.
    pub redirected: u64,
    /// 4xx.
    pub client_errors: u64,
    /// 5xx.
    pub server_errors: u64,
    /// Of these errors, 408 and 504: a time limit was over.
    pub timed_out: u64,
    /// Of these errors, 429 and 503: there was no room.
    pub refused: u64,
}

impl Answers {
    /// Adds others to these.
    pub fn add(&mut self, other: Self) {
        self.upgraded += other.upgraded;
        self.successful += other.successful;
        self.redirected += other.redirected;
        self.client_errors += other.client_errors;
        self.server_errors += other.server_errors;
        self.timed_out += other.timed_out;
        self.refused += other.refused;
    }
}

/// Place where requests were.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The route.
    pub route: String,
    /// Frames from the handler inwards, the reader's own with file and line; last what is waited for.
    pub frames: Vec<String>,
    /// The well-known wait.
    pub wait: Option<Wait>,
    /// Requests there, averaged over time.
    pub in_flight: f64,
    /// Waits for the same thing that follow each other at that line.
    pub in_a_row: Option<f64>,
}

impl Place {
    /// The innermost line of the reader's.
    pub fn line(&self) -> Option<&str> {
        let mut lines = self.frames.iter().rev().map(String::as_str);
        lines.find(|frame| frame.ends_with(')') && !frame.starts_with('('))
    }

    /// The kind of the wait, if it is well known.
    pub fn kind(&self) -> Option<WaitKind> {
        self.wait.map(|wait| wait.kind)
    }
}

/// Who let go of what requests waited for at a place.
#[derive(Clone, Debug, Default)]
pub struct Release {
    /// The route of those that waited.
    pub route: String,
    /// Where they waited.
    pub frames: Vec<String>,
    /// The code that let go, outermost first.
    pub by: Vec<String>,
    /// Of the waits there that ended, from 0 to 1.
    pub share: f64,
}

/// Futures that requests have and do not poll, while they await something else.
#[derive(Clone, Debug, Default)]
pub struct Unpolled {
    /// From the route inwards: where those futures wait.
    pub frames: Vec<String>,
    /// From the route inwards: what the request awaited instead.
    pub instead: Vec<String>,
    /// The code that woke one of them in vain.
    pub woken_by: Vec<String>,
    /// Requests of which this was seen.
    pub requests: u64,
    /// Requests that were looked at for it.
    pub of_requests: u64,
    /// The longest time for which such a future was not polled.
    pub longest_ms: Option<f64>,
}

impl Requests {
    /// Requests without parts of them.
    pub fn whole(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(|route| !route.is_part)
    }

    /// Requests that had an answer.
    pub fn finished(&self) -> u64 {
        self.whole().map(|route| route.finished).sum()
    }

    /// Requests that were dropped before they had one.
    pub fn dropped(&self) -> u64 {
        self.whole().map(|route| route.dropped).sum()
    }

    /// Share of the requests whose clients left, before the answer or during its body.
    pub fn left_share(&self) -> f64 {
        let left: u64 = self.routes.iter().map(|route| route.dropped).sum();
        left as f64 / (self.dropped() + self.finished()).max(1) as f64
    }

    /// Answers of all routes.
    pub fn answers(&self) -> Answers {
        let mut all = Answers::default();
        for route in self.whole() {
            all.add(route.answers);
        }
        all
    }

    /// The route of this name.
    pub fn route(&self, name: &str) -> Option<&Route> {
        self.routes.iter().find(|route| route.name == name)
    }

    /// The code that let most of the requests at a place go, if it is known.
    pub fn release_of(&self, place: &Place) -> Option<&Release> {
        let is_of =
            |release: &&Release| release.route == place.route && release.frames == place.frames;
        self.releases.iter().find(is_of)
    }
}

/// One async runtime.
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    /// Its name.
    pub name: String,
    /// Delay of its ticks at the 99th percentile, in seconds.
    pub late_p99: f64,
    /// Time for which the last tick had waited in vain, in seconds.
    pub unanswered: f64,
    /// For each worker, the longest time for which it did not yield, in seconds.
    pub held_worst: Vec<f64>,
    /// Share of the time in which its workers were busy, if that is known.
    pub busy: Option<f64>,
    /// Wait of a job for a blocking thread: median and worst, in seconds.
    pub blocking_wait_p50: f64,
    /// The worst.
    pub blocking_wait_worst: f64,
    /// Time for which the last job had waited in vain.
    pub blocking_unanswered: f64,
}

/// One of the parts of memory, or another number that may grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// At the beginning.
    pub from: i64,
    /// At the end.
    pub to: i64,
    /// By how much the least of the last third is above the most of the first third.
    pub rise: i64,
}

impl Part {
    /// The part with these values, moment by moment.
    pub fn of(values: impl Iterator<Item = i64>) -> Self {
        let values: Vec<_> = values.collect();
        let third = values.len().div_ceil(3);
        let of_first = values.iter().take(third).max().copied();
        let of_last = values.iter().rev().take(third).min().copied();
        Self {
            from: values.first().copied().unwrap_or_default(),
            to: values.last().copied().unwrap_or_default(),
            rise: of_last.unwrap_or_default() - of_first.unwrap_or_default(),
        }
    }

    /// Difference between end and beginning.
    pub fn growth(self) -> i64 {
        self.to - self.from
    }

    /// Returns whether it grows, as bytes of memory: by a twentieth, and by more than a little.
    pub fn grows(self) -> bool {
        self.rise > LITTLE_MEMORY.max(self.from / 20)
    }
}

/// Memory and tasks.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// How long was looked, in seconds.
    pub seconds: f64,
    /// What is live, or what is resident where nobody tells what is live.
    pub live: Part,
    /// Tasks of the watched runtimes.
    pub tasks: Part,
    /// Which part grows, as a sentence.
    pub says: String,
}

/// TCP connections of the process.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// How long was looked, in seconds.
    pub seconds: f64,
    /// How many times the descriptors were looked at.
    pub looks: u32,
    /// Connections that the whole network namespace opened, by the kernel's count.
    pub namespace_opened: Option<u64>,
    /// And those that it accepted.
    pub namespace_accepted: Option<u64>,
    /// To other services.
    pub upstreams: Vec<Peers>,
    /// From clients.
    pub listeners: Vec<Peers>,
}

/// Connections to one remote address, or to one port of this process.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Peers {
    /// The remote address, or the own port.
    pub address: String,
    /// Open at the end.
    pub open: usize,
    /// Open at once, at most.
    pub most_open: usize,
    /// Of those that are open, at the beginning and at the end.
    pub growth: Option<Part>,
    /// That began meanwhile, at least.
    pub opened: usize,
    /// The same a second.
    pub opened_per_second: f64,
    /// Beside these, ended connections that were seen to be new (`TIME_WAIT`); they may be another process's.
    pub ended: usize,
    /// The most that had Nagle's algorithm on at once.
    pub without_nodelay: usize,
    /// Looks at a connection that had something written and not yet acknowledged.
    pub queued_looks: u32,
    /// Those of them in which a small piece had waited for an acknowledgement for long, for Nagle's algorithm alone.
    pub held_looks: u32,
    /// Looks at which connections waited to be accepted.
    pub unaccepted_looks: u32,
    /// The most that did.
    pub most_unaccepted: u32,
    /// The mean of the kernel's estimates.
    pub round_trip_ms: Option<f64>,
}

/// File descriptors.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Descriptors {
    /// How many may be open at once (`RLIMIT_NOFILE`).
    pub limit: u64,
    /// Open at the same time, at most.
    pub most_open: u64,
    /// Looks that failed because none was left.
    pub none_left: u32,
    /// Open at the last look, by kind: files, sockets, pipes, event polls.
    pub by_kind: BTreeMap<String, u64>,
}
