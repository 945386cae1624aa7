//! A task that belongs to no request. A process of its own, since other tests arm profilers, too.
#![allow(missing_docs)]

use std::time::Duration;

use await_profile::{AwaitProfiler, Frames, ProfileOptions, watch};

#[tokio::test]
async fn a_watched_task_is_in_the_profile_of_the_profiler_that_was_armed_first() {
    let unarmed = watch("too early", std::future::pending::<()>());
    let first = AwaitProfiler::new().armed();
    let second = AwaitProfiler::new().armed();
    tokio::spawn(unarmed);
    tokio::spawn(watch(
        "sockets",
        tokio::time::sleep(Duration::from_secs(3600)),
    ));
    while first.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!((first.in_flight(), second.in_flight()), (1, 0));
    // A runtime that stands still answers no sample.
    for _ in 0..3 {
        let options = ProfileOptions::lasting(Duration::from_millis(100)).captures_per_second(1000);
        let profile = first.profile(options).await.unwrap();
        let shares = profile.shares(Frames::Own);
        assert!(shares.iter().all(|share| share.route == "sockets"));
        if let [route, ..] = &profile.routes()[..] {
            assert!(route.is_part, "it is no request");
            return;
        }
    }
    panic!("it is in no profile");
}
