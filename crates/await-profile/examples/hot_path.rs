//! What wrapping a future costs, without a service around it: nanoseconds for one
//! that is polled twice and keeps its waker once.
//!
//! ```text
//! cargo run --release --example hot_path
//! ```

use std::future::poll_fn;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use await_profile::{AwaitProfiler, ProfileOptions};

/// Few enough that a round is often not interrupted, on a busy machine too.
const FUTURES: u32 = 20_000;
const ROUNDS: usize = 300;

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Pending once, keeping the waker, then ready.
fn twice() -> impl Future<Output = ()> {
    let mut kept = None;
    poll_fn(move |cx| match kept {
        None => {
            kept = Some(cx.waker().clone());
            Poll::Pending
        }
        Some(_) => Poll::Ready(()),
    })
}

fn nanos<F: Future<Output = ()>>(make: impl Fn() -> F) -> f64 {
    let waker = Waker::from(Arc::new(Nobody));
    let mut cx = Context::from_waker(&waker);
    let mut round = || {
        let start = Instant::now();
        for _ in 0..FUTURES {
            let mut future = pin!(make());
            while black_box(future.as_mut().poll(&mut cx)).is_pending() {}
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(FUTURES)
    };
    // Others only ever make it slower, so the least is the nearest to the truth.
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let profiler = AwaitProfiler::new();
    let bare = nanos(twice);
    let wrapped = || profiler.wrap("GET /read", twice());
    let off = nanos(wrapped);
    profiler.arm();
    let armed = nanos(wrapped);
    let sampler = std::thread::spawn(move || {
        profiler.profile_blocking(&ProfileOptions::lasting(Duration::from_secs(60)))
    });
    std::thread::sleep(Duration::from_millis(300));
    let profiling = nanos(wrapped);
    println!(
        "bare {bare:.1} ns; off {:+.1} ns, armed {:+.1} ns, profiling {:+.1} ns",
        off - bare,
        armed - bare,
        profiling - bare
    );
    // The profile is of no interest: do not wait for it.
    drop(sampler);
}
