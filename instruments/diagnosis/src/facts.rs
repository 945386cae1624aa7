//! Facts that several rules read, made once from the evidence: typed, and without words.

use ecosystem::{BODY_OF, PartMeaning, WaitKind};

use crate::evidence::{Evidence, Peers, Place, Requests, Route};
use crate::threads::seen::{Inside, Spot, client_made_at, in_other_tasks, inside, passes};
use crate::threads::{Stack, State};
use crate::thresholds::{ALONE, MUCH_OF_ALL, POOL_WAIT, THREAD_QUEUE};
use crate::waiting::Waiting;

/// Evidence, and what follows from it for several rules.
pub(crate) struct Facts<'a> {
    pub(crate) evidence: &'a Evidence,
    pub(crate) requests: Option<&'a Requests>,
    /// Waits of requests, those with most requests first.
    pub(crate) waits: Vec<Waiting>,
    /// Where tasks that are no requests run or are blocked; `None` if that was hardly seen.
    pub(crate) other_tasks: Option<Inside>,
    /// Where threads that run requests make clients, if one was seen to.
    pub(crate) client_made_at: Option<Spot>,
    /// Longest time for which a thread that runs requests did not yield, in CPU seconds of its own: the time in which it
    /// waited for a CPU is not the code's.
    pub(crate) held_s: f64,
    /// True if the heartbeat's jobs found a free thread of the blocking pool each time.
    pub(crate) has_free_blocking_threads: bool,
    /// Threads of `SQLite` that sleep until another connection has written, if there are enough for a queue.
    pub(crate) sqlite_sleeps: Option<SqliteSleeps>,
}

/// Threads of `SQLite` that sleep until another connection has written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteSleeps {
    /// Threads at any time, on average.
    pub(crate) threads: f64,
    /// True if most of them want to read.
    pub(crate) are_readers: bool,
}

impl SqliteSleeps {
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a Stack>, moments: u64) -> Option<Self> {
        let (mut asleep, mut of_readers) = (0, 0);
        for stack in all {
            if stack.state == State::Blocked && passes(stack, PartMeaning::SqliteBusy) {
                asleep += stack.samples;
                if passes(stack, PartMeaning::SqliteRead) {
                    of_readers += stack.samples;
                }
            }
        }
        let threads = asleep as f64 / moments.max(1) as f64;
        (threads >= THREAD_QUEUE).then_some(Self {
            threads,
            are_readers: of_readers * 2 > asleep,
        })
    }
}

impl<'a> Facts<'a> {
    pub(crate) fn of(evidence: &'a Evidence) -> Self {
        let threads = evidence.threads.as_deref();
        let mut held_s = 0.0_f64;
        let mut is_free = !evidence.runtimes.is_empty();
        for runtime in &evidence.runtimes {
            for held in &runtime.held_worst {
                held_s = held_s.max(*held);
            }
            is_free &= runtime.blocking_wait_worst.max(runtime.blocking_unanswered) < POOL_WAIT;
        }
        Self {
            evidence,
            requests: evidence.requests.as_ref(),
            waits: Waiting::all(evidence),
            other_tasks: in_other_tasks(threads, evidence.cpu.as_deref()),
            client_made_at: threads.and_then(client_made_at),
            held_s: held_s * evidence.cpu_share(),
            has_free_blocking_threads: is_free,
            sqlite_sleeps: threads
                .and_then(|threads| SqliteSleeps::of(threads.stacks(), threads.moments)),
        }
    }

    /// Returns the waits of one kind.
    pub(crate) fn waits_of(&self, kind: WaitKind) -> impl Iterator<Item = &Waiting> {
        self.waits
            .iter()
            .filter(move |waiting| waiting.kind() == kind)
    }

    /// Returns the places of a kind at each of which many of all requests in flight are.
    pub(crate) fn crowded(&self, kind: WaitKind) -> impl Iterator<Item = &'a Place> {
        let places = self
            .requests
            .map_or(&[][..], |requests| &requests.places[..]);
        let many = self
            .requests
            .map_or(0.0, |requests| MUCH_OF_ALL * requests.in_flight);
        places
            .iter()
            .filter(move |place| place.in_flight >= many && place.kind() == Some(kind))
    }

    /// Returns the one watched task that never ends, if there is one such task.
    pub(crate) fn watched_alone(&self) -> Option<&'a Route> {
        let mut alone = self.requests?.routes.iter().filter(|route| {
            let is_one = (ALONE..=1.0).contains(&route.in_flight);
            is_one && route.ended() == 0 && !route.name.starts_with(BODY_OF)
        });
        let one = alone.next()?;
        alone.next().is_none().then_some(one)
    }

    /// Returns where threads run a function of the service and all that it calls, or `None` if that was hardly seen.
    pub(crate) fn inside(&self, function: &str) -> Option<Inside> {
        let threads = self.evidence.threads.as_deref();
        inside(threads, self.evidence.cpu.as_deref(), function)
    }

    /// Returns the longest CPU time, in seconds, for which a thread that runs requests was seen in this function without a
    /// pause, by samples of the CPU time; `None` without such samples.
    pub(crate) fn held_at(&self, function: Option<&str>) -> Option<f64> {
        let mut longest = 0.0_f64;
        for thread in self.evidence.cpu.as_deref()?.run_requests() {
            for hold in &thread.holds {
                if hold.place.function() == function {
                    longest = longest.max(hold.cpu_s);
                }
            }
        }
        Some(longest)
    }

    /// Returns the connections of the process, with the side from which they came.
    pub(crate) fn peers(&self) -> Vec<(Side, &'a Peers)> {
        let mut all = Vec::new();
        if let Some(connections) = &self.evidence.connections {
            for peers in &connections.upstreams {
                all.push((Side::Upstream, peers));
            }
            for peers in &connections.listeners {
                all.push((Side::Clients, peers));
            }
        }
        all
    }
}

/// Side from which a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// This process connected to another service.
    Upstream,
    /// A client connected to this process.
    Clients,
}
