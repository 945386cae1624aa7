//! A comparison of two builds for people and scripts: table, Markdown, JSON and one HTML file.

pub mod capacities;
pub mod capacity;
pub mod export;
mod frames;
pub mod load;

use self::frames::Frame;
use crate::bisect::mean;
use drawing::folded::{merged, without_idle};
use engine::comparison::LeftOut;
use std::fmt::Write as _;
use terminal::git::Commit;
use terminal::{Tone, coloured};

use children::environment::Environment;
use maud::{Markup, html};
use serde::Serialize;
use statistics::counters::{self, Counter};
use statistics::figures;
use statistics::metric::Unit;
use statistics::metric::{CPU_MS, Metric, Triplet, are_bounds};
use statistics::profile::ProfileKind;
use statistics::profile::SeenByBoth;
use statistics::verdict::{Estimate, Speed, Verdict, drawbacks};

use drawing::flamegraph::{Picture, draw, draw_difference};
use drawing::html::{self as page_html, Head, document, frame, scrolled, section};
use drawing::intervals::{Row, against_one};
use drawing::rounds::metric_of_rounds;
use drawing::table::{Column, Table, sentence_case, shortened};

/// Result that `compare --format json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Kind of the verdict.
    pub verdict: Speed,
    /// Reason for the verdict, and notes that a reader must know.
    pub reason: String,
    /// Length of the comparison in seconds.
    pub seconds: f64,
    /// Number of rounds that the verdict rests on.
    pub rounds: usize,
    /// Rounds that were not counted.
    pub left_out: LeftOut,
    /// Metric that decides; `None` if it was not measured.
    pub effect: Option<Effect>,
    /// All metrics that were measured.
    pub metrics: Vec<Told>,
    /// Counters that the services export and whose growth per request the change moved.
    pub counters: Vec<Counter>,
    /// The base.
    pub base: Side,
    /// The change.
    pub change: Side,
    #[serde(skip)]
    frames: Vec<Frame>,
    #[serde(skip)]
    sentence: String,
    #[serde(skip)]
    notes: Vec<String>,
}

/// One of the two builds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Name on the command line: a command, `git:REVISION`, or a URL.
    pub name: String,
    /// The commit of a revision.
    #[serde(flatten)]
    pub commit: Option<Commit>,
    /// Program that ran, if it is a revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

/// Program of a revision, or its script if another program runs that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Path of its file from the checkout's root.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// Ratio of the metric that decides.
#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    /// Its key.
    pub metric: String,
    /// Ratio of change to base; larger is better.
    pub ratio: f64,
    /// Interval that holds the true ratio in 98 % of comparisons.
    pub interval: Option<(f64, f64)>,
    /// Noise floor: largest distance from 1 that two equal servers may show.
    pub noise_floor: Option<f64>,
}

/// One metric of base and change.
#[derive(Debug, Clone, Serialize)]
pub struct Told {
    /// Its key.
    pub metric: String,
    /// Name for people.
    pub label: String,
    /// Unit of `base` and `change`.
    pub unit: Unit,
    /// Mean of the base over the rounds that measured it.
    pub base: Option<f64>,
    /// Mean of the change over the rounds that measured it.
    pub change: Option<f64>,
    /// Ratio of change to base, larger is better; `None` if neither direction is better.
    pub ratio: Option<f64>,
    /// Interval of the ratio.
    pub interval: Option<(f64, f64)>,
    /// Noise floor: largest distance from 1 that two equal servers may show.
    pub noise_floor: Option<f64>,
    /// `true` if `base` is a lower bound, because latencies were longer than a slice.
    pub is_base_bound: bool,
    /// `true` if `change` is a lower bound.
    pub is_change_bound: bool,
    /// Ratio and interval for people.
    #[serde(skip)]
    times: String,
}

/// Content of the report's page beside the comparison.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    /// All metrics.
    pub metrics: &'a [Metric],
    /// The key of the one that decides.
    pub deciding: &'a str,
    /// Every round.
    pub rounds: &'a [Triplet],
    /// Profiles of base and change, if they were asked for.
    pub profiles: &'a [SeenByBoth],
    /// The load in words.
    pub load: &'a str,
    /// The machine.
    pub environment: &'a Environment,
    /// Command line that was typed.
    pub command: &'a str,
    /// Share below which a difference counts as none.
    pub margin: f64,
    /// Set if the servers ran already, and were the same in all rounds.
    pub is_running: bool,
}

