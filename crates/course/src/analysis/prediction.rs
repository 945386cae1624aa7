//! Predictions of the laws. Most laws predict from the chapter's own figures before anything is measured.
//! Some need a measurement of the problem, or of a probe that does a part of its work: the [`Inputs`].

mod laws;

use serde::{Deserialize, Serialize};
use statistics::{Gains, Mean};

use crate::measurement::{
    chapter_file::{ChapterFile, Scenario, WORKER_PARKS},
    claim::{Claim, LoadMetric, PROBLEM},
    law::{self, Law},
    record::{Purpose, Record, Round},
};

use crate::analysis::measured::{Measured, gains};
use engine::traffic::Phase;

/// Prediction of a law for one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Most that the problem can answer, in requests per second; `None` if the law predicts only the gain.
    pub problem: Option<f64>,
    /// Most that the solution can answer, in requests per second; `None` as above.
    pub solution: Option<f64>,
    /// Predicted ratio of solution to problem.
    pub ratio: f64,
    /// The prediction in one sentence, figures included.
    pub sentence: String,
}

impl Prediction {
    /// Makes the prediction of a law that predicts only the gain.
    fn of_gain(ratio: f64, sentence: String) -> Self {
        Self {
            problem: None,
            solution: None,
            ratio,
            sentence,
        }
    }
}

/// Figures of the problem's own run that laws predict from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Inputs {
    /// Ratio of the probe's requests per second to the problem's, in the law's own scenario.
    pub probe_gain: Option<f64>,
    /// Length of a call of the problem in the effect's rounds, in seconds: the median of their
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
    /// Collects them from a record's rounds.
    pub fn of(record: &Record) -> Self {
        let effect_rounds = record.effect_rounds();
        let own_rounds: Vec<&Round> = record.rounds_for(Purpose::Law).collect();
        let bystander = |round: &Round| LoadMetric::BystanderP99Ms.of(&round.outcome);
        let rate = |round: &Round| LoadMetric::RequestsPerSecond.of(&round.outcome);
        let measured_by = match &record.chapter.law {
            Law::Little { measured_by, .. } => measured_by.as_ref(),
            Law::Overload { measured_by, .. } => Some(measured_by),
            _ => None,
        };
        let rate_of_problem = median_of(&own_rounds, PROBLEM, rate);
        let mut probe_gain = None;
        if let Some(probe) = record.chapter.law.probe()
            && let Some(probe) = median_of(&own_rounds, probe, rate)
            && let Some(problem) = rate_of_problem
        {
            probe_gain = Some(probe / problem);
        }
        let bystander_alone = median_of(&own_rounds, PROBLEM, bystander);
        let bystander_beside = median_of(&effect_rounds, PROBLEM, bystander);
        Self {
            probe_gain,
            call_s: median_of(&effect_rounds, PROBLEM, |round| {
                round.readings.get(measured_by?).copied()
            }),
            bystander_ms: bystander_alone.zip(bystander_beside),
            cpus: most_cpus(record, PROBLEM).zip(most_cpus(record, &record.variant)),
            side_by_side: median_of(&effect_rounds, PROBLEM, rate).zip(rate_of_problem),
            numa_nodes: record.environment.numa_nodes,
        }
    }
}

/// Returns the median of a figure above 0 over a variant's rounds; `None` if there is no round, or one that
/// lacks the figure.
pub fn median_of(
    rounds: &[&Round],
    variant: &str,
    figure: impl Fn(&Round) -> Option<f64>,
) -> Option<f64> {
    let own = rounds.iter().filter(|round| round.variant == variant);
    let figures: Option<Vec<f64>> = own.map(|round| figure(round)).collect();
    statistics::median_ratio(&figures?)
}

/// Returns the most CPUs that worked in any of a variant's rounds; `None` if they were not counted.
fn most_cpus(record: &Record, variant: &str) -> Option<f64> {
    let mut most = 0.0_f64;
    for round in record.effect_rounds() {
        if round.variant == variant {
            most = most.max(*round.readings.get(law::CPUS)?);
        }
    }
    Some(most).filter(|most| *most > 0.0)
}

