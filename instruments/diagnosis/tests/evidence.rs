//! Recorded evidence of services with known faults, and without, is judged again: exactly, without load and without attempts.
//!
//! `tests/evidence/README.md` says how each was judged. `UPDATE_EXPECT=1 cargo test -p duel-diagnosis --test evidence` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use diagnosis::{Evidence, Finding, Level, Report};
use flate2::read::GzDecoder;
use serde::Deserialize;

/// Findings at the head of a report among which the fault has to be.
const FIRST: usize = 3;

/// Outcomes of first looks at services that the rules had not seen. Whoever takes some adds a row.
const FIRST_LOOKS: &str = "\
| first looks | with a fault | named | in part | nothing | misled | without | accused |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| 870aadb7 | 14 | 7 | 4 | 1 | 2 | 14 | 3 |
| 5a778d5f, of requests | 10 | 7 | 2 | 1 | 0 | 10 | 1 |
| 5a778d5f, of other tasks | 10 | 2 | 6 | 2 | 0 | 10 | 0 |
| 0bd557a5, of requests | 4 | 2 | 1 | 0 | 1 | 4 | 1 |
| 0bd557a5, of other tasks | 6 | 3 | 2 | 1 | 0 | 6 | 1 |
| ea40a36d, of requests | 2 | 0 | 2 | 0 | 0 | 2 | 0 |
| ea40a36d, of other tasks | 4 | 1 | 2 | 1 | 0 | 4 | 1 |
";

/// CPUs kept busy by programs other than the service from which a machine counts as busy.
const BUSY: f64 = 1.0;

/// Most words of a whole answer, as the median of all.
const MOST_WORDS: usize = 90;

/// A service with a fault, and the finding that has to name it.
struct Case {
    program: String,
    load: String,
    kind: String,
    says: String,
}

/// How a report answers for a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The kind and the place of the fault are among the first findings.
    Named,
    /// Its kind or its place is.
    InPart,
    /// No fault is found.
    Nothing,
    /// The first finding is another fault.
    Misled,
    /// A service without the fault is said to have none.
    Clear,
    /// A service without the fault is said to have one.
    Accused,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "named",
            Self::InPart => "in part",
            Self::Nothing => "nothing",
            Self::Misled => "misled",
            Self::Clear => "clear",
            Self::Accused => "accused",
        })
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Returns the cases of the field's table.
fn cases() -> Vec<Case> {
    let table = fs::read_to_string(folder().join("field/cases.md")).expect("a table");
    let mut cases = Vec::new();
    for row in table.lines().filter(|row| row.starts_with("| `")) {
        let cells: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let [program, load, kind, says] = cells[..] else {
            panic!("four cells: {row}");
        };
        cases.push(Case {
            program: program.to_owned(),
            load: load.to_owned(),
            kind: kind.to_owned(),
            says: says.to_owned(),
        });
    }
    cases
}

/// Where and of what evidence was recorded.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Recorded {
    machine: String,
    load: String,
    commit: String,
}

#[derive(Deserialize)]
struct Mark {
    #[serde(default)]
    recorded: Recorded,
}

/// Reads recorded evidence, such as `nagle.faulty-1.json.gz`, with its mark.
fn read(file: &Path) -> (Evidence, Recorded) {
    let mut text = String::new();
    let packed = File::open(file).expect("a file");
    GzDecoder::new(packed)
        .read_to_string(&mut text)
        .expect("packed text");
    let mark: Mark = serde_json::from_str(&text).expect("JSON");
    let evidence = Evidence::from_file(&text);
    let evidence = evidence.unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    (evidence, mark.recorded)
}

/// Returns the findings of a report in the order in which it prints them.
fn told(report: &Report) -> Vec<&Finding> {
    let faults = report.findings.iter();
    faults.chain(&report.bounds).chain(&report.waits).collect()
}

impl Case {
    fn outcome(&self, report: &Report, is_fixed: bool) -> Outcome {
        if is_fixed {
            let mut findings = report.findings.iter();
            if findings.any(|finding| finding.level == Level::Fault) {
                return Outcome::Accused;
            }
            return Outcome::Clear;
        }
        let mut best = match report.findings.first() {
            Some(_) => Outcome::Misled,
            None => Outcome::Nothing,
        };
        for finding in told(report).into_iter().take(FIRST) {
            let is_kind = finding.kind == self.kind;
            let is_place = finding.says.contains(&self.says);
            best = best.min(match (is_kind, is_place) {
                (true, true) => Outcome::Named,
                (false, false) => continue,
                _ => Outcome::InPart,
            });
        }
        best
    }
}

/// Recordings of one program, each with whether the fault was fixed.
fn recorded(program: &str) -> Vec<(bool, PathBuf)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder().join("evidence")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(what) = name.strip_suffix(".json.gz") else {
            continue;
        };
        let Some((of, version)) = what.split_once('.') else {
            panic!("{name}: PROGRAM.VERSION.json.gz");
        };
        if of == program {
            files.push((version.starts_with("fixed"), path.clone()));
        }
    }
    files.sort();
    files
}

