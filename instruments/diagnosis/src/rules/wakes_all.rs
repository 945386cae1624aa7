//! Each message wakes all who wait, and the threads are busy with that: most of them go on waiting.

use ecosystem::{PartMeaning, WaitKind, figures};

use super::table;
use crate::evidence::{Evidence, Frame, StepKind, Way};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::{calls_at, function_at};
use crate::threads::{Stack, State};
use crate::thresholds::{
    FEWEST_SAMPLES, MOST_COMPUTING, MUCH_COMPUTING, TASKS_CPUS, WAKES, WOKEN_AT_ONCE,
};
use crate::waiting::Waiting;

/// Messages for all who wait.
pub(crate) struct WakesAll {
    /// Line at which they wait, or else the one that is busy with the messages.
    at: Frame,
    /// Functions in which threads are busiest with them: the one that awaits them, and the innermost.
    busy: Vec<Frame>,
    who: Who,
    cpus: f64,
    /// Share of the samples of running threads.
    share: f64,
}

enum Who {
    /// So many requests at once; each is woken so many times before it has what it waits for.
    Requests(f64, f64),
    /// So many tasks at once.
    Tasks(f64),
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<WakesAll> {
    let busy = Busy::of(facts.evidence)?;
    let cpus = busy.share * facts.evidence.cpus_used;
    // Wake-ups cost more than what is seen at that line.
    let (at, who, least) = if let Some((waiting, times)) = woken_in_vain(facts) {
        let who = Who::Requests(waiting.in_flight, times);
        (waiting.anchor(), who, MUCH_COMPUTING)
    } else {
        let (at, tasks) = receivers(facts)?;
        (at, Who::Tasks(tasks), MOST_COMPUTING)
    };
    if busy.share < least || busy.samples < FEWEST_SAMPLES || cpus < TASKS_CPUS {
        return None;
    }
    Some(WakesAll {
        at,
        busy: busy.functions,
        who,
        cpus,
        share: busy.share,
    })
}

/// Threads that run requests, busy with messages for all.
struct Busy {
    functions: Vec<Frame>,
    share: f64,
    samples: u64,
}

impl Busy {
    fn of(evidence: &Evidence) -> Option<Self> {
        let (mut all, mut of_messages) = (0, 0);
        let mut most: Option<(&Stack, Frame)> = None;
        for stack in running(evidence) {
            all += stack.samples;
            let Some(caller) = calls_at(stack, PartMeaning::WakesAll) else {
                continue;
            };
            of_messages += stack.samples;
            if most
                .as_ref()
                .is_none_or(|(most, _)| most.samples < stack.samples)
            {
                most = Some((stack, caller));
            }
        }
        let (most, caller) = most?;
        let caller = Frame::Function(caller.function()?.to_owned());
        Some(Self {
            functions: vec![caller, function_at(most)],
            share: of_messages as f64 / all as f64,
            samples: of_messages,
        })
    }
}

/// Returns the samples of the CPU time of threads that drive tasks, or else their stacks while they run.
fn running(evidence: &Evidence) -> Vec<&Stack> {
    let mut stacks: Vec<&Stack> = Vec::new();
    if let Some(cpu) = &evidence.cpu {
        stacks.extend(cpu.of_tasks());
    } else if let Some(threads) = &evidence.threads {
        for thread in threads.drive() {
            stacks.extend(&thread.stacks);
        }
    }
    stacks.retain(|stack| stack.state == State::Running);
    stacks
}

/// Returns the wait of requests for a message for all that they meet most often in a row, with that number.
fn woken_in_vain<'a>(facts: &'a Facts<'_>) -> Option<(&'a Waiting, f64)> {
    let mut most: Option<(&Waiting, f64)> = None;
    for waiting in &facts.waits {
        // A stream has news one after the other, on purpose.
        let times = waiting.in_a_row.unwrap_or_default();
        let is_woken = times >= WAKES && waiting.in_flight >= WOKEN_AT_ONCE;
        let is_more = most.is_none_or(|(_, other)| other < times);
        if is_for_all(waiting) && !waiting.route.is_part && is_woken && is_more {
            most = Some((waiting, times));
        }
    }
    most
}

