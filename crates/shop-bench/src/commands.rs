//! One module a command.

pub mod against;
pub mod bench;
pub mod changes;
pub mod reset;

use children::Interrupt;

use serde_json::Value;
use std::fmt::Write as _;
use terminal::exit::{CliError, Exit};
use terminal::output::Format;
use terminal::{ctrl_c, files, json};

use crate::cli::{Cli, Command};
use crate::hints;
use crate::journeys::fingerprints;
use crate::shop::{INIT, Shop, ended_well};

/// Runs a command.
///
/// # Errors
///
/// Returns an error with its exit code if the command fails.
pub fn run(cli: Cli) -> Result<Exit, CliError> {
    let mut shop = Shop::find()?;
    match cli.command {
        None => status(&shop, cli.output.format),
        Some(Command::Bench(options)) => {
            shop.database.clone_from(&options.database);
            let format = options.format.unwrap_or(cli.output.format);
            let interrupt = ctrl_c::watch();
            let _alone = bench::alone(&shop)?;
            match &options.against {
                Some(revision) => against::run(&shop, &options, revision, format, &interrupt),
                None => bench::run(&shop, &options, format, &interrupt),
            }
        }
        Some(Command::Hint) => hint(&shop),
        Some(Command::InitDb { database }) => {
            shop.database = database;
            init_db(&shop, &ctrl_c::watch())
        }
        Some(Command::Reset { to }) => reset::run(&shop, to.as_deref()),
        Some(Command::Changes { commit }) => changes::run(&shop, commit.as_deref()),
        Some(Command::Fingerprints) => write_fingerprints(&shop, &ctrl_c::watch()),
    }
}

fn status(shop: &Shop, format: Format) -> Result<Exit, CliError> {
    let history = shop.history()?;
    match format {
        Format::Json => json::print_all("run", history.runs())?,
        Format::Human => print!("{history}"),
    }
    Ok(Exit::Good)
}

fn hint(shop: &Shop) -> Result<Exit, CliError> {
    let hints = hints::read(&shop.folder().join("hints.md"))?;
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
    let number = seen + 1;
    println!(
        "Hint {number} of {}: {}\n\n{}",
        hints.len(),
        hint.title,
        hint.text
    );
    files::replace(&file, number.to_string())?;
    Ok(Exit::Good)
}

fn init_db(shop: &Shop, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let mut init = shop.here(interrupt)?.command();
    init.current_dir(shop.folder()).arg("init-db");
    print!("{}", ended_well(&init, INIT, interrupt)?);
    Ok(Exit::Good)
}

/// Asks the shop that lies here, with a fresh database, for the answers that its users compare.
fn write_fingerprints(shop: &Shop, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let payments = shop.built("payments", interrupt)?;
    let running = bench::start(&shop.here(interrupt)?, &payments, interrupt)?;
    let mut lines = String::new();
    for path in fingerprints::sample() {
        let time_out = std::time::Duration::from_secs(30);
        let answer = engine::load::ask::get(running.server.borrow().address(), &path, time_out)
            .map_err(CliError::because(&path))?;
        let answer: Value = serde_json::from_slice(&answer).map_err(CliError::because(&path))?;
        let _ = writeln!(lines, "{} {path}", fingerprints::of(&answer));
    }
    print!("{lines}");
    Ok(Exit::Good)
}
