//! Stops all threads of another process for as long as its memory is copied.
//!
//! The stop is `PTRACE_SEIZE` and `PTRACE_INTERRUPT` of every thread, by a thread of this process that does nothing else.
//! The kernel lets a traced thread go when its tracer ends, however that happens: this thread ends after each copy, so
//! that none stays stopped if a part fails, and a kill of this process has the same effect.
//!
//! The kernel does not restart some calls that a stop interrupts (signal(7)): a thread in `epoll_wait` would see EINTR,
//! which services take for an error. On x86-64, such a call is told to begin anew, as for a signal without a handler. On
//! aarch64 it fails with EINTR once, which event loops have to expect anyway.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};
use std::mem::{size_of, zeroed};
use std::time::{Duration, Instant};

use crate::Error;
use crate::process::Process;

/// Longest wait for threads to stop: one may wait for a disk.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Turns in which threads are looked for that others have begun before these were stopped.
const TURNS: usize = 8;

/// Number of the set of general registers.
const NT_PRSTATUS: usize = 1;

/// Number of the set with the thread's pointer.
#[cfg(target_arch = "aarch64")]
const NT_ARM_TLS: usize = 0x401;

/// Event in a status, above its low 16 bits, if a tracer's order has stopped the thread (`PTRACE_EVENT_STOP`).
const EVENT_STOP: c_int = 128;

/// Calls that the kernel does not restart by itself.
#[cfg(target_arch = "x86_64")]
const NOT_RESTARTED: &[c_long] = &[
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Return value of a call that makes the kernel restart it, unless a handler of the thread has to run first.
#[cfg(target_arch = "x86_64")]
const RESTART: i64 = -514;

/// A thread that stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    /// Address of its thread-local storage, as its architecture keeps it.
    pub(crate) pointer: u64,
}

/// Result of a stop.
#[derive(Debug)]
pub(crate) struct Stop<T> {
    pub(crate) result: T,
    pub(crate) threads: Vec<Thread>,
    /// Threads that did not stop in time.
    pub(crate) moving: usize,
    /// From the first order to stop until all went on.
    pub(crate) took: Duration,
}

/// Runs `work` while all threads of the process stand still.
///
/// # Errors
///
/// Fails if the system does not allow it, or if the process is gone.
pub(crate) fn stopped<T: Send>(
    process: Process,
    work: impl FnOnce() -> T + Send,
) -> Result<Stop<T>, Error> {
    std::thread::scope(|scope| {
        let tracer = std::thread::Builder::new().name("stops threads".to_owned());
        let started = tracer.spawn_scoped(scope, || {
            let began = Instant::now();
            let mut tracees = Tracees { seized: Vec::new() };
            tracees.seize_all(process)?;
            let moving = tracees.wait();
            let threads = tracees.threads();
            let result = work();
            drop(tracees);
            Ok(Stop {
                result,
                threads,
                moving,
                took: began.elapsed(),
            })
        });
        match started.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(stop)) => stop,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(reason) => Err(Error::Denied {
                pid: process.pid(),
                reason,
            }),
        }
    })
}

/// A traced thread.
struct Tracee {
    tid: i32,
    /// Signal for which it stopped, which it still has to get; none if it has not stopped.
    stopped: Option<c_int>,
}

/// Traced threads, which are let go when this is dropped.
struct Tracees {
    seized: Vec<Tracee>,
}

impl Tracees {
    /// Orders all threads to stop, also those that are begun meanwhile.
    fn seize_all(&mut self, process: Process) -> Result<(), Error> {
        for _ in 0..TURNS {
            let mut is_complete = true;
            for tid in process.threads() {
                if self.seized.iter().any(|other| other.tid == tid) {
                    continue;
                }
                match ptrace(libc::PTRACE_SEIZE, tid, 0, 0) {
                    Ok(()) => {
                        is_complete = false;
                        let _ = ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0);
                        self.seized.push(Tracee { tid, stopped: None });
                    }
                    Err(reason) if reason.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(reason) => {
                        return Err(Error::Denied {
                            pid: process.pid(),
                            reason,
                        });
                    }
                }
            }
            if is_complete {
                break;
            }
            self.wait();
        }
        if self.seized.is_empty() {
            Err(Error::NoProcess(process.pid()))
        } else {
            Ok(())
        }
    }

    /// Waits until all have stopped, and returns the number of those that do not.
    fn wait(&mut self) -> usize {
        let began = Instant::now();
        loop {
            self.seized
                .retain_mut(|tracee| tracee.stopped.is_some() || look(tracee));
            let moving = self
                .seized
                .iter()
                .filter(|tracee| tracee.stopped.is_none())
                .count();
            if moving == 0 || began.elapsed() > TIMEOUT {
                return moving;
            }
            std::thread::yield_now();
        }
    }

    /// Returns those that stand still.
    fn threads(&self) -> Vec<Thread> {
        let mut threads = Vec::new();
        for tracee in self.seized.iter().filter(|tracee| tracee.stopped.is_some()) {
            if let Some(pointer) = pointer(tracee.tid) {
                threads.push(Thread {
                    tid: tracee.tid,
                    pointer,
                });
            }
        }
        threads
    }
}

