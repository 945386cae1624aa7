//! Refusal to record on a machine that other programs use.

use std::thread;
use std::time::{Duration, Instant};

use children::Interrupt;
use course::bench::neighbours::Neighbours;
use statistics::figures;
use terminal::exit::CliError;

/// Largest share of the machine's CPU time that other programs may use. An idle desktop uses about 2 %.
const OTHERS: f64 = 0.1;
/// Interval over which it is measured.
const WATCHED: Duration = Duration::from_secs(3);
/// Interval at which it checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// The machine that records are made on.
pub(super) struct Machine {
    /// `true` if a busy one will do.
    pub(super) may_be_busy: bool,
    pub(super) interrupt: Interrupt,
}

impl Machine {
    /// Checks, before a record, that nothing else uses the CPUs. A system that does not report who uses them passes.
    ///
    /// # Errors
    ///
    /// Fails if other programs use more than [`OTHERS`], or on Ctrl-C.
    pub(super) fn is_quiet(&self) -> Result<(), CliError> {
        if self.may_be_busy {
            return Ok(());
        }
        let (neighbours, began) = (Neighbours::watch(), Instant::now());
        while began.elapsed() < WATCHED {
            if self.interrupt.is_set() {
                return Err(CliError::interrupted());
            }
            thread::sleep(LOOK);
        }
        self.was_quiet(&neighbours)
    }

    /// Checks that nothing else has used the CPUs since `neighbours` were first watched. A virtual machine's host counts as
    /// another program.
    ///
    /// # Errors
    ///
    /// Fails if other programs used more than [`OTHERS`].
    pub(super) fn was_quiet(&self, neighbours: &Neighbours) -> Result<(), CliError> {
        match neighbours.share() {
            Some(share) if share > OTHERS && !self.may_be_busy => Err(CliError::invalid(format!(
                "not recorded: other programs used {} of the machine's CPU time, where at most {} is allowed. Close them and \
                 run this again; the records are as they were",
                figures::percent(share),
                figures::percent(OTHERS),
            ))),
            _ => Ok(()),
        }
    }
}
