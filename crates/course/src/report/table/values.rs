//! Single figures for the book's sentences, each between two anchors:
//! `{{#include ../flamegraphs/chapter1/values.md:effect}}`.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::analysis::{
    baseline,
    finding::{Finding, median_of},
    prediction::{self, cpu_of, sleeps_of},
    verdict::Analysis,
};
use crate::measurement::{
    claim::{LoadMetric, PROBLEM, Quantity, Role},
    record::{Purpose, Record, Round},
};
use drawing::profile::Profile;
use statistics::figures;
use statistics::metric::Unit;
use statistics::profile::ProfileKind;

use crate::report::boxes;
use crate::report::rows::{known, median_text, secondary_text, unknown};
use drawing::flamegraph::busy;

/// Formats all single figures of a capture as a Markdown file of anchors. `folded` holds the folded stacks by
/// file name.
pub fn values(record: &Record, analysis: &Analysis, folded: &BTreeMap<String, String>) -> String {
    let mut values = Values(Vec::new());
    values.run(record, analysis);
    values.claims(analysis);
    for one in &record.chapter.secondary {
        for variant in [PROBLEM, record.variant.as_str()] {
            let text = secondary_text(record, one, variant).unwrap_or_else(unknown);
            values.add(&format!("{variant}-{}", one.key()), text);
        }
    }
    values.variants(record);
    values.alone(record);
    values.elsewhere(record, analysis);
    values.guardrails(analysis);
    values.queues(record);
    for one in baseline::baselines(record) {
        let name = format!("baseline-{}-share", one.key());
        values.add(&name, share(one.of_the_solutions));
    }
    values.profiles(record, folded);
    for published in &record.references {
        let name = format!("published-{}", published.figure.replace('.', "-"));
        values.add(&name, published.value.clone());
    }
    anchors(
        "<!-- Generated from capture.json: include single anchors. -->",
        values.0,
    )
}

/// Formats figures between anchors as a Markdown file, below the line `made_by`.
pub fn anchors(made_by: &str, named: Vec<(String, String)>) -> String {
    let mut text = format!("{made_by}\n");
    for (name, value) in named {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "<!-- ANCHOR: {name} -->\n{value}\n<!-- ANCHOR_END: {name} -->"
        );
    }
    text
}

/// Names and figures, in the order of the file.
struct Values(Vec<(String, String)>);

impl Values {
    fn add(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }

    /// Adds the most requests that waited at one look, of the rounds in which they were counted.
    fn queues(&mut self, record: &Record) {
        let Some(scenario) = record.chapter.queue() else {
            return;
        };
        for round in record.rounds_for(Purpose::Series) {
            if round.scenario == scenario
                && let Some(most) = round.series.iter().map(|at| at.waiting).max()
            {
                let name = format!("{}-longest-queue", round.variant);
                self.add(&name, figures::count(most as f64));
            }
        }
    }

    /// Adds the verdict and the number of users.
    fn run(&mut self, record: &Record, analysis: &Analysis) {
        self.add("verdict", analysis.verdict.kind.to_string());
        self.add("reason", analysis.verdict.reason.clone());
        let scenario = record.chapter.effect_scenario();
        self.add("users", figures::count(scenario.users.into()));
        if scenario.per_second > 0.0 {
            let came = prediction::offered(scenario, &record.effect_rounds());
            for (number, phase) in (1..).zip(&came.phases) {
                let name = format!("came-in-phase-{number}");
                self.add(&name, figures::percent(phase.share));
            }
        }
    }

