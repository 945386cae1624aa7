//! Contract of chapter 6, which every variant must keep. Only a fix can pass the tests in `of_a_fix`. The number of
//! workers, and the CPUs of workers and acceptor, are the chapter's claims: `cargo workshop check 6`.
//!
//!     VARIANT=exercise cargo test -p chapter6 --test contract

use course::bench::contract::{Chapter, assert_in_time, crowd, post};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter6"),
    variants: &[
        "problem",
        "solution",
        "basic",
        "thread-isolated",
        "local-runtime",
        "all-processors",
        "container-problem",
        "container-solution",
    ],
    fixes: &["solution", "local-runtime", "all-processors"],
};

/// The forbidden text with this number: 20 digits, 32 times. The data set has those from 7 on.
fn text(number: u64) -> String {
    format!("{number:020}").repeat(32)
}

#[tokio::test]
async fn a_body_that_begins_with_a_text_is_found_and_others_are_not() {
    CHAPTER
        .with(&["--texts", "1000"])
        .every_variant(async |service| {
            for (body, expected) in [
                (text(7), "200 true"),
                (text(1_006) + " and more", "200 true"),
                (text(1_007), "200 false"),
                (text(42)[1..].to_owned(), "200 false"),
                (format!("more than {}", text(42)), "200 false"),
                ("a short letter".to_owned(), "200 false"),
                (String::new(), "200 false"),
            ] {
                let answer = service.post("/check", body.clone()).await;
                assert_eq!(
                    answer, expected,
                    "`POST /check` must say whether the body begins with one of the texts, and \
                     looked at all of them; the body was {body:.60?}"
                );
            }
            for (answer, expected) in [
                (service.get("/check").await, "405"),
                (service.post("/elsewhere", "text").await, "404"),
            ] {
                assert_eq!(answer, expected, "what is not served must be refused");
            }
        })
        .await;
}

#[tokio::test]
async fn users_who_keep_their_connections_open_hold_up_nobody() {
    CHAPTER
        .with(&["--texts", "1000"])
        .every_variant(async |service| {
            let letter = post("/check", "a letter");
            service
                .assert_serves_all_connections(letter, "200 false")
                .await;
        })
        .await;
}

mod of_a_fix {
    use super::*;

    #[tokio::test]
    async fn workers_scan_side_by_side() {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        let letter = "None of the forbidden texts begins as this letter does. ".repeat(12);
        CHAPTER
            .with(&["--texts", "100000"])
            .every_fix(async |service| {
                crowd(16, async |_| {
                    let mut user = service.user();
                    for _ in 0..50 {
                        user.post("/check", letter.clone()).await;
                    }
                })
                .await;
                let peak = service.count("scans_running_peak");
                assert_in_time(
                    peak >= 2,
                    "16 users asked without a pause, and never did two workers scan at once; look for \
                     a lock around the scan, or for one worker that is given all connections",
                );
            })
            .await;
    }
}
