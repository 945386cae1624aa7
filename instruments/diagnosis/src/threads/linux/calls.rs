//! Names of the system calls in which threads wait.

use super::sampler::Moment;
use crate::threads::State;

/// Returns a thread's state at a moment, in words. `functions` are those on its stack.
pub(super) fn text(
    moment: &Moment,
    state: State,
    idle: Option<&str>,
    functions: &[&str],
) -> String {
    let call = match moment.call {
        Some(call) => call_name(call),
        None => "the kernel".to_owned(),
    };
    if state == State::Unclear {
        let what = if passes(functions, "pthread_cond_") {
            "a condition variable"
        } else if passes(functions, SEMAPHORE) {
            "a semaphore"
        } else {
            "a lock, a condition variable or a channel"
        };
        return format!("(waits in {call}: {what})");
    }
    match (moment.state, idle) {
        ('R', _) => "(running)".to_owned(),
        ('T' | 't', _) => "(stopped)".to_owned(),
        (_, Some("")) => format!("(idle: {call})"),
        (_, Some(idle)) => format!("(idle: {idle})"),
        (state, None) => {
            // The kernel function says more for other calls: a `write` may be to a pipe, a socket or a disk.
            let says_all =
                ["futex", "nanosleep", "clock_nanosleep", "poll", "ppoll"].contains(&&*call);
            let wchan = match &moment.wchan {
                Some(wchan) if !says_all => format!(": {wchan}"),
                _ => String::new(),
            };
            let disk = if state == 'D' {
                ", uninterruptible"
            } else {
                ""
            };
            format!("(blocked in {call}{wchan}{disk})")
        }
    }
}

/// Returns whether the name of one of these functions contains `part`.
pub(super) fn passes(functions: &[&str], part: &str) -> bool {
    functions.iter().any(|name| name.contains(part))
}

macro_rules! calls {
    ($($name:ident)*) => {
        &[$((concat!("", stringify!($name)), libc::$name)),*]
    };
}

/// Calls in which threads wait.
const CALLS: &[(&str, i64)] = calls! {
    SYS_accept SYS_accept4 SYS_clock_nanosleep SYS_clone SYS_close SYS_connect SYS_copy_file_range SYS_epoll_pwait
    SYS_epoll_pwait2 SYS_execve SYS_fallocate SYS_fcntl SYS_fdatasync SYS_flock SYS_fsync SYS_ftruncate SYS_futex
    SYS_getdents64 SYS_getrandom SYS_io_getevents SYS_io_uring_enter SYS_ioctl SYS_linkat SYS_madvise SYS_mkdirat
    SYS_mmap SYS_mprotect SYS_mq_timedreceive SYS_mq_timedsend SYS_msgrcv SYS_msgsnd SYS_munmap SYS_nanosleep
    SYS_newfstatat SYS_openat SYS_ppoll SYS_pread64 SYS_preadv SYS_pselect6 SYS_pwrite64 SYS_pwritev SYS_read SYS_readv
    SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_renameat2 SYS_restart_syscall SYS_rt_sigsuspend SYS_rt_sigtimedwait
    SYS_sched_yield SYS_semop SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_splice SYS_statx
    SYS_sync SYS_syncfs SYS_unlinkat SYS_wait4 SYS_waitid SYS_write SYS_writev
};

/// Calls in which threads wait that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(&str, i64)] = calls! {
    SYS_epoll_wait SYS_fork SYS_mkdir SYS_open SYS_pause SYS_poll SYS_rename SYS_select SYS_stat SYS_unlink SYS_vfork
};
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(&str, i64)] = &[];

/// Calls of event loops: a thread in one waits for any event.
pub(super) const EVENTS: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_io_uring_enter,
];

/// Calls in which a thread waits for a signal.
pub(super) const SIGNALS: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
];

/// Part of the names of the C library's functions that wait for a semaphore.
pub(super) const SEMAPHORE: &str = "_sem_";

/// Calls in which a thread waits for a client that connects.
pub(super) const CLIENTS: &[i64] = &[libc::SYS_accept, libc::SYS_accept4];

pub(super) fn call_name(call: i64) -> String {
    let mut calls = CALLS.iter().chain(OLD_CALLS);
    match calls.find(|(_, number)| *number == call) {
        Some((name, _)) => name.trim_start_matches("SYS_").to_owned(),
        None => format!("system call {call}"),
    }
}

/// Returns the number of the call that a function of the C library makes, by the function's name.
pub(super) fn call_by_name(function: &str) -> Option<i64> {
    let name = function.trim_start_matches("__GI_");
    let name = name.trim_start_matches('_').trim_start_matches("libc_");
    let mut calls = CALLS.iter().chain(OLD_CALLS);
    let found = calls.find(|(call, _)| call.strip_prefix("SYS_") == Some(name));
    found.map(|(_, number)| *number)
}