    /// Adds the claims in the effect's scenario.
    fn claims(&mut self, analysis: &Analysis) {
        let (predicted, solution, sentence) = match analysis.prediction.clone() {
            Some(law) => (Some(law.ratio), law.solution, law.sentence),
            None => (None, None, unknown()),
        };
        self.add("predicted-ratio", ratio(predicted));
        self.add("predicted-solution", count(solution));
        self.add("prediction", sentence);
        if let Some(off) = analysis.of(Role::Prediction).find_map(Finding::off) {
            self.add("prediction-off", figures::percent(off.abs()));
        }
        if let Some(root_cause) = analysis.root_cause() {
            let unit = root_cause.claim.unit;
            self.add("root-cause-problem", text(unit, root_cause.problem));
            self.add("root-cause-solution", text(unit, root_cause.fix));
        }
        let Some(effect) = analysis.effect() else {
            return;
        };
        self.add("effect", ratio(effect.ratio));
        self.add("effect-low", ratio(effect.interval.map(|(low, _)| low)));
        self.add("effect-high", ratio(effect.interval.map(|(_, high)| high)));
        let claimed = effect.claim.ratio.map(|bound| bound.limit(effect.users));
        self.add("claimed", ratio(claimed));
        self.add("noise-floor", share(effect.noise_floor));
    }

    /// Adds the medians of both variants in the effect's scenario.
    fn variants(&mut self, record: &Record) {
        for variant in [PROBLEM, record.variant.as_str()] {
            for (name, metric) in [
                ("requests-per-second", LoadMetric::RequestsPerSecond),
                ("p50", LoadMetric::P50Ms),
                ("p99", LoadMetric::P99Ms),
            ] {
                let median = median_text(record, metric, variant);
                self.add(&format!("{variant}-{name}"), median);
            }
            for claim in record.chapter.claims.of(Role::Effect).skip(1) {
                if let Quantity::Metric(metric) = claim.quantity
                    && claim.scenario() == record.chapter.claims.effect().scenario()
                {
                    let name = format!("{variant}-{}", metric.key().replace('_', "-"));
                    self.add(&name, median_text(record, metric, variant));
                }
            }
            let cpu = cpu_of(&record.effect_rounds(), variant);
            self.add(&format!("{variant}-cpu-per-request"), micros(cpu));
            self.bystander(record, variant);
            self.counted(record, variant);
        }
    }

    /// Adds the medians of the counters that the law needs.
    fn counted(&mut self, record: &Record, variant: &str) {
        for metric in record.chapter.law.metrics() {
            let median = prediction::median_of(&record.effect_rounds(), variant, |round| {
                round.readings.get(metric).copied()
            });
            let name = format!("{variant}-{}", metric.replace('_', "-"));
            self.add(&name, count(median));
        }
    }

    /// Adds CPU time and sleeps of a request with one user, beside those under the effect's load.
    fn alone(&mut self, record: &Record) {
        let mut alone: Vec<&Round> = record.rounds_for(Purpose::Matrix).collect();
        alone.retain(|round| record.chapter.users(&round.scenario) == 1);
        if sleeps_of(&alone, PROBLEM).is_none() {
            return;
        }
        let loaded = record.effect_rounds();
        for variant in [PROBLEM, record.variant.as_str()] {
            let cpu = micros(cpu_of(&alone, variant));
            self.add(&format!("{variant}-cpu-per-request-alone"), cpu);
            for (name, rounds) in [("sleeps-alone", &alone), ("sleeps", &loaded)] {
                self.add(
                    &format!("{variant}-{name}"),
                    count(sleeps_of(rounds, variant)),
                );
            }
        }
        for (name, rounds) in [("cost-ratio-alone", &alone), ("cost-ratio", &loaded)] {
            let mut cost_ratio = None;
            if let Some(problem) = cpu_of(rounds, PROBLEM)
                && let Some(fix) = cpu_of(rounds, &record.variant)
            {
                cost_ratio = Some(problem / fix);
            }
            self.add(name, ratio(cost_ratio));
        }
    }

    /// Adds the bystanders' latency.
    fn bystander(&mut self, record: &Record, variant: &str) {
        let median = prediction::median_of(&record.effect_rounds(), variant, |round| {
            round.outcome.bystander.as_ref()?.latency.at(0.5)
        });
        let Some(median) = median else { return };
        self.add(
            &format!("{variant}-bystander-p50"),
            figures::milliseconds(median),
        );
        self.add(
            &format!("{variant}-bystander-p99"),
            median_text(record, LoadMetric::BystanderP99Ms, variant),
        );
    }

