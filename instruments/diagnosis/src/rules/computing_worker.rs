//! Threads that run requests compute, and whoever has to be polled waits.

use super::table;
use super::why::Why;
use crate::evidence::Frame;
use crate::facts::Facts;
use crate::finding::{Advice, Row, Sighting};
use crate::neighbours::lost_in_words;
use crate::threads::State;
use crate::threads::seen::{
    Spot, function, function_at, in_state, is_told, most_frequent, place, worst,
};
use crate::thresholds::{
    BLOCKED, BUSIEST, BUSY, BUSY_WHILE_HELD, FEWEST_SAMPLES, HELD, HELD_AT_ONCE, MOST_COMPUTING,
};

/// Share of the time in which threads had a CPU, of that in which they wanted one, below which it is told.
const FEW_CPUS: f64 = 0.8;

/// Computing of threads that run requests.
pub(crate) struct Computing {
    function: Frame,
    at: Spot,
    /// Share of the time for which these threads compute.
    busy: f64,
    /// Share of that in one function.
    share: f64,
    /// CPU seconds for which one did not yield; `None` without a heartbeat.
    held_s: Option<f64>,
    /// Share of the time in which the threads had a CPU, of that in which they wanted one.
    had_cpu: f64,
    /// True if the report says at its head how much of the CPU time others had.
    is_lost_told: bool,
    why: Option<Why>,
    /// True if the function was seen to keep a thread, or if nobody knows.
    is_held: bool,
}

/// Returns the computing, if it holds requests up.
pub(crate) fn check(facts: &Facts<'_>) -> Option<Computing> {
    let evidence = facts.evidence;
    let profile = evidence.threads.as_deref()?;
    let threads = profile.run_requests();
    let (mut samples, mut busiest) = (0, 0.0_f64);
    for thread in &threads {
        samples += thread.samples;
        busiest = busiest.max(thread.running);
    }
    let (found, of_all) = most_frequent(in_state(&threads, State::Running))?;
    let busy = of_all as f64 / samples.max(1) as f64;
    let share = found.samples as f64 / of_all.max(1) as f64;
    let has_heartbeat = !evidence.runtimes.is_empty();
    // Without a heartbeat, a thread that computes all the time is the sign of one that does not yield.
    let is_one_busy = !has_heartbeat && busiest >= BUSIEST;
    // A thread that waits for a CPU looks as if it computed.
    let with_cpu = busy * evidence.cpu_share();
    let is_busy =
        busy >= BUSY || (facts.held_s >= HELD || is_one_busy) && with_cpu >= BUSY_WHILE_HELD;
    let is_one_place = share >= MOST_COMPUTING && found.samples >= FEWEST_SAMPLES;
    // Who is blocked most of the time is not held up by what else it does.
    let blocked = worst(&profile.drive());
    // A call that blocks is told as that, although the kernel also computes in it.
    let is_call = found.most.in_call().is_some() && blocked >= BLOCKED;
    if !is_busy || !is_one_place || !is_told(found.most) || blocked >= BUSY || is_call {
        return None;
    }
    let why = Why::of(evidence, found.most);
    let is_held = match facts.held_at(function(found.most)) {
        // Many short turns at one line look like a long one.
        _ if matches!(why, Some(Why::Awaits)) => false,
        Some(held) => held >= HELD_AT_ONCE,
        // Nobody knows without a heartbeat whether they yield.
        None => facts.held_s >= HELD || !has_heartbeat,
    };
    Some(Computing {
        function: function_at(found.most),
        at: place(found.most),
        busy,
        share,
        held_s: has_heartbeat.then_some(facts.held_s),
        had_cpu: evidence.cpu_share(),
        is_lost_told: lost_in_words(evidence.cpu_lost()).is_some(),
        why,
        is_held,
    })
}

