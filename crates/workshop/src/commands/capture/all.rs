//! `cargo workshop capture --all`: every record whose inputs have changed since it was made, one after the other.
//!
//! A chapter's record and a study's table say what they were measured with. So the folder of records is all that the
//! command needs to go on where an earlier one was stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use children::Starting;
use course::bench::neighbours::Neighbours;
use course::bench::provenance;
use course::measurement::claim::SOLUTION;
use course::measurement::record::{Inputs, Record};
use course::report::capture::RECORD;
use statistics::figures;
use terminal::exit::{CliError, Exit};
use terminal::files;

use super::{gallery, measuring, quiet::Machine};
use crate::chapters::{Chapter, Workshop};
use crate::compile;
use crate::measured::inputs;

/// The chapter whose page claims most of its record. It comes first.
const FIRST: u32 = 10;
/// Studies of published systems. They come next, then the other chapters and studies.
const PUBLISHED: [&str; 5] = [
    "blocking",
    "bodies",
    "shared_map",
    "round_trip",
    "accept_all",
];
/// How the line below a table names the study.
const STUDY: &str = "`cargo run -p studies --bin ";
/// Longest time for a study. They take half a minute to four minutes.
const STUDY_TIME_OUT: Duration = Duration::from_secs(1800);
/// Longest table, in bytes.
const LONGEST_TABLE: usize = 1 << 20;

/// A record that can be made again.
enum Piece {
    Chapter(Chapter),
    Study(Study),
}

/// A table of `flamegraphs/measuring/`, and the command that prints it.
struct Study {
    file: PathBuf,
    program: String,
    arguments: Vec<String>,
}

/// Records what is stale, and says how long each piece took.
///
/// # Errors
///
/// Stops on Ctrl-C. A piece that fails, or that a busy machine disturbs, is reported, and the next one begins.
pub(super) fn record(workshop: &Workshop, machine: &Machine) -> Result<Exit, CliError> {
    let (stale, all) = stale(workshop)?;
    let mut names = Vec::new();
    for piece in &stale {
        names.push(piece.name());
    }
    println!(
        "{} of {all} records were made with other inputs: {}",
        stale.len(),
        names.join(", ")
    );
    let mut exit = Exit::Good;
    for (number, piece) in stale.iter().enumerate() {
        let name = piece.name();
        println!("\n{} of {}: {name}", number + 1, stale.len());
        let (neighbours, began) = (Neighbours::watch(), Instant::now());
        match piece.record(workshop, machine) {
            Ok(()) => (),
            Err(error) if error.exit == Exit::Interrupted => {
                println!("run this again for this and the others");
                // Its sentence would say that nothing was kept.
                return Ok(Exit::Interrupted);
            }
            Err(error) => {
                eprintln!("{name}: {error}");
                // What could not be done weighs more than a busy machine.
                if exit != Exit::Bad {
                    exit = error.exit;
                }
                continue;
            }
        }
        let others = match neighbours.share() {
            Some(share) => format!(
                "; other programs used {} of the CPU time",
                figures::percent(share)
            ),
            None => String::new(),
        };
        println!(
            "{name}: recorded in {:.0} s{others}",
            began.elapsed().as_secs_f64()
        );
    }
    Ok(exit)
}

/// Lists the pieces whose inputs are not those of their record, in the order to record them, and counts all.
fn stale(workshop: &Workshop) -> Result<(Vec<Piece>, usize), CliError> {
    let mut pieces = Vec::new();
    for chapter in workshop.chapters()? {
        pieces.push(Piece::Chapter(chapter));
    }
    let folder = workshop.root().join("flamegraphs/measuring");
    let unread = || CliError::because(format!("{} cannot be read", folder.display()));
    for entry in fs::read_dir(&folder).map_err(unread())? {
        let file = entry.map_err(unread())?.path();
        if file.extension().is_some_and(|extension| extension == "md") {
            let table = fs::read_to_string(&file).map_err(unread())?;
            pieces.extend(Study::of(file, &table).map(Piece::Study));
        }
    }
    pieces.sort_by_key(Piece::turn);
    let all = pieces.len();
    let mut stale = Vec::new();
    for piece in pieces {
        if !piece.is_current(workshop)? {
            stale.push(piece);
        }
    }
    Ok((stale, all))
}

