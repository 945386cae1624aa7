//! A child process that shares this process's memory and traces its threads, which no thread of the process itself may do.
//!
//! It follows LLVM's sanitizers (`sanitizer_stoptheworld_linux_libcdep.cpp`, which credits M. Gutschke): it shares memory
//! and descriptors (`vfork` on a stack of its own). The kernel lets every thread go when its tracer ends, however that
//! happens.
//!
//! This is sound, because the thread that called `clone` stands still until the child is gone: the child borrows its
//! thread-local storage (`errno`) and everything that it was given, as after `vfork`. The child only makes system
//! calls. It takes no lock and allocates nothing, since a thread that it has stopped may hold any lock. All signals are
//! blocked in it, so none of the service's handlers runs there.
//!
//! A seccomp filter that kills on ptrace, instead of refusing it, ends the child. Kernels before 5.16 may then also end
//! the process that shares its memory, which is the service.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};
use std::mem::{MaybeUninit, zeroed};
use std::ptr::{from_mut, null, null_mut};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Size of the child's own stack, in bytes. It uses less than a hundredth, even in unoptimized builds.
const STACK: usize = 64 << 10;

/// Number of the set of general registers.
pub(super) const NT_PRSTATUS: usize = 1;

/// Event in a status, above its low 16 bits, if a tracer's order has stopped the thread (`PTRACE_EVENT_STOP`).
const EVENT_STOP: c_int = 128;

/// Lock that a call of [`run`] holds: a thread has one tracer at a time, and a process one permission to be traced.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `work` in the child, and returns the child's CPU time. `work` may not allocate, lock or panic.
///
/// `has_to_name` is true if Yama lets only a process that this one names trace it.
///
/// # Errors
///
/// Returns an error if no process can be started.
pub(super) fn run(has_to_name: bool, work: &mut dyn FnMut()) -> std::io::Result<Duration> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _named = has_to_name.then(Traceable::by_descendants);
    let mut own_stack = vec![MaybeUninit::<u128>::uninit(); STACK / 16];
    let mut given: &mut dyn FnMut() = work;
    // Descriptors are shared, so that none stays open longer than the service wants. The child's end sends no signal.
    let flags = libc::CLONE_VM
        | libc::CLONE_VFORK
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_UNTRACED;
    // SAFETY: a set of signals is integers, which the next call sets.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { (zeroed(), zeroed()) };
    // SAFETY: it is integers.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: both sets are this function's, and the mask is this thread's alone. The child has a stack of its own,
    // which outlives it: `clone` returns when it has ended (CLONE_VFORK). Until then nobody else uses `given`.
    let (child, error) = unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let top = own_stack.as_mut_ptr_range().end.cast();
        let child = libc::clone(child, top, flags, from_mut(&mut given).cast());
        let error = std::io::Error::last_os_error();
        if child > 0 {
            libc::wait4(child, null_mut(), libc::__WALL, &raw mut usage);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        (child, error)
    };
    if child > 0 {
        Ok(duration(usage.ru_utime) + duration(usage.ru_stime))
    } else {
        Err(error)
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or_default());
    seconds + Duration::from_micros(time.tv_usec.try_into().unwrap_or_default())
}

/// Permission for descendants of this process to trace it, where Yama allows only a named process. Dropping it takes
/// the permission back. That also removes a process that the service itself may have named, since the kernel does not
/// report that name.
struct Traceable(());

impl Traceable {
    fn by_descendants() -> Self {
        // SAFETY: it takes integers. Yama looks for the tracer among those that descend from the named one.
        unsafe {
            libc::prctl(
                libc::PR_SET_PTRACER,
                libc::c_ulong::from(std::process::id()),
            )
        };
        Self(())
    }
}

impl Drop for Traceable {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, 0 as libc::c_ulong) };
    }
}

/// Runs in the child.
extern "C" fn child(given: *mut c_void) -> c_int {
    // SAFETY: `run` passes it, and waits for this.
    let work = unsafe { &mut *given.cast::<&mut dyn FnMut()>() };
    let ends_with_parent = c_long::from(libc::SIGKILL);
    // In the kernel's layout: a handler (none), flags, a restorer, and a mask. The child has a disposition of its own.
    let default = [0_usize; 4];
    // SAFETY: it is read, and there is room for all of it.
    unsafe {
        libc::syscall(
            libc::SYS_prctl,
            libc::PR_SET_PDEATHSIG,
            ends_with_parent,
            0,
            0,
            0,
        );
        libc::syscall(
            libc::SYS_rt_sigaction,
            libc::SIGCHLD,
            &raw const default,
            null::<c_void>(),
            8,
        );
    }
    work();
    0
}

/// Makes a request of ptrace, or returns the system's error.
pub(super) fn ptrace(
    request: impl Into<c_long>,
    tid: c_int,
    address: usize,
    data: usize,
) -> Result<(), c_int> {
    // SAFETY: the requests that are made read and write registers in what `data` leads to, and nothing else of ours.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            request.into(),
            c_long::from(tid),
            address,
            data,
        )
    };
    if answer >= 0 { Ok(()) } else { Err(errno()) }
}

/// Returns the error of the last call.
pub(super) fn errno() -> c_int {
    // SAFETY: it is the place of the error of the thread that waits for this process.
    unsafe { *libc::__errno_location() }
}

/// Returns the signal that a thread with this status still has to get: it stopped for that, before the order came.
pub(super) fn signal_of(status: c_int) -> usize {
    let is_own = status >> 16 == EVENT_STOP;
    let signal = if is_own { 0 } else { libc::WSTOPSIG(status) };
    signal.unsigned_abs() as usize
}

/// Returns the time since some moment, by the system's steady clock.
pub(super) fn now() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes the time.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    Duration::from_secs(now.tv_sec.unsigned_abs())
        .saturating_add(Duration::from_nanos(now.tv_nsec.unsigned_abs()))
}

/// Copies memory of a process from `address` on, and returns the number of bytes until the first that cannot be read. It is one
/// system call, which a signal handler may make, and sets `errno`.
pub fn copy_memory(pid: c_int, address: u64, to: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: to.len(),
    };
    // SAFETY: the place is `to`, and as long.
    unsafe { copy_parts(pid, &[local], &[remote]) }
}

/// Copies parts of a process's memory, and returns the number of bytes until the first that cannot be read.
///
/// # Safety
///
/// All places in `local` may be written to.
pub(super) unsafe fn copy_parts(
    pid: c_int,
    local: &[libc::iovec],
    remote: &[libc::iovec],
) -> usize {
    // SAFETY: by way of the kernel, which fails where memory is gone, where reading it would end the process. It writes
    // to `local` alone.
    let copied = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            c_long::from(pid),
            local.as_ptr(),
            local.len(),
            remote.as_ptr(),
            remote.len(),
            0_usize,
        )
    };
    usize::try_from(copied).unwrap_or(0)
}