impl Comparison {
    /// Describes a comparison of these rounds, which `verdict` judges.
    pub fn new(
        verdict: &Verdict<Speed>,
        notes: &[String],
        seconds: f64,
        deciding: &Metric,
        metrics: &[Metric],
        rounds: &[Triplet],
        (base, change): (Side, Side),
    ) -> Self {
        let mut sentence = sentence_case(&verdict.reason);
        let drawbacks = drawbacks(deciding, metrics, rounds);
        if matches!(verdict.kind, Speed::Faster | Speed::NoDifference) && !drawbacks.is_empty() {
            sentence.truncate(sentence.trim_end_matches('.').len());
            let _ = write!(sentence, "; but {}.", drawbacks.join(", "));
        }
        if verdict.kind == Speed::Inconclusive {
            if let Some(hint) = looks(deciding, rounds) {
                let _ = write!(sentence, " {hint}");
            }
            if let Some(hint) = by_cpu_time(deciding, metrics, rounds) {
                let _ = write!(sentence, " {hint}");
            }
        }
        let notes: Vec<String> = notes.iter().map(|note| sentence_case(note)).collect();
        let effect = Estimate::of(deciding, rounds).map(|estimate| Effect {
            metric: deciding.key.clone(),
            ratio: estimate.ratio,
            interval: estimate.interval,
            noise_floor: estimate.noise_floor,
        });
        let mut measured: Vec<Told> = metrics.iter().map(|one| told(one, rounds)).collect();
        measured.retain(|told| told.base.is_some());
        Self {
            verdict: verdict.kind,
            reason: [std::slice::from_ref(&sentence), &notes[..]]
                .concat()
                .join(" "),
            seconds,
            rounds: rounds.len(),
            left_out: LeftOut::default(),
            effect,
            metrics: measured,
            counters: counters::changed(rounds),
            base,
            change,
            frames: Vec::new(),
            sentence,
            notes,
        }
    }

    /// Adds a sentence on the rounds that were not counted.
    #[must_use]
    pub fn with_left_out(mut self, left_out: LeftOut) -> Self {
        self.left_out = left_out;
        if let Some(words) = left_out.in_words(self.rounds) {
            if self.verdict == Speed::Inconclusive {
                let _ = write!(self.sentence, " {words}");
            } else {
                self.notes.push(words);
            }
            self.reason.clone_from(&self.sentence);
            for note in &self.notes {
                let _ = write!(self.reason, " {note}");
            }
        }
        self
    }

    /// Adds the functions whose share differs in these profiles.
    #[must_use]
    pub fn with_frames(mut self, profiles: &[SeenByBoth]) -> Self {
        for seen in profiles {
            self.frames.extend(frames::changed(seen));
        }
        self
    }

    /// Returns tables of what else changed, each with its title. Names stand between `quote`.
    fn else_changed(&self, quote: &str) -> Vec<(&'static str, Table)> {
        let mut tables = Vec::new();
        if !self.counters.is_empty() {
            tables.push(("Counters", self.counters_table(quote)));
        }
        if !self.frames.is_empty() {
            tables.push(("Functions", self.frames_table(quote)));
        }
        tables
    }

    fn counters_table(&self, quote: &str) -> Table {
        let mut rows = Vec::new();
        for one in &self.counters {
            let mut ratio = match one.ratio {
                Some(ratio) => figures::ratio(ratio),
                None => "-".to_owned(),
            };
            if let Some((low, high)) = one.interval {
                let (low, high) = (figures::ratio(low), figures::ratio(high));
                let _ = write!(ratio, " ({low} to {high})");
            }
            rows.push(vec![
                format!("{quote}{}{quote}", one.counter),
                figures::count(one.base),
                figures::count(one.change),
                ratio,
            ]);
        }
        let columns = [
            Column::text("counter, per request"),
            Column::figures("base"),
            Column::figures("change"),
            Column::figures("change / base"),
        ];
        Table::new(columns, rows)
    }

