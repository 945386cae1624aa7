//! `cargo workshop capstone board`: the curves of all teams whose files lie in a folder.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::board::{self, Team};
use crate::team;
use statistics::figures;
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files};

/// Time between two looks at the folder.
const LOOK: Duration = Duration::from_secs(1);

/// Draws the board of a folder, and again whenever a file changes.
///
/// # Errors
///
/// Returns an error if the folder cannot be read or written.
pub fn run(folder: &Path, once: bool, freeze_after: Option<u64>) -> Result<Exit, CliError> {
    let interrupt = ctrl_c::watch();
    files::writable(folder)?;
    let file = folder.join("index.html");
    let (mut written, mut skipped) = (String::new(), Vec::new());
    loop {
        let (teams, broken) = teams(folder)?;
        for why in broken.iter().filter(|why| !skipped.contains(*why)) {
            eprintln!("note: skipped, {why}");
        }
        skipped = broken;
        let page = board::page(&teams, freeze_after);
        if page != written {
            files::replace(&file, &page)?;
            written = page;
            let scores: usize = teams.iter().map(|team| team.runs.len()).sum();
            println!(
                "{}: {}, {}",
                file.display(),
                figures::things(teams.len() as u64, "team"),
                figures::things(scores as u64, "score")
            );
        }
        let began = Instant::now();
        while began.elapsed() < LOOK {
            if once {
                return Ok(Exit::Good);
            }
            if interrupt.is_set() {
                return Ok(Exit::Interrupted);
            }
            std::thread::sleep(LOOK / 20);
        }
    }
}

/// Reads the teams of a folder by name. Also returns the reasons why it leaves out some files.
fn teams(folder: &Path) -> Result<(Vec<Team>, Vec<String>), CliError> {
    let entries = std::fs::read_dir(folder).map_err(CliError::because(folder.display()))?;
    let mut all: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    all.retain(|file| file.extension().is_some_and(|end| end == team::JSON));
    all.sort_unstable();
    let (mut teams, mut broken) = (Vec::new(), Vec::new());
    for file in all {
        match team::read(&file) {
            Ok(team) => teams.push(team),
            Err(why) => broken.push(why.to_string()),
        }
    }
    Ok((teams, broken))
}
