//! A program that is ended when it is done with, whatever the reason.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use loadgen::interrupt::Interrupt;

use crate::exit::CliError;

/// How long a program may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A program that runs. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Whether it is ended with all that it started.
    has_group: bool,
}

impl From<Child> for Running {
    fn from(child: Child) -> Self {
        Self {
            child,
            has_group: false,
        }
    }
}

impl Running {
    /// Starts `command` in a group of its own, so that it can be ended with all that it starts.
    pub(crate) fn with_family(command: &mut Command) -> std::io::Result<Self> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        Ok(Self {
            child: command.spawn()?,
            has_group: true,
        })
    }

    /// Waits for its end, or ends it when the reader or the clock says so; `None` is the clock.
    pub(crate) fn wait(
        &mut self,
        interrupt: &Interrupt,
        timeout: Duration,
    ) -> Result<Option<ExitStatus>, CliError> {
        let began = Instant::now();
        loop {
            let ended = self.child.try_wait();
            if let Some(status) = ended.map_err(CliError::because("a program was lost"))? {
                return Ok(Some(status));
            }
            if interrupt.is_set() || began.elapsed() > timeout {
                self.end();
                return if interrupt.is_set() {
                    Err(CliError::interrupted())
                } else {
                    Ok(None)
                };
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
        use rustix::process::{Pid, Signal, kill_process, kill_process_group};

        let signal = if now { Signal::KILL } else { Signal::INT };
        let Some(number) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else {
            return;
        };
        // A child's number is no other's until it has been waited for and its group is empty.
        if self.has_group {
            let _ = kill_process_group(number, signal);
        } else if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(number, signal);
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