    fn frames_table(&self, quote: &str) -> Table {
        let mut rows = Vec::new();
        for one in &self.frames {
            let (low, high) = (one.interval.0 * 100.0, one.interval.1 * 100.0);
            rows.push(vec![
                one.kind.key().to_owned(),
                format!("{quote}{}{quote}", shortened(&one.name, 80)),
                figures::percent(one.base),
                figures::percent(one.change),
                format!("{low:+.1} to {high:+.1} points"),
            ]);
        }
        let columns = [
            Column::text("profile"),
            Column::text("share of its stacks with"),
            Column::figures("base"),
            Column::figures("change"),
            Column::figures("difference"),
        ];
        Table::new(columns, rows)
    }

    /// Returns the ratio and interval of the metric that decides: `0.82 (0.79 to 0.86) times as good`.
    fn effect_in_words(&self) -> Option<String> {
        let effect = self.effect.as_ref()?;
        let told = self
            .metrics
            .iter()
            .find(|one| one.metric == effect.metric)?;
        Some(format!("{} times as good", told.times))
    }

    /// Returns the ratios for the picture, that of the metric that decides first.
    fn intervals(&self, deciding: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for told in &self.metrics {
            if let (Some(ratio), Some(interval)) = (told.ratio, told.interval) {
                let row = Row {
                    name: shortened(&sentence_case(&told.label), 32),
                    ratio,
                    interval,
                    text: told.times.clone(),
                };
                if told.metric == deciding {
                    rows.insert(0, row);
                } else {
                    rows.push(row);
                }
            }
        }
        rows
    }

    fn table(&self) -> Table {
        let mut rows = Vec::new();
        for told in &self.metrics {
            rows.push(vec![
                match told.unit {
                    Unit::Count => told.label.clone(),
                    _ => sentence_case(&told.label),
                },
                value(told.unit, told.base, told.is_base_bound),
                value(told.unit, told.change, told.is_change_bound),
                told.times.clone(),
                match told.noise_floor {
                    Some(floor) => figures::percent(floor),
                    None => String::new(),
                },
            ]);
        }
        let columns = [
            Column::text(""),
            Column::figures("base"),
            Column::figures("change"),
            Column::figures("times as good"),
            Column::figures("noise"),
        ];
        Table::new(columns, rows)
    }

