//! All instruments at once for some seconds, and their findings together.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use diagnosis::threads::roles::is_of_profiler;
use diagnosis::{Evidence, Neighbours, Process, Report};
use serde::Serialize;

use crate::cpu_profile::CpuProfile;
use crate::cpu_profiler::CpuProfiler;
use crate::error::EndpointError;
use crate::heartbeat;
use crate::own_thread::DESK;
use crate::sampled_picture::FEWEST_FOR_SHARES;
use crate::shared::Shared;
use crate::stacks::kept_lines;
use crate::{descriptors, evidence, memory, sockets};

/// Most functions of a CPU profile that the report names.
const MOST_FUNCTIONS: usize = 3;

/// Longest time for which a look waits for the profiles of an incident to be over. They take two seconds, and names are
/// looked up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A report with who waits for whom among all tasks, as data and for people.
#[derive(Debug, Serialize)]
pub(crate) struct WithTasks {
    #[serde(flatten)]
    report: Report,
    /// Who waits for whom, in lines.
    tasks: Vec<String>,
    pub(crate) text: String,
}

impl WithTasks {
    pub(crate) fn new(report: Report, tasks: Vec<String>) -> Self {
        let mut text = report.to_string();
        if !tasks.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "\n\nWho waits for whom, in ten snapshots of all tasks [/debug/tasks]:"
            );
            for line in &tasks {
                let _ = write!(text, "\n  {line}");
            }
        }
        Self {
            report,
            tasks,
            text,
        }
    }
}

/// Runs all instruments for `duration`. One that is in use, or that this system does not have, is left out and named.
pub(crate) async fn look(shared: &Shared, duration: Duration) -> Evidence {
    let neighbours = Neighbours::begin(Process::this());
    let watch = kept_lines::begin();
    let (waits, threads, heartbeat, memory, sockets, descriptors, cpu, cpus_used) = tokio::join!(
        shared.waits.record_within(PATIENCE, duration),
        shared.threads.record_within(PATIENCE, duration),
        heartbeat::watch(shared.runtimes.all(), duration),
        memory::watch(shared.runtimes.all(), duration),
        sockets::watch(duration),
        descriptors::watch(duration),
        shared
            .cpu
            .record_samples(duration, CpuProfiler::DEFAULT_FREQUENCY),
        cpus_used(duration),
    );
    let seconds = duration.as_secs_f64();
    let mut seen = Evidence {
        seconds,
        cpus: cpus(),
        cpus_used,
        cpus_of_others: neighbours.and_then(|neighbours| neighbours.cpus_used()),
        ..Evidence::default()
    };
    let not_seen = &mut seen.not_seen;
    let waits = told("await profile", waits, not_seen);
    seen.threads = told("threads", threads, not_seen);
    let heartbeat = told("heartbeat", heartbeat, not_seen);
    let memory = told("memory", memory, not_seen);
    let sockets = told("sockets", sockets, not_seen);
    // Only Linux has them, so they are not named as missing.
    seen.descriptors = descriptors.ok();
    // Somebody may be taking one, and not every build can.
    if let Ok((profile, samples)) = cpu {
        not_seen.extend(profile.why_unseen.clone());
        seen.cpu_profile = most(&profile);
        seen.cpu = Some(Arc::new(samples));
    }
    if let Some(threads) = &seen.threads {
        not_seen.extend(threads.note.clone());
    }
    if let Some(heartbeat) = &heartbeat {
        not_seen.extend(heartbeat.not_watched());
        seen.runtimes = evidence::runtimes(heartbeat);
    }
    if let Some(waits) = waits {
        let profiler = shared.waits.profiler();
        // The summary adds up many stacks, which takes long.
        let requests = DESK.run(move |_| evidence::requests(waits.summary(), &profiler));
        seen.requests = told("await profile", requests.await, not_seen);
    }
    seen.memory = memory.map(memory::Memory::evidence);
    if let Some(memory) = &mut seen.memory {
        let kept = DESK.run(move |_| kept_lines::of(watch)).await;
        memory.kept = kept.unwrap_or_default();
    }
    seen.connections = sockets.map(|sockets| sockets.seen);
    seen
}

fn told<T>(name: &str, told: Result<T, EndpointError>, not_seen: &mut Vec<String>) -> Option<T> {
    match told {
        Ok(told) => Some(told),
        Err(why) => {
            not_seen.push(format!("{name}: {why}"));
            None
        }
    }
}

/// Returns the mean number of CPUs that the process keeps busy for `duration`.
async fn cpus_used(duration: Duration) -> f64 {
    let (began, before) = (Instant::now(), ProcessTime::now());
    tokio::time::sleep(duration).await;
    before.elapsed().as_secs_f64() / began.elapsed().as_secs_f64()
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns the functions with most samples: those that ran, not those that called them. What the instruments computed is
/// left out.
fn most(profile: &CpuProfile) -> Option<String> {
    let mut functions: Vec<(&str, u64)> = Vec::new();
    let mut all = 0;
    for (stack, samples) in &profile.stacks {
        // The first frame is the thread's name.
        if is_of_profiler(stack.split(';').skip(1)) {
            continue;
        }
        let leaf = stack.rsplit(';').next().unwrap_or(stack);
        all += samples;
        match functions.iter_mut().find(|(name, _)| *name == leaf) {
            Some((_, sum)) => *sum += samples,
            None => functions.push((leaf, *samples)),
        }
    }
    functions.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let mut listed = Vec::new();
    for (name, samples) in functions.into_iter().take(MOST_FUNCTIONS) {
        listed.push(if all < FEWEST_FOR_SHARES {
            format!("{samples} of {all} samples in {name}")
        } else {
            let share = 100.0 * samples as f64 / all as f64;
            format!("{share:.0} % in {name}")
        });
    }
    match listed.as_slice() {
        [] => None,
        listed => Some(listed.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_told_by_their_number_and_many_by_their_share() {
        let profile = |own, others| CpuProfile {
            stacks: vec![
                ("worker;shop::rank".to_owned(), own),
                ("worker;shop::list;read".to_owned(), others),
                (
                    "threads;std::thread::run;debug_endpoints::look::look;read".to_owned(),
                    1000,
                ),
            ],
            ..CpuProfile::default()
        };
        let few = most(&profile(26, 9)).unwrap_or_default();
        assert_eq!(
            few,
            "26 of 35 samples in shop::rank; 9 of 35 samples in read"
        );
        let many = most(&profile(300, 100)).unwrap_or_default();
        assert_eq!(many, "75 % in shop::rank; 25 % in read");
        assert_eq!(most(&CpuProfile::default()), None);
    }
}
