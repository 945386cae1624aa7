//! A CPU profile of a service with a thousand busy threads. It has a process of its own: an answer may come before the profile
//! has ended.
#![cfg(all(target_os = "linux", feature = "cpu"))]

mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{ask, samples_of};
use debug_endpoints::DebugEndpoints;

/// Allocates until this is over, as a thousand threads of a service may.
fn allocates(is_over: &AtomicBool) {
    let mut kept = Vec::new();
    let mut size = 100;
    while !is_over.load(Ordering::Relaxed) {
        size = size * 31 % 4099 + 16;
        kept.push(black_box(vec![1_u8; size]));
        if kept.len() > 50 {
            kept.clear();
        }
    }
}

/// Ends the threads when it is dropped, even if the test fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "needs a quiet machine: a thousand threads compute"]
fn weekly_a_profile_beside_a_thousand_threads_that_allocate_is_answered_in_time_and_says_what_it_did_not_see()
 {
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = Ended(&is_over);
        for _ in 0..1000 {
            scope.spawn(|| allocates(&is_over));
        }
        let began = Instant::now();
        let profile = ask(
            admin,
            "/debug/pprof/profile?seconds=4&format=folded&idle=true",
        );
        let took = began.elapsed();
        drop(end);
        println!("{took:?}, status {}: {}", profile.status, profile.head);
        assert!(took < Duration::from_secs(90), "{took:?}");
        if profile.status == 503 {
            assert!(profile.text().contains("waits for"), "{}", profile.text());
            return;
        }
        let idle = samples_of(&profile, "[not seen]") + samples_of(&profile, "[idle]");
        let samples = samples_of(&profile, "") - idle;
        let says_so = profile.head.contains("no sample was taken");
        assert!(
            samples > 300 || says_so,
            "{samples} samples: {}",
            profile.head
        );
    });
}