    /// Formats the verdict, the tables and the notes for a terminal.
    pub fn text(&self) -> String {
        let verdict = coloured(&self.verdict, tone_of(self.verdict));
        let mut text = format!("{verdict}: {}\n", self.sentence);
        for (name, side) in [("base", &self.base), ("change", &self.change)] {
            if let Some(commit) = &side.commit {
                let _ = writeln!(text, "{name}: {commit}");
            }
        }
        let table = self.table();
        if table.rows.is_empty() {
            return text;
        }
        let _ = write!(text, "\n{}", table.text());
        for (place, (_, table)) in self.else_changed("").iter().enumerate() {
            let title = if place == 0 {
                "What else changed:\n"
            } else {
                ""
            };
            let _ = write!(text, "\n{title}{}", table.text());
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    /// Formats the comparison as Markdown for a pull request.
    pub fn markdown(&self) -> String {
        let mut text = format!("### {}", sentence_case(&self.verdict.to_string()));
        if let Some(effect) = self.effect_in_words() {
            let _ = write!(text, ", {effect}");
        }
        let (change, base) = (quoted(&self.change.title()), quoted(&self.base.title()));
        let _ = write!(text, ": {change} against {base}\n\n{}\n\n", self.sentence);
        if !self.metrics.is_empty() {
            let _ = writeln!(text, "{}", self.table().markdown());
        }
        for (place, (_, table)) in self.else_changed("`").iter().enumerate() {
            let title = if place == 0 {
                "What else changed:\n\n"
            } else {
                ""
            };
            let _ = writeln!(text, "{title}{}", table.markdown());
        }
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text
    }

    /// Returns the report: one HTML file that needs nothing else.
    pub fn page(&self, page: &Page<'_>) -> String {
        let plots = plots(page);
        let head = Head {
            kicker: "Two builds compared",
            title: &format!("{} against {}", self.change.title(), self.base.title()),
            verdict: &self.verdict,
            class: class_of(self.verdict),
            sentence: &self.sentence,
            provenance: html! { (page.load) " " (page.environment.in_a_line()) "." },
        };
        let measured = html! {
            p {
                "Means of " (page.rounds.len()) " rounds. Times as good: larger is better for the "
                "change, with the interval that holds the truth 98 times in a hundred. Noise: how far "
                "apart the base and a second server of the base came out. Over: the latency is longer than a "
                "slice could show."
            }
            (against_one(&self.intervals(page.deciding), page.margin))
            (scrolled(&self.table(), "Measured", "raw"))
            @if !self.notes.is_empty() {
                ul { @for note in &self.notes { li { (note) } } }
            }
        };
        let tables = self.else_changed("");
        let else_changed = html! {
            p {
                "What differs beyond doubt, apart from what was asked for: counters of the services by more "
                "than a tenth, and functions that have another share of the stacks."
            }
            @for (title, table) in &tables { (scrolled(table, title, "raw")) }
        };
        let every_round = html! {
            p {
                @if page.is_running { "Each round loads base, change, and the base again (hollow), which ran already." }
                @else { "Each round has three fresh servers: base, change, and the base again (hollow)." }
            }
            (page_html::pictures(plots.iter().map(|(metric, svg)| {
                (svg.as_str(), format!("{} of every round.", metric.label), "")
            })))
        };
        let pictures = pictures(page.profiles);
        let profiles = html! {
            p {
                "Taken after the rounds, under the same load. In the difference, widths are the "
                "change's; red frames have a larger share than in the base, blue ones a smaller. "
                "Click a frame to zoom in."
            }
            @for (title, svg) in &pictures {
                h3 { (title) }
                (frame::of(svg, &format!("Flamegraph: {title}")))
            }
        };
        let repeat = html! {
            pre tabindex="0" { code { (page.command) } }
            @for (name, side) in [("Base", &self.base), ("Change", &self.change)] {
                @if let Some(commit) = &side.commit {
                    p { (name) " is commit " code { (commit.hash) } ", " (commit.subject) "." }
                }
                @if let Some(Program { file, sha256 }) = &side.program {
                    p { (name) " ran " code { (file) } ", SHA-256 " code { (sha256) } "." }
                }
            }
        };
        let sections = html! {
            @if !self.metrics.is_empty() { (section("metrics", "Measured", &measured)) }
            @if !tables.is_empty() { (section("else", "What else changed", &else_changed)) }
            @if !plots.is_empty() { (section("plots", "Every round", &every_round)) }
            @if !pictures.is_empty() { (section("profiles", "Profiles", &profiles)) }
            (section("repeat", "Repeat it", &repeat))
        };
        document(&head, &sections)
    }
}

/// Returns the last section of a report: the command that repeats it.
fn repeat(command: &str) -> Markup {
    section(
        "repeat",
        "Repeat it",
        &html! { pre tabindex="0" { code { (command) } } },
    )
}

/// Returns the colour of a verdict in a terminal.
fn tone_of(verdict: Speed) -> Tone {
    match verdict {
        Speed::Faster | Speed::NoDifference => Tone::Good,
        Speed::Slower => Tone::Bad,
        Speed::Inconclusive | Speed::Invalid => Tone::Unsure,
    }
}

/// Returns the style class that colours a verdict on a page.
fn class_of(verdict: Speed) -> &'static str {
    match verdict {
        Speed::Faster | Speed::NoDifference => "proved",
        Speed::Slower => "refuted",
        Speed::Inconclusive => "inconclusive",
        Speed::Invalid => "invalid",
    }
}

/// Formats one figure of a side.
fn value(unit: Unit, value: Option<f64>, is_bound: bool) -> String {
    match value {
        Some(value) => format!("{}{}", figures::over(is_bound), unit.text(value)),
        None => "-".to_owned(),
    }
}

/// Returns the metrics that were measured, each with a plot of its rounds; the one that decides first.
fn plots<'a>(page: &Page<'a>) -> Vec<(&'a Metric, String)> {
    let mut plots = Vec::new();
    for metric in page.metrics {
        let has_figures = |round: &Triplet| round.base.get(&metric.key) > Some(0.0);
        if page.rounds.iter().any(has_figures)
            && let Some(plot) = metric_of_rounds(metric, page.rounds)
        {
            plots.push((metric, plot));
        }
    }
    // The sort is stable.
    plots.sort_by_key(|(metric, _)| metric.key != page.deciding);
    plots
}

