//! Timers of the CPU time of single threads.
//!
//! The signal of such a timer goes only to its thread, while that runs. So it wakes no other thread, and a busy thread
//! cannot take the samples of another, as it can with `setitimer`. The kernel checks these timers at its ticks, so no
//! thread can have more samples a second than there are ticks, mostly 250.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::time::Duration;

/// Low bits of a clock's number that mean a thread's CPU time; the other bits hold the thread's number, inverted.
const CPU_TIME_OF_THREAD: c_int = 0b110;

/// A timer that sends SIGPROF to its thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Timer(c_int);

impl Timer {
    /// Starts a timer for thread `tid` of this process. It fires after `first` of the thread's CPU time, then every
    /// `period`.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread has ended, if the user has too many pending signals (`RLIMIT_SIGPENDING`), or if
    /// the system does not allow it.
    pub(crate) fn start(tid: i32, first: Duration, period: Duration) -> io::Result<Self> {
        // SAFETY: it is integers and a pointer, which zero is a value of.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = tid;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_value.sival_ptr = usize::try_from(tid).unwrap_or_default() as *mut c_void;
        let clock = clock_of(tid);
        let mut id: c_int = 0;
        // SAFETY: it reads the event, and writes the timer's number.
        checked(unsafe {
            libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut id)
        })?;
        let timer = Self(id);
        let schedule = libc::itimerspec {
            it_interval: time(period),
            it_value: time(first),
        };
        // SAFETY: it reads the schedule, and is told to write nothing.
        checked(unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                timer.0,
                0,
                &raw const schedule,
                null_mut::<c_void>(),
            )
        })?;
        Ok(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: it is this timer's number, which nobody else has.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.0) };
    }
}

/// Returns the number of the clock that counts the CPU time of thread `tid`.
fn clock_of(tid: i32) -> c_int {
    !tid << 3 | CPU_TIME_OF_THREAD
}

/// Returns the CPU time that thread `tid` of this process has used, or `None` if it has ended.
pub(crate) fn used_by(tid: i32) -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes the time.
    let failed = unsafe { libc::clock_gettime(clock_of(tid), &raw mut time) };
    let seconds = Duration::from_secs(time.tv_sec.try_into().ok()?);
    (failed == 0).then(|| seconds + Duration::from_nanos(time.tv_nsec.unsigned_abs()))
}

/// Returns the calling thread's number.
pub(crate) fn own_tid() -> i32 {
    // SAFETY: it has no conditions.
    unsafe { libc::gettid() }
}

/// Returns the number of kernel ticks in a second.
pub(crate) fn ticks_per_second() -> u32 {
    // SAFETY: it is integers.
    let mut resolution: libc::timespec = unsafe { zeroed() };
    // SAFETY: it writes the resolution, which is a tick's length.
    let failed = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut resolution) };
    match u32::try_from(resolution.tv_nsec) {
        Ok(nanoseconds @ 1..) if failed == 0 => 1_000_000_000 / nanoseconds,
        _ => 250,
    }
}

fn time(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or_default(),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

fn checked(answer: libc::c_long) -> io::Result<()> {
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
