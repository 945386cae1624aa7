//! All threads of a process at once, stopped for as long as some of its memory is copied.
//!
//! A [child](super::child) orders every thread to stop, copies the memory by `process_vm_readv`, which fails where nothing
//! can be read, and lets the threads go. It gives up after half a second, and the kernel lets go whatever is still stopped
//! when it ends. In the calling process, the calling thread waits for the child, and is not among those that are stopped.
//!
//! The kernel does not restart some calls (signal(7)). On x86-64, such a call is told to begin anew, as after a signal
//! without a handler. Only a wait for events with a time-out is not, since its timers would be late by the time that it had
//! waited: it fails with EINTR, as after SIGSTOP, which tokio, mio, libuv and libevent expect. On aarch64 all of these fail
//! so once.
#![allow(unsafe_code)]

use std::ffi::{CString, c_int, c_long, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::ptr::{null, null_mut};
use std::time::Duration;

use super::child::{self, NT_PRSTATUS, errno, now, ptrace, signal_of};
#[cfg(target_arch = "x86_64")]
use super::stops::{NOT_RESTARTED, OF_SOCKETS, RESTART};
use super::stops::{has_to_name, main_registers, own_tid};
use crate::Process;

/// Longest time until all threads have stopped: one may wait for a disk.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Looks at threads that have not stopped before the child sleeps between two looks.
const LOOKS: u32 = 200;

/// Turns in which threads are looked for that others have begun before these were stopped.
const TURNS: usize = 8;

/// Most pieces that are copied by one call.
const AT_ONCE: usize = 128;

/// Most threads that are stopped.
const MOST_THREADS: usize = 16_384;

/// Bytes of the buffer for names of threads.
const NAMES: usize = 32 << 10;

/// Number of the set with the thread's pointer.
#[cfg(target_arch = "aarch64")]
const NT_ARM_TLS: usize = 0x401;

/// A part of a process's memory, to be copied in blocks.
#[derive(Debug)]
pub struct Piece {
    address: u64,
    bytes: Vec<u8>,
    /// Blocks that were read.
    is_read: Vec<bool>,
}

impl Piece {
    /// Bytes of a block. A block is read as a whole or not at all.
    pub const BLOCK: usize = 1024;

    /// Makes room for `blocks` blocks from `address` on.
    pub fn new(address: u64, blocks: usize) -> Self {
        Self {
            address,
            // Written to, so that the system has found memory for it before the process stands still.
            bytes: vec![1; blocks * Self::BLOCK],
            is_read: vec![false; blocks],
        }
    }

    /// Returns the address of the first block.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the blocks in order, `None` for one that could not be read.
    pub fn blocks(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let blocks = self.bytes.chunks_exact(Self::BLOCK).zip(&self.is_read);
        blocks.map(|(bytes, is_read)| is_read.then_some(bytes))
    }

    /// Copies all that can be read of several. Runs in the child.
    fn copy_all(pieces: &mut [Self], pid: c_int) {
        let mut rest = pieces;
        while !rest.is_empty() {
            let none = libc::iovec {
                iov_base: null_mut(),
                iov_len: 0,
            };
            let (mut local, mut remote) = ([none; AT_ONCE], [none; AT_ONCE]);
            for ((piece, local), remote) in rest.iter_mut().zip(&mut local).zip(&mut remote) {
                *local = libc::iovec {
                    iov_base: piece.bytes.as_mut_ptr().cast(),
                    iov_len: piece.bytes.len(),
                };
                *remote = libc::iovec {
                    iov_base: piece.address as *mut c_void,
                    iov_len: piece.bytes.len(),
                };
            }
            // SAFETY: the places are those of the pieces.
            let mut copied = unsafe { child::copy_parts(pid, &local, &remote) };
            let mut done = 0;
            for piece in rest.iter_mut().take(AT_ONCE) {
                done += 1;
                let Some(left) = copied.checked_sub(piece.bytes.len()) else {
                    // A part of it cannot be read, and the call has ended there.
                    piece.copy(pid);
                    break;
                };
                copied = left;
                piece.is_read.fill(true);
            }
            rest = std::mem::take(&mut rest).split_at_mut(done).1;
        }
    }

    /// Copies all that can be read. Runs in the child.
    fn copy(&mut self, pid: c_int) {
        let mut from = 0;
        while from < self.is_read.len() {
            let at = from * Self::BLOCK;
            let Some(rest) = self.bytes.get_mut(at..) else {
                return;
            };
            let read =
                child::copy_memory(pid, self.address.saturating_add(at as u64), rest) / Self::BLOCK;
            for is_read in self.is_read.iter_mut().skip(from).take(read) {
                *is_read = true;
            }
            // The next one cannot be read.
            from += read + 1;
        }
    }
}

/// A thread that stood still.
#[derive(Clone, Copy, Debug)]
pub struct StillThread {
    /// Number of the thread.
    pub tid: i32,
    /// Address of its thread-local storage, as its architecture keeps it.
    pub pointer: u64,
    /// Its instruction, stack pointer, frame pointer, and on aarch64 its link register.
    pub registers: [u64; 4],
}

/// A process that stood still for a moment.
#[derive(Debug)]
pub struct Standstill {
    /// Threads that stood still.
    pub threads: Vec<StillThread>,
    /// Number of threads that did not stop in time.
    pub moving: usize,
    /// Time of the first order to stop, by the system's monotonic clock.
    pub began: Duration,
    /// From the first order to stop until all went on.
    pub took: Duration,
}

impl Standstill {
    /// Stops all threads of the process, but the calling one, for as long as `pieces` are copied.
    ///
    /// # Errors
    ///
    /// Fails if the system does not allow it, or if the process is gone (`ESRCH`).
    pub fn of(process: Process, pieces: &mut [Piece]) -> io::Result<Self> {
        let path = CString::new(process.path("task")).map_err(io::Error::other)?;
        let mut stopping = Stopping {
            path,
            pid: c_int::try_from(process.pid()).map_err(io::Error::other)?,
            own: own_tid(),
            names: vec![1; NAMES],
            seized: Vec::with_capacity(MOST_THREADS),
            end: Duration::ZERO,
            outcome: None,
            still: Self {
                threads: Vec::with_capacity(MOST_THREADS),
                moving: 0,
                began: Duration::ZERO,
                took: Duration::ZERO,
            },
        };
        child::run(has_to_name(process), &mut || stopping.run(pieces))?;
        match stopping.outcome {
            Some(Ok(())) => Ok(stopping.still),
            Some(Err(error)) => Err(io::Error::from_raw_os_error(error)),
            None => Err(io::Error::other(
                "the process that stops threads was killed, as by a seccomp filter",
            )),
        }
    }
}

/// A traced thread.
struct Tracee {
    tid: c_int,
    /// Signal for which it stopped, which it still has to get; none if it has not stopped.
    stopped: Option<usize>,
}

/// Orders and results of the child, with room for all that it writes.
struct Stopping {
    path: CString,
    pid: c_int,
    own: c_int,
    names: Vec<u8>,
    /// By number.
    seized: Vec<Tracee>,
    /// Time at which threads that have not stopped are left alone.
    end: Duration,
    /// None until the child is done.
    outcome: Option<Result<(), c_int>>,
    still: Standstill,
}

// All of these run in the child: none may allocate, lock or panic.
impl Stopping {
    fn run(&mut self, pieces: &mut [Piece]) {
        let began = now();
        self.still.began = began;
        self.end = began + TIMEOUT;
        let outcome = self.seize_all();
        if outcome.is_ok() {
            self.still.moving = self.wait();
            for tracee in self.seized.iter().filter(|one| one.stopped.is_some()) {
                let room = self.still.threads.len() < self.still.threads.capacity();
                if let Some(thread) = still(tracee.tid).filter(|_| room) {
                    self.still.threads.push(thread);
                }
            }
            Piece::copy_all(pieces, self.pid);
        }
        for tracee in &self.seized {
            // One that has not stopped yet cannot be let go: the end of this process does it.
            if let Some(signal) = tracee.stopped {
                let _ = ptrace(libc::PTRACE_DETACH, tracee.tid, 0, signal);
            }
        }
        self.still.took = now().saturating_sub(began);
        self.outcome = Some(outcome);
    }

    /// Orders all threads to stop, also those that are begun meanwhile.
    fn seize_all(&mut self) -> Result<(), c_int> {
        for _ in 0..TURNS {
            if !self.seize_new()? {
                break;
            }
            self.wait();
        }
        if self.seized.is_empty() {
            Err(libc::ESRCH)
        } else {
            Ok(())
        }
    }

    /// Orders the threads to stop that were not seen before, and returns whether there was one.
    fn seize_new(&mut self) -> Result<bool, c_int> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero.
        let folder = unsafe {
            libc::syscall(
                libc::SYS_openat,
                libc::AT_FDCWD,
                self.path.as_ptr(),
                flags,
                0,
            )
        };
        if folder < 0 {
            return Err(errno());
        }
        let mut names = std::mem::take(&mut self.names);
        let mut is_any = Ok(false);
        loop {
            // SAFETY: as much is written as there is room for.
            let length = unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    folder,
                    names.as_mut_ptr(),
                    names.len(),
                )
            };
            let Some(entries) = usize::try_from(length)
                .ok()
                .and_then(|end| names.get(..end))
            else {
                break;
            };
            if entries.is_empty() {
                break;
            }
            for tid in Tids(entries) {
                match self.seize(tid) {
                    Ok(false) => {}
                    Ok(true) => is_any = Ok(true),
                    Err(error) => is_any = Err(error),
                }
            }
            if is_any.is_err() {
                break;
            }
        }
        self.names = names;
        // SAFETY: it is this function's own, and closed once.
        unsafe { libc::syscall(libc::SYS_close, folder) };
        is_any
    }

    /// Orders a thread to stop, and returns whether it is a new one.
    fn seize(&mut self, tid: c_int) -> Result<bool, c_int> {
        let Err(place) = self.seized.binary_search_by_key(&tid, |one| one.tid) else {
            return Ok(false);
        };
        if tid == self.own || self.seized.len() == self.seized.capacity() {
            return Ok(false);
        }
        match ptrace(libc::PTRACE_SEIZE, tid, 0, 0) {
            Ok(()) => {}
            Err(libc::ESRCH) => return Ok(false),
            Err(error) => return Err(error),
        }
        let _ = ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0);
        self.seized.insert(place, Tracee { tid, stopped: None });
        Ok(true)
    }

    /// Waits until all have stopped, and returns the number of those that do not.
    fn wait(&mut self) -> usize {
        let mut looks: u32 = 0;
        loop {
            self.seized
                .retain_mut(|tracee| tracee.stopped.is_some() || look(tracee));
            let stopped = self.seized.iter().filter(|one| one.stopped.is_some());
            let moving = self.seized.len() - stopped.count();
            if moving == 0 || now() > self.end {
                return moving;
            }
            looks = looks.saturating_add(1);
            rest(looks > LOOKS);
        }
    }
}