/// Returns whether what these wait for comes to all at once.
fn is_for_all(waiting: &Waiting) -> bool {
    let is_message = matches!(waiting.kind(), WaitKind::Channel | WaitKind::Notification);
    let by = waiting.release.iter().flat_map(|release| &release.by);
    let mut frames = waiting.place().frames.iter().chain(by);
    is_message
        && frames.any(|frame| {
            let function = frame.function();
            function.is_some_and(|function| PartMeaning::WakesAll.fits(function))
        })
}

/// Returns the line at which most tasks wait for a message for all, and their number at once.
fn receivers(facts: &Facts<'_>) -> Option<(Frame, f64)> {
    let tasks = facts.evidence.tasks.as_ref()?;
    // The most frequent way comes first.
    let way = tasks.ways.iter().find(|way| waits_for_all(way))?;
    let step = way.first()?;
    let at_once = way.seen / f64::from(tasks.snapshots.max(1));
    (at_once >= WOKEN_AT_ONCE).then(|| (step.frame(), at_once))
}

fn waits_for_all(way: &Way) -> bool {
    way.first().is_some_and(|step| {
        let is_message = matches!(
            step.kind,
            StepKind::Of(WaitKind::Channel | WaitKind::Notification)
        );
        let mut through = step.through.iter();
        let is_for_all = through.any(|function| PartMeaning::WakesAll.fits(function));
        is_message && is_for_all && step.at.is_some()
    })
}

