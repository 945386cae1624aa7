//! Observations of another process for some seconds: its threads, sockets, memory, descriptors and CPU time.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use diagnosis::datagrams::WatchedDatagrams;
use diagnosis::evidence::{Connections, Descriptors, Memory, NamedProcess, Part, View};
use diagnosis::sockets::{Watched, namespace_counts};
use diagnosis::threads::{ThreadProfile, sample};
use diagnosis::thresholds::MOMENTS_OF_RISE;
use diagnosis::{Evidence, Process, descriptors};

use super::names::OtherNames;
use super::sockets::OwnSockets;
use super::target::{Stat, Status, Target};
use cpu_time::ThreadTime;

/// Time between two looks at memory and descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Shortest time between two looks at sockets, as a multiple of a look's own CPU time.
const PAUSE_OF_LOOKS: u32 = 9;

/// Fewest looks at all threads, or at sockets, that say anything.
const FEWEST_LOOKS: u64 = 10;

/// Ticks a second in which the system counts CPU time for programs (`USER_HZ`).
const TICKS: f64 = 100.0;

/// Bytes of a kibibyte, and of a mebibyte.
const KIB: i64 = 1024;
const MIB: f64 = 1_048_576.0;

/// Looks at the process for `duration`, or until it ends.
pub(crate) fn watch(target: &Target, duration: Duration) -> Evidence {
    let process = target.process;
    // Read what is gone once the process has ended.
    let cpus = cpus(process);
    let mut names = OtherNames::new(target);
    let (began, before) = (Instant::now(), ticks(process));
    let (samples, watched) = thread::scope(|scope| {
        let rest = scope.spawn(|| rest(target, began, duration));
        let samples = sample(process, duration, &|| target.is_alive());
        (samples, rest.join().unwrap_or_default())
    });
    let seconds = began.elapsed().as_secs_f64();
    let used = watched.ticks.saturating_sub(before.unwrap_or_default());
    let is_over = !target.is_alive();
    if !is_over {
        // It may have loaded libraries meanwhile.
        names = OtherNames::new(target);
    }
    let threads = ThreadProfile::new(samples, began.elapsed(), &mut names);
    let mut not_seen: Vec<String> = threads.note.clone().into_iter().collect();
    if is_over {
        not_seen.push(format!("the process ended after {seconds:.1} s."));
    } else if threads.moments < FEWEST_LOOKS {
        not_seen.push(format!(
            "its threads at most moments (looks at all {}: {}), because sampling uses at most a twentieth of a CPU. Look for \
             longer with --seconds.",
            threads.threads.len(),
            threads.moments
        ));
    }
    let connections = watched.connections;
    match &connections {
        None => not_seen.push("sockets: its descriptors cannot be listed.".to_owned()),
        Some(seen) if !is_over && u64::from(seen.looks) < FEWEST_LOOKS => not_seen.push(format!(
            "its sockets at most moments (looks: {}), because listing them uses at most a tenth of a CPU. Look for longer \
             with --seconds.",
            seen.looks
        )),
        Some(_) => {}
    }
    let memory = memory(&watched.resident, seconds);
    Evidence {
        seconds,
        cpus,
        cpus_used: used as f64 / TICKS / seconds.max(f64::MIN_POSITIVE),
        threads: Some(Arc::new(threads)),
        memory,
        connections,
        descriptors: watched.descriptors,
        view: View::Outside,
        process: Some(NamedProcess {
            pid: process.pid(),
            name: target.name.clone(),
        }),
        not_seen,
        ..Evidence::default()
    }
}

/// Observations beside the threads.
#[derive(Default)]
struct Rest {
    connections: Option<Connections>,
    descriptors: Option<Descriptors>,
    /// Resident memory without files, in bytes, look by look.
    resident: Vec<i64>,
    /// CPU time used by the end, in ticks.
    ticks: u64,
}

fn rest(target: &Target, began: Instant, duration: Duration) -> Rest {
    let process = target.process;
    let before = namespace_counts(process);
    let mut counts = before;
    let (mut sockets, mut datagrams) = (Watched::default(), WatchedDatagrams::default());
    let mut rest = Rest::default();
    let mut seen = descriptors::limit(process).map(|limit| Descriptors {
        limit,
        ..Descriptors::default()
    });
    let own = OwnSockets::of(process);
    let (mut has_sockets, mut sockets_due) = (false, began);
    loop {
        let is_over = began.elapsed() >= duration;
        rest.ticks = rest.ticks.max(ticks(process).unwrap_or_default());
        if let Some(kib) = Status::of(process).number("RssAnon") {
            rest.resident
                .push(i64::try_from(kib).unwrap_or_default() * KIB);
        }
        // The system takes long to list its sockets, and the rest is quick.
        if is_over || Instant::now() >= sockets_due {
            let looked = ThreadTime::now();
            if let Some((tcp, udp)) = own.list() {
                has_sockets = true;
                sockets.look(&tcp);
                datagrams.look(&udp);
            }
            counts = namespace_counts(process).or(counts);
            sockets_due = Instant::now() + looked.elapsed() * PAUSE_OF_LOOKS;
        }
        sockets.look_for_ended(process, is_over);
        if let (Some(seen), Ok(open)) = (&mut seen, descriptors::open(process)) {
            seen.most_open = seen.most_open.max(open);
            if seen.by_kind.is_empty() || is_over {
                let targets = descriptors::targets(process);
                (seen.by_kind, seen.by_folder) = (targets.by_kind, targets.by_folder);
            }
        }
        if is_over || !target.is_alive() {
            break;
        }
        let left = duration.saturating_sub(began.elapsed());
        thread::sleep(PAUSE.min(left));
    }
    let seconds = began.elapsed().as_secs_f64();
    if has_sockets {
        let mut connections = sockets.finish(seconds, before, counts);
        connections.datagrams = datagrams.finish();
        rest.connections = Some(connections);
    }
    rest.descriptors = seen;
    rest
}

/// Returns the CPU time that the process has used, in ticks.
fn ticks(process: Process) -> Option<u64> {
    Stat::of(process).map(|stat| stat.ticks)
}

/// Returns the number of CPUs on which the process may run: its list has parts such as `0-3` and `7`.
fn cpus(process: Process) -> usize {
    let status = Status::of(process);
    let parts = status.text("Cpus_allowed_list").unwrap_or_default();
    let mut cpus = 0;
    for part in parts.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cpus += (last + 1).saturating_sub(first);
        }
    }
    cpus.max(1)
}

fn memory(resident: &[i64], seconds: f64) -> Option<Memory> {
    let last = *resident.last()?;
    let part = Part::of(resident.iter().copied());
    let mib = last as f64 / MIB;
    let grows = if resident.len() < MOMENTS_OF_RISE {
        String::new()
    } else if part.grows() {
        let rate = part.growth() as f64 / MIB / seconds;
        format!(", which grows by {rate:.1} MiB a second")
    } else {
        ", which does not grow".to_owned()
    };
    let says = format!("{mib:.0} MiB are resident (files not counted){grows}");
    Some(Memory {
        seconds,
        live: part,
        tasks: Part::default(),
        says,
        ..Memory::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_process_may_run_somewhere_and_uses_memory() {
        assert!(cpus(Process::this()) >= 1);
        let memory = memory(&[10 << 20; 12], 1.0).unwrap();
        let says = "10 MiB are resident (files not counted), which does not grow";
        assert_eq!(memory.says, says);
    }
}
