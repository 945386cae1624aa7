//! What every check works with: the workshop, its tools, and a log of its own.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bench::child::Starting;
use loadgen::interrupt::Interrupt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::judge::{Answer, Judged};
use crate::chapters::{Chapter, Workshop};
use crate::compile;
use crate::exit::CliError;
use crate::tools::Tools;

/// No single command of a check takes so long unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(20 * 60);

/// One run of `cargo workshop test`.
pub(super) struct Context<'a> {
    pub(super) workshop: &'a Workshop,
    pub(super) tools: Tools,
    interrupt: &'a Interrupt,
    /// The chapters that checks go through.
    pub(super) chapters: Vec<Chapter>,
    /// `.workshop/test`: logs, and what checks write.
    pub(super) folder: PathBuf,
    program: PathBuf,
    log: RefCell<PathBuf>,
    told: RefCell<Vec<String>>,
    _lock: File,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        workshop: &'a Workshop,
        interrupt: &'a Interrupt,
        chapters: Vec<Chapter>,
    ) -> Result<Self, CliError> {
        let folder = workshop.state().join("test");
        let lock = fs::create_dir_all(&folder).and_then(|()| File::create(folder.join("lock")));
        let lock = lock.map_err(|error| {
            CliError::bad(format!(
                "logs cannot be written to {} ({error}): free some space or mend the folder's \
                 permissions",
                folder.display()
            ))
        })?;
        if lock.try_lock().is_err() {
            return Err(CliError::bad(
                "another `cargo workshop test` is at work here: wait for it, as two would measure \
                 each other",
            ));
        }
        Ok(Self {
            workshop,
            tools: Tools::of(workshop),
            interrupt,
            chapters,
            // Found now: a check may replace the file by building it again.
            program: std::env::current_exe()
                .map_err(CliError::because("this program cannot find itself"))?,
            log: RefCell::new(folder.join("log")),
            told: RefCell::default(),
            folder,
            _lock: lock,
        })
    }

    /// Set by Ctrl-C.
    pub(super) fn interrupt(&self) -> &Interrupt {
        self.interrupt
    }

    /// A check begins: what it runs is logged under its name.
    pub(super) fn begin(&self, name: &str) -> Result<(), CliError> {
        let log = self.folder.join(format!("{name}.log"));
        File::create(&log).map_err(cannot_write(&log))?;
        self.log.replace(log);
        Ok(())
    }

    /// What the check's commands have printed so far.
    pub(super) fn log_text(&self) -> String {
        let bytes = fs::read(&*self.log.borrow()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What to show of it after a failure, and where the rest is.
    pub(super) fn excerpt(&self) -> String {
        let file = self.workshop.shown(&self.log.borrow());
        format!("Of {file}:\n{}", excerpt(&self.log_text()))
    }

    /// A line for the log.
    pub(super) fn note(&self, line: &str) -> Result<(), CliError> {
        let log = self.log.borrow();
        writeln!(self.open_log()?, "{line}").map_err(cannot_write(&log))
    }

    fn open_log(&self) -> Result<File, CliError> {
        let log = self.log.borrow();
        let file = File::options().append(true).create(true).open(&*log);
        file.map_err(cannot_write(&log))
    }

    /// Something that is no failure, for the check's line.
    pub(super) fn tell(&self, what: String) {
        self.told.borrow_mut().push(what);
    }

    pub(super) fn take_told(&self) -> Vec<String> {
        self.told.take()
    }

    /// Fails, tells, or does nothing, as an answer about `what` was judged.
    pub(super) fn settle(
        &self,
        what: &str,
        answer: &Answer,
        judged: Judged,
    ) -> Result<(), CliError> {
        let Answer { word, reason, .. } = answer;
        self.note(&format!("{what} is {word}: {reason}"))?;
        match judged {
            Judged::Fine => {}
            Judged::Told => self.tell(format!("{what} is {word}")),
            Judged::Fails => return Err(CliError::bad(format!("{what} is {word}: {reason}"))),
        }
        Ok(())
    }

    /// `cargo WORDS` in the workshop.
    pub(super) fn cargo(&self, words: &str) -> Command {
        self.command(compile::program(), words)
    }

    /// `cargo workshop WORDS`, this very program.
    pub(super) fn own(&self, words: &str) -> Command {
        self.command(&self.program, words)
    }

    /// Any program in the workshop's folder.
    pub(super) fn command(&self, program: impl AsRef<OsStr>, words: &str) -> Command {
        let mut command = Command::new(program);
        command.args(words.split_whitespace());
        command.current_dir(self.workshop.root());
        command
    }

    /// Runs a command, its words in the log, and fails unless it succeeds.
    pub(super) fn run(&self, command: &mut Command) -> Result<(), CliError> {
        match self.wait(command, self.open_log()?)? {
            Some(0) => Ok(()),
            code => Err(CliError::bad(format!("{} {}", shown(command), ended(code)))),
        }
    }

    /// Runs a command; its exit code, `None` after a signal, and what it printed to standard output,
    /// which goes to the log too.
    pub(super) fn output(&self, command: &mut Command) -> Result<(Option<i32>, String), CliError> {
        let file = self.folder.join("output");
        let out = File::create(&file).map_err(cannot_write(&file))?;
        let code = self.wait(command, out)?;
        let bytes = fs::read(&file).map_err(cannot_write(&file))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // JSON in one line, which `excerpt` leaves out.
        let value: Result<Value, _> = serde_json::from_str(&text);
        self.note(&value.map_or_else(|_| text.clone(), |value| value.to_string()))?;
        Ok((code, text))
    }

    /// Runs a command with `--format json`; its exit code and the value, null where a run could not be
    /// carried through.
    pub(super) fn json(&self, command: &mut Command) -> Result<(Option<i32>, Value), CliError> {
        const INVALID: i32 = 3;
        let (code, text) = self.output(command.args(["--format", "json"]))?;
        match serde_json::from_str(&text) {
            Ok(value) => Ok((code, value)),
            Err(_) if code == Some(INVALID) => Ok((code, Value::Null)),
            Err(_) => Err(CliError::bad(format!(
                "{} {}, no JSON",
                shown(command),
                ended(code)
            ))),
        }
    }

    fn wait(&self, command: &mut Command, out: File) -> Result<Option<i32>, CliError> {
        self.note(&format!("$ {}", shown(command)))?;
        let began = Instant::now();
        let mut running = Starting::of(command)
            .stdout(out)
            .stderr(self.open_log()?)
            .start()
            .map_err(CliError::because(format!(
                "{} cannot be run",
                shown(command)
            )))?;
        let waited = running.wait(self.interrupt, TIMEOUT);
        let Some(status) = waited.map_err(CliError::of_child("a program was lost"))? else {
            let minutes = TIMEOUT.as_secs() / 60;
            return Err(CliError::bad(format!(
                "{} ran for over {minutes} minutes",
                shown(command)
            )));
        };
        let code = status.code();
        let seconds = began.elapsed().as_secs_f64();
        self.note(&format!("# {} after {seconds:.1} s", ended(code)))?;
        Ok(code)
    }
}

/// Does `work` while another thread makes `noise`, which looks whether it is over.
pub(super) fn beside<T>(
    noise: impl FnOnce(&dyn Fn() -> bool) + Send,
    work: impl FnOnce() -> T,
) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| noise(&|| is_over.load(Ordering::Relaxed)));
        let worked = work();
        is_over.store(true, Ordering::Relaxed);
        worked
    })
}

