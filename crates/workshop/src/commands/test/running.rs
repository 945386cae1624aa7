//! A program that a check runs: its whole family is gone when it is done with, whatever the reason.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use loadgen::interrupt::Interrupt;

use crate::exit::CliError;

/// No single command of a check takes so long unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(20 * 60);
/// How long a program may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A program that runs. Dropping it ends it and all that it started.
pub(super) struct Running {
    child: Child,
    name: String,
}

impl Running {
    /// Starts `command` without standard input, its standard error in `log` and its standard output
    /// in `out`.
    pub(super) fn start(command: &mut Command, out: File, log: File) -> Result<Self, CliError> {
        let name = Path::new(command.get_program()).file_name();
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(out).stderr(log);
        // A group of its own, so that it can be ended with all that it started.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        match command.spawn() {
            Ok(child) => Ok(Self { child, name }),
            Err(error) => Err(CliError::bad(format!("{name} cannot be run: {error}"))),
        }
    }

    /// Waits for its end, or ends it when the reader or the clock says so.
    pub(super) fn wait(&mut self, interrupt: &Interrupt) -> Result<ExitStatus, CliError> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => {
                    return Err(CliError::bad(format!("{} was lost: {error}", self.name)));
                }
            }
            if interrupt.is_set() {
                self.end();
                return Err(CliError::interrupted());
            }
            if began.elapsed() > TIMEOUT {
                self.end();
                let minutes = TIMEOUT.as_secs() / 60;
                return Err(CliError::bad(format!(
                    "{} ran for over {minutes} minutes",
                    self.name
                )));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Asks first, as Ctrl-C would, so that it can tidy up.
    fn end(&mut self) {
        self.signal(false);
        let asked = Instant::now();
        while asked.elapsed() < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK_AGAIN);
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
