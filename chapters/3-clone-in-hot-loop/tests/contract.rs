//! What every variant of chapter 3 must do, whatever it allocates.
//!
//!     VARIANT=exercise cargo test -p chapter3 --test contract

use bench::contract::{Chapter, get};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter3"),
    variants: &["problem", "solution", "fewer-clones", "parse-once"],
    fixes: &["solution", "parse-once"],
};

#[tokio::test]
async fn the_checksum_is_that_of_the_services_own_clients() {
    for (data_seed, expected) in [
        (0, "200 2172347200543715621"),
        (5, "200 1025006042341283301"),
    ] {
        CHAPTER
            .with(&[])
            .data_seed(data_seed)
            .every_variant(async |service| {
                for _ in 0..2 {
                    let answer = service.get("/cpu").await;
                    assert_eq!(
                        answer, expected,
                        "the checksum must stay as it was: all rounds, all ids, from the last to the first"
                    );
                }
                assert_eq!(service.get("/elsewhere").await, "404", "no such path");
            })
            .await;
    }
}

/// In any build: a million rounds of three ids take some milliseconds, and an answer that is kept none.
#[tokio::test]
async fn every_request_goes_through_its_rounds() {
    CHAPTER
        .every_variant(async |service| {
            service.get("/cpu").await;
            let before = service.metric("process_cpu_seconds");
            for _ in 0..4 {
                service.get("/cpu").await;
            }
            let each_ms = 1e3 * (service.metric("process_cpu_seconds") - before) / 4.0;
            assert!(
                each_ms > 1.0,
                "a request took {each_ms:.2} ms of CPU time, and its rounds take more; go through them for \
                 every request, and keep no answer for the next"
            );
        })
        .await;
}

#[tokio::test]
async fn users_who_hang_up_hold_up_nobody() {
    CHAPTER
        .every_variant(async |service| {
            service.hang_up(4, get("/cpu"), 20).await;
            let answer = service.get("/cpu").await;
            assert!(
                answer.body().is_some(),
                "4 users hung up, and the next one was told {answer}"
            );
        })
        .await;
}
