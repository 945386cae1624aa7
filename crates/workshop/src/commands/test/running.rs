//! Programs that a check runs: their words in a file, their whole family gone
//! when they are done with, whatever the reason.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use loadgen::interrupt::Interrupt;

use super::check::{Failure, failed};

/// No single command of a check takes so long unless it hangs.
const TIME_OUT: Duration = Duration::from_secs(20 * 60);
/// How long a program may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A program that runs. Dropping it ends it and all that it started.
pub(super) struct Running {
    child: Child,
    name: String,
}

/// A program that runs while checks do.
pub(super) struct InBackground {
    pub(super) running: Running,
    pub(super) log: std::path::PathBuf,
}

impl InBackground {
    /// Waits for its end; its words are the failure.
    pub(super) fn finish(mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        if self.running.wait(interrupt)?.success() {
            return Ok(());
        }
        failed(std::fs::read_to_string(&self.log).unwrap_or_default())
    }
}

impl Running {
    /// Starts `command` without standard input, its standard error in `log`
    /// and its standard output in `out`.
    pub(super) fn start(command: &mut Command, out: File, log: File) -> Result<Self, Failure> {
        let name = Path::new(command.get_program())
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        command.stdin(Stdio::null()).stdout(out).stderr(log);
        // A group of its own, so that it can be ended with all that it started.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        match command.spawn() {
            Ok(child) => Ok(Self { child, name }),
            Err(error) => failed(format!("{name} cannot be run: {error}")),
        }
    }

    /// Waits for its end, or ends it when the reader or the clock says so.
    pub(super) fn wait(&mut self, interrupt: &Interrupt) -> Result<ExitStatus, Failure> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => return failed(format!("{} was lost: {error}", self.name)),
            }
            if interrupt.is_set() {
                self.end();
                return Err(Failure::Interrupted);
            }
            if began.elapsed() > TIME_OUT {
                self.end();
                let minutes = TIME_OUT.as_secs() / 60;
                return failed(format!(
                    "{} did not end within {minutes} minutes",
                    self.name
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks first, as Ctrl-C would, so that it can tidy up.
    fn end(&mut self) {
        self.signal(false);
        let asked = Instant::now();
        while asked.elapsed() < GRACE {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Also when the program itself has ended: what it started may have not.
        self.signal(true);
        let _ = self.child.wait();
    }

    #[cfg(unix)]
    fn signal(&mut self, now: bool) {
        use rustix::process::{Pid, Signal, kill_process_group};

        let signal = if now { Signal::KILL } else { Signal::INT };
        // A child's number is no other's until it has been waited for and its group is empty.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
    }

    #[cfg(not(unix))]
    fn signal(&mut self, now: bool) {
        if now {
            let _ = self.child.kill();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn start(script: &str, out: &Path) -> Running {
        let out = File::create(out).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        Running::start(&mut shell, out.try_clone().unwrap(), out).unwrap()
    }

    #[test]
    fn an_interrupt_ends_a_program_and_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        // A child that does not listen to Ctrl-C, as background jobs of a shell do not.
        let mut running = start("(sleep 60 & echo $!; wait) & wait", &out);
        let number = loop {
            let said = std::fs::read_to_string(&out).unwrap();
            if let Some(line) = said.strip_suffix('\n') {
                break line.to_owned();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let interrupt = Interrupt::new();
        interrupt.set();
        assert!(matches!(
            running.wait(&interrupt),
            Err(Failure::Interrupted)
        ));
        let began = Instant::now();
        while is_alive(&number) {
            assert!(began.elapsed() < Duration::from_secs(5), "{number} lives");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_alive(number: &str) -> bool {
        // A process that nobody has waited for yet still has its number, but is a zombie.
        let said = Command::new("ps")
            .args(["-o", "stat=", "-p", number])
            .output()
            .unwrap();
        let state = String::from_utf8(said.stdout).unwrap();
        !state.trim().is_empty() && !state.trim().starts_with('Z')
    }
}
