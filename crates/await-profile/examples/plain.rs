//! Futures that are no HTTP requests, on an executor that is not tokio's.
//!
//! ```text
//! cargo run --example plain
//! ```

use std::time::Duration;

use await_profile::{AwaitProfiler, Frames, ProfileOptions};
use futures_channel::mpsc;
use futures_util::StreamExt;
use futures_util::lock::Mutex;

async fn consume(mut jobs: mpsc::Receiver<u32>, total: &Mutex<u32>) {
    while let Some(job) = jobs.next().await {
        *total.lock().await += job;
    }
}

fn main() -> Result<(), await_profile::ProfileError> {
    let profiler = AwaitProfiler::new().armed();
    let (mut sender, jobs) = mpsc::channel(1);
    let producer = std::thread::spawn(move || {
        for job in 0..100 {
            std::thread::sleep(Duration::from_millis(10));
            let _ = sender.try_send(job);
        }
    });
    let handle = profiler.clone();
    let sampler = std::thread::spawn(move || {
        handle.profile_blocking(&ProfileOptions::lasting(Duration::from_millis(900)))
    });
    let total = Mutex::new(0);
    futures_executor::block_on(profiler.wrap("consumer", consume(jobs, &total)));
    let profile = sampler
        .join()
        .map_err(|_| await_profile::ProfileError::Sampler)??;
    print!("{}", profile.folded(Frames::Own));
    producer
        .join()
        .map_err(|_| await_profile::ProfileError::Sampler)
}
