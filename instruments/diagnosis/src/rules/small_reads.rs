//! A file or a socket is read or written in pieces of a few bytes, each by a call of the system or by a job of the blocking pool.

use ecosystem::PartMeaning;

use super::table;
use crate::evidence::Frame;
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::Stack;
use crate::threads::roles::{Role, role_of};
use crate::threads::seen::{inner_passes, is_told, most_frequent, own, passes, reads_at};
use crate::thresholds::{FEWEST_SAMPLES, HANDED_OVER_MS, MUCH_COMPUTING, MUCH_OF_ALL, TASKS_CPUS};

/// Reads and writes of a few bytes.
pub(crate) struct SmallReads {
    at: Frame,
    /// True if each is a job of the blocking pool.
    are_jobs: bool,
    /// Share of all computing.
    share: f64,
    samples: u64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<SmallReads> {
    let all = facts.evidence.running();
    let samples: u64 = all.iter().map(|stack| stack.samples).sum();
    let mut small: Vec<&Stack> = Vec::new();
    let (mut of_calls, mut of_jobs, mut of_pool) = (0, 0, 0);
    let is_often = hands_over_often(facts, &all);
    for stack in all {
        if is_job(stack) || is_often && is_file_job(stack) {
            of_jobs += stack.samples;
            small.push(stack);
        } else if is_call(stack) {
            of_calls += stack.samples;
            small.push(stack);
        } else if is_of_pool(stack) && !is_often {
            of_pool += stack.samples;
        } else if is_of_pool(stack) && !ends_in_call(stack) {
            // What large pieces take is their reading and writing.
            of_pool += stack.samples;
        }
    }
    let (found, of_reads) = most_frequent(small.into_iter())?;
    let are_jobs = of_jobs > of_calls;
    let least = MUCH_COMPUTING * samples as f64;
    // The pool's threads wake up for a job, and fall asleep after it.
    let of_all = if are_jobs && of_jobs as f64 >= least {
        of_reads + of_pool
    } else {
        of_reads
    };
    let share = of_all as f64 / samples.max(1) as f64;
    let is_much = share >= MUCH_OF_ALL && share * facts.evidence.cpus_used >= TASKS_CPUS;
    if !is_much || of_reads < FEWEST_SAMPLES || !is_told(found.most) {
        return None;
    }
    Some(SmallReads {
        at: reads_at(found.most)?,
        are_jobs,
        share,
        samples,
    })
}

/// Returns whether a request gives the blocking pool many jobs for a file, by the CPU time that this takes.
fn hands_over_often(facts: &Facts<'_>, all: &[&Stack]) -> bool {
    let (Some(cpu), Some(requests)) = (&facts.evidence.cpu, facts.requests) else {
        return false;
    };
    let mut samples = 0;
    for stack in all {
        if is_file_job(stack) {
            samples += stack.samples;
        }
    }
    let finished = requests.finished();
    finished > 0 && samples as f64 * cpu.period_s * 1e3 / finished as f64 >= HANDED_OVER_MS
}

/// Returns whether the service gives the blocking pool a job for a file without a buffer.
fn is_file_job(stack: &Stack) -> bool {
    inner_passes(stack, PartMeaning::FileJobs)
        && inner_passes(stack, PartMeaning::HandsOver)
        && !passes(stack, PartMeaning::Buffers)
}

/// Returns whether a reader or writer of a few bytes asks the system, and not a buffer.
fn is_call(stack: &Stack) -> bool {
    ends_in_call(stack) && is_small(stack)
}

/// Returns whether a thread reads or writes.
fn ends_in_call(stack: &Stack) -> bool {
    stack.frames.last().is_some_and(|last| {
        let name = last.function.rsplit('_').next().unwrap_or_default();
        matches!(
            name,
            "read" | "recv" | "recvfrom" | "write" | "send" | "sendto"
        )
    })
}

/// Returns whether a reader or writer of a few bytes gives the blocking pool a job for them.
fn is_job(stack: &Stack) -> bool {
    is_small(stack) && inner_passes(stack, PartMeaning::FileJobs)
}

fn is_small(stack: &Stack) -> bool {
    inner_passes(stack, PartMeaning::ReadsFew) && !passes(stack, PartMeaning::Buffers)
}

/// Returns whether a thread of the blocking pool is at work for a library, and for no job of the service's own.
fn is_of_pool(stack: &Stack) -> bool {
    let mut functions = Vec::new();
    for frame in &stack.frames {
        functions.push(frame.function.as_str());
    }
    own(stack).is_none() && role_of(&functions) == Some(Role::Blocking)
}

impl Sighting for SmallReads {
    fn row(&self) -> &'static Row {
        if self.are_jobs {
            table::SMALL_JOBS
        } else {
            table::SMALL_READS
        }
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.at.clone()]
    }

    fn headline(&self) -> String {
        let by = if self.are_jobs {
            "a job of the blocking pool"
        } else {
            "a call of the system"
        };
        format!(
            "Small pieces are read or written, each by {by}, at {}.",
            self.at
        )
    }

    fn seen(&self) -> String {
        let these = if self.are_jobs { "jobs" } else { "calls" };
        format!(
            "{:.0} % of {} samples of computing threads are for such {these}.",
            self.share * 100.0,
            self.samples
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::Evidence;
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

    /// Reported of an index: each request read hundreds of numbers through `tokio::fs`, and its jobs were said to take long.
    #[test]
    fn jobs_of_the_blocking_pool_for_a_few_bytes_count_with_its_threads() {
        const FILE: &str = "<tokio::fs::file::File as tokio::io::async_read::AsyncRead>::poll_read";
        const HANDS: &str = "tokio::runtime::blocking::pool::spawn_blocking";
        let with = |inside: &[&str], of_jobs: u64, of_pool: u64, job: &str| {
            let hands = [&[WORKER, "shop::book"], inside, &[HANDS, "syscall"]].concat();
            let pool = [crate::threads::testing::BLOCKING, job, "syscall"];
            let others = 1000 - of_jobs - of_pool;
            let stacks = vec![
                runs(of_jobs, &hands),
                runs(of_pool, &pool),
                runs(others, &[WORKER, "shop::other"]),
            ];
            let mut evidence = reading(0, &[]);
            evidence.cpu = Some(Arc::new(cpu_samples(stacks)));
            look(&evidence)
        };
        let idle = "parking_lot_core::parking_lot::park";
        let found = with(&[INTEGER, FILE], 200, 300, idle).remove(0);
        assert!(
            found
                .headline
                .contains("each by a job of the blocking pool, at shop::book"),
            "{found:?}"
        );
        assert!(found.fix.contains("BufReader"), "{found:?}");
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let least = (MUCH_COMPUTING * 1000.0) as u64;
        assert!(!with(&[INTEGER, FILE], least, 400, idle).is_empty());
        assert!(with(&[INTEGER, FILE], least - 1, 400, idle).is_empty());
        assert!(with(&[FILE], 200, 300, idle).is_empty(), "large pieces");
        assert!(
            with(&[INTEGER, FILE], 200, 300, "shop::export").is_empty(),
            "jobs of the service's own"
        );
    }

    /// The size of a line that is written is not known, but a request hands over many.
    #[test]
    fn many_jobs_of_each_request_are_told_if_the_pool_hardly_writes() {
        const FILE: &str =
            "<tokio::fs::file::File as tokio::io::async_write::AsyncWrite>::poll_write";
        let with = |of_jobs: u64, finished: u64, pool: &str| {
            let hands = [
                WORKER,
                "shop::book",
                FILE,
                "tokio::runtime::blocking::pool::spawn_blocking",
            ];
            let stacks = vec![
                runs(of_jobs, &hands),
                runs(300, &[crate::threads::testing::BLOCKING, pool]),
                runs(700 - of_jobs, &[WORKER, "shop::other"]),
            ];
            let mut evidence = reading(0, &[]);
            let routes = [crate::testing::route("GET /close", 1.0, finished)];
            evidence.requests = crate::testing::evidence(&routes, &[]).requests;
            evidence.cpu = Some(Arc::new(cpu_samples(stacks)));
            !look(&evidence).is_empty()
        };
        // 200 samples of 10 ms.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let most = (2000.0 / HANDED_OVER_MS) as u64;
        assert!(with(200, most, "syscall") && !with(200, most + 100, "syscall"));
        assert!(!with(200, most, "__GI___libc_write"), "large pieces");
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