impl Piece {
    fn name(&self) -> String {
        match self {
            Self::Chapter(chapter) => format!("chapter {}", chapter.number),
            Self::Study(study) => study.name(),
        }
    }

    /// Place in the order: group, then number or name.
    fn turn(&self) -> (usize, u32, String) {
        match self {
            Self::Chapter(chapter) if chapter.number == FIRST => (0, 0, String::new()),
            Self::Chapter(chapter) => (PUBLISHED.len() + 1, chapter.number, String::new()),
            Self::Study(study) => {
                let at = PUBLISHED.iter().position(|name| *name == study.program);
                (at.map_or(usize::MAX, |at| at + 1), 0, study.name())
            }
        }
    }

    fn is_current(&self, workshop: &Workshop) -> Result<bool, CliError> {
        match self {
            Self::Chapter(chapter) => {
                let file = workshop.captures(chapter.number).join(RECORD);
                let Ok(json) = fs::read_to_string(&file) else {
                    return Ok(false);
                };
                let today = Inputs::Digest(inputs(workshop, chapter, SOLUTION)?);
                Ok(Record::parse(&json).is_ok_and(|record| record.inputs == today))
            }
            Self::Study(study) => {
                let today =
                    provenance::of_study(workshop.root(), &study.program).map_err(CliError::bad)?;
                let table = fs::read_to_string(&study.file).unwrap_or_default();
                Ok(table.contains(&Inputs::Digest(today).to_string()))
            }
        }
    }

    fn record(&self, workshop: &Workshop, machine: &Machine) -> Result<(), CliError> {
        match self {
            Self::Chapter(chapter) => super::record(workshop, chapter, None, machine)?,
            Self::Study(study) => study.record(workshop.root(), machine)?,
        }
        measuring::derive(workshop, false)?;
        gallery::derive(workshop, false)
    }
}

impl Study {
    /// Reads the command from the line below a table; `None` if it is no study's.
    fn of(file: PathBuf, table: &str) -> Option<Self> {
        let (_, after) = table.rsplit_once(STUDY)?;
        let (command, _) = after.split_once('`')?;
        let mut words = command.split_whitespace().map(str::to_owned);
        let program = words.next()?;
        Some(Self {
            file,
            program,
            arguments: words.skip_while(|word| word == "--").collect(),
        })
    }

    /// The table's name, without folder and extension.
    fn name(&self) -> String {
        let name = self.file.file_stem().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Runs the command, and puts what it prints in place of the old table.
    fn record(&self, root: &Path, machine: &Machine) -> Result<(), CliError> {
        self.run(root, machine, &["build"], &[])?;
        machine.is_quiet()?;
        let neighbours = Neighbours::watch();
        let table = self.run(root, machine, &["run", "--quiet"], &self.arguments)?;
        machine.was_quiet(&neighbours)?;
        if Self::of(self.file.clone(), &table).is_none() {
            return Err(CliError::bad("the study printed no line below its table"));
        }
        files::replace(&self.file, table)
    }

    /// Runs cargo on the study, and returns what it prints.
    fn run(
        &self,
        root: &Path,
        machine: &Machine,
        what: &[&str],
        arguments: &[String],
    ) -> Result<String, CliError> {
        let mut cargo = Command::new(compile::program());
        cargo
            .args(what)
            .args(["-p", "studies", "--bin", &self.program]);
        if !arguments.is_empty() {
            cargo.arg("--").args(arguments);
        }
        cargo.current_dir(root);
        let output = Starting::of(&cargo)
            .stderr(Stdio::inherit())
            .output(&machine.interrupt, STUDY_TIME_OUT, LONGEST_TABLE)
            .map_err(CliError::of_child("the study cannot be run"))?;
        match output {
            Some(output) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Some(output) => Err(CliError::bad(format!(
                "the study ended with {}",
                output.status
            ))),
            None => Err(CliError::bad(format!(
                "the study did not end within {} s",
                STUDY_TIME_OUT.as_secs()
            ))),
        }
    }
}