/// Numbers in the entries of a folder, in the kernel's form.
struct Tids<'a>(&'a [u8]);

impl Iterator for Tids<'_> {
    type Item = c_int;

    fn next(&mut self) -> Option<c_int> {
        /// Places of an entry's length and of its name, which a zero ends.
        const LENGTH: usize = 16;
        const NAME: usize = 19;
        loop {
            let length = self.0.get(LENGTH..LENGTH + 2)?.try_into().ok()?;
            let length = usize::from(u16::from_ne_bytes(length));
            let name = self.0.get(NAME..length)?;
            self.0 = self.0.get(length..)?;
            let end = name.iter().position(|byte| *byte == 0)?;
            let name = std::str::from_utf8(name.get(..end)?);
            if let Some(tid) = name.ok().and_then(|name| name.parse().ok()) {
                return Some(tid);
            }
        }
    }
}

/// Lets others run, or sleeps for a moment.
fn rest(sleeps: bool) {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 100_000,
    };
    // SAFETY: the first takes nothing, and the second reads the time.
    unsafe {
        if sleeps {
            libc::syscall(libc::SYS_nanosleep, &raw const time, null::<c_void>());
        } else {
            libc::syscall(libc::SYS_sched_yield);
        }
    }
}

/// Looks whether a thread has stopped. Returns false if it has ended.
fn look(tracee: &mut Tracee) -> bool {
    let mut status = 0;
    // SAFETY: it writes the status.
    let changed = unsafe {
        libc::syscall(
            libc::SYS_wait4,
            tracee.tid,
            &raw mut status,
            libc::WNOHANG | libc::__WALL,
            null::<c_void>(),
        )
    };
    if changed == 0 {
        return true;
    }
    if changed < 0 || !libc::WIFSTOPPED(status) {
        return false;
    }
    tracee.stopped = Some(signal_of(status));
    #[cfg(target_arch = "x86_64")]
    restart(tracee.tid);
    true
}

