//! Contract of chapter 1, which every variant must keep. Only a fix can pass the tests in `of_a_fix`.
//!
//!     VARIANT=exercise cargo test -p chapter1 --test contract

use std::time::Duration;

use course::bench::contract::{Chapter, assert_all, assert_in_time, crowd, get, pause};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter1"),
    variants: &["problem", "solution"],
    fixes: &["solution"],
};

/// The ids of the three clients, with the data that contracts are tried on: 8, 9 and 10.
const SUM: &str = "200 27";

#[tokio::test]
async fn the_answer_is_the_sum_of_all_ids_and_other_paths_are_refused() {
    CHAPTER
        .every_variant(async |service| {
            let answer = service.get("/read").await;
            assert_eq!(
                answer, SUM,
                "`GET /read` must answer the sum of the ids that are in the map"
            );
            let elsewhere = service.get("/elsewhere").await;
            assert_eq!(elsewhere, "404", "a path that is not there must be refused");
        })
        .await;
}

#[tokio::test]
async fn every_request_calls_the_database_once() {
    CHAPTER
        .every_variant(async |service| {
            let answers = crowd(20, async |_| service.get("/read").await).await;
            assert_all(&answers, SUM, "every user must get the sum of the ids");
            assert_eq!(
                service.count("database_calls_total"),
                20,
                "20 requests must make 20 calls of the database; call it once in each, and keep \
                 no answer for the next"
            );
        })
        .await;
}

#[tokio::test]
async fn a_request_is_answered_when_its_call_has_ended() {
    CHAPTER
        .with(&["--database-ms", "300"])
        .every_variant(async |service| {
            let answer = service.get("/read").await;
            assert_eq!(answer, SUM, "`GET /read` must answer the sum of the ids");
            assert!(
                answer.after >= Duration::from_millis(290),
                "`GET /read` was answered after {} ms, and its call of the database takes 300; await \
                 the call before you answer",
                answer.after.as_millis()
            );
            assert_eq!(
                service.count("database_calls_in_flight"),
                0,
                "a call of the database still ran when its request had been answered; await the call \
                 in the handler"
            );
        })
        .await;
}

#[tokio::test]
async fn users_who_hang_up_hold_up_nobody() {
    CHAPTER
        .every_variant(async |service| {
            for _ in 0..25 {
                service.hang_up(100, get("/read"), 20).await;
            }
            let answer = service.get("/read").await;
            assert_eq!(
                answer, SUM,
                "2,500 users hung up, and the next one was not answered; whatever a request takes, a \
                 lock, a permit or a place in a queue, must be given back when its future is dropped; a \
                 spawned task is not dropped with its request, and keeps its lock until its call has ended"
            );
        })
        .await;
}

mod of_a_fix {
    use super::*;

    /// Sends few users, one after the other. The load of a check, in contrast, is one crowd that comes at once.
    #[tokio::test]
    async fn no_request_waits_for_the_call_of_another() {
        CHAPTER
            .with(&["--database-ms", "400"])
            .every_fix(async |service| {
                // On a busy machine a few may be late. If the machine stands still for a moment, all users
                // who wait then are late: a third of all. So there are three attempts.
                let mut late = 0;
                for _ in 0..3 {
                    let answers = crowd(60, async |number| {
                        pause(20 * u64::from(number)).await;
                        let mut user = service.user();
                        [user.get("/read").await, user.get("/read").await]
                    })
                    .await;
                    let limit = Duration::from_millis(700);
                    let answers = answers.iter().flatten();
                    late = answers.filter(|answer| answer.after > limit).count();
                    if late <= 12 || late > 60 {
                        break;
                    }
                }
                assert_in_time(
                    late <= 12,
                    format_args!(
                        "{late} of 120 requests took more than 700 ms, and the call of the database \
                         takes 400; no guard may be alive while a request waits for its call"
                    ),
                );
            })
            .await;
    }

    #[tokio::test]
    async fn a_crowd_waits_for_the_database_side_by_side() {
        CHAPTER
            .with(&["--database-ms", "1000"])
            .every_fix(async |service| {
                // A busy machine may not have a crowd there within a second: another one comes.
                let mut peak = 0;
                for _ in 0..3 {
                    let answers = crowd(400, async |_| service.get("/read").await).await;
                    assert_all(&answers, SUM, "every user must get the sum of the ids");
                    peak = service.count("database_calls_in_flight_peak");
                    if peak >= 360 {
                        break;
                    }
                }
                assert_in_time(
                    peak >= 360,
                    format_args!(
                        "400 users asked at once, and at most {peak} calls of the database ran at a time; \
                         look for what still makes a request wait: a lock, a small semaphore, a thread that blocks"
                    ),
                );
            })
            .await;
    }
}
