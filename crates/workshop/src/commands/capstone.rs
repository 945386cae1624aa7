//! `cargo workshop capstone`: the ticket shop, its scores, hints and database.

mod against;
mod bench;
mod board;
mod history;
mod others;
mod reset;
mod team;
pub(super) mod way;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use engine::child::Starting;
use engine::load::interrupt::Interrupt;
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files, json};

use self::history::History;
use crate::chapters::Workshop;
use crate::cli::{Capstone, Format};
use crate::compile::{self, CompileError};
use crate::hints;

/// What the shop's database may take to be made.
const INIT: Duration = Duration::from_secs(120);
/// Bytes of what a program prints that are kept.
const KEPT: usize = 1 << 20;

pub(crate) fn run(command: Option<Capstone>, format: Format) -> Result<Exit, CliError> {
    let mut shop = Shop {
        workshop: Workshop::find()?,
        database: None,
    };
    match command {
        None => status(&shop, format),
        Some(Capstone::Bench {
            seconds,
            no_tests,
            against,
            team,
            results,
            database,
        }) => {
            shop.database = database;
            let time = Duration::from_secs(seconds);
            if let Some(revision) = against {
                return against::run(&shop, time, no_tests, &revision, format);
            }
            let folder = results.as_deref().unwrap_or(shop.workshop.root());
            let team = team.map(|name| team::File::of(&name, folder));
            bench::run(&shop, time, no_tests, team.transpose()?.as_ref(), format)
        }
        Some(Capstone::Board { folder, once }) => board::run(&folder, once),
        Some(Capstone::Way(asked)) => way::run(&shop, &asked),
        Some(Capstone::Hint) => hint(&shop),
        Some(Capstone::InitDb { database }) => {
            shop.database = database;
            let interrupt = ctrl_c::watch();
            let mut init = shop.here(&interrupt)?.command();
            init.current_dir(shop.folder()).arg("init-db");
            print!("{}", ended_well(&init, INIT, &interrupt)?);
            Ok(Exit::Good)
        }
        Some(Capstone::Reset { to }) => reset::run(&shop, to.as_deref()),
    }
}

/// Where the shop is, and what is kept of it.
struct Shop {
    workshop: Workshop,
    /// The address of a `PostgreSQL` server; without one its database is a file.
    database: Option<String>,
}

impl Shop {
    fn folder(&self) -> PathBuf {
        self.workshop.root().join("capstone")
    }

    fn state(&self) -> PathBuf {
        self.workshop.state().join("capstone")
    }

    fn history(&self) -> Result<History, CliError> {
        History::read(&self.state().join("history.json"))
    }

    fn cargo(&self) -> Command {
        let mut cargo = Command::new(compile::program());
        cargo.current_dir(self.folder());
        cargo
    }

    /// What cargo is told so that it builds for this database.
    fn features(&self) -> &'static [&'static str] {
        match self.database {
            Some(_) => &["--features", "postgres"],
            None => &[],
        }
    }

    /// One of its programs.
    fn built(&self, program: &str, interrupt: &Interrupt) -> Result<PathBuf, CliError> {
        self.built_by(self.cargo(), program, interrupt)
    }

    /// One of its programs, as `cargo run` builds it.
    fn built_by(
        &self,
        mut cargo: Command,
        program: &str,
        interrupt: &Interrupt,
    ) -> Result<PathBuf, CliError> {
        cargo.args(["build", "--message-format=json", "--bin", program]);
        cargo.args(self.features());
        compile::built(cargo, "the shop", program, interrupt).map_err(|error| match error {
            CompileError::Refused(errors) => {
                CliError::bad(format!("the shop does not compile\n\n{errors}"))
            }
            CompileError::Cargo(error) => error,
        })
    }

    /// The shop as it lies there.
    fn here(&self, interrupt: &Interrupt) -> Result<Built, CliError> {
        Ok(Built {
            program: self.built("capstone", interrupt)?,
            folder: self.folder(),
            database: self.database.clone(),
        })
    }
}

/// A shop that can be started.
struct Built {
    program: PathBuf,
    /// Where it is started.
    folder: PathBuf,
    /// Where its tables are, if not in a file.
    database: Option<String>,
}

impl Built {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let database = self.database.iter();
        command.args(database.flat_map(|url| ["--database", url]));
        command
    }
}

/// What a program printed that ended with 0.
fn ended_well(
    command: &Command,
    within: Duration,
    interrupt: &Interrupt,
) -> Result<String, CliError> {
    let name = command.get_program().display();
    let output = Starting::of(command)
        .output(interrupt, within, KEPT)
        .map_err(CliError::of_child(format!("{name} cannot be run")))?;
    let Some(output) = output else {
        return Err(CliError::bad(format!(
            "{name} did not end within {} s",
            within.as_secs()
        )));
    };
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(CliError::bad(format!(
        "{name} ended with {}:\n{printed}{errors}",
        output.status
    )))
}

fn status(shop: &Shop, format: Format) -> Result<Exit, CliError> {
    let history = shop.history()?;
    match format {
        Format::Json => json::print(&history)?,
        Format::Human => print!("{history}"),
    }
    Ok(Exit::Good)
}

fn hint(shop: &Shop) -> Result<Exit, CliError> {
    let hints = hints::of(&shop.folder().join("hints.md"))?;
    let file = shop.state().join("hints");
    let seen = std::fs::read_to_string(&file).unwrap_or_default();
    let seen: usize = seen.trim().parse().unwrap_or_default();
    let Some(hint) = hints.get(seen) else {
        println!(
            "These were all {} hints; they are in capstone/hints.md.",
            hints.len()
        );
        return Ok(Exit::Good);
    };
    println!(
        "Hint {} of {}: {}\n\n{}",
        hint.number,
        hints.len(),
        hint.title,
        hint.text
    );
    files::replace(&file, hint.number.to_string())?;
    Ok(Exit::Good)
}
