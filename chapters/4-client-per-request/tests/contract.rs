//! Contract of chapter 4, which every variant must keep. Only a fix can pass the tests in `of_a_fix`.
//!
//!     VARIANT=exercise cargo test -p chapter4 --test contract

use std::time::Duration;

use course::bench::contract::{
    Chapter, assert_all, assert_answered, assert_in_time, crowd, get, pause,
};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter4"),
    variants: &["problem", "solution", "few-clients", "hyper-shared"],
    fixes: &["solution", "hyper-shared"],
};

/// Answer of the upstream, with the data seed of the contract tests.
const LUCK: &str = r#"200 {"status":200,"msg":"Good Luck, 7!"}"#;

#[tokio::test]
async fn every_request_asks_the_upstream_once_and_side_by_side() {
    CHAPTER
        .with(&["--upstream-latency-ms", "800"])
        .every_variant(async |service| {
            let answers = crowd(8, async |_| service.get("/io").await).await;
            assert_all(&answers, LUCK, "every user must get what the upstream answers");
            assert_eq!(
                service.count("upstream_requests_total"),
                8,
                "8 requests must ask the upstream 8 times; keep no answer, and ask nobody twice"
            );
            // A busy machine may not have all of them there at once: they come again.
            let mut peak = service.count("upstream_requests_in_flight_peak");
            for _ in 0..2 {
                if peak < 6 {
                    crowd(8, async |_| service.get("/io").await).await;
                    peak = service.count("upstream_requests_in_flight_peak");
                }
            }
            assert_in_time(
                peak >= 6,
                format_args!(
                    "8 users asked at once, and the upstream had at most {peak} of their requests at a time; hold \
                     no lock around the client while it asks"
                ),
            );
            for (path, expected) in [
                ("/static", r#"200 {"status":200,"msg":"Good Luck!"}"#),
                ("/elsewhere", "404"),
            ] {
                assert_eq!(service.get(path).await, expected, "`GET {path}` asks nobody");
            }
        })
        .await;
}

#[tokio::test]
async fn an_upstream_that_fails_is_a_502() {
    for fault in ["status", "garbage", "hang-up"] {
        CHAPTER
            .with(&["--upstream-fault", fault])
            .every_variant(async |service| {
                let answer = service.get("/io").await;
                assert_answered(&answer);
                assert_eq!(
                    answer, "502",
                    "the upstream failed (`{fault}`): pass no failure on as an answer; `error_for_status` and `?` \
                     make a 502 of it"
                );
            })
            .await;
    }
}

#[tokio::test]
async fn an_upstream_that_hangs_is_a_502_after_three_seconds() {
    let hangs = async |fault| {
        CHAPTER
            .with(&["--upstream-fault", fault])
            .every_variant(async |service| {
                let answer = service.get("/io").await;
                assert_in_time(
                    answer == "502" && answer.after < Duration::from_secs(14),
                    format_args!(
                        "the upstream did not answer, or not to the end (`{fault}`), and the user was told {answer} \
                         after {:.1} s; the time-out of three seconds must bound the whole answer",
                        answer.after.as_secs_f64()
                    ),
                );
            })
            .await;
    };
    tokio::join!(hangs("silence"), hangs("stall"));
}

#[tokio::test]
async fn an_upstream_that_fails_later_is_a_502_from_then_on() {
    CHAPTER
        .with(&["--upstream-fault", "status", "--upstream-fault-after", "2"])
        .every_variant(async |service| {
            for _ in 0..2 {
                assert_eq!(service.get("/io").await, LUCK, "the upstream answers twice");
            }
            let later = service.get("/io").await;
            assert_eq!(
                later, "502",
                "the upstream fails by now; ask it for every request, and never answer with what it said before"
            );
        })
        .await;
}

#[tokio::test]
async fn requests_that_failed_and_users_who_hang_up_hold_up_nobody() {
    CHAPTER
        .with(&["--upstream-fault", "status", "--upstream-faults", "100"])
        .every_variant(async |service| {
            let failed = crowd(100, async |_| service.get("/io").await).await;
            assert_all(&failed, "502", "the upstream failed them all");
            service.hang_up(100, get("/io"), 20).await;
            // On a busy machine some requests time out before the upstream sees them. Then it fails as many later ones.
            for _ in service.count("upstream_requests_total")..100 {
                if service.get("/io").await != "502" {
                    break;
                }
            }
            let answer = service.ask_until(LUCK, get("/io")).await;
            assert_eq!(
                answer, LUCK,
                "100 requests failed and 100 users hung up, and the next one was not answered; whatever a request \
                 takes must be given back when it fails, and when its future is dropped"
            );
        })
        .await;
}

mod of_a_fix {
    use super::*;

    /// Sends many requests at once, and again after pauses. A variant has to keep idle connections open for that long.
    #[tokio::test]
    async fn connections_are_used_again() {
        CHAPTER
            .with(&["--upstream-latency-ms", "100"])
            .every_fix(async |service| {
                crowd(20, async |_| {
                    let mut user = service.user();
                    for _ in 0..4 {
                        user.get("/io").await;
                        pause(200).await;
                    }
                })
                .await;
                let each = service.metric("upstream_connections_per_request");
                assert!(
                    each <= 0.5,
                    "20 users asked four times each with pauses of 200 ms, and there were {each:.2} connections to the \
                     upstream a request; keep one client for all of them, with its idle connections"
                );
            })
            .await;
    }
}