impl Sighting for WakesAll {
    fn row(&self) -> &'static Row {
        match self.who {
            Who::Requests(..) => table::WAKES_ALL,
            Who::Tasks(_) => table::WAKES_MANY,
        }
    }

    fn places(&self) -> Vec<Frame> {
        let mut places = self.busy.clone();
        places.push(self.at.clone());
        places
    }

    fn headline(&self) -> String {
        let (who, at_once) = match self.who {
            Who::Requests(in_flight, _) => ("requests", in_flight),
            Who::Tasks(tasks) => ("tasks", tasks),
        };
        format!(
            "Each message wakes all {who} that wait at {}, {} at once.",
            self.at,
            figures::average(at_once)
        )
    }

    fn seen(&self) -> String {
        let seen = format!(
            "{:.2} CPUs, {:.0} % of the samples of the runtime's threads, go to that.",
            self.cpus,
            self.share * 100.0
        );
        match self.who {
            Who::Requests(_, times) => {
                format!("{seen} Before a request goes on, it is woken {times:.0} times or more.")
            }
            Who::Tasks(_) => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::{Release, Step, Tasks};
    use crate::finding::{Finding, Level};
    use crate::rules::{judge, told};
    use crate::testing::{both_sides, cpu_samples, evidence, frames, place, route};
    use crate::threads::testing::{WORKER, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    const LINE: &str = "shop::call (src/rpc.rs:52)";
    const RECEIVE: &str = "tokio::sync::broadcast::Receiver::recv";
    const RECEIVING: &str =
        "<tokio::sync::broadcast::Recv<T> as core::future::future::Future>::poll";

    /// Requests that receive so many messages each, with a share of the samples, on so many CPUs.
    fn calls(in_flight: f64, times: f64, share: f64, cpus: f64) -> Evidence {
        let mut waits = place("call", &[LINE, RECEIVE], in_flight);
        waits.in_a_row = Some(times);
        let mut evidence = evidence(&[route("call", in_flight, 20_000)], &[waits]);
        evidence.cpus_used = cpus;
        evidence.cpu = Some(samples(share));
        evidence
    }

    fn samples(share: f64) -> Arc<crate::threads::CpuSamples> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let count = |share: f64| (share * 1000.0) as u64;
        let copies = [
            WORKER,
            "shop::call",
            RECEIVING,
            "<shop::Reply as core::clone::Clone>::clone",
            "core::clone::Clone::clone",
        ];
        let stacks = vec![
            runs(count(share), &copies),
            runs(1000 - count(share), &[WORKER, "shop::other"]),
        ];
        Arc::new(cpu_samples(stacks))
    }

    /// Reported of an RPC client: each reply woke all callers, and the advice was a blocking thread.
    #[test]
    fn replies_that_wake_all_callers_are_told_on_the_right_side_of_each_threshold() {
        both_sides(look, MUCH_COMPUTING, |share| calls(900.0, 40.0, share, 1.5));
        both_sides(look, TASKS_CPUS, |cpus| calls(900.0, 40.0, 1.0, cpus));
        both_sides(look, WAKES, |times| calls(900.0, times, 0.6, 1.5));
        both_sides(look, WOKEN_AT_ONCE, |requests| {
            calls(requests, 40.0, 0.6, 1.5)
        });
        let found = look(&calls(900.0, 40.0, 0.6, 1.5)).remove(0);
        assert_eq!(found.level, Level::Fault);
        assert!(
            found
                .headline
                .ends_with("all requests that wait at shop::call (src/rpc.rs:52), 900 at once."),
            "{found:?}"
        );
        assert!(found.fix.contains("oneshot"), "{found:?}");
    }

    #[test]
    fn a_notification_of_all_is_known_by_the_code_that_gave_it() {
        let told = |by: &str| {
            let mut evidence = calls(900.0, 40.0, 0.6, 1.5);
            let requests = evidence.requests.as_mut().unwrap();
            let waits = [LINE, "tokio::sync::Notified"];
            let mut notified = place("call", &waits, 900.0);
            notified.in_a_row = Some(40.0);
            requests.places = vec![notified];
            requests.releases = vec![Release {
                route: "call".to_owned(),
                frames: frames(&waits),
                by: frames(&["shop::reply (src/rpc.rs:70)", by]),
                share: 1.0,
                ..Release::default()
            }];
            !look(&evidence).is_empty()
        };
        assert!(told("tokio::sync::Notify::notify_waiters"));
        assert!(!told("tokio::sync::Notify::notify_one"));
    }

    #[test]
    fn a_stream_of_news_is_none_and_tasks_of_one_are_a_wait() {
        let mut stream = calls(900.0, 40.0, 0.6, 1.5);
        stream.requests.as_mut().unwrap().routes[0].is_part = true;
        assert!(look(&stream).is_empty());
        let step = Step {
            at: Some("shop::push (src/chat.rs:20)".to_owned()),
            kind: StepKind::Of(WaitKind::Channel),
            through: vec!["tokio::sync::broadcast::recv".to_owned()],
            ..Step::default()
        };
        let with = |tasks: f64, share: f64| {
            let mut evidence = evidence(&[], &[]);
            evidence.cpus_used = 1.5;
            evidence.cpu = Some(samples(share));
            evidence.tasks = Some(Tasks {
                snapshots: 10,
                ways: vec![Way {
                    seen: tasks * 10.0,
                    ends: 10,
                    steps: vec![step.clone()],
                }],
                ..Tasks::default()
            });
            evidence
        };
        both_sides(look, WOKEN_AT_ONCE, |tasks| with(tasks, 0.6));
        both_sides(look, MOST_COMPUTING, |share| with(300.0, share));
        let found = look(&with(300.0, 0.6)).remove(0);
        assert_eq!(found.level, Level::Wait, "{found:?}");
        assert!(
            found.headline.contains("all tasks that wait at shop::push"),
            "{found:?}"
        );
    }

    #[test]
    fn what_the_messages_cost_is_told_once() {
        let mut evidence = calls(900.0, 40.0, 0.9, 1.5);
        let stacks = vec![runs(90, &[WORKER, "shop::call", RECEIVING])];
        let worker = crate::threads::Thread::of("tokio worker", stacks);
        evidence.threads = crate::testing::of_threads(vec![worker], 0.1).threads;
        let told = judge(&Facts::of(&evidence));
        let kinds: Vec<&str> = told.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, ["wakes_all"], "{told:?}");
    }
}