impl Drop for Tracees {
    fn drop(&mut self) {
        for tracee in &self.seized {
            // One that has not stopped yet cannot be let go: the end of this thread does it.
            if let Some(signal) = tracee.stopped {
                let _ = ptrace(
                    libc::PTRACE_DETACH,
                    tracee.tid,
                    0,
                    signal.unsigned_abs() as usize,
                );
            }
        }
    }
}

/// Looks whether a thread has stopped. Returns false if it has ended.
fn look(tracee: &mut Tracee) -> bool {
    let mut status = 0;
    // SAFETY: it writes the status.
    let changed =
        unsafe { libc::waitpid(tracee.tid, &raw mut status, libc::WNOHANG | libc::__WALL) };
    if changed == 0 {
        return true;
    }
    if changed < 0 || !libc::WIFSTOPPED(status) {
        return false;
    }
    let is_own = status >> 16 == EVENT_STOP;
    tracee.stopped = Some(if is_own { 0 } else { libc::WSTOPSIG(status) });
    #[cfg(target_arch = "x86_64")]
    restart(tracee.tid);
    true
}

/// Makes the kernel restart a call that the stop has interrupted.
#[cfg(target_arch = "x86_64")]
fn restart(tid: i32) {
    let Some(mut registers) = registers(tid) else {
        return;
    };
    let (call, answer) = (
        registers.orig_rax.cast_signed(),
        registers.rax.cast_signed(),
    );
    if !NOT_RESTARTED.contains(&call) || answer != -i64::from(libc::EINTR) {
        return;
    }
    registers.rax = RESTART.cast_unsigned();
    let mut place = libc::iovec {
        iov_base: (&raw mut registers).cast(),
        iov_len: size_of::<libc::user_regs_struct>(),
    };
    let _ = ptrace(
        libc::PTRACE_SETREGSET,
        tid,
        NT_PRSTATUS,
        &raw mut place as usize,
    );
}

/// Returns the general registers of a stopped thread.
#[cfg(target_arch = "x86_64")]
fn registers(tid: i32) -> Option<libc::user_regs_struct> {
    // SAFETY: it is integers, for which zero is a value.
    let mut registers: libc::user_regs_struct = unsafe { zeroed() };
    let mut place = libc::iovec {
        iov_base: (&raw mut registers).cast(),
        iov_len: size_of::<libc::user_regs_struct>(),
    };
    ptrace(
        libc::PTRACE_GETREGSET,
        tid,
        NT_PRSTATUS,
        &raw mut place as usize,
    )
    .ok()?;
    Some(registers)
}

#[cfg(target_arch = "x86_64")]
fn pointer(tid: i32) -> Option<u64> {
    registers(tid).map(|registers| registers.fs_base)
}

#[cfg(target_arch = "aarch64")]
fn pointer(tid: i32) -> Option<u64> {
    let mut pointer = 0_u64;
    let mut place = libc::iovec {
        iov_base: (&raw mut pointer).cast(),
        iov_len: size_of::<u64>(),
    };
    ptrace(
        libc::PTRACE_GETREGSET,
        tid,
        NT_ARM_TLS,
        &raw mut place as usize,
    )
    .ok()?;
    Some(pointer)
}

fn ptrace(
    request: impl Into<c_long>,
    tid: c_int,
    address: usize,
    data: usize,
) -> std::io::Result<()> {
    // SAFETY: the requests that are made here read and write registers in what `data` leads to, which the caller owns.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            request.into(),
            c_long::from(tid),
            address,
            data,
        )
    };
    if answer >= 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