/// Recordings by their outcomes, and the first findings of those with each.
#[derive(Default)]
struct Tally(BTreeMap<Outcome, Vec<&'static str>>);

impl Tally {
    fn add(&mut self, outcome: Outcome, first: &'static str) {
        self.0.entry(outcome).or_default().push(first);
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.0.get(&outcome).map_or(0, Vec::len)
    }

    /// Returns the cells of a row of the first table.
    fn cells(&self) -> String {
        let faulty = [
            Outcome::Named,
            Outcome::InPart,
            Outcome::Nothing,
            Outcome::Misled,
        ];
        let faulty = faulty.map(|outcome| self.count(outcome));
        let [named, in_part, nothing, misled] = faulty;
        let accused = self.count(Outcome::Accused);
        format!(
            "{} | {named} | {in_part} | {nothing} | {misled} | {} | {accused}",
            faulty.iter().sum::<usize>(),
            self.count(Outcome::Clear) + accused,
        )
    }
}

/// The cell of a service, such as `named 2 of 3, misled 1 of 3 (first: lock)`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.0.values().map(Vec::len).sum();
        if all == 0 {
            return f.write_str("not recorded");
        }
        for (number, (outcome, firsts)) in self.0.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{outcome} {} of {all}", firsts.len())?;
            if !matches!(outcome, Outcome::Named | Outcome::Clear) {
                let firsts = firsts.iter().copied().collect::<BTreeSet<_>>();
                write!(f, " (first: {})", Vec::from_iter(firsts).join(", "))?;
            }
        }
        Ok(())
    }
}

#[test]
fn recorded_evidence_is_judged_as_the_page_says() {
    // A published package has the test without its megabytes of evidence. Without the test, cargo would warn.
    if !folder().join("evidence").is_dir() {
        return;
    }
    let began = Instant::now();
    let mut rows = Vec::new();
    let mut all = Tally::default();
    let mut quiet = Tally::default();
    let mut busy = Tally::default();
    let mut words = Vec::new();
    let mut recordings: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases() {
        let mut faulty = Tally::default();
        let mut fixed = Tally::default();
        for (is_fixed, file) in recorded(&case.program) {
            let (evidence, recorded) = read(&file);
            let mark = if recorded.commit.is_empty() {
                "older, without a commit".to_owned()
            } else {
                // Under another load it says nothing of this row.
                assert_eq!(recorded.load, case.load, "{}", file.display());
                format!("{}, at {}", recorded.machine, recorded.commit)
            };
            *recordings.entry(mark).or_default() += 1;
            let report = Report::new(&evidence);
            let outcome = case.outcome(&report, is_fixed);
            words.push(report.to_string().split_whitespace().count());
            let first = told(&report).first().map_or("none", |finding| finding.kind);
            let version = if is_fixed { &mut fixed } else { &mut faulty };
            version.add(outcome, first);
            all.add(outcome, first);
            match evidence.cpus_of_others {
                Some(cpus) if cpus < BUSY => quiet.add(outcome, first),
                Some(_) => busy.add(outcome, first),
                None => {}
            }
        }
        rows.push(format!(
            "| `{}` | {} | {faulty} | {fixed} |\n",
            case.program, case.kind
        ));
    }
    let count: usize = recordings.values().sum();
    let seconds = began.elapsed().as_secs_f64();
    // Not `println!`: cargo shows its output for failed tests only.
    let _ = writeln!(
        std::io::stderr(),
        "{count} recordings judged in {seconds:.1} s"
    );
    let mut marks = Vec::new();
    for (mark, count) in recordings {
        marks.push(format!("- {mark}: {count} of them\n"));
    }
    let page = format!(
        "# How recorded evidence is judged\n\n\
         Each file is what one `look` saw of a service of [`../field`](../field/README.md) under the load of its row in\n\
         [`cases.md`](../field/cases.md): a run of its own, of a few seconds. The test `evidence` judges all of them on every push, and\n\
         compares the outcome with this page. *Named*: kind and place of the fault are among the first three findings. *In part*:\n\
         one of the two is. *Misled*: the first finding is another fault. *Accused*: a fault is found in a service that has none.\n\n\
         | recordings | with a fault | named | in part | nothing | misled | without | accused |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n\
         | all | {} |\n\
         | on a quiet machine | {} |\n\
         | on a busy machine | {} |\n\n\
         A machine is *busy* if programs other than the service kept {BUSY} CPU or more busy during the look: the load, and compilers\n\
         in most of these runs. A recording is kept whatever its outcome is.\n\n\
         These services were known when the rules were mended, so this is no error rate for yours. That of first looks is: others\n\
         wrote services after public reports, and what must be said of each, before the first look at it. *Named* is stricter there:\n\
         line and cause are among the first three findings, with advice that mends it. The rules were mended after each row\n\
         but those of ea40a36d.\n\n\
         {FIRST_LOOKS}\n\
         Each file names its machine and its load, and all but the older ones the commit of the instruments:\n\n{}\n\
         | service | fault | with the fault | without it |\n\
         | --- | --- | --- | --- |\n{}",
        all.cells(),
        quiet.cells(),
        busy.cells(),
        marks.concat(),
        rows.concat(),
    );
    let file = folder().join("evidence/README.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&file, &page).expect("written");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let mut differ = Vec::new();
    for (is, was) in page.lines().zip(expected.lines()) {
        if is != was {
            differ.push(format!("is  {is}\nwas {was}"));
        }
    }
    assert!(
        page == expected,
        "tests/evidence/README.md differs; if that is meant, UPDATE_EXPECT=1 writes it\n{}",
        differ.join("\n")
    );
    words.sort_unstable();
    let median = words.get(words.len() / 2).copied().unwrap_or_default();
    assert!(
        median <= MOST_WORDS,
        "half of the answers have {median} words or more"
    );
}
