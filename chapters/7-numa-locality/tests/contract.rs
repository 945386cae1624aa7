//! Contract of chapter 7, which every variant must keep. Only a fix can pass the tests in `of_a_fix`. The CPUs of the
//! workers, and the copies that they read, are the chapter's claim: `cargo workshop check 7`.
//!
//!     VARIANT=exercise cargo test -p chapter7 --test contract

use course::bench::contract::{Chapter, Service, crowd, post};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter7"),
    variants: &["problem", "solution", "copies", "region-local"],
    fixes: &["solution", "region-local"],
};

/// The forbidden text with this number: 20 digits, 32 times. The data set has those from 7 on.
fn text(number: u64) -> String {
    format!("{number:020}").repeat(32)
}

/// Sixteen users ask at once, again and again. Their letter is as long as a text, so that the texts are
/// looked at.
async fn letters(service: &Service, times: u32) {
    let letter = "None of the forbidden texts begins as this letter does. ".repeat(12);
    crowd(16, async |_| {
        let mut user = service.user();
        for _ in 0..times {
            let answer = user.post("/check", letter.clone()).await;
            assert_eq!(answer, "200 false", "no text begins as this letter does");
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_begins_with_a_text_is_found_and_others_are_not() {
    CHAPTER
        .with(&["--texts", "1000"])
        .every_variant(async |service| {
            for (body, expected) in [
                (text(7).into_bytes(), "200 true"),
                ((text(1_006) + " and more").into_bytes(), "200 true"),
                (text(1_007).into_bytes(), "200 false"),
                (text(42).as_bytes()[1..].to_vec(), "200 false"),
                (b"a short letter".to_vec(), "200 false"),
                (Vec::new(), "200 false"),
                (vec![0xff; 700], "400"), // no text
            ] {
                let answer = service.post("/check", body.clone()).await;
                assert_eq!(
                    answer,
                    expected,
                    "`POST /check` must say whether the body begins with one of the texts; the body \
                     was {:.60?}",
                    String::from_utf8_lossy(&body)
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

#[tokio::test]
async fn users_who_hang_up_hold_up_nobody() {
    CHAPTER
        .with(&["--texts", "10000"])
        .every_variant(async |service| {
            service.hang_up(8, post("/check", text(3)), 5).await;
            let answer = service.post("/check", "a letter").await;
            assert_eq!(
                answer, "200 false",
                "8 users hung up, and the next was not answered"
            );
        })
        .await;
}

#[tokio::test]
async fn a_node_has_one_copy_and_each_cpu_a_worker() {
    CHAPTER
        .with(&["--texts", "100000"])
        .every_variant(async |service| {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
            let mut workers = 0;
            // On a busy machine a worker may have nothing to do for so long.
            for _ in 0..3 {
                letters(service, 4).await;
                workers = service.count("data_readers");
                if workers >= cpus {
                    break;
                }
            }
            let copies = service.count("data_copies_read_in_a_node_peak");
            assert!(
                copies <= 1,
                "{copies} copies of the texts were read in one NUMA node, and one is enough for all of \
                 its workers; a copy for each takes as many times the memory"
            );
            assert!(
                workers >= cpus,
                "{workers} of {cpus} CPUs have a worker that reads; start one for each CPU, and pin no \
                 two to the same"
            );
        })
        .await;
}

mod of_a_fix {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_main_thread_stays_free_to_run_on_any_cpu() {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        CHAPTER
            .with(&["--texts", "20000"])
            .every_fix(async |service| {
                letters(service, 2).await;
                let elsewhere = service.count("acceptor_cpus_elsewhere");
                assert!(
                    elsewhere >= 1,
                    "the main thread, which accepts connections, is pinned to one CPU: it pinned itself \
                     where it was meant to pin a worker; pin inside the worker's thread"
                );
            })
            .await;
    }
}
