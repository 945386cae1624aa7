//! What the laws predict. Most predict from the chapter's own figures before anything is measured.
//! Some need one thing that the problem itself tells, or a probe that does a part of its work: those
//! are [`Inputs`].

mod laws;

use serde::{Deserialize, Serialize};

use crate::measurement::{
    chapter_file::{ChapterFile, Scenario, WORKER_PARKS},
    claim::{Metric, PROBLEM},
    law::{self, Law},
    record::{Purpose, Record, Round},
};
use engine::statistics;

/// What a law says about one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Most that the problem can answer, in requests per second; `None` where the law speaks of the
    /// gain alone.
    pub problem: Option<f64>,
    /// Most that the solution can answer, in requests per second; `None` as above.
    pub solution: Option<f64>,
    /// How many times as many the solution answers.
    pub ratio: f64,
    /// The prediction in one sentence, figures included.
    pub sentence: String,
}

impl Prediction {
    /// Of a law that speaks of the gain alone.
    fn of_gain(ratio: f64, sentence: String) -> Self {
        Self {
            problem: None,
            solution: None,
            ratio,
            sentence,
        }
    }
}

/// What a law reads off the problem's own run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Inputs {
    /// How many times as many requests as the problem the law's probe answers in the law's own scenario.
    pub probe_gain: Option<f64>,
    /// How long a call of the problem's took in the effect's rounds, in seconds: the median of their
    /// means.
    pub call_s: Option<f64>,
    /// 99th percentile of the problem's bystanders, in ms: in the law's own scenario, and in the
    /// effect's.
    pub bystander_ms: Option<(f64, f64)>,
    /// CPUs that worked in problem and solution, in the effect's rounds.
    pub cpus: Option<(f64, f64)>,
    /// Requests per second of the problem in the effect's rounds, and of as many of it as there are
    /// CPUs in the law's own scenario.
    pub side_by_side: Option<(f64, f64)>,
    /// NUMA nodes of the machine.
    pub numa_nodes: u32,
}

impl Inputs {
    /// What a record's rounds tell.
    pub fn of(record: &Record) -> Self {
        let effect_rounds = record.effect_rounds();
        let own_rounds: Vec<&Round> = record.rounds_for(Purpose::Law).collect();
        let bystander = |round: &Round| Metric::BystanderP99Ms.of(&round.outcome);
        let rate = |round: &Round| Metric::RequestsPerSecond.of(&round.outcome);
        let of_probe = |probe| median_of(&own_rounds, probe, rate);
        let measured_by = match &record.chapter.law {
            Law::Little { measured_by, .. } => measured_by.as_ref(),
            _ => None,
        };
        let call = |round: &Round| round.readings.get(measured_by?).copied();
        let rate_of_problem = median_of(&own_rounds, PROBLEM, rate);
        Self {
            probe_gain: record
                .chapter
                .law
                .probe()
                .and_then(of_probe)
                .zip(rate_of_problem)
                .map(|(probe, problem)| probe / problem),
            call_s: median_of(&effect_rounds, PROBLEM, call),
            bystander_ms: median_of(&own_rounds, PROBLEM, bystander).zip(median_of(
                &effect_rounds,
                PROBLEM,
                bystander,
            )),
            cpus: most_cpus(record, PROBLEM).zip(most_cpus(record, &record.variant)),
            side_by_side: median_of(&effect_rounds, PROBLEM, rate).zip(rate_of_problem),
            numa_nodes: record.environment.numa_nodes,
        }
    }
}

/// The median of a figure above 0 over a variant's rounds; `None` without one, or if one of them lacks it.
pub fn median_of(
    rounds: &[&Round],
    variant: &str,
    figure: impl Fn(&Round) -> Option<f64>,
) -> Option<f64> {
    let own = rounds.iter().filter(|round| round.variant == variant);
    let figures: Option<Vec<f64>> = own.map(|round| figure(round)).collect();
    statistics::median_ratio(&figures?)
}

