//! Connections fail one after the other, thousands a second: what is not there is tried again without a pause.

use ecosystem::{PartMeaning, figures};

use super::table;
use crate::evidence::{Evidence, Frame};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::calls_at;
use crate::thresholds::{FAILED, FAILED_A_SECOND, FEWEST_SAMPLES, MUCH_COMPUTING};

/// Connections that are tried again and again.
pub(crate) struct Retried {
    at: Frame,
    /// Connections that failed each second.
    a_second: f64,
    failed: u64,
    opened: u64,
    /// Share of the CPU samples in which connections were opened.
    share: f64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<Retried> {
    let connections = facts.evidence.connections.as_ref()?;
    let failed = connections.failed()?;
    let opened = connections.namespace_opened?;
    let a_second = failed as f64 / connections.seconds.max(f64::MIN_POSITIVE);
    if a_second < FAILED_A_SECOND || (failed as f64) < FAILED * opened as f64 {
        return None;
    }
    // The kernel counts those of all processes of the namespace. Stacks tell whether this one opens them.
    let (at, share) = connects(facts.evidence)?;
    Some(Retried {
        at,
        a_second,
        failed,
        opened,
        share,
    })
}

/// Returns the line that opens connections most often, and the share of the samples of running threads in which they are
/// opened.
fn connects(evidence: &Evidence) -> Option<(Frame, f64)> {
    let mut all = 0;
    let mut lines: Vec<(Frame, u64)> = Vec::new();
    for stack in evidence.running() {
        all += stack.samples;
        let Some(at) = calls_at(stack, PartMeaning::Connects) else {
            continue;
        };
        match lines.iter_mut().find(|(other, _)| *other == at) {
            Some((_, samples)) => *samples += stack.samples,
            None => lines.push((at, stack.samples)),
        }
    }
    let of_all: u64 = lines.iter().map(|(_, samples)| samples).sum();
    let (at, _) = lines.into_iter().max_by_key(|(_, samples)| *samples)?;
    let share = of_all as f64 / all.max(1) as f64;
    (share >= MUCH_COMPUTING && of_all >= FEWEST_SAMPLES).then_some((at, share))
}

impl Sighting for Retried {
    fn row(&self) -> &'static Row {
        table::RETRIED
    }

    fn places(&self) -> Vec<Frame> {
        let function = self.at.function().unwrap_or_default();
        vec![self.at.clone(), Frame::Function(function.to_owned())]
    }

    fn headline(&self) -> String {
        format!(
            "{} connections a second fail, opened at {}.",
            figures::count(self.a_second.round()),
            self.at
        )
    }

    fn seen(&self) -> String {
        format!(
            "By the kernel, {} of {} connections that processes of this network namespace opened have failed. {:.0} % of this \
             process's samples of CPU time are in opening them.",
            figures::count(self.failed as f64),
            figures::count(self.opened as f64),
            self.share * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::{Connections, Peers};
    use crate::finding::{Finding, Level};
    use crate::rules::{judge, told};
    use crate::testing::{both_sides, cpu_samples, evidence};
    use crate::threads::testing::{WORKER, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    const CONNECT: &str = "tokio::net::tcp::stream::TcpStream::connect::{{closure}}";
    const TASK: &str = "tokio::runtime::task::raw::poll";

    /// Connections of which this many fail, and a share of the samples that opens them.
    fn trying(failed: f64, opened: f64, share: f64) -> Evidence {
        let mut evidence = evidence(&[], &[]);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let count = |number: f64| number.round() as u64;
        let connects = [WORKER, TASK, "shop::deliver", CONNECT, "__connect"];
        let others = [WORKER, TASK, "shop::deliver", "core::str::from_utf8"];
        let samples = vec![
            runs(count(share * 1000.0), &connects),
            runs(count(1000.0 - share * 1000.0), &others),
        ];
        evidence.cpus_used = 0.9;
        evidence.cpu = Some(Arc::new(cpu_samples(samples)));
        evidence.connections = Some(Connections {
            seconds: 10.0,
            namespace_opened: Some(count(opened)),
            namespace_accepted: Some(900),
            namespace_failed: Some(count(failed)),
            upstreams: vec![Peers {
                address: "127.0.0.1:40085".to_owned(),
                opened: 800,
                most_open: 8,
                ..Peers::default()
            }],
            ..Connections::default()
        });
        evidence
    }

    /// Reported of webhooks: the receiver was gone, each was tried again at once, and the advice was a blocking thread.
    #[test]
    fn what_is_tried_again_at_once_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, FAILED_A_SECOND, |a_second| {
            trying(a_second * 10.0, a_second * 10.0, 0.8)
        });
        both_sides(look, FAILED, |share| {
            trying(share * 360_000.0, 360_000.0, 0.8)
        });
        both_sides(look, MUCH_COMPUTING, |share| {
            trying(350_000.0, 360_000.0, share)
        });
        let found = look(&trying(350_000.0, 360_000.0, 0.8)).remove(0);
        assert!(
            found
                .headline
                .starts_with("35,000 connections a second fail, opened at shop::deliver"),
            "{found:?}"
        );
    }

    #[test]
    fn its_consequences_are_not_told() {
        let told = judge(&Facts::of(&trying(350_000.0, 360_000.0, 0.8)));
        let faults: Vec<&str> = told.iter().map(|finding| finding.kind).collect();
        assert_eq!(faults, ["retried"], "{told:?}");
    }

    #[test]
    fn older_evidence_has_what_was_opened_and_not_accepted_on_this_machine() {
        let mut evidence = trying(350_000.0, 360_000.0, 0.8);
        let connections = evidence.connections.as_mut().unwrap();
        connections.namespace_failed = None;
        assert_eq!(connections.failed(), Some(359_100));
        connections.upstreams[0].address = "10.0.0.7:443".to_owned();
        assert_eq!(connections.failed(), None);
        assert!(look(&evidence).is_empty());
    }

    #[test]
    fn it_is_a_fault_whatever_else_the_process_does() {
        assert_eq!(table::RETRIED.level, Level::Fault);
        assert!(table::RETRIED.fix.contains("twice as long"));
    }
}
