//! Single figures for the book's sentences, each between two anchors:
//! `{{#include ../flamegraphs/chapter1/values.md:effect}}`.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{beside_text, median_text, unknown};
use analysis::{
    folded,
    prediction::{Prediction, cpu_per_request, sleeps_per_request},
    statistics,
    verdict::Analysis,
    yardstick,
};
use measurement::{
    claim::{Metric, PROBLEM, SOLUTION},
    figures,
    law::Law,
    outcome::Probed,
    profile::ProfileKind,
    record::{Purpose, Record},
};

/// All single figures of a capture, as a Markdown file of anchors. `folded`
/// holds the folded stacks by file name.
pub fn values(record: &Record, analysis: &Analysis, folded: &BTreeMap<String, String>) -> String {
    let mut text = String::from("<!-- Generated from capture.json: include single anchors. -->\n");
    for (name, value) in named(record, analysis, folded) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "<!-- ANCHOR: {name} -->\n{value}\n<!-- ANCHOR_END: {name} -->"
        );
    }
    text
}

fn named(
    record: &Record,
    analysis: &Analysis,
    folded: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let mut values = Values(Vec::new());
    values.run(record, analysis);
    values.law(analysis);
    values.claims(analysis);
    for beside in &record.chapter.beside {
        for variant in [PROBLEM, SOLUTION] {
            let text = beside_text(record, beside, variant).unwrap_or_else(unknown);
            values.add(&format!("{variant}-{}", beside.key()), text);
        }
    }
    values.variants(record);
    values.set_up(record);
    values.bound(record, analysis);
    values.points(analysis);
    if let Some(utilised) = &analysis.utilised {
        let share = |share: Option<f64>| share.map_or_else(unknown, figures::percent);
        values.add("utilised-share", share(utilised.share));
        values.add("problem-work-share", share(utilised.problem));
        values.add("solution-work-share", share(utilised.solution));
        if let Some(share) = utilised.while_counted {
            values.add("utilised-share-while-counted", figures::percent(share));
        }
    }
    for one in yardstick::yardsticks(record) {
        let share = one.of_the_solutions.map_or_else(unknown, figures::percent);
        values.add(&format!("yardstick-{}-share", one.key()), share);
    }
    values.price(analysis);
    values.profiles(record, folded);
    for count in &record.instructions {
        let name = format!("{}-instructions", count.variant);
        values.add(&name, figures::ratio(count.per_round));
    }
    for published in &record.references {
        let name = format!("published-{}", published.figure);
        values.add(&name, published.value.clone());
    }
    values.0
}

/// Names and figures, in the order of the file.
struct Values(Vec<(String, String)>);

impl Values {
    fn add(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }

    /// What was run, where, and what it shows.
    fn run(&mut self, record: &Record, analysis: &Analysis) {
        self.add("verdict", analysis.verdict.kind.to_string());
        self.add("reason", analysis.verdict.reason.clone());
        self.add("command", format!("`{}`", record.command));
        let date = record.started.get(..10).unwrap_or(&record.started);
        self.add("date", date.to_owned());
        self.add("commit", format!("`{}`", record.commit.in_short()));
        self.add("machine", record.environment.in_a_line());
        let users = record.chapter.effect_setting().users;
        self.add("users", figures::count(users.into()));
    }

    fn law(&mut self, analysis: &Analysis) {
        let prediction = analysis.prediction.as_ref();
        let bound = |of: fn(&Prediction) -> Option<f64>| count(prediction.and_then(of));
        self.add("predicted-ratio", ratio(prediction.map(|law| law.ratio)));
        self.add("predicted-problem", bound(|law| law.problem));
        self.add("predicted-solution", bound(|law| law.solution));
        let sentence = prediction.map_or_else(unknown, |law| law.sentence.clone());
        self.add("prediction", sentence);
        if let Some(law) = &analysis.law {
            self.add("law-off", figures::percent(law.off.abs()));
        }
    }

    fn claims(&mut self, analysis: &Analysis) {
        let (effect, mechanism) = (&analysis.effect, &analysis.mechanism);
        self.add("mechanism-problem", count(mechanism.problem));
        self.add("mechanism-solution", count(mechanism.solution));
        self.add("effect", ratio(effect.ratio));
        self.add("effect-low", ratio(effect.interval.map(|(low, _)| low)));
        self.add("effect-high", ratio(effect.interval.map(|(_, high)| high)));
        self.add("claimed", figures::ratio(effect.claimed));
        let floor = effect.noise_floor.map_or_else(unknown, figures::percent);
        self.add("noise-floor", floor);
        self.add("pairs", effect.pairs.len().to_string());
    }

    /// Medians of both variants in the effect's setting.
    fn variants(&mut self, record: &Record) {
        for variant in [PROBLEM, SOLUTION] {
            for (name, metric) in [
                ("requests-per-second", Metric::RequestsPerSecond),
                ("p50", Metric::P50Ms),
                ("p99", Metric::P99Ms),
            ] {
                let median = median_text(record, metric, variant);
                self.add(&format!("{variant}-{name}"), median);
            }
            let cpu = cpu_per_request(record, Purpose::Effect, variant);
            self.add(&format!("{variant}-cpu-per-request"), micros(cpu));
            self.probe(record, variant);
            self.counted(record, variant);
        }
    }

