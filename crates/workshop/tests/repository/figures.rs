//! The figures that a condition may name: what the book shows, in base units.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use course::analysis::prediction::cpu_of;
use course::measurement::claim::Quantity;
use course::measurement::record::{Purpose, Record, Round};
use course::report::capture::Capture;
use minijinja::Value;
use statistics::figures::number;

/// Text as a page shows it, by the name of its anchor.
type Anchors = BTreeMap<String, String>;

/// All figures of `flamegraphs/`.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    folder: PathBuf,
    /// By the file they stand in, `chapter4` or `measuring.limits`.
    shown: BTreeMap<String, Anchors>,
    /// Records by chapter, `chapter4`.
    records: BTreeMap<String, Record>,
}

impl Figures {
    /// Reads every anchor and every record below `folder`.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut figures = Self {
            folder: folder.to_owned(),
            ..Self::default()
        };
        figures.read_below(folder, &[]);
        figures
    }

    fn read_below(&mut self, folder: &Path, names: &[String]) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_string_lossy();
            let mut names = names.to_vec();
            if path.is_dir() {
                names.push(name(&file));
                self.read_below(&path, &names);
            } else if file == course::report::capture::RECORD {
                let capture = Capture::read(folder).unwrap();
                self.records.insert(names.join("."), capture.record);
            } else if let Some(stem) = file.strip_suffix(".md") {
                let stem = stem.strip_suffix("values").unwrap_or(stem);
                names.extend((!stem.is_empty()).then(|| name(stem.trim_end_matches('.'))));
                let anchors = anchors(&fs::read_to_string(&path).unwrap());
                if !anchors.is_empty() {
                    self.shown.insert(of_names(&names), anchors);
                }
            }
        }
    }

    /// The text of `chapter4.tls_effect` as the book shows it.
    pub(crate) fn text(&self, figure: &str) -> Option<&str> {
        let (file, anchor) = figure.rsplit_once('.')?;
        self.shown.get(file)?.get(anchor).map(String::as_str)
    }

    /// All of them as the variables of an expression.
    pub(crate) fn variables(&self) -> Value {
        let mut roots: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        for (file, anchors) in &self.shown {
            let anchors = anchors.iter();
            let values = anchors.map(|(name, text)| (name.clone(), value(text)));
            match file.split_once('.') {
                None => roots.entry(file.clone()).or_default().extend(values),
                Some((root, rest)) => {
                    let values: BTreeMap<String, Value> = values.collect();
                    let root = roots.entry(root.to_owned()).or_default();
                    root.insert(rest.to_owned(), Value::from(values));
                }
            }
        }
        let roots = roots.into_iter();
        let roots: BTreeMap<_, _> = roots.map(|(root, of)| (root, Value::from(of))).collect();
        Value::from(roots)
    }

    /// The median over the rounds that a table's cell is made from: of the chapter's table, or else of
    /// its claims, or else whatever else the scenario was loaded for. Seconds, bytes, shares or counts.
    pub(crate) fn median(
        &self,
        chapter: &str,
        scenario: &str,
        variant: &str,
        metric: &str,
    ) -> Result<f64, String> {
        const ORDER: [Purpose; 6] = [
            Purpose::Matrix,
            Purpose::Claim,
            Purpose::Law,
            Purpose::RootCause,
            Purpose::Baseline,
            Purpose::Equal,
        ];
        let record = self
            .records
            .get(chapter)
            .ok_or_else(|| format!("there is no record of `{chapter}`"))?;
        let of = |purpose| -> Vec<&Round> {
            let rounds = record.rounds_for(purpose);
            let own = |round: &&Round| round.scenario == scenario && round.variant == variant;
            rounds.filter(own).collect()
        };
        let rounds = ORDER.into_iter().map(of).find(|rounds| !rounds.is_empty());
        let rounds = rounds.ok_or_else(|| {
            format!("{chapter} has no round of `{variant}` in the scenario `{scenario}`")
        })?;
        if metric == "cpu_per_request" {
            return cpu_of(&rounds, variant)
                .ok_or_else(|| format!("{chapter} did not record the CPU time of `{variant}`"));
        }
        let in_ms = |key: &str| Quantity::from(key.to_owned());
        let (quantity, of_base) = match metric {
            "p50" => (in_ms("p50_ms"), 1e-3),
            "p99" => (in_ms("p99_ms"), 1e-3),
            "bystander_p99" => (in_ms("bystander_p99_ms"), 1e-3),
            other => (Quantity::from(other.to_owned()), 1.0),
        };
        let values: Option<Vec<f64>> = rounds.iter().map(|round| round.value(&quantity)).collect();
        let values = values.and_then(middle);
        values.map(|value| value * of_base).ok_or_else(|| {
            format!("not every round of `{variant}` in `{scenario}` of {chapter} has `{metric}`")
        })
    }

    /// A cell of a table: the only one in a row whose labels begin with `row`, below the first heading
    /// that begins with `column`.
    pub(crate) fn cell(&self, file: &str, row: &str, column: &str) -> Result<Value, String> {
        let path = self.folder.join(format!("{file}.md"));
        let text = fs::read_to_string(&path)
            .map_err(|_| format!("there is no table flamegraphs/{file}.md"))?;
        let mut found = Vec::new();
        let mut place = None;
        for line in text.lines() {
            let Some(cells) = line.trim().strip_prefix('|') else {
                place = None;
                continue;
            };
            let cells = cells.trim_end_matches('|').replace(['`', '*'], "");
            let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
            if let Some(place) = place {
                let is_row = cells.join(" | ").starts_with(row);
                found.extend(is_row.then(|| cells.get(place).copied().map(str::to_owned)));
            } else {
                let heading = |cell: &str| cell.starts_with(column);
                place = Some(
                    cells
                        .iter()
                        .position(|cell| heading(cell))
                        .unwrap_or(usize::MAX),
                );
            }
        }
        match found.as_slice() {
            [Some(cell)] => Ok(value(cell)),
            [None] => Err(format!("{file}.md has no column `{column}`")),
            [] => Err(format!("{file}.md has no row `{row}`")),
            many => Err(format!("{file}.md has {} rows `{row}`", many.len())),
        }
    }
}

/// Returns the name of an anchor, a file or a folder as an expression can write it.
fn name(text: &str) -> String {
    text.replace(['-', '.'], "_")
}

/// `chapter4`, `chapter7.regions_4x2`, `measuring.limits`.
fn of_names(names: &[String]) -> String {
    match names {
        [root, rest @ ..] if !rest.is_empty() => format!("{root}.{}", rest.join("_")),
        names => names.concat(),
    }
}

fn anchors(text: &str) -> Anchors {
    let parts = text.split("<!-- ANCHOR: ").skip(1);
    let parts = parts.filter_map(|part| {
        let (anchor, rest) = part.split_once(" -->")?;
        let (value, _) = rest.split_once("<!-- ANCHOR_END")?;
        Some((name(anchor), value.trim().to_owned()))
    });
    parts.collect()
}

/// A displayed figure: a number where it is one, else its text.
fn value(text: &str) -> Value {
    number(text).map_or_else(|| Value::from(text), Value::from)
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
}
