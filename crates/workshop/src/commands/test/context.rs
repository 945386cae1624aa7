//! What every check works with: the workshop, its tools, and a log of its own.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use loadgen::interrupt::Interrupt;

use super::check::{Failure, failed};
use super::excerpt;
use super::running::{InBackground, Running};
use crate::chapters::{Chapter, Workshop};
use crate::exit::{CliError, Exit};
use crate::tools::Tools;

/// One run of `cargo workshop test`.
pub(super) struct Context<'a> {
    pub(super) workshop: &'a Workshop,
    pub(super) tools: Tools,
    pub(super) interrupt: &'a Interrupt,
    /// Whether checks were asked for by name: then the long ones take their time.
    pub(super) by_name: bool,
    /// The chapters that checks go through.
    pub(super) chapters: Vec<Chapter>,
    /// In CI a tool that is missing is a failure, not a reason to skip.
    pub(super) in_ci: bool,
    /// `.workshop/test`: logs, and what checks write.
    pub(super) folder: PathBuf,
    program: PathBuf,
    log: Mutex<PathBuf>,
    _lock: File,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        workshop: &'a Workshop,
        interrupt: &'a Interrupt,
        by_name: bool,
        chapters: Vec<Chapter>,
    ) -> Result<Self, CliError> {
        let folder = workshop.state().join("test");
        let refused = |error: std::io::Error| {
            CliError::bad(format!(
                "logs cannot be written to {} ({error}): free some space or mend the folder's \
                 permissions",
                folder.display()
            ))
        };
        std::fs::create_dir_all(&folder).map_err(refused)?;
        let lock = File::create(folder.join("lock")).map_err(refused)?;
        if lock.try_lock().is_err() {
            return Err(CliError::bad(
                "another `cargo workshop test` is at work here: wait for it, as two would measure \
                 each other",
            ));
        }
        // Found now: a check may replace the file by building it again.
        let program = std::env::current_exe()
            .map_err(|e| CliError::bad(format!("this program cannot find itself: {e}")))?;
        Ok(Self {
            workshop,
            tools: Tools::of(workshop),
            interrupt,
            by_name,
            chapters,
            in_ci: std::env::var("CI").is_ok_and(|ci| !matches!(ci.as_str(), "" | "0" | "false")),
            log: Mutex::new(folder.join("log")),
            folder,
            program,
            _lock: lock,
        })
    }

    /// A check begins: what it runs is logged under its name.
    pub(super) fn begin(&self, name: &str) -> Result<(), Failure> {
        let log = self.folder.join(format!("{name}.log"));
        File::create(&log).map_err(|e| cannot_write(&log, &e))?;
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log;
        Ok(())
    }

    /// What the check's commands have printed so far.
    pub(super) fn log_text(&self) -> String {
        let bytes = std::fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What is to be seen of it after a failure, and where the rest is.
    pub(super) fn shown_log(&self) -> String {
        let file = self.workshop.shown(&self.log_file());
        format!("Of {file}: {}", excerpt::of(&self.log_text()))
    }

    /// A line for the log.
    pub(super) fn note(&self, line: &str) -> Result<(), Failure> {
        let mut log = self.open_log()?;
        writeln!(log, "{line}").map_err(|e| cannot_write(&self.log_file(), &e))
    }

    fn log_file(&self) -> PathBuf {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.clone()
    }

    fn open_log(&self) -> Result<File, Failure> {
        let log = self.log_file();
        let file = File::options().append(true).create(true).open(&log);
        file.map_err(|e| cannot_write(&log, &e))
    }

    /// `cargo ARGUMENTS` in the workshop.
    pub(super) fn cargo(&self, arguments: &[&str]) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        self.command(cargo, arguments)
    }

    /// `cargo workshop ARGUMENTS`, this very program.
    pub(super) fn own(&self, arguments: &[&str]) -> Command {
        self.command(&self.program, arguments)
    }

    /// Any program in the workshop's folder.
    pub(super) fn command(&self, program: impl Into<OsString>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program.into());
        command.args(arguments).current_dir(self.workshop.root());
        command
    }

    /// Runs a command, its words in the log, and fails unless it succeeds.
    pub(super) fn run(&self, command: &mut Command) -> Result<(), Failure> {
        match self.code(command)? {
            Some(0) => Ok(()),
            code => failed(format!("{} {}", shown(command), ended(code))),
        }
    }

    /// Runs a command, its words in the log; its exit code, `None` after a signal.
    pub(super) fn code(&self, command: &mut Command) -> Result<Option<i32>, Failure> {
        let log = self.open_log()?;
        self.wait(command, log)
    }

    /// Runs a command; its exit code and what it printed to standard output,
    /// which goes to the log too.
    pub(super) fn output(&self, command: &mut Command) -> Result<(Option<i32>, String), Failure> {
        let (code, text) = self.unlogged_output(command)?;
        self.note(&text)?;
        Ok((code, text))
    }

    fn unlogged_output(&self, command: &mut Command) -> Result<(Option<i32>, String), Failure> {
        let refused = |error| cannot_write(&self.folder, &error);
        // Gone when it is dropped.
        let file = tempfile::NamedTempFile::new_in(&self.folder).map_err(refused)?;
        let out = file.reopen().map_err(refused)?;
        let code = self.wait(command, out)?;
        let bytes = std::fs::read(file.path()).map_err(refused)?;
        Ok((code, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// As [`Context::output`], and fails unless it succeeds.
    pub(super) fn output_of(&self, command: &mut Command) -> Result<String, Failure> {
        match self.output(command)? {
            (Some(0), text) => Ok(text),
            (code, _) => failed(format!("{} {}", shown(command), ended(code))),
        }
    }

    /// Starts a command that runs beside others.
    pub(super) fn start(&self, command: &mut Command) -> Result<Running, Failure> {
        self.note(&format!("$ {} &", shown(command)))?;
        Running::start(command, self.open_log()?, self.open_log()?)
    }

    fn wait(&self, command: &mut Command, out: File) -> Result<Option<i32>, Failure> {
        self.note(&format!("$ {}", shown(command)))?;
        let began = Instant::now();
        let mut running = Running::start(command, out, self.open_log()?)?;
        let code = running.wait(self.interrupt)?.code();
        let seconds = began.elapsed().as_secs_f64();
        self.note(&format!("# {} after {seconds:.1} s", ended(code)))?;
        Ok(code)
    }

    /// `cargo workshop setup`, meanwhile.
    pub(super) fn setup(&self) -> Result<InBackground, CliError> {
        let log = self.folder.join("tools.log");
        let begun = File::create(&log)
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|e| CliError::bad(format!("{} cannot be written: {e}", log.display())));
        let (out, err) = begun?;
        match Running::start(&mut self.own(&["setup"]), out, err) {
            Ok(running) => Ok(InBackground { running, log }),
            Err(Failure::Because(sentence)) => Err(CliError::bad(sentence)),
            Err(Failure::Interrupted) => Err(CliError::new(Exit::Interrupted, "interrupted")),
        }
    }

    /// The server of a chapter, built.
    pub(super) fn server(&self, package: &str) -> Result<PathBuf, Failure> {
        let mut build = self.cargo(&["build", "--message-format=json-render-diagnostics"]);
        build.args(["--package", package, "--bin", package]);
        // Hundreds of lines that nobody reads; the compiler's words are not among them.
        let (_, messages) = self.unlogged_output(&mut build)?;
        let file = messages.lines().find_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let file = message["executable"].as_str()?;
            (message["target"]["name"] == package).then(|| PathBuf::from(file))
        });
        file.map_or_else(|| failed(format!("{package} does not compile")), Ok)
    }
}

fn cannot_write(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Because(format!("{} cannot be written: {error}", file.display()))
}

/// A command as one would type it, without its folder.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or_default().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}

fn ended(code: Option<i32>) -> String {
    code.map_or("was ended by a signal".to_owned(), |code| {
        format!("ended with code {code}")
    })
}