    /// What the law counts, as it was in most rounds.
    fn counted(&mut self, record: &Record, variant: &str) {
        for &metric in record.chapter.law.metrics() {
            let readings: Option<Vec<f64>> = record
                .rounds_for(Purpose::Effect)
                .filter(|round| round.variant == variant)
                .map(|round| round.readings.get(metric).copied())
                .collect();
            let median = readings.and_then(|readings| statistics::median_ratio(&readings));
            let name = format!("{variant}-{}", metric.replace('_', "-"));
            self.add(&name, count(median));
        }
    }

    /// The costs that the law predicts from, beside what they are under the effect's load.
    fn set_up(&mut self, record: &Record) {
        if !matches!(record.chapter.law, Law::SetUp(_)) {
            return;
        }
        let cpu = |purpose, variant| cpu_per_request(record, purpose, variant);
        for variant in [PROBLEM, SOLUTION] {
            let alone = micros(cpu(Purpose::Law, variant));
            self.add(&format!("{variant}-cpu-per-request-alone"), alone);
            for (name, purpose) in [("sleeps-alone", Purpose::Law), ("sleeps", Purpose::Effect)] {
                let sleeps = count(sleeps_per_request(record, purpose, variant));
                self.add(&format!("{variant}-{name}"), sleeps);
            }
        }
        let loaded = cpu(Purpose::Effect, PROBLEM).zip(cpu(Purpose::Effect, SOLUTION));
        self.add(
            "predicted-ratio-loaded",
            ratio(loaded.map(|(problem, solution)| problem / solution)),
        );
    }

    /// What everybody else waited, from the schedule and as a closed loop would have had it.
    fn probe(&mut self, record: &Record, variant: &str) {
        let median = |of: fn(&Probed) -> Option<f64>| {
            let values: Option<Vec<f64>> = record
                .rounds_for(Purpose::Effect)
                .filter(|round| round.variant == variant)
                .map(|round| of(round.outcome.probe.as_ref()?))
                .collect();
            statistics::median_ratio(&values?)
        };
        for (name, ms) in [
            ("p50", median(|probe| probe.latency.at(0.5))),
            ("p99", median(|probe| probe.latency.at(0.99))),
            (
                "service-p99",
                median(|probe| probe.service_latency.at(0.99)),
            ),
        ] {
            if let Some(ms) = ms {
                let name = format!("{variant}-probe-{name}");
                self.add(&name, figures::milliseconds(ms));
            }
        }
    }

    fn bound(&mut self, record: &Record, analysis: &Analysis) {
        let Some(bound) = &analysis.bound else { return };
        let rate = |value: f64| Metric::RequestsPerSecond.text(value);
        self.add("bound", figures::count(bound.bound.round()));
        self.add("bound-measured", rate(bound.measured));
        self.add("bound-share", figures::percent(bound.share));
        self.add("bound-problem", bound.problem.map_or_else(unknown, rate));
        if let Some(setting) = record.chapter.setting(&bound.setting) {
            self.add("bound-users", figures::count(setting.users.into()));
            self.add("bound-think", figures::count(setting.think_s));
        }
    }

    fn price(&mut self, analysis: &Analysis) {
        let Some(price) = &analysis.price else { return };
        let kept = price.throughput.map_or_else(unknown, figures::percent);
        self.add("throughput-kept", kept);
        for finding in &price.limits {
            let name = finding.limit.metric.replace('_', "-");
            self.add(&format!("problem-{name}"), count(finding.problem));
            self.add(&format!("solution-{name}"), count(finding.solution));
        }
    }

    fn points(&mut self, analysis: &Analysis) {
        let metric = analysis.effect.metric;
        let rate = |value: Option<f64>| value.map_or_else(unknown, |v| metric.text(v));
        for point in &analysis.points {
            let stem = format!("point-{}", point.setting.replace('_', "-"));
            self.add(&stem, ratio(point.ratio));
            self.add(&format!("{stem}-problem"), rate(point.problem));
            self.add(&format!("{stem}-solution"), rate(point.solution));
            let predicted = point.prediction.as_ref().map(|law| law.ratio);
            self.add(&format!("{stem}-predicted"), ratio(predicted));
        }
    }

    fn profiles(&mut self, record: &Record, folded: &BTreeMap<String, String>) {
        for profile in &record.profiles {
            let stem = format!("{}-{}", profile.variant, profile.kind.key());
            let samples = figures::count(profile.samples as f64);
            self.add(&format!("{stem}-samples"), samples);
            if let (ProfileKind::Cpu, Some(capacity)) = (profile.kind, profile.capacity) {
                let busy = (profile.samples as f64 / capacity.max(1) as f64).min(1.0);
                self.add(&format!("{stem}-busy"), figures::percent(busy));
            }
            if let Some(share) = profile.frames_share {
                self.add(&format!("{stem}-share"), figures::percent(share));
            }
            let stacks = folded
                .get(&profile.folded_name())
                .map_or("", String::as_str);
            if let Ok(Some((leaf, share))) = folded::most_frequent_leaf(stacks) {
                let leaf = format!("`{}`", leaf.replace('`', "'"));
                self.add(&format!("{stem}-top"), leaf);
                self.add(&format!("{stem}-top-share"), figures::percent(share));
            }
        }
    }
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(unknown, figures::ratio)
}

fn micros(seconds: Option<f64>) -> String {
    seconds.map_or_else(unknown, |seconds| {
        format!("{} µs", figures::count((seconds * 1e6).round()))
    })
}

fn count(value: Option<f64>) -> String {
    value.map_or_else(unknown, figures::count)
}
