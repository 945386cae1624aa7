//! A file or a socket is read in pieces of a few bytes, each by a call of the system.

use ecosystem::PartMeaning;

use super::table;
use crate::evidence::{Evidence, Frame};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::{inner_passes, is_told, most_frequent, passes, reads_at};
use crate::threads::{Stack, State};
use crate::thresholds::{FEWEST_SAMPLES, MUCH_OF_ALL, TASKS_CPUS};

/// Reads of a few bytes.
pub(crate) struct SmallReads {
    at: Frame,
    /// Share of all computing.
    share: f64,
    samples: u64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<SmallReads> {
    let all = computing(facts.evidence);
    let samples: u64 = all.iter().map(|stack| stack.samples).sum();
    let small = all.into_iter().filter(|stack| is_small(stack));
    let (found, of_reads) = most_frequent(small)?;
    let share = of_reads as f64 / samples.max(1) as f64;
    let is_much = share >= MUCH_OF_ALL && share * facts.evidence.cpus_used >= TASKS_CPUS;
    if !is_much || of_reads < FEWEST_SAMPLES || !is_told(found.most) {
        return None;
    }
    Some(SmallReads {
        at: reads_at(found.most)?,
        share,
        samples,
    })
}

/// Returns the samples of the CPU time, or else the stacks of threads that compute.
fn computing(evidence: &Evidence) -> Vec<&Stack> {
    if let Some(cpu) = &evidence.cpu {
        return cpu.stacks().collect();
    }
    let mut stacks = Vec::new();
    if let Some(threads) = &evidence.threads {
        stacks.extend(threads.stacks());
    }
    stacks.retain(|stack: &&Stack| stack.state == State::Running);
    stacks
}

/// Returns whether a reader of a few bytes asks the system for them, and not a buffer.
fn is_small(stack: &Stack) -> bool {
    let is_call = stack.frames.last().is_some_and(|last| {
        let name = last.function.rsplit('_').next().unwrap_or_default();
        matches!(name, "read" | "recv" | "recvfrom")
    });
    is_call && inner_passes(stack, PartMeaning::ReadsFew) && !passes(stack, PartMeaning::Buffers)
}

impl Sighting for SmallReads {
    fn row(&self) -> &'static Row {
        table::SMALL_READS
    }

    fn headline(&self) -> String {
        format!(
            "A few bytes are read at a time, each by a call of the system, at {}.",
            self.at
        )
    }

    fn seen(&self) -> String {
        format!(
            "{:.0} % of {} samples of computing threads are in such calls.",
            self.share * 100.0,
            self.samples
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, cpu_samples, evidence};
    use crate::threads::testing::{WORKER, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    fn reading(samples: u64, frames: &[&str]) -> Evidence {
        let mut evidence = evidence(&[], &[]);
        evidence.cpus_used = 0.9;
        let frames = [&[WORKER, "shop::book"], frames].concat();
        let stacks = vec![
            runs(samples, &frames),
            runs(1000 - samples, &[WORKER, "shop::other"]),
        ];
        evidence.cpu = Some(Arc::new(cpu_samples(stacks)));
        evidence
    }

    const BYTE: &str = "std::io::inlined_slow_read_byte";
    const INTEGER: &str =
        "<tokio::io::util::read_int::ReadU32<R> as core::future::future::Future>::poll";

    #[test]
    fn reads_without_a_buffer_are_told_on_the_right_side_of_each_threshold() {
        let file = [
            BYTE,
            "<std::fs::File as std::io::Read>::read",
            "__GI___libc_read",
        ];
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        both_sides(look, MUCH_OF_ALL, |share| {
            reading((share * 1000.0) as u64, &file)
        });
        let found = look(&reading(800, &file)).remove(0);
        assert!(found.headline.ends_with("at shop::book."), "{found:?}");
        assert!(found.fix.contains("BufReader"), "{found:?}");
        assert_eq!(look(&reading(800, &[INTEGER, "__libc_recv"])).len(), 1);
        let mut idle = reading(800, &file);
        idle.cpus_used = 0.09;
        assert!(look(&idle).is_empty());
    }

    #[test]
    fn a_buffer_that_is_filled_and_a_large_read_are_none() {
        let fills = "<tokio::io::util::buf_reader::BufReader<R> as tokio::io::async_buf_read::AsyncBufRead>::poll_fill_buf";
        for frames in [
            &[INTEGER, fills, "__libc_recv"][..],
            &["std::fs::read", "__GI___libc_read"],
            &[BYTE, "core::str::from_utf8"],
        ] {
            assert!(look(&reading(800, frames)).is_empty(), "{frames:?}");
        }
    }
}
