//! Single threads of the calling process, each stopped for some microseconds.

use std::fs;

use super::sampler::why_refused;
use super::stops::{self, Call, Outcome, Stop};
use super::unwinder::Unwinder;
use crate::Process;

/// Stops one thread of the calling process at a time.
pub struct Stopper {
    stop: Stop,
    has_to_name: bool,
}

/// A thread at the moment at which it was stopped.
#[derive(Debug)]
pub struct Stopped {
    /// True if it computed, and did not wait in a call.
    pub is_running: bool,
    /// Addresses from the innermost outwards.
    pub callers: Vec<usize>,
    stack_pointer: u64,
}

impl Stopper {
    /// Makes one, with room for a stack.
    pub fn new() -> Self {
        Self {
            stop: Stop::new(),
            has_to_name: stops::has_to_name(Process::this()),
        }
    }

    /// Stops thread `tid`, which is not the calling one, and returns what it did. Returns `None` if it has ended, or is in
    /// a call that must not be interrupted.
    ///
    /// # Errors
    ///
    /// Returns the reason why the system does not let threads be stopped.
    pub fn stop(&mut self, tid: i32, unwinder: &mut Unwinder) -> Result<Option<Stopped>, String> {
        self.stop.aim(Process::this(), tid);
        let one = std::slice::from_mut(&mut self.stop);
        stops::take(Process::this(), one, &unwinder.stacks, self.has_to_name).map_err(|error| {
            format!("no process can be started that would stop threads ({error})")
        })?;
        let stop = &self.stop;
        match stop.outcome {
            Outcome::Taken => {
                let callers = unwinder.callers(stop.registers(), |address| stop.word(address));
                Ok(Some(Stopped {
                    is_running: stop.call == Call::Running,
                    callers,
                    stack_pointer: stop.registers()[1],
                }))
            }
            Outcome::Refused(error) => Err(why_refused(Process::this(), error)),
            Outcome::NotTried => {
                Err("the process that stops threads was killed, as by a seccomp filter".to_owned())
            }
            Outcome::Spared | Outcome::Missed => Ok(None),
        }
    }

    /// Returns whether thread `tid` has too little room on its stack for a signal, or `None` if that is not known yet. A
    /// thread that sleeps is not stopped for it, nor is any if no part of memory looks like a small stack.
    ///
    /// # Errors
    ///
    /// As of [`stop`](Self::stop).
    pub fn has_little_room(
        &mut self,
        tid: i32,
        unwinder: &mut Unwinder,
    ) -> Result<Option<bool>, String> {
        let file = Process::this().path(&format!("task/{tid}/syscall"));
        if let Some(pointer) = stack_pointer_of(&fs::read_to_string(file).unwrap_or_default()) {
            return Ok(Some(unwinder.has_little_room(pointer)));
        }
        if !unwinder.has_small_stacks() {
            return Ok(Some(false));
        }
        let stopped = self.stop(tid, unwinder)?;
        Ok(stopped.map(|stopped| unwinder.has_little_room(stopped.stack_pointer)))
    }
}

impl Default for Stopper {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the stack pointer in the kernel's line on a thread that sleeps: its last word but one.
fn stack_pointer_of(line: &str) -> Option<u64> {
    let word = line.split_whitespace().rev().nth(1)?;
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_thread_has_its_stack_pointer_in_the_line_and_a_running_one_has_none() {
        let sleeps = "202 0x7f10 0x189 0x0 0x0 0x0 0xffffffff 0x7f1056 0x7f1031\n";
        assert_eq!(stack_pointer_of(sleeps), Some(0x7f_1056));
        assert_eq!(stack_pointer_of("-1 0x7ffc70 0x7f1031\n"), Some(0x7f_fc70));
        assert_eq!(stack_pointer_of("running\n"), None);
        assert_eq!(stack_pointer_of(""), None);
    }
}