/// Returns a hint at the likely verdict, if base and change are far apart but the rounds give no interval.
fn looks(deciding: &Metric, rounds: &[Triplet]) -> Option<String> {
    const FAR: f64 = 1.5;

    let estimate = Estimate::of(deciding, rounds)?;
    let is_far = estimate.ratio > FAR || estimate.ratio < FAR.recip();
    let word = if estimate.ratio > 1.0 {
        "faster"
    } else {
        "slower"
    };
    if !is_far || estimate.interval.is_some() {
        return None;
    }
    Some(format!(
        "It looks {word}: {} of the change {} times as good in {}.",
        deciding.label,
        figures::ratio(estimate.ratio),
        figures::things(rounds.len() as u64, "counted round")
    ))
}

/// Returns a hint at the verdict by CPU time per request, if that decides. Other programs hardly change it.
fn by_cpu_time(deciding: &Metric, metrics: &[Metric], rounds: &[Triplet]) -> Option<String> {
    if deciding.key == CPU_MS {
        return None;
    }
    let cpu_time = metrics.iter().find(|metric| metric.key == CPU_MS)?;
    let estimate = Estimate::of(cpu_time, rounds)?;
    let (low, high) = estimate.interval?;
    let word = match (low > 1.0, high < 1.0) {
        (true, _) => "faster",
        (_, true) => "slower",
        _ => return None,
    };
    Some(format!(
        "It is {word} by {}: {}; {} cannot be told apart on this machine. To decide by it: --metric {CPU_MS}.",
        cpu_time.label,
        estimate.text(),
        deciding.label
    ))
}

/// Draws base, change and their difference for each instrument. Stacks that cannot be drawn are left out: they come
/// from a service that anybody may have written, and the verdict does not depend on them.
fn pictures(profiles: &[SeenByBoth]) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    for seen in profiles {
        let [base, change] = [&seen.base, &seen.change]
            .map(|parts| without_idle(&merged(parts).unwrap_or_default()));
        for (which, (folded, idle)) in [("Base", &base), ("Change", &change)] {
            let picture = picture(seen, which, *idle);
            if let Ok(svg) = draw(folded, &picture) {
                pictures.push((picture.title, svg));
            }
        }
        let picture = picture(seen, "Base to change", 0);
        let (base, change) = ((&*base.0, base.1), (&*change.0, change.1));
        if let Ok(svg) = draw_difference(base, change, &picture) {
            pictures.push((picture.title, svg));
        }
    }
    pictures
}

fn picture(seen: &SeenByBoth, which: &str, idle: u64) -> Picture {
    Picture {
        kind: seen.kind,
        title: format!("{which}: {}", Picture::what(seen.kind)),
        subtitle: None,
        unit: match seen.kind {
            ProfileKind::Await => "µs of requests",
            _ => "samples",
        }
        .to_owned(),
        idle,
        seconds: seen.seconds.into(),
        // Nothing tells the name of the service's own crate.
        own: String::new(),
    }
}

impl Side {
    /// Returns the commit for people, or the name on the command line.
    fn title(&self) -> String {
        match &self.commit {
            Some(commit) => commit.to_string(),
            None => self.name.clone(),
        }
    }
}

/// Returns `text` as inline code of Markdown, in which nothing is a mark, a link or a mention.
fn quoted(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    // A command may hold backticks; the quotes must be longer than any row of them.
    let mut quotes = "``".to_owned();
    while text.contains(&quotes) {
        quotes.push('`');
    }
    format!("{quotes} {text} {quotes}")
}

fn told(metric: &Metric, rounds: &[Triplet]) -> Told {
    let (is_base_bound, is_change_bound) = are_bounds(rounds, &metric.key);
    let mut told = Told {
        metric: metric.key.clone(),
        label: metric.label.clone(),
        unit: metric.unit,
        base: None,
        change: None,
        ratio: None,
        interval: None,
        noise_floor: None,
        is_base_bound,
        is_change_bound,
        times: String::new(),
    };
    match Estimate::of(metric, rounds) {
        Some(estimate) if metric.larger_is_better.is_some() => {
            told.base = Some(estimate.base);
            told.change = Some(estimate.change);
            told.ratio = Some(estimate.ratio);
            told.interval = estimate.interval;
            told.noise_floor = estimate.noise_floor;
            told.times = estimate.text();
        }
        _ => {
            let (mut base, mut change) = (Vec::new(), Vec::new());
            for round in rounds {
                base.extend(round.base.get(&metric.key));
                change.extend(round.change.get(&metric.key));
            }
            told.base = mean(&base);
            told.change = mean(&change);
        }
    }
    told
}