/// Returns the server's CPU time for each answer to the load's users in seconds, over a variant's rounds. It
/// includes the CPU time for bystanders.
pub fn cpu_of(rounds: &[&Round], variant: &str) -> Option<f64> {
    per_request(rounds, variant, |round| round.server_cpu_s).filter(|seconds| *seconds > 0.0)
}

/// Returns how often a thread of the service went to sleep for each answer, over a variant's rounds.
pub fn sleeps_of(rounds: &[&Round], variant: &str) -> Option<f64> {
    per_request(rounds, variant, |round| {
        round.readings.get(WORKER_PARKS).copied()
    })
}

/// Divides the sum of `of` over a variant's rounds by the number of answers to the generator's users.
fn per_request(
    rounds: &[&Round],
    variant: &str,
    of: impl Fn(&Round) -> Option<f64>,
) -> Option<f64> {
    let (mut sum, mut answers) = (0.0, 0);
    for round in rounds {
        if round.variant == variant {
            sum += of(round)?;
            // Other generators report only the answers after the warm-up.
            answers += match round.outcome.in_all {
                Some(all) => all.reads + all.writes,
                None => round.outcome.completed,
            };
        }
    }
    if answers == 0 {
        return None;
    }
    Some(sum / answers as f64)
}

/// Predicts what the fix gains in `scenario`; `None` while an input that it needs is unknown.
pub fn predicted(law: &Law, scenario: &Scenario, inputs: Inputs) -> Option<Prediction> {
    let (users, think) = (scenario.users, scenario.think_s);
    match law {
        Law::Little {
            call_ms,
            problem_in_flight,
            ..
        } => {
            // A measured length is more exact than the law's own figure.
            let call_ms = match inputs.call_s {
                Some(seconds) => 1e3 * seconds,
                None => *call_ms,
            };
            Some(laws::little(call_ms, *problem_in_flight, users, think))
        }
        Law::Barrier { hold_ms } => {
            Some(laws::barrier(*hold_ms, users, think, scenario.write_share))
        }
        Law::Amdahl { removes, left, .. } => laws::amdahl(removes, *left, inputs.probe_gain?),
        Law::Utilisation { work_ms } => Some(laws::utilisation(*work_ms, users)),
        Law::Overload {
            permits, hold_ms, ..
        } => {
            let hold_s = inputs.call_s.unwrap_or(hold_ms / 1e3);
            laws::overload(*permits, hold_s, scenario)
        }
        Law::Wait { .. } => Some(laws::wait(users, inputs.bystander_ms?)),
        Law::Workers { .. } => Some(laws::workers(inputs.side_by_side?)),
        Law::Locality {
            memory_bound,
            across,
        } => Some(laws::locality(*memory_bound, *across, inputs.numa_nodes)),
    }
}

/// Divides the measured gain by the predicted one, with the scatter of both. A prediction from constants
/// alone has no scatter. `None` if either gain is unknown.
pub(crate) fn apart(
    record: &Record,
    claim: &Claim,
    measured: &Measured<'_>,
    predicted: Option<&Prediction>,
) -> Option<Mean> {
    let predicted = predicted?;
    let law = &record.chapter.law;
    let gains = gains(claim, measured.compared)?;
    let own: Vec<&Round> = record.rounds_for(Purpose::Law).collect();
    let figures = |variant: &str| -> Option<Vec<f64>> {
        let of_variant = own.iter().filter(|round| round.variant == variant);
        let figures = of_variant.map(|round| round.value(&claim.quantity));
        figures.collect()
    };
    match law {
        Law::Amdahl { probe, left, .. } => {
            // Problem and probe took turns, so that each has a partner.
            let mut probes = Gains::default();
            for (problem, probe) in figures(PROBLEM)?.iter().zip(figures(probe)?) {
                probes.add(&[*problem], &[probe], claim.quantity.larger_is_better())?;
            }
            let probe = probes.mean()?;
            let slope = laws::amdahl_slope(*left, probe.figure(), predicted.ratio);
            Some(gains.mean()?.over(probe.becomes(predicted.ratio, slope)?))
        }
        // Both predict from the problem's own figure under this load. The gain contains it, too, so it
        // cancels. The figures of the fix and of the law's rounds remain.
        Law::Wait { .. } | Law::Workers { .. } => {
            let law = Mean::of(&figures(PROBLEM)?)?;
            let mut fixes = Gains::default();
            for together in measured.compared {
                let (_, fix) = together.as_ref()?.figures(&claim.quantity)?;
                fixes.add(&[1.0], &fix, claim.quantity.larger_is_better())?;
            }
            let law = if claim.quantity.larger_is_better() {
                law
            } else {
                Mean::exactly(1.0)?.over(law)
            };
            Some(fixes.mean()?.over(law))
        }
        // The length of a call was measured in the same rounds as the gain, and so was what was asked.
        Law::Little {
            measured_by: Some(counter),
            ..
        }
        | Law::Overload {
            measured_by: counter,
            ..
        } => {
            let scenario = record.chapter.scenario(claim.scenario())?;
            let mut apart = Gains::default();
            for together in measured.compared {
                let together = together.as_ref()?;
                let (problem, fixes) = together.figures(&claim.quantity)?;
                let inputs = Inputs {
                    call_s: Some(*together.problem.readings.get(counter)?),
                    ..Inputs::default()
                };
                let scenario = offered(scenario, &[together.problem]);
                let of_these = self::predicted(law, &scenario, inputs)?;
                apart.add(
                    &[problem * of_these.ratio],
                    &fixes,
                    claim.quantity.larger_is_better(),
                )?;
            }
            apart.mean()
        }
        _ => Some(gains.mean()?.over(Mean::exactly(predicted.ratio)?)),
    }
}

