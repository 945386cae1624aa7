//! A waker that calls back when it is cloned, so that the caller's stack can be captured.
//!
//! A future that returns [`Poll::Pending`] has to keep the waker it was polled
//! with, and keeping it means cloning it. The call stack at that moment, between
//! the clone and the poll, is the chain of awaits that the future is suspended in.
//!
//! `std::task::Wake` is the safe way to make a waker, but it cannot do this. It turns an
//! `Arc` into a waker whose clone is `Arc::clone`, with no place for code of our own. So this
//! module writes the vtable itself. The only other unsafe code of the crate is the call in
//! `capture` that walks the stack.
//!
//! The tests of this module, and those of everything that a request does, run under Miri:
//! `cargo +nightly miri test -p await-profile --lib`.
//!
//! # Why it is sound
//!
//! The waker's data is a pointer to a [`Hook`] on the stack of [`poll_hooked`].
//!
//! - **It does not outlive the hook.** Safe code gets at the waker only through
//!   the `&Context` that `poll_hooked` lends to its closure. The closure must work
//!   for every lifetime of that borrow, so it cannot keep it. To keep the *waker*, the closure
//!   has to clone it. The clone is not ours: it is a whole waker that the observer gave away,
//!   with that waker's data and vtable.
//! - **It is thread safe**, as every vtable must be. A scoped thread may use the `&Waker`
//!   for as long as the borrow lasts. So the functions may run on any threads at the same
//!   time. They only take `&Hook`. A `Hook` holds a `&dyn Observer` with `Observer: Sync`,
//!   so it is `Sync`; a line below makes the compiler check that.
//! - **Nothing is released.** `drop` does nothing, for the hook belongs to the
//!   stack frame. `wake` consumes the waker, and so does the same as `wake_by_ref`.
//!
//! [`Poll::Pending`]: std::task::Poll::Pending
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

/// Observer of the clones and wakes of the waker that a future is polled with.
pub(crate) trait Observer: Sync {
    /// Handles a clone of the waker during the poll. Returns the clone.
    fn clone_waker(&self) -> Waker;
    /// Handles a wake during the poll, by which a future yields.
    fn wake(&self);
}

/// Data that the waker's data pointer points to.
struct Hook<'a> {
    observer: &'a dyn Observer,
}

const _: () = {
    const fn assert_sync<T: Sync>() {}
    assert_sync::<Hook<'_>>();
};

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake_by_ref, wake_by_ref, drop_nothing);

/// Calls `poll` with a context whose waker calls `observer` when it is cloned or woken.
///
/// Its `will_wake` is false for every other waker, so a leaf future that still
/// holds a waker from an earlier poll clones this one anew.
pub(crate) fn poll_hooked<R>(
    observer: &dyn Observer,
    poll: impl FnOnce(&mut Context<'_>) -> R,
) -> R {
    let hook = Hook { observer };
    // SAFETY: the functions of `VTABLE` expect a pointer to a live `Hook`. `hook`
    // lives until this function returns or unwinds, and the waker is only lent out
    // for the call below. They are thread safe because `Hook` is `Sync`.
    let waker = unsafe { Waker::new((&raw const hook).cast(), &VTABLE) };
    // Dropping it would call `drop_nothing`, so it is not dropped at all.
    let waker = ManuallyDrop::new(waker);
    poll(&mut Context::from_waker(&waker))
}

/// # Safety
///
/// `data` must come from [`poll_hooked`] while it is still running.
unsafe fn hook<'a>(data: *const ()) -> &'a Hook<'a> {
    // SAFETY: by this function's contract `data` points to a live `Hook`, which is
    // never borrowed mutably. The callers below keep the reference no longer than
    // their own call, during which their caller borrows the waker.
    unsafe { &*data.cast::<Hook<'a>>() }
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: called through the vtable, hence on a waker made by `poll_hooked`.
    let hook = unsafe { hook(data) };
    // The owner of the clone drops it through the clone's own vtable.
    let clone = ManuallyDrop::new(hook.observer.clone_waker());
    RawWaker::new(clone.data(), clone.vtable())
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: called through the vtable, hence on a waker made by `poll_hooked`.
    let hook = unsafe { hook(data) };
    hook.observer.wake();
}

unsafe fn drop_nothing(_: *const ()) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Task;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Counts {
        real: Waker,
        cloned: AtomicUsize,
        woken: AtomicUsize,
    }

    impl Counts {
        fn of(task: &Arc<Task>) -> Self {
            Counts {
                real: Waker::from(task.clone()),
                cloned: AtomicUsize::new(0),
                woken: AtomicUsize::new(0),
            }
        }
    }

    impl Observer for Counts {
        fn clone_waker(&self) -> Waker {
            self.cloned.fetch_add(1, Ordering::Relaxed);
            self.real.clone()
        }
        fn wake(&self) {
            self.woken.fetch_add(1, Ordering::Relaxed);
            self.real.wake_by_ref();
        }
    }

    #[test]
    fn a_clone_is_the_real_waker_and_outlives_the_poll() {
        let task = Arc::new(Task::default());
        let counts = Counts::of(&task);
        let kept = poll_hooked(&counts, |cx| {
            assert!(
                !cx.waker().will_wake(&counts.real),
                "leaves would not clone it anew"
            );
            cx.waker().clone()
        });
        assert_eq!(kept.data(), counts.real.data());
        kept.wake_by_ref();
        let again = kept.clone();
        again.wake();
        drop(kept);
        assert_eq!(task.wakes(), 2);
        assert_eq!(Arc::strong_count(&task), 2, "every clone was released");
        assert_eq!(
            counts.cloned.load(Ordering::Relaxed),
            1,
            "the clone's clone is not ours"
        );
    }

    #[test]
    fn a_wake_during_the_poll_reaches_the_real_waker() {
        let task = Arc::new(Task::default());
        let counts = Counts::of(&task);
        poll_hooked(&counts, |cx| {
            cx.waker().wake_by_ref();
            cx.waker().wake_by_ref();
        });
        assert_eq!(task.wakes(), 2);
        assert_eq!(counts.woken.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn other_threads_may_clone_and_wake_during_the_poll() {
        let task = Arc::new(Task::default());
        let counts = Counts::of(&task);
        poll_hooked(&counts, |cx| {
            let waker = cx.waker();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(move || {
                        let mine = waker.clone();
                        waker.wake_by_ref();
                        mine.wake();
                    });
                }
            });
        });
        assert_eq!(task.wakes(), 8);
        assert_eq!(counts.cloned.load(Ordering::Relaxed), 4);
        assert_eq!(Arc::strong_count(&task), 2);
    }

    #[test]
    fn a_panic_in_the_poll_leaves_earlier_clones_valid() {
        let task = Arc::new(Task::default());
        let counts = Counts::of(&task);
        let mut kept = None;
        let poll = std::panic::AssertUnwindSafe(|| {
            poll_hooked(&counts, |cx| {
                kept = Some(cx.waker().clone());
                panic!("in poll");
            })
        });
        std::panic::catch_unwind(poll).unwrap_err();
        kept.unwrap().wake();
        assert_eq!(task.wakes(), 1);
        assert_eq!(Arc::strong_count(&task), 2);
    }
}