impl Sighting for Computing {
    fn row(&self) -> &'static Row {
        if self.is_held || self.why.as_ref().is_some_and(Why::is_avoidable) {
            table::COMPUTING_HELD
        } else {
            table::COMPUTING_IN_TURNS
        }
    }

    fn advice(&self) -> Option<Advice> {
        self.why.as_ref().map(Why::advice)
    }

    fn share(&self) -> f64 {
        self.busy / 2.0
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.function.clone()]
    }

    fn headline(&self) -> String {
        match self.why {
            Some(Why::Awaits) => format!(
                "Threads that run requests are busy with wake-ups and calls of the system at {}.",
                self.at
            ),
            _ => format!("Threads that run requests compute at {}.", self.at),
        }
    }

    fn seen(&self) -> String {
        let (busy, share) = (self.busy * 100.0, self.share * 100.0);
        let does = match self.why {
            Some(Why::Awaits) => "run",
            _ => "compute",
        };
        let mut seen =
            format!("They {does} {busy:.0} % of the time, {share:.0} % of that in this function");
        // Without a hold of this function, it may be other work that kept the thread.
        seen = match self.held_s.filter(|_| self.is_held) {
            Some(held_s) => format!("{seen}; one did not yield for {:.0} ms.", held_s * 1e3),
            None => format!("{seen}."),
        };
        if self.had_cpu < FEW_CPUS && !self.is_lost_told {
            seen = format!(
                "{seen} For {:.0} % of the time when they wanted a CPU, they had none.",
                (1.0 - self.had_cpu) * 100.0
            );
        }
        match self.why.as_ref().and_then(Why::seen) {
            Some(why) => format!("{seen} {why}"),
            None => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::{Finding, Level};
    use crate::rules::told;
    use crate::testing::{cpu_samples, of_threads};
    use crate::threads::testing::{LOCK, WORKER, in_call, runs};
    use crate::threads::{Stack, Thread};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    fn said(workers: Vec<Vec<Stack>>) -> Option<String> {
        let mut threads = Vec::new();
        for did in workers {
            threads.push(Thread::of("tokio worker", did));
        }
        said_of(threads)
    }

    /// Returns the finding of the two rules on workers.
    fn said_of(threads: Vec<Thread>) -> Option<String> {
        let evidence = of_threads(threads, 0.05);
        let mut found = look(&evidence);
        found.extend(told(super::super::blocked_worker::check(&Facts::of(
            &evidence,
        ))));
        found.into_iter().next().map(|finding| finding.says)
    }

    #[test]
    fn a_function_that_runs_the_service_does_not_compute() {
        let block_on = "actix_rt::system::SystemRunner::block_on";
        assert!(said(vec![vec![runs(90, &[WORKER, "shop::serve", block_on])]]).is_none());
        assert!(said(vec![vec![runs(90, &[WORKER, "shop::rank"])]]).is_some());
    }

    #[test]
    fn what_computes_without_the_services_code_is_named_by_its_library() {
        let says = |functions: &[&str]| said(vec![vec![runs(90, functions)]]);
        let carried = [
            WORKER,
            "await_profile::probe::Probe::poll",
            "gate::Service::call",
            "axum::json::Json<T>::into_response",
        ];
        let json = [
            &carried[..],
            &[
                "serde_json::ser::to_writer",
                "bytes::BytesMut::put",
                "serde_json::ser::end",
            ],
        ]
        .concat();
        let told = says(&json).expect("it computes");
        assert!(told.contains("at serde_json::ser::to_writer."), "{told}");
        for nobody in [
            &carried[..],
            &[WORKER, "shop::main"],
            &[WORKER, "debug_endpoints::look::judge", "gimli::read"],
            &[
                "std::thread::start",
                "await_profile::sampler::collect",
                "gimli::read",
            ],
        ] {
            assert_eq!(says(nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn handing_work_over_is_neither_a_wait_nor_computing() {
        let pool = "tokio::runtime::blocking::pool::Spawner::spawn_task";
        let hands = [
            WORKER,
            "shop::visit",
            "tokio::task::blocking::spawn_blocking",
            pool,
            LOCK,
        ];
        assert_eq!(said(vec![vec![in_call(90, "futex", &hands)]]), None);
        assert_eq!(said(vec![vec![runs(90, &hands)]]), None);
        let queue = "tokio::runtime::scheduler::inject::Inject::push";
        let spawns = [
            WORKER,
            "shop::visit",
            "tokio::task::spawn::spawn",
            queue,
            LOCK,
        ];
        assert_eq!(said(vec![vec![in_call(90, "futex", &spawns)]]), None);
        assert!(said(vec![vec![runs(90, &spawns)]]).is_some());
        // The work itself is in what it was handed to.
        let work = [pool, "shop::export"];
        assert!(said(vec![vec![in_call(90, "read", &work)]]).is_some());
    }

    #[test]
    fn computing_is_for_threads_that_run_no_requests() {
        let plans = || Thread::of("tokio worker", vec![runs(100, &[WORKER, "shop::plan"])]);
        let mut serves = Thread::of("tokio worker", vec![runs(20, &[WORKER])]);
        assert!(said_of(vec![plans()]).is_some(), "none is known");
        serves.began_requests = true;
        assert_eq!(said_of(vec![plans(), serves]), None);
    }

    /// Reported of an RPC client whose replies went to all who waited: `recv().await` was to be put on a blocking thread.
    #[test]
    fn a_line_that_only_awaits_is_not_sent_to_a_blocking_thread() {
        for awaited in [
            "<tokio::sync::broadcast::Recv<T> as core::future::future::Future>::poll",
            "tokio::net::tcp::stream::TcpStream::connect::{{closure}}",
            "async_channel::Receiver<T>::try_recv",
            "std::sync::mpsc::Receiver<T>::recv_timeout",
        ] {
            let frames = |inside: &'static str| [WORKER, "shop::call", awaited, inside];
            let stacks = vec![
                runs(60, &frames("syscall")),
                runs(30, &[WORKER, "shop::call"]),
            ];
            let worker = Thread::of("tokio worker", stacks);
            let found = look(&of_threads(vec![worker], 0.05)).remove(0);
            assert_eq!(found.level, Level::Wait, "{found:?}");
            assert!(!found.fix.contains("spawn_blocking"), "{found:?}");
            assert!(!found.seen.contains("did not yield"), "{found:?}");
        }
        let computes = vec![
            runs(
                44,
                &[WORKER, "shop::call", "tokio::net::TcpStream::poll_write"],
            ),
            runs(46, &[WORKER, "shop::call"]),
        ];
        let worker = Thread::of("tokio worker", computes);
        let found = look(&of_threads(vec![worker], 0.05)).remove(0);
        assert!(found.fix.contains("spawn_blocking"), "{found:?}");
    }

    fn parts(busy: f64, share: f64, held: f64) -> Vec<Finding> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let count = |part: f64| (part * 1000.0).round() as u64;
        let worker = Thread::of(
            "tokio worker",
            vec![
                runs(count(busy * share), &[WORKER, "shop::rank"]),
                runs(count(busy * (1.0 - share) / 2.0), &[WORKER, "shop::a"]),
                runs(count(busy * (1.0 - share) / 2.0), &[WORKER, "shop::b"]),
                Stack::of(count(1.0 - busy), State::Idle, &[WORKER]),
            ],
        );
        look(&of_threads(vec![worker], held))
    }

    #[test]
    fn a_slow_level_of_compression_is_a_fault_and_a_fast_one_is_none() {
        let compresses = |inside: &str| {
            let frames = [
                WORKER,
                "hyper::proto::h1::dispatch::Dispatcher::poll_write",
                "async_compression::tokio::bufread::BrotliEncoder::poll_read",
                "brotli::enc::encode::BrotliEncoderStateStruct<Alloc>::compress_stream",
                inside,
            ];
            let worker = Thread::of("tokio worker", vec![runs(90, &frames)]);
            let mut evidence = of_threads(vec![worker], 1.2);
            // Samples of the CPU time show no hold of a library's function.
            evidence.cpu = Some(Arc::new(cpu_samples(Vec::new())));
            look(&evidence).remove(0)
        };
        let slow = compresses("brotli::enc::backward_references::hq::UpdateNodes");
        assert_eq!(slow.level, Level::Fault, "{slow:?}");
        assert!(slow.cause.contains("level 10 or 11"), "{slow:?}");
        assert!(slow.fix.contains("level 4"), "{slow:?}");
        let fast = compresses("brotli::enc::compress_fragment::compress_fragment_fast_impl");
        assert_eq!(fast.level, Level::Wait, "{fast:?}");
        assert!(fast.fix.contains("lower level"), "{fast:?}");
        assert!(!fast.seen.contains("did not yield"), "{fast:?}");
    }

    #[test]
    fn computing_is_told_on_the_right_side_of_each_threshold() {
        assert!(parts(BUSY - 0.01, 0.9, 0.0).is_empty());
        assert!(!parts(BUSY + 0.01, 0.9, 0.0).is_empty());
        assert!(parts(BUSY_WHILE_HELD - 0.01, 0.9, 1.0).is_empty());
        assert!(!parts(BUSY_WHILE_HELD + 0.01, 0.9, 1.0).is_empty());
        assert!(parts(0.3, 0.9, HELD * 0.99).is_empty());
        assert!(!parts(0.3, 0.9, HELD).is_empty());
        assert!(parts(0.9, MOST_COMPUTING - 0.01, 0.0).is_empty());
        assert!(!parts(0.9, MOST_COMPUTING + 0.01, 0.0).is_empty());
    }

    #[test]
    fn one_thread_that_computes_all_the_time_is_told_where_there_is_no_heartbeat() {
        let at = |running: f64, has_heartbeat: bool| {
            let mut busy = Thread::of("tokio worker", vec![runs(90, &[WORKER, "shop::rank"])]);
            busy.running = running;
            let idle = Thread::of("tokio worker", vec![Stack::of(300, State::Idle, &[WORKER])]);
            let mut evidence = of_threads(vec![busy, idle], 0.0);
            if !has_heartbeat {
                evidence.runtimes.clear();
            }
            look(&evidence)
        };
        assert!(at(BUSIEST - 0.01, false).is_empty());
        let told = at(BUSIEST, false).remove(0);
        assert!(!told.seen.contains("yield"), "{told:?}");
        assert!(at(1.0, true).is_empty());
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_does_not_compute() {
        let told = |ran_s: f64| {
            let sends = runs(210, &[WORKER, "shop::stream"]);
            let idle = Stack::of(790, State::Idle, &[WORKER]);
            let mut worker = Thread::of("tokio worker", vec![sends, idle]);
            (worker.ran_s, worker.delayed_s) = (ran_s, 2.1 - ran_s);
            !look(&of_threads(vec![worker], 1.0)).is_empty()
        };
        // It wanted a CPU for 2.1 of 10 seconds.
        assert!(told(1.01) && !told(0.99));
    }

    #[test]
    fn time_without_a_cpu_is_not_the_codes() {
        let mut worker = Thread::of("tokio worker", vec![runs(900, &[WORKER, "shop::rank"])]);
        (worker.ran_s, worker.delayed_s) = (1.0, 9.0);
        let found = look(&of_threads(vec![worker], 2.0)).remove(0);
        assert!(found.seen.contains("did not yield for 200 ms"), "{found:?}");
        assert!(
            found
                .seen
                .contains("For 90 % of the time when they wanted a CPU"),
            "{found:?}"
        );
    }
}