/// Makes the kernel restart a call that the stop has interrupted.
#[cfg(target_arch = "x86_64")]
fn restart(tid: c_int) {
    let Some(mut registers) = registers(tid) else {
        return;
    };
    let (call, answer) = (
        registers.orig_rax.cast_signed(),
        registers.rax.cast_signed(),
    );
    let is_known = NOT_RESTARTED.contains(&call) || OF_SOCKETS.contains(&call);
    if !is_known || answer != -i64::from(libc::EINTR) || has_time_out(call, registers.r10) {
        return;
    }
    registers.rax = RESTART.cast_unsigned();
    let mut place = libc::iovec {
        iov_base: (&raw mut registers).cast(),
        iov_len: size_of::<libc::user_regs_struct>(),
    };
    let place = &raw mut place as usize;
    let _ = ptrace(libc::PTRACE_SETREGSET, tid, NT_PRSTATUS, place);
}

/// Returns whether a call is a wait for events that ends by itself. Its time-out, the fourth argument, is in milliseconds,
/// negative for none; that of `epoll_pwait2` is the address of a time.
#[cfg(target_arch = "x86_64")]
fn has_time_out(call: c_long, fourth: u64) -> bool {
    match call {
        // An integer of 32 bits; the upper half says nothing.
        #[allow(clippy::cast_possible_truncation)]
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => fourth as u32 <= i32::MAX.cast_unsigned(),
        libc::SYS_epoll_pwait2 => fourth != 0,
        _ => false,
    }
}

