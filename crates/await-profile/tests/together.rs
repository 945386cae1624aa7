//! Profiles of three kinds in one process, one at a time under load: nothing stalls.
//!
//! The allocator records its callers while a heap profile is taken, under a lock of its own
//! and that of `backtrace`, by which names are looked up. Whoever allocates under the latter
//! at that moment never comes back; hence the permit.
#![allow(missing_docs)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use await_profile::{AwaitProfiler, ProfileOptions};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

type Permit = OwnedMutexGuard<()>;

async fn request(rows: Arc<Mutex<Vec<String>>>, number: usize) {
    let mut rows = rows.lock().await;
    sleep(Duration::from_millis(1)).await;
    rows.truncate(100);
    rows.push(format!("row {number}"));
}

/// Some of these are given up, as by a client that hangs up; the thread goes on.
fn await_profile(profiler: &AwaitProfiler, permit: Permit, patience: Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let options = ProfileOptions::lasting(Duration::from_millis(50)).captures_per_second(2000);
    let profile = profiler.profile_holding(options, permit);
    let taken = runtime.block_on(async { timeout(patience, profile).await });
    taken.map(Result::unwrap).ok();
}

/// What a CPU profile does when its samples are taken.
fn look_names_up(permit: Permit) {
    backtrace::trace(|frame| {
        backtrace::resolve_frame(frame, |symbol| drop(symbol.name().map(|n| n.to_string())));
        true
    });
    drop(permit);
}

fn heap_profile(permit: Permit) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("heap.json");
    let profiler = dhat::Profiler::builder().file_name(&file).build();
    std::thread::sleep(Duration::from_millis(50));
    drop(profiler);
    drop(permit);
}

/// A few of each kind, or a twentieth as many as `AWAIT_PROFILES` says.
#[test]
fn await_cpu_and_heap_profiles_in_turn_stall_nothing() {
    let rounds = std::env::var("AWAIT_PROFILES").ok();
    let rounds = rounds.map_or(3, |rounds| rounds.parse::<usize>().unwrap() / 20);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let profiler = AwaitProfiler::new().armed();
    let stop = Arc::new(AtomicBool::new(false));
    let rows = Arc::new(Mutex::new(Vec::new()));
    let mut clients = JoinSet::new();
    for number in 0..100 {
        let (profiler, stop, rows) = (profiler.clone(), stop.clone(), rows.clone());
        let client = async move {
            while !stop.load(Ordering::Relaxed) {
                profiler.wrap("GET /", request(rows.clone(), number)).await;
            }
        };
        clients.spawn_on(client, runtime.handle());
    }

    let one = Arc::new(Mutex::new(()));
    let (done, is_done) = mpsc::channel();
    let kinds: [Box<dyn Fn(Permit, usize) + Send>; 3] = [
        Box::new(move |permit, round| {
            let patience = if round % 2 == 0 { 30_000 } else { 5 };
            await_profile(&profiler, permit, Duration::from_millis(patience));
        }),
        Box::new(|permit, _| look_names_up(permit)),
        Box::new(|permit, _| heap_profile(permit)),
    ];
    for kind in kinds {
        let (one, done) = (one.clone(), done.clone());
        std::thread::spawn(move || {
            for round in 0..rounds {
                kind(one.clone().blocking_lock_owned(), round);
                std::thread::yield_now();
            }
            done.send(()).unwrap();
        });
    }
    // A watchdog: the machine may be busy, but not for so long. To say more than that a
    // profile stalls would need the allocator, which may be what stalls.
    let patience = Duration::from_secs(60 + 10 * rounds as u64);
    for _ in 0..3 {
        if is_done.recv_timeout(patience).is_err() {
            std::process::abort();
        }
    }
    stop.store(true, Ordering::Relaxed);
    let all = async { while clients.join_next().await.is_some() {} };
    let ended = runtime.block_on(async { timeout(patience, all).await });
    ended.expect("a request stalls");
}
