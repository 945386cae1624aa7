//! `--numa-nodes N` of `prove`, `check` and `capture`: a chapter in a machine with several NUMA
//! nodes.

use std::path::{Path, PathBuf};

use analysis::regions::judge;
use analysis::verdict::{Verdict, VerdictKind};
use measurement::claim::{EXERCISE, PROBLEM, SOLUTION};
use measurement::regions::{Record, Seen};
use report::regions::{table, values};
use serde::Serialize;

use crate::chapters::{Chapter, Workshop};
use crate::cli::{Capture, Format, Prove};
use crate::exit::{CliError, Exit};
use crate::regions::{self, Shape};
use crate::{ctrl_c, files, json};

/// What `--format json` prints.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    chapter: u32,
    verdict: VerdictKind,
    reason: &'a str,
    root_cause: RootCause,
    record: &'a Record,
}

/// The same count as the key of the same name in `prove` without `--numa-nodes`.
#[derive(Debug, Serialize)]
struct RootCause {
    name: &'static str,
    problem: Option<f64>,
    solution: Option<f64>,
}

/// `prove N --numa-nodes R`: problem against solution, or another variant.
pub(crate) fn prove(options: &Prove, regions: u32) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = one(&workshop, &options.chapters)?;
    let folder = options.report.clone();
    let folder = folder
        .unwrap_or_else(|| workshop.state().join("reports"))
        .join(chapter.package());
    files::writable(&folder)?;
    let variant = &*options.variant;
    let both = [PROBLEM, variant];
    let name = match variant {
        SOLUTION => format!("prove {}", chapter.number),
        other => format!("prove {} --variant {other}", chapter.number),
    };
    let record = observe(&workshop, &chapter, &name, &both, regions, options.cpus)?;
    write(&folder, &record)?;
    show(chapter.number, &record, variant, options.output.format)
}

/// `check N --numa-nodes R`: the learner's edit, by the solution's limits.
pub(crate) fn check(number: u32, regions: u32, format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(number)?;
    let both = [PROBLEM, EXERCISE];
    let record = observe(
        &workshop,
        &chapter,
        &format!("check {number}"),
        &both,
        regions,
        None,
    )?;
    show(number, &record, EXERCISE, format)
}

/// `capture N --numa-nodes R`: what the book shows, each step of the way to the solution.
pub(crate) fn capture(options: &Capture, regions: u32) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = one(&workshop, &options.chapters)?;
    let folder = workshop.captures(chapter.number).join(FOLDER);
    files::writable(&folder)?;
    let file = chapter.file()?;
    let steps: Vec<&str> = file.steps.iter().map(|step| &*step.variant).collect();
    let record = observe(
        &workshop,
        &chapter,
        &format!("capture {}", chapter.number),
        &steps,
        regions,
        options.cpus,
    )?;
    write(&folder, &record)?;
    show(chapter.number, &record, SOLUTION, Format::Human)
}

fn observe(
    workshop: &Workshop,
    chapter: &Chapter,
    call: &str,
    variants: &[&str],
    regions: u32,
    cpus: Option<u32>,
) -> Result<Record, CliError> {
    let shape = Shape::new(regions, cpus)?;
    let more = cpus.map_or(String::new(), |count| format!(" --cpus {count}"));
    let command = format!("cargo workshop {call} --numa-nodes {regions}{more}");
    regions::observe(
        workshop,
        chapter,
        variants,
        shape,
        command,
        &ctrl_c::watch(),
    )
}

/// Where a capture has its records of several regions.
const FOLDER: &str = "regions";

/// Derives tables and figures of a capture's records again; `verify` compares instead.
pub(crate) fn derive(captures: &Path, verify: bool) -> Result<(), CliError> {
    let Ok(entries) = std::fs::read_dir(captures.join(FOLDER)) else {
        // Most chapters have none.
        return Ok(());
    };
    for file in entries.flatten().map(|entry| entry.path()) {
        if file.extension().is_some_and(|kind| kind == "json") {
            let text = std::fs::read_to_string(&file).map_err(CliError::because(format!(
                "{} cannot be read",
                file.display()
            )))?;
            let record: Record = serde_json::from_str(&text).map_err(CliError::because(
                format!("{} is no record", file.display()),
            ))?;
            for (derived, text) in derived(&file, &record) {
                super::capture::derived(&derived, &text, verify)?;
            }
        }
    }
    Ok(())
}

/// The files beside a record that follow from it.
fn derived(file: &Path, record: &Record) -> [(PathBuf, String); 2] {
    [
        (file.with_extension("md"), table(record)),
        (file.with_extension("values.md"), values(record)),
    ]
}

/// Record, table and figures, by the size of the machine: `4x2.json` has two CPUs in each of
/// four regions.
fn write(folder: &Path, record: &Record) -> Result<(), CliError> {
    let each = record.cpus / record.regions.max(1);
    let file = folder.join(format!("{}x{each}.json", record.regions));
    let text = serde_json::to_string_pretty(record)
        .map_err(CliError::because("the record cannot be written"))?;
    files::replace(&file, text + "\n")?;
    for (derived, text) in derived(&file, record) {
        files::replace(&derived, text)?;
    }
    Ok(())
}

fn one(workshop: &Workshop, chapters: &[u32]) -> Result<Chapter, CliError> {
    match chapters {
        [one] => workshop.chapter(*one),
        _ => Err(CliError::usage(
            "--numa-nodes wants one chapter: cargo workshop prove 7 --numa-nodes 4",
        )),
    }
}

fn show(chapter: u32, record: &Record, fix: &str, format: Format) -> Result<Exit, CliError> {
    let Verdict { kind, reason } = judge(record, &[fix]);
    let text = format!("\n{}\n{kind}: {reason}", table(record).trim_end());
    match format {
        Format::Human => println!("{text}"),
        Format::Json => {
            eprintln!("{text}");
            let local = |variant| record.seen(variant).and_then(Seen::local_loads);
            json::print(&Shown {
                chapter,
                verdict: kind,
                reason: &reason,
                root_cause: RootCause {
                    name: "share of loads from the reader's own region",
                    problem: local(PROBLEM),
                    solution: local(fix),
                },
                record,
            })?;
        }
    }
    Ok(match kind {
        VerdictKind::Proved => Exit::Good,
        VerdictKind::Invalid => Exit::Invalid,
        _ => Exit::Bad,
    })
}
