//! `--numa-nodes N` of `prove`, `check` and `capture`: a chapter in a machine with several NUMA
//! nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use course::analysis::verdict::VerdictKind;
use course::bench::provenance;
use course::measurement::claim::{EXERCISE, PROBLEM, SOLUTION};
use course::measurement::law::Law;
use engine::verdict::Verdict;
use numa::record::{Record, Variant};
use numa::verdict::judge;
use numa::{Parts, Programs, Shape, table, values};

use crate::chapters::{CAPTURES, Chapter, Workshop};
use crate::cli::{Capture, Format, Prove};
use crate::compile::Build;
use crate::exit;
use crate::tools::Tools;
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files, json};

/// Variants to run, and where the record of them goes.
struct Plan<'a> {
    chapter: Chapter,
    /// The command that does it, up to its options about the machine.
    call: String,
    nodes: u32,
    cpus: Option<u32>,
    /// The problem first, the fix last.
    variants: Vec<&'a str>,
    /// File of the record, if it is written.
    folder: Option<PathBuf>,
    format: Format,
}

/// `prove N --numa-nodes M`: problem against solution, or another variant.
pub(crate) fn prove(options: &Prove, nodes: u32) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = one(&workshop, &options.chapters)?;
    let reports = options.report.clone();
    let reports = reports.unwrap_or_else(|| workshop.state().join("reports"));
    let variant = match &*options.variant {
        SOLUTION => String::new(),
        other => format!(" --variant {other}"),
    };
    Plan {
        call: format!("prove {}{variant}", chapter.number),
        nodes,
        cpus: options.cpus,
        variants: vec![PROBLEM, &options.variant],
        folder: Some(reports.join(chapter.package())),
        format: options.output.format,
        chapter,
    }
    .run(&workshop)
}

/// `check N --numa-nodes M`: the learner's edit, by the solution's limits.
pub(crate) fn check(number: u32, nodes: u32, format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    Plan {
        chapter: workshop.chapter(number)?,
        call: format!("check {number}"),
        nodes,
        cpus: None,
        variants: vec![PROBLEM, EXERCISE],
        folder: None,
        format,
    }
    .run(&workshop)
}

/// `capture N --numa-nodes M`: what the book shows, each step of the way to the solution.
pub(crate) fn capture(options: &Capture, nodes: u32) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = one(&workshop, &options.chapters)?;
    let steps = chapter.file()?.steps;
    Plan {
        call: format!("capture {}", chapter.number),
        nodes,
        cpus: options.cpus,
        variants: steps.iter().map(|step| &*step.variant).collect(),
        folder: Some(workshop.captures(chapter.number).join(FOLDER)),
        format: Format::Human,
        chapter,
    }
    .run(&workshop)
}

fn one(workshop: &Workshop, chapters: &[u32]) -> Result<Chapter, CliError> {
    match chapters {
        [one] => workshop.chapter(*one),
        _ => Err(CliError::usage(
            "--numa-nodes takes one chapter: cargo workshop prove 7 --numa-nodes 4",
        )),
    }
}

impl Plan<'_> {
    fn run(&self, workshop: &Workshop) -> Result<Exit, CliError> {
        if let Some(folder) = &self.folder {
            files::writable(folder)?;
        }
        let record = self.observe(workshop)?;
        if let Some(folder) = &self.folder {
            write(folder, &record)?;
        }
        self.show(&record)
    }

    fn observe(&self, workshop: &Workshop) -> Result<Record, CliError> {
        let (nodes, variants) = (self.nodes, &*self.variants);
        let option = self.cpus.map(|cpus| format!(" --cpus {cpus}"));
        let option = option.unwrap_or_default();
        let shape = Shape::new(nodes, self.cpus).ok_or_else(|| {
            CliError::usage(format!(
                "{} does not fit: take a multiple of the {nodes} regions, at most 240, since all get the same number",
                option.trim()
            ))
        })?;
        if !matches!(self.chapter.file()?.law, Law::Locality { .. }) {
            return Err(CliError::usage(format!(
                "chapter {} is not about NUMA nodes: leave out --numa-nodes",
                self.chapter.number
            )));
        }
        let parts = Parts::find(&Tools::of(workshop).kernel()).map_err(CliError::bad)?;
        let started = provenance::now();
        let interrupt = ctrl_c::watch();
        let (service, guest) = Build {
            workshop,
            chapter: &self.chapter,
            interrupt: &interrupt,
        }
        .for_a_machine()?;
        let programs = Programs {
            guest: &guest,
            service: &service,
        };
        eprintln!(
            "{} machines with {} CPUs in {nodes} NUMA nodes, under QEMU {}",
            variants.len(),
            shape.cpus,
            parts.qemu_version
        );
        let folder = files::temporary()?;
        let folder = folder.path();
        let observed = numa::observe(&parts, shape, programs, variants, folder, &interrupt)
            .map_err(exit::of_numa)?;
        let mut tools = BTreeMap::from([
            ("QEMU".to_owned(), parts.qemu_version),
            ("Linux".to_owned(), observed.kernel),
        ]);
        let rustc = provenance::rustc_version(workshop.root());
        tools.extend(rustc.map(|version| ("rustc".to_owned(), version)));
        Ok(Record {
            command: format!("cargo workshop {} --numa-nodes {nodes}{option}", self.call),
            started,
            commit: provenance::checked_out(workshop.root(), CAPTURES),
            tools,
            nodes,
            cpus: shape.cpus,
            load: numa::LOAD,
            variants: observed.variants,
        })
    }

    fn show(&self, record: &Record) -> Result<Exit, CliError> {
        let fix = self.variants.last().copied().unwrap_or(SOLUTION);
        let Verdict { kind, reason, .. } = judge(record, fix);
        let text = format!("\n{}\n{kind}: {reason}", table(record).trim_end());
        match self.format {
            Format::Human => println!("{text}"),
            Format::Json => {
                eprintln!("{text}");
                let local = |name| record.variant(name).and_then(Variant::local_loads);
                json::print(&serde_json::json!({
                    "chapter": self.chapter.number,
                    "verdict": kind,
                    "reason": reason,
                    // As `prove` without `--numa-nodes` has it.
                    "root_cause": {
                        "name": "share of loads from the reader's own region",
                        "problem": local(PROBLEM),
                        "solution": local(fix),
                    },
                    "record": record,
                }))?;
            }
        }
        Ok(match kind {
            VerdictKind::Proved => Exit::Good,
            VerdictKind::Invalid => Exit::Invalid,
            _ => Exit::Bad,
        })
    }
}

/// Folder of a capture's records of several nodes.
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
                super::derived::put(&derived, &text, verify)?;
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
/// four nodes.
fn write(folder: &Path, record: &Record) -> Result<(), CliError> {
    let each = record.cpus / record.nodes.max(1);
    let file = folder.join(format!("{}x{each}.json", record.nodes));
    let text = serde_json::to_string_pretty(record)
        .map_err(CliError::because("the record cannot be written"))?;
    files::replace(&file, text + "\n")?;
    for (derived, text) in derived(&file, record) {
        files::replace(&derived, text)?;
    }
    Ok(())
}
