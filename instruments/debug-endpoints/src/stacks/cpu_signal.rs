//! The signal of CPU profiles, and the handler that a thread runs when its timer fires.
//!
//! The handler only copies registers and the upper part of the stack into memory that was set aside. Another thread
//! finds the callers later. So the handler takes no lock and allocates nothing, whatever it interrupts. It reads the
//! stack by a call that fails where memory is missing. Its memory is never unmapped, because a thread may still be in
//! the handler after the last timer is gone; only its pages are given back.
//!
//! Unwinding in the handler, as in pprof-rs, was considered: it allocates at the first sample, and looks up each frame
//! through libgcc, which took a lock before glibc 2.35.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};

use diagnosis::threads::copy_memory;

/// Most bytes of a stack that are copied; callers beyond are not seen.
const STACK_BYTES: usize = 64 << 10;

/// Samples for which there is room until they are read: enough for 64 CPUs in 20 ms, at 99 a second each.
const SLOTS: usize = 128;

/// Bytes of an alternate stack that the handler needs, with room to spare.
const ROOM_OF_HANDLER: usize = 2048;

/// Thread whose alternate stack had no room for the handler the last time that there was such a one; 0 if there was none.
static WITHOUT_ROOM: AtomicI32 = AtomicI32::new(0);

/// State of a slot that is free.
const FREE: u8 = 0;
/// State of a slot that a handler fills.
const TAKEN: u8 = 1;
/// State of a slot that waits to be read.
const FULL: u8 = 2;

/// A moment at which a thread used the CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'a> {
    /// The thread's number.
    pub(crate) tid: i32,
    /// Periods of its timer that this sample stands for: more than one if the kernel was late.
    pub(crate) periods: u64,
    /// Number of times that the thread has slept so far.
    pub(crate) slept: u64,
    /// Instruction, stack pointer, frame pointer, and on aarch64 the link register.
    pub(crate) registers: [u64; 4],
    stack: &'a [u8],
}

impl Sample<'_> {
    /// Returns the eight bytes of the stack at `address`, if they were copied.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.registers[1])?).ok()?;
        let bytes = self.stack.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Returns whether the stack could be read.
    pub(crate) fn has_stack(&self) -> bool {
        !self.stack.is_empty()
    }
}

/// Data of a sample that a handler writes, besides the stack.
#[derive(Clone, Copy)]
struct Written {
    tid: i32,
    periods: u64,
    slept: u64,
    registers: [u64; 4],
    copied: usize,
}

struct Slot {
    state: AtomicU8,
    written: UnsafeCell<Written>,
}

impl Slot {
    fn free() -> Self {
        Self {
            state: AtomicU8::new(FREE),
            written: UnsafeCell::new(Written {
                tid: 0,
                periods: 0,
                slept: 0,
                registers: [0; 4],
                copied: 0,
            }),
        }
    }
}

/// The memory that handlers write to.
struct Room {
    slots: Vec<Slot>,
    /// Start of the copied stacks, `STACK_BYTES` for each slot.
    stacks: *mut u8,
    /// Periods for which no slot was free.
    lost: AtomicU64,
}

// SAFETY: `stacks` is never unmapped. A slot and its stack are written by the thread that has changed its state from
// FREE to TAKEN, and read by the one that finds it FULL; both changes are ordered by the state.
unsafe impl Send for Room {}
// SAFETY: as above.
unsafe impl Sync for Room {}

static ROOM: OnceLock<Room> = OnceLock::new();