    /// Adds the claims in other scenarios, as `in-SCENARIO…`.
    fn elsewhere(&mut self, record: &Record, analysis: &Analysis) {
        for (name, _) in record.chapter.further_scenarios() {
            let stem = format!("in-{}", name.replace('_', "-"));
            let [prediction, effect] = [Role::Prediction, Role::Effect].map(|role| {
                let mut findings = analysis.of(role);
                findings.find(|finding| finding.claim.scenario() == name)
            });
            let rounds = record.claimed_in(name);
            let quantity = &record.chapter.claims.effect().quantity;
            let [problem, fix] = [PROBLEM, record.variant.as_str()]
                .map(|variant| median_of(quantity, &rounds, variant));
            let measured = match (effect, prediction) {
                (Some(effect), _) => effect.ratio,
                (None, Some(prediction)) => prediction.measured,
                (None, None) => None,
            };
            self.add(&stem, ratio(measured));
            for (side, value) in [("problem", problem), ("solution", fix)] {
                let text = known(value, |value| quantity.text(Unit::Count, value));
                self.add(&format!("{stem}-{side}"), text);
            }
            if let Some(prediction) = prediction {
                self.add(&format!("{stem}-predicted"), ratio(prediction.ratio));
                let most = prediction.fix;
                self.add(
                    &format!("{stem}-predicted-solution"),
                    count(most.map(f64::round)),
                );
            }
        }
    }

    fn guardrails(&mut self, analysis: &Analysis) {
        for finding in analysis.of(Role::Guardrail) {
            let quantity = &finding.claim.quantity;
            let name = quantity.key().replace('_', "-");
            if finding.claim.ratio.is_some() {
                self.add(&format!("kept-{name}"), share(finding.ratio));
            }
            if finding.claim.ratio.is_none() {
                let unit = finding.claim.unit;
                self.add(&format!("problem-{name}"), text(unit, finding.problem));
                self.add(&format!("solution-{name}"), text(unit, finding.fix));
            }
        }
    }

    fn profiles(&mut self, record: &Record, folded: &BTreeMap<String, String>) {
        for profile in &record.profiles {
            let stem = format!("{}-{}", profile.variant, profile.kind.key());
            let samples = figures::count(profile.samples as f64);
            self.add(&format!("{stem}-samples"), samples);
            if let Some(busy) = busy(profile) {
                self.add(&format!("{stem}-busy"), figures::percent(busy));
            }
            if let Some(share) = profile.frames_share {
                self.add(&format!("{stem}-share"), figures::percent(share));
                let gain = figures::ratio(1.0 / (1.0 - share));
                self.add(&format!("{stem}-share-gain"), gain);
            }
            let Some(stacks) = folded.get(&profile.folded_name()) else {
                continue;
            };
            if let Some((name, share)) = top(profile, stacks) {
                let name = name.replace('`', "'");
                self.add(&format!("{stem}-top"), format!("`{name}`"));
                self.add(&format!("{stem}-top-share"), share);
            }
        }
    }
}

/// Returns the name and the share of the box at the top of a profile that has most samples; `None` if it cannot be read.
fn top(profile: &Profile, stacks: &str) -> Option<(String, String)> {
    if profile.kind == ProfileKind::Heap {
        // A heap profile has no still picture, so its figures are those of the full one.
        let (leaf, share) = drawing::folded::most_frequent_leaf(stacks).ok()??;
        return Some((leaf, figures::percent(share)));
    }
    boxes::widest_top(stacks, profile).ok()?
}

fn text(unit: Unit, value: Option<f64>) -> String {
    known(value, |value| unit.text(value))
}

fn share(value: Option<f64>) -> String {
    known(value, figures::percent)
}

fn ratio(value: Option<f64>) -> String {
    known(value, figures::ratio)
}

fn micros(seconds: Option<f64>) -> String {
    known(seconds, |seconds| {
        format!("{} µs", figures::count((seconds * 1e6).round()))
    })
}

fn count(value: Option<f64>) -> String {
    known(value, figures::count)
}
