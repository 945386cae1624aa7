//! `--numa-nodes N` of `prove`, `check` and `capture`: the program `numa`, which runs a chapter in a machine with several
//! NUMA nodes, and is built when it is first wanted.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use children::Interrupt;
use course::measurement::claim::{EXERCISE, PROBLEM, SOLUTION};
use course::measurement::law::Law;

use crate::chapters::{Chapter, Workshop};
use crate::cli::{Capture, Format, Prove};
use crate::compile::{self, Build};
use crate::emulator::Emulator;
use crate::measured::inputs;
use crate::tools::Tools;
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files};

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
    /// Becomes `numa observe …`.
    fn run(&self, workshop: &Workshop) -> Result<Exit, CliError> {
        if let Some(folder) = &self.folder {
            files::writable(folder)?;
        }
        let nodes = self.nodes;
        let (cpus_a_node, option) = match self.cpus {
            None => (2, String::new()),
            Some(cpus) if cpus.is_multiple_of(nodes) => (cpus / nodes, format!(" --cpus {cpus}")),
            Some(cpus) => {
                return Err(CliError::usage(format!(
                    "--cpus {cpus} does not fit: take a multiple of the {nodes} regions, at most 240, since all get the same number",
                )));
            }
        };
        if !matches!(self.chapter.file()?.law, Law::Locality { .. }) {
            return Err(CliError::usage(format!(
                "chapter {} is not about NUMA nodes: leave out --numa-nodes",
                self.chapter.number
            )));
        }
        let emulator = Emulator::find(&Tools::of(workshop)).map_err(CliError::bad)?;
        let interrupt = ctrl_c::watch();
        let (service, guest) = Build {
            workshop,
            chapter: &self.chapter,
            interrupt: &interrupt,
        }
        .for_a_machine()?;
        let fix = self.variants.last().copied().unwrap_or(SOLUTION);
        let inputs = inputs(workshop, &self.chapter, fix)?;
        let mut numa = program(workshop, &interrupt)?;
        numa.arg("observe")
            .args(["--nodes", &nodes.to_string()])
            .args(["--cpus-a-node", &cpus_a_node.to_string()])
            .arg("--qemu")
            .arg(emulator.qemu)
            .args(["--qemu-version", &emulator.qemu_version])
            .arg("--kernel")
            .arg(emulator.kernel)
            .arg("--guest")
            .arg(guest)
            .arg("--service")
            .arg(service)
            .args(["--chapter", &self.chapter.number.to_string()])
            .arg("--command")
            .arg(format!(
                "cargo workshop {} --numa-nodes {nodes}{option}",
                self.call
            ))
            .arg("--repository")
            .arg(workshop.root())
            .args(["--inputs", &inputs]);
        if let Some(folder) = &self.folder {
            numa.arg("--into").arg(folder);
        }
        if self.format == Format::Json {
            numa.args(["--format", "json"]);
        }
        numa.arg("--").args(&self.variants);
        Err(compile::hand_over(numa))
    }
}

/// The program `numa`, without arguments.
fn program(workshop: &Workshop, interrupt: &Interrupt) -> Result<Command, CliError> {
    let program = compile::other_program(workshop, "numa", interrupt)?;
    Ok(Command::new(program))
}

/// Folder of a capture's records of several nodes.
const FOLDER: &str = "regions";

/// Derives tables and figures of a capture's records again; `verify` compares instead.
pub(crate) fn derive(workshop: &Workshop, captures: &Path, verify: bool) -> Result<(), CliError> {
    let folder = captures.join(FOLDER);
    if !folder.is_dir() {
        // Most chapters have none.
        return Ok(());
    }
    // Ctrl-C ends this command at once, as long as nobody watches for it.
    let mut numa = program(workshop, &Interrupt::new())?;
    numa.arg("derive").arg(folder).stdin(Stdio::null());
    if verify {
        numa.arg("--verify");
    }
    let ended = numa
        .output()
        .map_err(CliError::because("numa cannot be run"))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(CliError::bad(said.trim().trim_start_matches("error: ")))
}
