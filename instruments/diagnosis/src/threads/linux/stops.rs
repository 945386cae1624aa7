//! Registers and stacks of threads, for which each is stopped for some microseconds.
//!
//! A thread cannot read the registers of another thread of its process. Alternatives considered:
//!
//! - **A signal, with a handler that walks the stack**: a handler makes `poll`, `nanosleep`, `select` and others fail
//!   with EINTR, which services take for an error. It also needs a signal that nobody else uses.
//! - **A separate program**, as in `rstack-self`: it has to be installed, or the service has to start itself again. Its
//!   copy of the file descriptors also keeps connections open that the service closes.
//! - **No stop at all**: the kernel reports the stack pointer and instruction of a sleeping thread, but not the frame
//!   pointer, without which the standard library's frames cannot be unwound.
//! - **This**: a [child](super::child) that traces one thread after the other. The kernel restarts calls that a tracer's
//!   stop has interrupted.
//!
//! The kernel does not restart some calls (signal(7), "Interruption of system calls … by stop signals", and
//! `io_getevents`, `io_uring_enter` by the kernel's source): a thread in one of them is not stopped. It may still enter
//! one in the few microseconds between that look and the stop. On x86-64, the child then has the kernel restart the
//! call, which has only just begun. On aarch64 the call fails with EINTR once, which event loops have to expect anyway.
//!
//! A call that has already transferred a part, such as a large `write` to a full pipe, returns that part.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};
use std::mem::{size_of, zeroed};
use std::ptr::null;
use std::time::Duration;

use super::child::{self, NT_PRSTATUS, now, ptrace, signal_of};
use crate::Process;

/// Most bytes of a stack that are copied; frames further out are not seen.
const STACK_BYTES: usize = 128 << 10;

/// Longest time, in seconds, that the child waits for a thread to stop, which may wait for a disk or for a CPU. No
/// other thread stands still in this time, except the one that asked. It is long, because a thread that was given up
/// may see EINTR in its next call.
const TIMEOUT: libc::time_t = 1;

/// Number of times that the child looks for the stop before it sleeps.
const LOOKS: u32 = 200;

/// Number of the call `io_pgetevents`, which the library `libc` does not have.
const IO_PGETEVENTS: c_long = if cfg!(target_arch = "x86_64") {
    333
} else {
    292
};

/// Calls that fail with EINTR when a tracer stops them, or begin their time-out anew (`io_pgetevents`).
pub(super) const NOT_RESTARTED: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_io_getevents,
    IO_PGETEVENTS,
    libc::SYS_io_uring_enter,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
];

/// Calls that fail with EINTR on a socket with a time-out.
pub(super) const OF_SOCKETS: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendfile,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_splice,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Return value of a call that makes the kernel restart it, unless a handler of the thread has to run first.
#[cfg(target_arch = "x86_64")]
pub(super) const RESTART: i64 = -514;

/// Outcome of the attempt to stop a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its turn did not come.
    NotTried,
    /// Its registers were read, and its stack if that could be read.
    Taken,
    /// It is in a call that must not be interrupted.
    Spared,
    /// It has ended, or does not stop: it waits for a disk.
    Missed,
    /// The system does not allow it, and gave this error.
    Refused(i32),
}

/// Activity of a thread in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It runs, and does not wait in a call.
    Running,
    /// It waits outside of any call, such as for memory.
    None,
    /// It is in the call of this number, with this first argument, often a descriptor.
    Number(c_long, c_int),
}

