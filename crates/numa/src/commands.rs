//! The commands: observe a service, and derive a record's table and figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use course::analysis::verdict::VerdictKind;
use course::bench::provenance;
use course::measurement::claim::{PROBLEM, SOLUTION};
use course::measurement::record::Inputs;
use statistics::verdict::Verdict;
use terminal::exit::{CliError, Exit};
use terminal::output::Format;
use terminal::{ctrl_c, files, json};

use crate::cli::{Cli, Command, Observe};
use crate::machine::LOAD;
use crate::machines;
use crate::record::{Record, Variant};
use crate::verdict::judge;
use crate::{table, values};

/// Runs the command of a command line.
///
/// # Errors
///
/// Returns the sentence and the exit code with which the program ends.
pub fn run(cli: Cli) -> Result<Exit, CliError> {
    match cli.command {
        Command::Observe(options) => {
            let record = observe(&options)?;
            if let Some(folder) = &options.into {
                write(folder, &record)?;
            }
            show(&options, &record)
        }
        Command::Derive { folder, verify } => derive(&folder, verify),
    }
}

/// Runs the machines, and records what they counted.
fn observe(options: &Observe) -> Result<Record, CliError> {
    let started = provenance::now();
    let interrupt = ctrl_c::watch();
    let (nodes, cpus) = (options.shape.nodes, options.shape.cpus());
    let qemu = &options.emulator.qemu_version;
    eprintln!(
        "{} machines with {cpus} CPUs in {nodes} NUMA nodes, under QEMU {qemu}",
        options.variants.len(),
    );
    let folder = files::temporary()?;
    let observed = machines::observe(options, folder.path(), &interrupt)?;
    let mut tools = BTreeMap::from([
        ("QEMU".to_owned(), qemu.clone()),
        ("Linux".to_owned(), observed.kernel),
    ]);
    if let Some(version) = provenance::rustc_version(&options.repository) {
        tools.insert("rustc".to_owned(), version);
    }
    Ok(Record {
        command: options.command.clone(),
        started,
        inputs: Inputs::Digest(options.inputs.clone()),
        tools,
        nodes,
        cpus,
        load: LOAD,
        variants: observed.variants,
    })
}

/// Prints table and verdict.
fn show(options: &Observe, record: &Record) -> Result<Exit, CliError> {
    let fix = match options.variants.last() {
        Some(last) => last,
        None => SOLUTION,
    };
    let Verdict { kind, reason, .. } = judge(record, fix);
    let text = format!("\n{}\n{kind}: {reason}", table(record).trim_end());
    match options.output.format {
        Format::Human => println!("{text}"),
        Format::Json => {
            eprintln!("{text}");
            let local = |name| record.variant(name).and_then(Variant::local_loads);
            let result = serde_json::json!({
                "chapter": options.chapter,
                "verdict": kind,
                "reason": reason,
                // As `prove` without `--numa-nodes` has it.
                "root_cause": {
                    "name": "share of loads from the reader's own region",
                    "problem": local(PROBLEM),
                    "solution": local(fix),
                },
                "record": record,
            });
            json::print_as("numa_proof", &result)?;
        }
    }
    Ok(match kind {
        VerdictKind::Proved => Exit::Good,
        VerdictKind::Invalid => Exit::Invalid,
        _ => Exit::Bad,
    })
}

/// Writes record, table and figures, named by the size of the machine: `4x2.json` has two CPUs in each of four nodes.
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

/// Derives tables and figures of a folder's records again; `verify` compares instead.
fn derive(folder: &Path, verify: bool) -> Result<Exit, CliError> {
    let entries = std::fs::read_dir(folder).map_err(CliError::because(format!(
        "{} cannot be read",
        folder.display()
    )))?;
    for entry in entries.flatten() {
        let file = entry.path();
        if file.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&file).map_err(CliError::because(format!(
            "{} cannot be read",
            file.display()
        )))?;
        let record: Record = serde_json::from_str(&text).map_err(CliError::because(format!(
            "{} is no record",
            file.display()
        )))?;
        for (derived, text) in derived(&file, &record) {
            if !verify {
                files::replace(&derived, text)?;
            } else if std::fs::read_to_string(&derived).ok() != Some(text) {
                return Err(CliError::bad(format!(
                    "{} is not what its record gives; run `cargo workshop capture --derive`",
                    derived.display()
                )));
            }
        }
    }
    Ok(Exit::Good)
}

/// The files beside a record that follow from it.
fn derived(file: &Path, record: &Record) -> [(PathBuf, String); 2] {
    [
        (file.with_extension("md"), table(record)),
        (file.with_extension("values.md"), values(record)),
    ]
}