impl Room {
    fn get() -> io::Result<&'static Self> {
        if let Some(room) = ROOM.get() {
            return Ok(room);
        }
        // SAFETY: it maps new memory, at a place of the system's choice.
        let stacks = unsafe {
            libc::mmap(
                null_mut(),
                SLOTS * STACK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if stacks == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut slots = Vec::new();
        slots.resize_with(SLOTS, Slot::free);
        let room = Self {
            slots,
            stacks: stacks.cast(),
            lost: AtomicU64::new(0),
        };
        Ok(ROOM.get_or_init(|| room))
    }

    fn stack(&self, index: usize) -> *mut u8 {
        // SAFETY: `index` is of one of the slots, for each of which there is room.
        unsafe { self.stacks.add(index * STACK_BYTES) }
    }

    /// Writes a sample of the calling thread. It runs in the handler.
    fn write(&self, tid: i32, periods: u64, registers: [u64; 4]) {
        // Try the lowest slots first, so that few pages are ever touched.
        for (index, slot) in self.slots.iter().enumerate() {
            let taken =
                slot.state
                    .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_err() {
                continue;
            }
            // SAFETY: it has no conditions.
            let own = unsafe { libc::getpid() };
            // SAFETY: the bytes are mapped, and this thread's until the slot's state says otherwise.
            let stack = unsafe { std::slice::from_raw_parts_mut(self.stack(index), STACK_BYTES) };
            let written = Written {
                tid,
                periods,
                slept: slept(),
                registers,
                copied: copy_memory(own, registers[1], stack),
            };
            // SAFETY: the slot is this thread's until its state says otherwise.
            unsafe { *slot.written.get() = written };
            slot.state.store(FULL, Ordering::Release);
            return;
        }
        self.lost.fetch_add(periods, Ordering::Relaxed);
    }

    /// Passes each sample that is there to `each`, and frees its slot.
    fn read(&self, mut each: impl FnMut(Sample<'_>)) {
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.state.load(Ordering::Acquire) != FULL {
                continue;
            }
            // SAFETY: nobody writes a slot that is full, and this is the only reader: it has the one permit.
            let written = unsafe { *slot.written.get() };
            // SAFETY: as above; so many bytes were written.
            let stack = unsafe { std::slice::from_raw_parts(self.stack(index), written.copied) };
            each(Sample {
                tid: written.tid,
                periods: written.periods,
                slept: written.slept,
                registers: written.registers,
                stack,
            });
            slot.state.store(FREE, Ordering::Release);
        }
    }
}

/// Returns the number of times that the calling thread has slept so far: its voluntary context switches.
fn slept() -> u64 {
    // SAFETY: it is integers, which zero is a value of.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: it writes the usage. It is a plain system call, which a handler may make.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_nvcsw).unwrap_or(0)
}

/// Beginning of the kernel's `siginfo_t` for a timer that has fired, in its layout on 64 bits.
#[repr(C)]
struct OfTimer {
    signal: c_int,
    error: c_int,
    code: c_int,
    _padding: c_int,
    _timer: c_int,
    overrun: c_int,
    /// Value that the timer was given: the thread's number.
    value: usize,
}

const _: () = assert!(size_of::<OfTimer>() <= size_of::<libc::siginfo_t>());

/// Takes a sample, unless the thread has an alternate stack of its own that is nearly full: the kernel puts the registers
/// there, and only they have to fit. This function needs little room itself.
extern "C" fn handle(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes what it says of the signal, of which this is the beginning.
    let of_timer = unsafe { &*info.cast::<OfTimer>() };
    // SAFETY: the handler was installed with SA_SIGINFO, so this is what the kernel saved.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    let alternate = &context.uc_stack;
    let left = (&raw const alternate as usize).wrapping_sub(alternate.ss_sp as usize);
    if left < alternate.ss_size.min(ROOM_OF_HANDLER) {
        let tid = i32::try_from(of_timer.value).unwrap_or_default();
        WITHOUT_ROOM.store(tid, Ordering::Relaxed);
        return;
    }
    take(of_timer, context);
}

#[inline(never)]
fn take(of_timer: &OfTimer, context: &libc::ucontext_t) {
    // SAFETY: it is the calling thread's; the code that was interrupted may be about to read it.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above. System calls write it by another pointer, so no reference to it is kept.
    let before = unsafe { errno.read() };
    if let Some(room) = ROOM.get()
        && of_timer.code == libc::SI_TIMER
        && let Ok(tid) = i32::try_from(of_timer.value)
    {
        let more = u64::try_from(of_timer.overrun).unwrap_or(0);
        room.write(tid, 1 + more, registers(context));
    }
    // SAFETY: as above.
    unsafe { errno.write(before) };
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_sign_loss)] // as registers are
fn registers(context: &libc::ucontext_t) -> [u64; 4] {
    let all = &context.uc_mcontext.gregs;
    let one = |index: c_int| all[index as usize] as u64;
    [
        one(libc::REG_RIP),
        one(libc::REG_RSP),
        one(libc::REG_RBP),
        0,
    ]
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> [u64; 4] {
    let all = &context.uc_mcontext;
    [all.pc, all.sp, all.regs[29], all.regs[30]]
}

/// The installed handler. Dropping this removes it, unless the service has installed another; drop all timers before.
pub(crate) struct Handler {
    room: &'static Room,
    before: libc::sigaction,
}

/// Reason why there is no handler.
#[derive(Debug)]
pub(crate) enum NoHandler {
    /// The process already has a handler for this signal, most likely another profiler's.
    InUse,
    /// The system's error.
    Io(io::Error),
}

impl Handler {
    pub(crate) fn install() -> Result<Self, NoHandler> {
        let room = Room::get().map_err(NoHandler::Io)?;
        // Discard samples that came after the last profile had ended.
        room.read(|_| ());
        room.lost.store(0, Ordering::Relaxed);
        WITHOUT_ROOM.store(0, Ordering::Relaxed);
        let before = disposition().map_err(NoHandler::Io)?;
        // Another profiler that began during an earlier profile has put this handler back when it ended.
        if ![libc::SIG_DFL, libc::SIG_IGN, own_handler()].contains(&before.sa_sigaction) {
            return Err(NoHandler::InUse);
        }
        // SAFETY: it is integers and a set of signals, which zero is a value of.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = own_handler();
        // The handler runs on a thread's alternate stack if it has one, as Rust's threads do: its own may be small.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: the set is this function's. No handler of the service's interrupts this one.
        unsafe { libc::sigfillset(&raw mut action.sa_mask) };
        exchange(&action).map_err(NoHandler::Io)?;
        Ok(Self { room, before })
    }

    /// Returns whether this module's handler is still installed. The service may have begun a profiler of its own.
    pub(crate) fn is_in_force() -> bool {
        disposition().is_ok_and(|now| now.sa_sigaction == own_handler())
    }

    /// Returns a thread whose alternate stack has no room for the handler, once for each time that it was found.
    pub(crate) fn without_room() -> Option<i32> {
        Some(WITHOUT_ROOM.swap(0, Ordering::Relaxed)).filter(|tid| *tid != 0)
    }

    /// Passes each sample that was taken since the last call to `each`.
    pub(crate) fn read(&self, each: impl FnMut(Sample<'_>)) {
        self.room.read(each);
    }

    /// Returns the number of periods for which there was no room.
    pub(crate) fn lost(&self) -> u64 {
        self.room.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // A profiler that the service began during this profile keeps its handler: without one, its next signal would end
        // the service.
        if Self::is_in_force() {
            let mut ignore = self.before;
            ignore.sa_sigaction = libc::SIG_IGN;
            // A signal that is still pending would end the process once nobody handles it: ignoring it discards it.
            match exchange(&ignore) {
                Ok(other) if other.sa_sigaction != own_handler() => {
                    // It began between the two calls.
                    let _ = exchange(&other);
                }
                _ => {
                    let _ = exchange(&self.before);
                }
            }
        }
        // SAFETY: it is the memory that was mapped. A handler that is still at work finds zeros there, or loses them.
        unsafe {
            libc::madvise(
                self.room.stacks.cast(),
                SLOTS * STACK_BYTES,
                libc::MADV_DONTNEED,
            )
        };
    }
}

/// Returns the process's present action on the signal.
fn disposition() -> io::Result<libc::sigaction> {
    let mut now = MaybeUninit::uninit();
    // SAFETY: without a new action it writes the present one to `now`, which has room for it.
    let failed = unsafe { libc::sigaction(libc::SIGPROF, null(), now.as_mut_ptr()) };
    if failed == 0 {
        // SAFETY: it was written.
        Ok(unsafe { now.assume_init() })
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Installs an action on the signal, and returns the one that was in force before.
fn exchange(action: &libc::sigaction) -> io::Result<libc::sigaction> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: it is this module's handler or what was in force before, so it may be called. The action before is written
    // to `before`, which has room for it.
    let failed = unsafe { libc::sigaction(libc::SIGPROF, action, before.as_mut_ptr()) };
    if failed == 0 {
        // SAFETY: it was written.
        Ok(unsafe { before.assume_init() })
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns this module's handler, as the system compares it.
fn own_handler() -> libc::sighandler_t {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as libc::sighandler_t
}
