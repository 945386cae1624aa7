//! A team's file `NAME.json` of all its scores, which the board shows.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use course::report::board::{Run, Team};
use terminal::exit::CliError;
use terminal::files;

use crate::arguments::team_name;

/// What the files of teams end in.
pub(super) const JSON: &str = "json";

/// A team that benches.
pub(super) struct File(PathBuf);

impl File {
    /// Where nothing is lost that was there before, and something can be added.
    pub(super) fn of(name: &str, folder: &Path) -> Result<Self, CliError> {
        files::writable(folder)?;
        let file = folder.join(name).with_extension(JSON);
        read(&file)?;
        Ok(Self(file))
    }

    /// Keeps one more; another machine of the team may have added some meanwhile.
    pub(super) fn add(&self, run: Run) -> Result<(), CliError> {
        let mut team = read(&self.0)?;
        team.runs.push(run);
        let text = serde_json::to_string_pretty(&team.runs).map_err(CliError::bad)?;
        files::replace(&self.0, text + "\n")?;
        eprintln!("kept in {}", self.0.display());
        Ok(())
    }
}

/// What a team's file holds; one that is not there yet holds nothing.
pub(super) fn read(file: &Path) -> Result<Team, CliError> {
    let broken = |why: &dyn std::fmt::Display| {
        CliError::usage(format!("{} holds no scores: {why}", file.display()))
    };
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = team_name(&stem).map_err(|why| broken(&why))?;
    let runs: Vec<Run> = match std::fs::read(file) {
        Ok(text) => serde_json::from_slice(&text).map_err(|why| broken(&why))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(broken(&error)),
    };
    // Clocks of a room may differ, but no picture goes that far.
    let tomorrow = now() + 24 * 60 * 60;
    let is_score = |run: &Run| run.time < tomorrow && (0.0..1e9).contains(&run.score);
    if !runs.iter().all(is_score) {
        return Err(broken(&"one has a time or a size that cannot be"));
    }
    Ok(Team { name, runs })
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
