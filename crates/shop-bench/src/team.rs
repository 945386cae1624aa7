//! A team's file `NAME.json` of all its scores, which the board shows.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use terminal::exit::CliError;
use terminal::files;

use crate::board::{Run, Team};
use crate::reading::read_if_there;

/// Ending of the files of teams.
pub const JSON: &str = "json";

/// Letters of a team's longest name.
const LONGEST: usize = 32;

/// Reads a team's name, which must be a valid file name on every system.
///
/// # Errors
///
/// Returns a sentence that says which names are valid.
pub fn name(text: &str) -> Result<String, String> {
    let mut letters = text.chars();
    let are_fit = letters.all(|letter| letter.is_alphanumeric() || "-_ ".contains(letter));
    let low = text.to_ascii_lowercase();
    let is_device = ["aux", "con", "nul", "prn"].contains(&&*low)
        || low.len() == 4 && (low.starts_with("com") || low.starts_with("lpt"));
    let is_name = (1..=LONGEST).contains(&text.chars().count())
        && are_fit
        && !text.starts_with(['-', ' '])
        && !text.ends_with(' ')
        && !is_device;
    if is_name {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "not a team's name: up to {LONGEST} letters, digits, blanks, - and _, such as red"
        ))
    }
}

/// The file of a team that benches.
#[derive(Debug)]
pub struct File(PathBuf);

impl File {
    /// Makes sure that a score can be added, and that what is there can be read.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be written, or if the file cannot be read.
    pub fn of(name: &str, folder: &Path) -> Result<Self, CliError> {
        files::writable(folder)?;
        let file = folder.join(name).with_extension(JSON);
        read(&file)?;
        Ok(Self(file))
    }

    /// Adds a score. It reads the file again first, for another machine of the team may have added some.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or written.
    pub fn add(&self, run: Run) -> Result<(), CliError> {
        let mut team = read(&self.0)?;
        team.runs.push(run);
        let text = serde_json::to_string_pretty(&team.runs).map_err(CliError::bad)?;
        files::replace(&self.0, text + "\n")?;
        eprintln!("kept in {}", self.0.display());
        Ok(())
    }
}

/// Reads the scores of a team's file; one that is not there yet holds none.
///
/// # Errors
///
/// Returns an error if the file cannot be read or holds something else.
pub fn read(file: &Path) -> Result<Team, CliError> {
    let broken = |why: &dyn std::fmt::Display| {
        CliError::usage(format!("{} holds no scores: {why}", file.display()))
    };
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = name(&stem).map_err(|why| broken(&why))?;
    let runs: Vec<Run> = match read_if_there(file).map_err(|why| broken(&why))? {
        Some(text) => serde_json::from_str(&text).map_err(|why| broken(&why))?,
        None => Vec::new(),
    };
    // Clocks of a room may differ, but no picture goes that far.
    let tomorrow = now() + 24 * 60 * 60;
    for run in &runs {
        if run.time >= tomorrow || !(0.0..1e9).contains(&run.score) {
            return Err(broken(&"one has a time or a size that cannot be"));
        }
    }
    Ok(Team { name, runs })
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn any_name_is_taken_that_can_be_a_file() {
        for good in [
            "red",
            "Grün & Co".trim_end_matches(" & Co"),
            "team 7",
            "赤い猫",
            "a-b_c",
        ] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            " red",
            "red ",
            "a/b",
            "..",
            "NUL",
            "com1",
            "-x",
            &"r".repeat(33),
        ] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
