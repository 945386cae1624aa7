//! Tests of the repository as it is: the book and its figures, the captures, and the commands' output for the
//! real chapters.
//!
//! A test that is ignored says what it needs. `.ci/run` installs all of that and runs every test, except those
//! called `weekly` or `every_edit`. Tests that measure or compile take turns: see [`turn`].

mod book;
#[cfg(unix)]
mod capstone;
mod circles;
mod conditions;
mod drawings;
mod edits;
mod features;
#[cfg(target_os = "linux")]
mod field;
mod figures;
mod instruments;
#[cfg(unix)]
mod own_service;
mod pages;
mod parts;
mod records;
#[path = "../commands/results.rs"]
mod results;
#[cfg(unix)]
mod running;
mod steps;
#[cfg(target_os = "linux")]
mod stops;
#[cfg(unix)]
mod systems;
mod verdicts;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// The folder that was cloned.
fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().to_owned()
}

/// Number and folder of each chapter.
fn chapters() -> Vec<(u32, PathBuf)> {
    let folders = fs::read_dir(root().join("chapters")).unwrap();
    let chapter = |folder: PathBuf| {
        let name = folder.file_name()?.to_str()?;
        let number = name.split('-').next()?.parse().ok()?;
        Some((number, folder))
    };
    let mut chapters: Vec<_> = folders
        .filter_map(|entry| chapter(entry.unwrap().path()))
        .collect();
    chapters.sort();
    chapters
}

/// While a test holds this, no other one measures or compiles beside it.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program in the workshop's folder, with these words.
fn command(program: impl AsRef<Path>, words: &str) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(words.split_whitespace());
    command.current_dir(root()).stdin(Stdio::null());
    children::forget_package(&mut command);
    command
}

/// `cargo WORDS`.
fn cargo(words: &str) -> Command {
    command(env!("CARGO"), words)
}

/// A program that cargo has built without `--release`. Its own `run` would wait for others who compile at the same time.
fn built(within: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("debug").join(within)
}

/// `cargo workshop WORDS`.
fn workshop(words: &str) -> Command {
    command(env!("CARGO_BIN_EXE_cargo-workshop"), words)
}

/// Clones the repository, as it is committed, into a folder.
fn clone_into(folder: &Path) -> PathBuf {
    let copy = folder.join("workshop");
    succeed(command("git", "clone --quiet .").arg(&copy));
    copy
}

/// A program that `cargo workshop setup` installs below `.tools`.
#[track_caller]
fn tool(within: &str, remedy: &str) -> PathBuf {
    let program = root().join(".tools").join(within);
    assert!(program.is_file(), "{within} is missing: {remedy}");
    program
}

/// Runs a command, asserts that it succeeds, and returns its output.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let (output, all) = run(command);
    assert!(output.status.success(), "{command:?}: {all}");
    all
}

/// Runs a command to its end. The second value is the text of both its outputs together.
fn run(command: &mut Command) -> (Output, String) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let all = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let all = all.concat();
    (output, all)
}

/// Runs a command with `--format json` and returns its answer; null if it ended without one.
fn json(command: &mut Command) -> Value {
    let (output, all) = run(command.args(["--format", "json"]));
    let said = serde_json::from_slice(&output.stdout);
    said.unwrap_or_else(|_| {
        tell(&format!("{command:?}: {all}"));
        Value::Null
    })
}

/// Prints a line even if the test passes, for findings that fail no test.
fn tell(line: &str) {
    // Not `eprintln!`: cargo shows its output for failed tests only.
    let _ = writeln!(std::io::stderr(), "told: {line}");
}
