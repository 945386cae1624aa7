//! The shop in `capstone/`: its place, its build, and its saved scores.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use children::{Interrupt, Starting, lines_of};
use serde::Deserialize;
use terminal::exit::CliError;

use crate::history::History;

/// Longest time in which the shop's database is made.
pub const INIT: Duration = Duration::from_secs(120);
/// Bytes of a program's output that are kept.
pub const KEPT: usize = 1 << 20;
/// Bytes of one of cargo's messages: a longer one is passed over.
const LONGEST_MESSAGE: usize = 1 << 20;

/// The workshop with its ticket shop.
#[derive(Debug)]
pub struct Shop {
    root: PathBuf,
    /// The address of a `PostgreSQL` server; without one the database is a file.
    pub database: Option<String>,
}

impl Shop {
    /// Finds the workshop above the current folder.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none.
    pub fn find() -> Result<Self, CliError> {
        let here = std::env::current_dir()
            .map_err(|why| CliError::usage(format!("the current folder cannot be read: {why}")))?;
        for folder in here.ancestors() {
            if folder.join("capstone/Cargo.toml").is_file() || folder.join("chapters").is_dir() {
                return Ok(Self::at(folder));
            }
        }
        Err(CliError::usage(format!(
            "{} is not inside the workshop: change to the folder that you cloned",
            here.display()
        )))
    }

    /// The shop of a workshop.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            database: None,
        }
    }

    /// The workshop's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The shop's folder.
    pub fn folder(&self) -> PathBuf {
        self.root.join("capstone")
    }

    /// The reader's own files of the whole workshop, which git ignores.
    pub fn state_of_workshop(&self) -> PathBuf {
        self.root.join(".workshop")
    }

    /// The reader's own files of the shop.
    pub fn state(&self) -> PathBuf {
        self.state_of_workshop().join("capstone")
    }

    /// A path as people type it: from the workshop's folder, with `/`.
    pub fn shown(&self, path: &Path) -> String {
        let within = path.strip_prefix(&self.root).unwrap_or(path);
        within.display().to_string().replace('\\', "/")
    }

    /// The scores so far.
    ///
    /// # Errors
    ///
    /// Returns an error if their file cannot be read.
    pub fn history(&self) -> Result<History, CliError> {
        History::read(&self.state().join("history.json"))
    }

    /// Cargo in the shop's folder.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new(cargo());
        cargo.current_dir(self.folder());
        cargo
    }

    /// Arguments of cargo for a shop with this database.
    pub fn features(&self) -> &'static [&'static str] {
        match self.database {
            Some(_) => &["--features", "postgres"],
            None => &[],
        }
    }

    /// Builds one of the shop's programs.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not compile, or if the reader interrupts.
    pub fn built(&self, program: &str, interrupt: &Interrupt) -> Result<PathBuf, CliError> {
        self.built_by(self.cargo(), program, interrupt)
    }

    /// Builds one of the shop's programs as `cargo run` does.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Shop::built`].
    pub fn built_by(
        &self,
        mut cargo: Command,
        program: &str,
        interrupt: &Interrupt,
    ) -> Result<PathBuf, CliError> {
        cargo.args(["build", "--message-format=json-render-diagnostics", "--bin"]);
        cargo.arg(program).args(self.features());
        build(&cargo, program, interrupt)
    }

    /// Builds the shop in its folder.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Shop::built`].
    pub fn here(&self, interrupt: &Interrupt) -> Result<Built, CliError> {
        Ok(Built {
            program: self.built("capstone", interrupt)?,
            folder: self.folder(),
            database: self.database.clone(),
        })
    }
}

/// A shop that can be started.
#[derive(Debug)]
pub struct Built {
    /// The shop's program.
    pub program: PathBuf,
    /// The folder that it is started in.
    pub folder: PathBuf,
    /// URL of its database, if that is not a file.
    pub database: Option<String>,
}

impl Built {
    /// The program, with its database.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(url) = &self.database {
            command.args(["--database", url]);
        }
        command
    }
}

/// The cargo that runs this program, or the one on the PATH.
pub fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// One of cargo's messages.
#[derive(Debug, Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

/// Runs `cargo build`, whose progress and errors go to the terminal, and finds the program that it made.
fn build(cargo: &Command, program: &str, interrupt: &Interrupt) -> Result<PathBuf, CliError> {
    let lost = || CliError::of_child("cargo cannot be run; install Rust from https://rustup.rs");
    let mut child = Starting::of(cargo)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .start()
        .map_err(lost())?;
    let mut executable = None;
    let lines = lines_of(child.stdout(), LONGEST_MESSAGE);
    loop {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};

        if interrupt.is_set() {
            return Err(CliError::interrupted());
        }
        match lines.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => {
                if let Ok(message) = serde_json::from_str::<Message>(&line)
                    && message.target.is_some_and(|target| target.name == program)
                {
                    executable = message.executable.or(executable);
                }
            }
            Err(Timeout) => {}
            Err(Disconnected) => break,
        }
    }
    let status = child.wait(interrupt, INIT).map_err(lost())?;
    match executable {
        Some(executable) if status.is_some_and(|status| status.success()) => Ok(executable),
        _ => Err(CliError::bad(
            "the shop does not compile; the compiler's errors are above",
        )),
    }
}

/// Runs a program to its end and returns what it printed.
///
/// # Errors
///
/// Returns an error if it cannot be run, takes too long, or ends with another code than 0.
pub fn ended_well(
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