impl Call {
    /// Reads the kernel's line: `running`, or a number, arguments, stack pointer and instruction. It does not allocate.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        if line.starts_with(b"running") {
            return Some(Self::Running);
        }
        let mut words = line.split(|byte| *byte == b' ');
        let word = std::str::from_utf8(words.next()?.trim_ascii()).ok()?;
        let number = word.parse().ok()?;
        let first = words.next().unwrap_or_default();
        let first = std::str::from_utf8(first.strip_prefix(b"0x").unwrap_or_default()).ok()?;
        // A descriptor fits. For other arguments, any part will do.
        #[allow(clippy::cast_possible_truncation)]
        let first = u64::from_str_radix(first, 16).unwrap_or(u64::MAX) as c_int;
        Some(if number == -1 {
            Self::None
        } else {
            Self::Number(number, first)
        })
    }

    /// Returns whether a program would see that it was stopped in this call.
    fn is_not_restarted(self, orders: &Orders<'_>) -> bool {
        match self {
            Self::Number(number, first) => {
                NOT_RESTARTED.contains(&number)
                    || OF_SOCKETS.contains(&number) && orders.times_out(first)
            }
            Self::Running | Self::None => false,
        }
    }
}

/// One thread to stop, and the result.
pub(crate) struct Stop {
    tid: c_int,
    /// Path of the file that names its current call, ended by a zero.
    path: Vec<u8>,
    pub(crate) outcome: Outcome,
    /// Call that it was in just before the stop.
    pub(crate) call: Call,
    registers: libc::user_regs_struct,
    stack: Vec<u8>,
    copied: usize,
    /// Time from the order to stop until it went on.
    pub(crate) took: Duration,
}

impl Stop {
    /// Makes one with room for a stack.
    pub(crate) fn new() -> Self {
        Self {
            tid: 0,
            path: Vec::new(),
            outcome: Outcome::NotTried,
            call: Call::None,
            // SAFETY: it is integers, for which zero is a value.
            registers: unsafe { zeroed() },
            stack: vec![0; STACK_BYTES],
            copied: 0,
            took: Duration::ZERO,
        }
    }

    /// Aims at thread `tid` of a process, which is not the calling one.
    pub(crate) fn aim(&mut self, process: Process, tid: i32) {
        self.tid = tid;
        // The path has the process's number, because the child has another `/proc/self`.
        self.path = process.path(&format!("task/{tid}/syscall\0")).into_bytes();
        (self.outcome, self.copied) = (Outcome::NotTried, 0);
    }

    /// Returns its instruction, stack pointer, frame pointer, and on aarch64 its link register.
    pub(crate) fn registers(&self) -> [u64; 4] {
        main_registers(&self.registers)
    }

    /// Returns whether any of its stack could be read.
    pub(crate) fn has_stack(&self) -> bool {
        self.copied > 0
    }

    /// Returns the eight bytes of its stack at `address`, if they were copied.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.registers()[1])?).ok()?;
        let stack = self.stack.get(..self.copied)?;
        let bytes = stack.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

/// Returns the instruction, the stack pointer, the frame pointer, and on aarch64 the link register.
pub(super) fn main_registers(registers: &libc::user_regs_struct) -> [u64; 4] {
    #[cfg(target_arch = "x86_64")]
    return [registers.rip, registers.rsp, registers.rbp, 0];
    #[cfg(target_arch = "aarch64")]
    return [
        registers.pc,
        registers.sp,
        registers.regs[29],
        registers.regs[30],
    ];
}

/// Input of the child.
struct Orders<'a> {
    /// Number of the process whose threads are stopped; 0 for the calling one.
    pid: c_int,
    /// Descriptor of that process; negative for the calling one, or if the system has none (before Linux 5.3).
    pid_descriptor: c_int,
    stacks: &'a [(u64, u64)],
}

impl Orders<'_> {
    /// Returns whether this descriptor of the process is a socket with a time-out.
    ///
    /// A socket of another process is asked through a copy of its descriptor, which exists for some microseconds. If the
    /// system gives no copy (before Linux 5.6), the socket counts as having a time-out.
    fn times_out(&self, descriptor: c_int) -> bool {
        if self.pid == 0 {
            return times_out(descriptor);
        }
        // SAFETY: both calls take integers. The copy is this process's own, and it is closed once.
        unsafe {
            let copy = libc::syscall(libc::SYS_pidfd_getfd, self.pid_descriptor, descriptor, 0);
            let Ok(copy) = c_int::try_from(copy) else {
                return true;
            };
            if copy < 0 {
                return true;
            }
            let times_out = times_out(copy);
            libc::syscall(libc::SYS_close, copy);
            times_out
        }
    }
}

