//! Contract of chapter 5, which every variant must keep. Only a fix can pass the tests in `of_a_fix`.
//!
//!     VARIANT=exercise cargo test -p chapter5 --test contract

use std::time::Duration;

use course::bench::contract::{Chapter, assert_all, assert_in_time, crowd, get};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter5"),
    variants: &[
        "problem",
        "solution",
        "multi-thread",
        "rayon",
        "second-runtime",
        "send-first",
        "send-then-yield",
        "send-last",
        "json",
        "json-pooled",
    ],
    fixes: &["solution", "rayon", "second-runtime", "json-pooled"],
};

/// The result of the work, with the data that contracts are tried on.
const RESULT: &str = "200 11";

#[tokio::test]
async fn every_request_has_its_own_piece_of_work_done_before_it_is_answered() {
    CHAPTER
        .every_variant(async |service| {
            for number in 1..=3 {
                assert_eq!(service.get("/data").await, RESULT, "the result of the work");
                assert_eq!(
                    service.count("work_runs_total"),
                    number,
                    "a request must be answered when a piece of work has been done for it: await it, and keep no \
                     result for the next"
                );
            }
            assert_eq!(service.get("/ping").await, "200 pong", "`GET /ping`");
            assert_eq!(service.get("/elsewhere").await, "404", "no such path");
        })
        .await;
}

/// Sends more requests than a queue of the usual size holds.
#[tokio::test]
async fn a_crowd_is_answered_by_a_piece_of_work_for_each_cpu_at_a_time() {
    CHAPTER
        .every_variant(async |service| {
            let answers = crowd(300, async |_| service.get("/data").await).await;
            // Too many at a time are too many on any machine, and the reason if some are not answered.
            let each = service.metric("work_running_peak_per_cpu");
            assert!(
                each <= 1.0,
                "{each} pieces of work ran at a time for each CPU: more than one only wait for each other and for \
                 memory; limit them, by a semaphore or a pool of as many threads"
            );
            assert_all(&answers, RESULT, "a crowd has to wait, and nobody may be sent away");
            assert_eq!(
                service.count("work_runs_total"),
                300,
                "300 requests must have 300 pieces of work done"
            );
        })
        .await;
}

/// Sends users while the work of earlier users, who left, still runs.
#[tokio::test]
async fn users_who_hang_up_hold_up_nobody() {
    CHAPTER
        .every_variant(async |service| {
            for _ in 0..5 {
                service.hang_up(8, get("/data"), 10).await;
            }
            for (path, expected) in [("/ping", "200 pong"), ("/data", RESULT)] {
                assert_eq!(
                    service.get(path).await,
                    expected,
                    "40 users hung up, and the next one was not answered; whatever a request takes, a permit or a \
                     place in a queue, must be given back when its future is dropped"
                );
            }
            let each = service.metric("work_running_peak_per_cpu");
            assert!(
                each <= 1.0,
                "after users hung up {each} pieces of work ran at a time for each CPU: a permit that lives in the \
                 handler is given back while its work goes on; move it into the work"
            );
        })
        .await;
}

mod of_a_fix {
    use super::*;

    /// Checks that work on another thread delays only its own request.
    #[tokio::test]
    async fn a_ping_does_not_wait_for_a_crowd_that_works() {
        CHAPTER
            .every_fix(async |service| {
                let (mut ping, mut last) = (Duration::MAX, Duration::ZERO);
                // If the machine stands still for a moment, pings wait for it, too. So there are three attempts.
                for _ in 0..3 {
                    let work = crowd(200, async |_| service.get("/data").await.after);
                    let pings = async {
                        let mut waits = Vec::new();
                        for _ in 0..20 {
                            waits.push(service.get("/ping").await.after);
                        }
                        waits.sort();
                        waits
                    };
                    let (mut work, pings) = tokio::join!(work, pings);
                    work.sort();
                    (ping, last) = (pings[10], work[199]);
                    if ping < last / 4 {
                        break;
                    }
                }
                assert_in_time(
                    ping < last / 4,
                    format_args!(
                        "a ping waited {} ms while a crowd had its work done in {}; the reactor must neither compute \
                         nor wait for another thread, and a ping must not queue for a CPU",
                        ping.as_millis(),
                        last.as_millis()
                    ),
                );
            })
            .await;
    }
}