/// Replaces the rates of an open loop by those at which requests came in the problem's `rounds`: for each phase the
/// median. Requests that come at random are more or fewer than was asked, and a law of queues depends on the difference
/// to the capacity.
pub(crate) fn offered(scenario: &Scenario, rounds: &[&Round]) -> Scenario {
    let mut phases = Vec::new();
    let problem = rounds.iter().find(|round| round.variant == PROBLEM);
    let count = problem.map_or(0, |round| round.outcome.phases.len());
    for place in 0..count {
        let came = median_of(rounds, PROBLEM, |round| {
            let phase = round.outcome.phases.get(place)?;
            Some(phase.offered())
        });
        let seconds = problem.map(|round| round.outcome.phases[place].seconds);
        if let (Some(came), Some(seconds)) = (came, seconds) {
            let share = came / scenario.per_second;
            phases.push(Phase { share, seconds });
        }
    }
    if scenario.per_second == 0.0 || phases.len() < scenario.phases.len().max(1) {
        return scenario.clone();
    }
    Scenario {
        phases,
        ..scenario.clone()
    }
}

/// Predicts what the fix gains in the named scenario of a record, like [`in_scenario`], from the requests that came.
pub(crate) fn of_record(record: &Record, scenario: &str, inputs: Inputs) -> Option<Prediction> {
    let mut chapter = record.chapter.clone();
    let asked = chapter.scenarios.get_mut(scenario)?;
    *asked = offered(asked, &record.claimed_in(scenario));
    in_scenario(&chapter, scenario, inputs)
}

/// Explains in a sentence why there is nothing to gain on the machine that was measured; `None` if there is.
pub(crate) fn nothing_to_gain(law: &Law, inputs: Inputs) -> Option<String> {
    let (Law::Workers { .. }, Some((problem, solution))) = (law, inputs.cpus) else {
        return None;
    };
    if problem < solution {
        return None;
    }
    Some(format!(
        "this machine cannot show it: the problem sees as many CPUs as the solution here ({}).",
        statistics::figures::count(problem)
    ))
}

/// Predicts what the fix gains in the named scenario. `None` if the law's own rounds ran a server with other
/// arguments, because its costs differ. [`Law::Workers`] is exempt: its rounds run differently on purpose.
pub fn in_scenario(chapter: &ChapterFile, scenario: &str, inputs: Inputs) -> Option<Prediction> {
    let scenario = chapter.scenario(scenario)?;
    if let Some(own) = chapter.law.scenario()
        && let Some(own) = chapter.scenario(own)
        && !matches!(chapter.law, Law::Workers { .. })
        && own.arguments != scenario.arguments
    {
        return None;
    }
    predicted(&chapter.law, scenario, inputs)
}