/// Stops these threads, one at a time and each at most once, and returns the CPU time of the child that did it.
///
/// `stacks` are the parts of memory that may hold stacks, in order. If a thread does not stop in time, the threads
/// after it are not tried. `has_to_name` is true if Yama lets only a process that this one names trace it.
///
/// # Errors
///
/// Returns an error if no process can be started.
pub(crate) fn take(
    process: Process,
    stops: &mut [Stop],
    stacks: &[(u64, u64)],
    has_to_name: bool,
) -> std::io::Result<Duration> {
    let pid = if process.is_this() {
        0
    } else {
        c_int::try_from(process.pid()).unwrap_or(c_int::MAX)
    };
    let pid_descriptor = match pid {
        0 => -1,
        // SAFETY: it takes integers. Descriptors are of 32 bits.
        #[allow(clippy::cast_possible_truncation)]
        pid => unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) as c_int },
    };
    let orders = Orders {
        pid,
        pid_descriptor,
        stacks,
    };
    let took = child::run(has_to_name, &mut || stop_each(&orders, stops));
    if pid_descriptor >= 0 {
        // SAFETY: it is this function's own.
        unsafe { libc::close(pid_descriptor) };
    }
    took
}

/// Returns whether Yama lets only a process's ancestors trace it, and a process that it names.
pub(crate) fn has_to_name(process: Process) -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    process.is_this() && scope.trim() == "1"
}

/// Returns whether the system lets other processes of this user look into this process.
pub(crate) fn is_dumpable() -> bool {
    // SAFETY: it takes integers.
    unsafe { libc::prctl(libc::PR_GET_DUMPABLE) != 0 }
}

/// Returns the calling thread's number.
pub(crate) fn own_tid() -> i32 {
    // SAFETY: it has no conditions; the kernel's numbers of threads are of 32 bits.
    #[allow(clippy::cast_possible_truncation)]
    unsafe {
        libc::syscall(libc::SYS_gettid) as i32
    }
}

/// Runs in the child. Nothing here may allocate, lock or panic.
fn stop_each(orders: &Orders<'_>, stops: &mut [Stop]) {
    for stop in stops.iter_mut() {
        let Some(call) = call_of(&stop.path) else {
            stop.outcome = Outcome::Missed;
            continue;
        };
        stop.call = call;
        if call.is_not_restarted(orders) {
            stop.outcome = Outcome::Spared;
            continue;
        }
        let began = now();
        let is_in_time = stop_one(stop, orders);
        stop.took = now().saturating_sub(began);
        if !is_in_time {
            // The kernel cancels the order to stop when this process ends.
            break;
        }
    }
}

/// Stops one thread, copies its registers and stack, and lets it go. Returns false if it did not stop in time.
fn stop_one(stop: &mut Stop, orders: &Orders<'_>) -> bool {
    if let Err(error) = ptrace(libc::PTRACE_SEIZE, stop.tid, 0, 0) {
        let is_gone = error == libc::ESRCH;
        stop.outcome = if is_gone {
            Outcome::Missed
        } else {
            Outcome::Refused(error)
        };
        return true;
    }
    stop.outcome = Outcome::Missed;
    if ptrace(libc::PTRACE_INTERRUPT, stop.tid, 0, 0).is_err() {
        // The thread has just ended.
        return true;
    }
    let Some(status) = wait_for(stop.tid) else {
        return false;
    };
    if !libc::WIFSTOPPED(status) {
        return true;
    }
    let mut registers = libc::iovec {
        iov_base: (&raw mut stop.registers).cast(),
        iov_len: size_of::<libc::user_regs_struct>(),
    };
    let place = &raw mut registers as usize;
    if ptrace(libc::PTRACE_GETREGSET, stop.tid, NT_PRSTATUS, place).is_ok() {
        stop.copied = copy_stack(orders, stop.registers()[1], &mut stop.stack);
        stop.outcome = Outcome::Taken;
        #[cfg(target_arch = "x86_64")]
        #[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)] // as registers are
        {
            let call = stop.registers.orig_rax as c_long;
            let may = NOT_RESTARTED.contains(&call) || OF_SOCKETS.contains(&call);
            if may && stop.registers.rax as i64 == -i64::from(libc::EINTR) {
                stop.registers.rax = RESTART as u64;
                let _ = ptrace(libc::PTRACE_SETREGSET, stop.tid, NT_PRSTATUS, place);
            }
        }
    }
    let _ = ptrace(libc::PTRACE_DETACH, stop.tid, 0, signal_of(status));
    true
}