/// Returns the general registers of a stopped thread.
fn registers(tid: c_int) -> Option<libc::user_regs_struct> {
    // SAFETY: it is integers, for which zero is a value.
    let mut registers: libc::user_regs_struct = unsafe { zeroed() };
    let mut place = libc::iovec {
        iov_base: (&raw mut registers).cast(),
        iov_len: size_of::<libc::user_regs_struct>(),
    };
    let place = &raw mut place as usize;
    ptrace(libc::PTRACE_GETREGSET, tid, NT_PRSTATUS, place).ok()?;
    Some(registers)
}

#[cfg(target_arch = "x86_64")]
fn still(tid: c_int) -> Option<StillThread> {
    let registers = registers(tid)?;
    Some(StillThread {
        tid,
        pointer: registers.fs_base,
        registers: main_registers(&registers),
    })
}

#[cfg(target_arch = "aarch64")]
fn still(tid: c_int) -> Option<StillThread> {
    let mut pointer = 0_u64;
    let mut place = libc::iovec {
        iov_base: (&raw mut pointer).cast(),
        iov_len: size_of::<u64>(),
    };
    let place = &raw mut place as usize;
    ptrace(libc::PTRACE_GETREGSET, tid, NT_ARM_TLS, place).ok()?;
    Some(StillThread {
        tid,
        pointer,
        registers: main_registers(&registers(tid)?),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn memory_of_this_process_is_copied_while_its_threads_stand_still() {
        static COUNTED: AtomicU64 = AtomicU64::new(0);
        static IS_OVER: AtomicBool = AtomicBool::new(false);
        let counting = std::thread::spawn(|| {
            while !IS_OVER.load(Relaxed) {
                COUNTED.fetch_add(1, Relaxed);
            }
        });
        let block = Piece::BLOCK as u64;
        let start = (&raw const COUNTED as u64) / block * block;
        for _ in 0..20 {
            // The first of them is no memory, nor is one in the middle of a few hundred.
            let mut pieces = vec![Piece::new(0, 3)];
            pieces.extend((0..300).map(|number| match number {
                150 => Piece::new(0, 1),
                _ => Piece::new(start, 1),
            }));
            let still = Standstill::of(Process::this(), &mut pieces).expect("ptrace is allowed");
            assert_eq!(pieces[0].blocks().flatten().count(), 0);
            let read = pieces.iter().flat_map(Piece::blocks).flatten();
            assert_eq!(read.count(), 299);
            assert!(still.threads.len() >= 2, "{still:?}");
            assert!(still.threads.iter().all(|one| one.tid != own_tid()));
        }
        IS_OVER.store(true, Relaxed);
        counting.join().expect("it goes on");
        assert!(COUNTED.load(Relaxed) > 0);
    }

    /// Returns the state of a thread of this process that is stopped or traced.
    fn stopped_thread() -> Option<String> {
        let threads = std::fs::read_dir("/proc/self/task").expect("this is Linux");
        for thread in threads.flatten() {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            if stat.contains(") t ") || stat.contains(") T ") {
                return Some(stat);
            }
        }
        None
    }

    #[test]
    fn a_killed_look_leaves_no_thread_stopped() {
        static IS_OVER: AtomicBool = AtomicBool::new(false);
        let counting = std::thread::spawn(|| {
            while !IS_OVER.load(Relaxed) {
                std::thread::yield_now();
            }
            own_tid()
        });
        // A program outside kills every child that this thread has. It is the child of another one.
        let (pid, tid) = (std::process::id(), own_tid());
        let script = format!(
            "while read -r all < /proc/{pid}/task/{tid}/children; do [ \"$all\" ] && kill -9 $all 2>/dev/null; done"
        );
        let killer = std::thread::spawn(move || {
            std::process::Command::new("sh")
                .args(["-c", &script])
                .spawn()
        });
        let mut shell = killer.join().expect("no panic").expect("a shell");
        let (began, mut fallen) = (now(), 0);
        while fallen < 20 && now() < began + Duration::from_secs(10) {
            let mut pieces = [Piece::new(0, 1)];
            match Standstill::of(Process::this(), &mut pieces) {
                Ok(still) => assert!(!still.threads.is_empty()),
                Err(error) => {
                    // Until it is gone, the one that was killed before still traces.
                    let is_traced = error.raw_os_error() == Some(libc::EPERM);
                    assert!(
                        is_traced || error.to_string().contains("was killed"),
                        "{error}"
                    );
                    fallen += 1;
                }
            }
        }
        println!("{fallen} looks were killed");
        shell.kill().expect("it runs");
        shell.wait().expect("it ends");
        let began = now();
        while let Some(stat) = stopped_thread() {
            assert!(now() < began + Duration::from_secs(60), "{stat}");
            std::thread::yield_now();
        }
        IS_OVER.store(true, Relaxed);
        counting.join().expect("it goes on");
    }

    #[test]
    fn a_process_that_is_gone_is_no_process() {
        let error = Standstill::of(Process::of(i32::MAX.unsigned_abs()), &mut []).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_wait_for_events_may_have_a_time_out() {
        let forever = u64::from(u32::MAX);
        for call in [libc::SYS_epoll_wait, libc::SYS_epoll_pwait] {
            assert!(
                has_time_out(call, 50) && has_time_out(call, 0) && !has_time_out(call, forever)
            );
        }
        assert!(has_time_out(libc::SYS_epoll_pwait2, 0x7fff_0000));
        assert!(!has_time_out(libc::SYS_epoll_pwait2, 0));
        assert!(!has_time_out(libc::SYS_read, 50));
    }
}
