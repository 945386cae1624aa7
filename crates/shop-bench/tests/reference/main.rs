//! Checks of `capstone/reference`: the way up, its pictures, and each fault alone.

#![cfg(target_os = "linux")]

mod faults;
mod way;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the folder that was cloned.
fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().to_owned()
}

/// The commits of the way, which `git apply` takes as one patch.
const WAY: &str = "capstone/reference/way/commits.mbox";
/// Folder with a patch for each fault.
const FAULTS: &str = "capstone/reference/faults";

/// Returns the files of a folder that have this ending, in their order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for file in fs::read_dir(root().join(folder)).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|kind| kind == ending) {
            files.push(file);
        }
    }
    files.sort();
    files
}

/// Prepares a program in the workshop's folder, with these words.
fn command(program: impl AsRef<Path>, words: &str) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(words.split_whitespace()).current_dir(root());
    children::forget_package(&mut command);
    command
}

/// Runs a command to its end, which must be a good one, and returns what it printed.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}