/// Notes a result in a file that outlives this run, as a line of JSON.
pub(super) fn note<T: Serialize>(file: &Path, result: &T) -> Result<(), CliError> {
    let line =
        serde_json::to_string(result).map_err(CliError::because("a result cannot be written"))?;
    append(file, &line)
}

/// What earlier runs noted there.
pub(super) fn noted<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>, CliError> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let all = text.lines().map(serde_json::from_str::<T>);
    all.collect::<Result<_, _>>().map_err(|error| {
        CliError::bad(format!(
            "{} cannot be read ({error}): remove it to begin anew",
            file.display()
        ))
    })
}

/// The middle one of some values, the upper of two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Notes a line in a file that outlives this run.
pub(super) fn append(file: &Path, line: &str) -> Result<(), CliError> {
    let opened = File::options().append(true).create(true).open(file);
    opened
        .and_then(|mut opened| writeln!(opened, "{line}"))
        .map_err(cannot_write(file))
}

/// Does `work` while a CPU has no rest.
pub(super) fn beside_a_busy_core<T>(work: impl FnOnce() -> T) -> T {
    let busy = |is_over: &dyn Fn() -> bool| {
        while !is_over() {
            std::hint::spin_loop();
        }
    };
    beside(busy, work)
}

fn cannot_write(file: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    CliError::because(format!("{} cannot be written", file.display()))
}

/// A command as one would type it, without its folder.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name();
    let words = program.into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

fn ended(code: Option<i32>) -> String {
    let code = code.map(|code| format!("ended with code {code}"));
    code.unwrap_or("was ended by a signal".to_owned())
}

/// What the failed tests of a log said, wherever that stands; without such, the log's end.
fn excerpt(log: &str) -> String {
    const SHOWN: usize = 60;
    let mut within = false;
    let of_tests = log.lines().filter(|line| {
        within |= *line == "failures:";
        let shown = within;
        within &= !line.starts_with("test result:");
        shown
    });
    let mut lines: Vec<&str> = of_tests.take(SHOWN).collect();
    if lines.is_empty() {
        let for_people = |line: &&str| !line.starts_with(['{', '[']);
        lines = log.lines().filter(for_people).collect();
        lines.drain(..lines.len().saturating_sub(SHOWN));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_log_its_failed_tests_are_shown_or_its_end() {
        let log = "test a ... ok\nfailures:\n    a::closes\ntest result: FAILED.\ntest b ... ok\n";
        let failed = "failures:\n    a::closes\ntest result: FAILED.";
        assert_eq!(excerpt(log), failed);
        let many: Vec<String> = (1..=62).map(|n| n.to_string()).collect();
        assert!(excerpt(&many.join("\n")).starts_with("3\n"));
        assert_eq!(excerpt("a\n{\"kind\":\"failed\"}\nb"), "a\nb");
    }
}
