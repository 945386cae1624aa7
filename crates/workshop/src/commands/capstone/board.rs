//! `cargo workshop capstone board`: the curves of all teams whose files lie in a folder.

use std::path::Path;
use std::time::{Duration, Instant};

use course::report::board::{self, Team};
use engine::figures;
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files};

use super::team;

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn run(folder: &Path, once: bool) -> Result<Exit, CliError> {
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
        let page = board::page(&teams);
        if page != written {
            files::replace(&file, &page)?;
            written = page;
            let scores: usize = teams.iter().map(|team| team.runs.len()).sum();
            let [teams, scores] = [(teams.len(), "team"), (scores, "score")]
                .map(|(count, one)| figures::things(count as u64, one));
            println!("{}: {teams}, {scores}", file.display());
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

/// The teams of a folder by name, and why files of others are left out.
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