/// Returns the status with which the thread changed, if it did so in time.
fn wait_for(tid: c_int) -> Option<c_int> {
    let flags = libc::WNOHANG | libc::__WALL;
    let children: u64 = 1 << (libc::SIGCHLD - 1);
    let timeout = libc::timespec {
        tv_sec: TIMEOUT,
        tv_nsec: 0,
    };
    let mut looks: u32 = 0;
    loop {
        let mut status = 0;
        // SAFETY: it writes the status.
        let changed = unsafe {
            libc::syscall(
                libc::SYS_wait4,
                tid,
                &raw mut status,
                flags,
                null::<c_void>(),
            )
        };
        if changed == c_long::from(tid) {
            return Some(status);
        }
        looks = looks.wrapping_add(1);
        // Most threads stop within some tens of microseconds. Until then the child does not sleep, since it might then
        // have to wait for a CPU.
        let signal = if looks < LOOKS {
            0
        } else {
            // The kernel sends SIGCHLD for each stop, and keeps it, since it is blocked. One left over from an
            // earlier stop costs one more turn of the loop.
            // SAFETY: it reads the set of eight bytes and the time.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_sigtimedwait,
                    &raw const children,
                    null::<c_void>(),
                    &raw const timeout,
                    8,
                )
            }
        };
        if changed < 0 || signal < 0 {
            return None;
        }
    }
}

/// Copies from the stack pointer upwards, at most to the end of that part of memory, and returns the number of bytes.
fn copy_stack(orders: &Orders<'_>, from: u64, to: &mut [u8]) -> usize {
    let stacks = orders.stacks;
    let after = stacks.partition_point(|(start, _)| *start <= from);
    let Some((_, end)) = after.checked_sub(1).and_then(|at| stacks.get(at)) else {
        return 0;
    };
    let length = usize::try_from(end.saturating_sub(from))
        .unwrap_or(0)
        .min(to.len());
    let Some(to) = to.get_mut(..length) else {
        return 0;
    };
    let pid = match orders.pid {
        // SAFETY: it takes nothing.
        0 => unsafe { libc::getpid() },
        other => other,
    };
    child::copy_memory(pid, from, to)
}

/// Reads the call of a thread from the file of this path.
fn call_of(path: &[u8]) -> Option<Call> {
    let mut line = [0_u8; 256];
    // SAFETY: the path ends with a zero, and as much is read as there is room for.
    let length = unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0);
        if file < 0 {
            return None;
        }
        let length = libc::syscall(libc::SYS_read, file, line.as_mut_ptr(), line.len());
        libc::syscall(libc::SYS_close, file);
        length
    };
    Call::parse(line.get(..usize::try_from(length).ok()?)?)
}

/// Returns whether this is a socket with a time-out.
fn times_out(socket: c_int) -> bool {
    [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO].iter().any(|option| {
        let mut time = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        let mut length: libc::socklen_t = 16; // Of a time.
        // SAFETY: it writes at most as many bytes as a time has.
        let answer = unsafe {
            let (time, length) = (&raw mut time, &raw mut length);
            libc::syscall(
                libc::SYS_getsockopt,
                socket,
                libc::SOL_SOCKET,
                *option,
                time,
                length,
            )
        };
        answer == 0 && (time.tv_sec, time.tv_usec) != (0, 0)
    })
}