/// Most CPUs that worked in any of a variant's rounds; `None` where they were not counted.
fn most_cpus(record: &Record, variant: &str) -> Option<f64> {
    let counted: Option<Vec<f64>> = record
        .effect_rounds()
        .into_iter()
        .filter(|round| round.variant == variant)
        .map(|round| round.readings.get(law::CPUS).copied())
        .collect();
    let most = counted?.into_iter().reduce(f64::max)?;
    (most > 0.0).then_some(most)
}

/// The server's CPU time for each answer to the load's users in seconds, over a variant's rounds among these. What
/// bystanders cost is in it.
pub fn cpu_of(rounds: &[&Round], variant: &str) -> Option<f64> {
    per_request(rounds, variant, |round| round.server_cpu_s).filter(|seconds| *seconds > 0.0)
}

/// How often a thread of the service went to sleep for each answer, over a variant's rounds.
pub fn sleeps_of(rounds: &[&Round], variant: &str) -> Option<f64> {
    per_request(rounds, variant, |round| {
        round.readings.get(WORKER_PARKS).copied()
    })
}

/// The sum of what `of` says of each round, for each answer that the generator's users had meanwhile.
fn per_request(
    rounds: &[&Round],
    variant: &str,
    of: impl Fn(&Round) -> Option<f64>,
) -> Option<f64> {
    let own = || rounds.iter().filter(|round| round.variant == variant);
    let sum: Option<f64> = own().map(|round| of(round)).sum();
    // Of other generators only what was answered after the warm-up is known.
    let answers: u64 = own()
        .map(|round| match round.outcome.in_all {
            Some(all) => all.reads + all.writes,
            None => round.outcome.completed,
        })
        .sum();
    sum.filter(|_| answers > 0).map(|sum| sum / answers as f64)
}

/// What the law predicts in `scenario`; `None` while an input that it needs is unknown.
pub fn predicted(law: &Law, scenario: &Scenario, inputs: Inputs) -> Option<Prediction> {
    let (users, think) = (scenario.users, scenario.think_s);
    match law {
        Law::Little {
            call_ms,
            problem_in_flight,
            ..
        } => {
            // What was measured is known better than by the law's own figure.
            let call_ms = inputs.call_s.map_or(*call_ms, |seconds| 1e3 * seconds);
            Some(laws::little(call_ms, *problem_in_flight, users, think))
        }
        Law::Barrier { hold_ms } => {
            Some(laws::barrier(*hold_ms, users, think, scenario.write_share))
        }
        Law::Amdahl { removes, left, .. } => laws::amdahl(removes, *left, inputs.probe_gain?),
        Law::Utilisation { work_ms } => Some(laws::utilisation(*work_ms, users)),
        Law::Wait { .. } => Some(laws::wait(users, inputs.bystander_ms?)),
        Law::Workers { .. } => Some(laws::workers(inputs.side_by_side?)),
        Law::Locality {
            memory_bound,
            across,
        } => Some(laws::locality(*memory_bound, *across, inputs.numa_nodes)),
    }
}

/// Why there is nothing to gain on the machine that was measured, where the law can tell.
pub(crate) fn nothing_to_gain(law: &Law, inputs: Inputs) -> Option<String> {
    let (Law::Workers { .. }, Some((problem, solution))) = (law, inputs.cpus) else {
        return None;
    };
    (problem >= solution).then(|| {
        format!(
            "this machine cannot show it: the problem sees as many CPUs as the solution \
             here ({}).",
            engine::figures::count(problem)
        )
    })
}

/// What the law predicts in the named scenario; nothing if it predicts from costs that were
/// measured on another kind of server. Side by side is one on purpose.
pub fn in_scenario(chapter: &ChapterFile, scenario: &str, inputs: Inputs) -> Option<Prediction> {
    let scenario = chapter.scenario(scenario)?;
    let measured_in = chapter
        .law
        .scenario()
        .and_then(|name| chapter.scenario(name));
    let is_alike = |own: &Scenario| own.arguments == scenario.arguments;
    if !matches!(chapter.law, Law::Workers { .. }) && !measured_in.is_none_or(is_alike) {
        return None;
    }
    predicted(&chapter.law, scenario, inputs)
}
