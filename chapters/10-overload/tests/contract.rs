//! Contract of chapter 10, which every variant must keep. Only a fix can pass the tests in `of_a_fix`.
//!
//!     VARIANT=exercise cargo test -p chapter10 --test contract

use course::bench::contract::{Answer, Chapter, Service, assert_all, crowd, get, pause};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter10"),
    variants: &[
        "problem",
        "solution",
        "cancelled",
        "timeout",
        "deadline",
        "last-first",
        "tower",
    ],
    fixes: &["solution", "timeout"],
};

/// Answer with the price for the data seed of the contract tests.
const QUOTE: &str = r#"200 {"cents":4207}"#;

#[tokio::test]
async fn a_client_gets_the_quote_and_other_paths_are_not_found() {
    CHAPTER
        .every_variant(async |service| {
            let answer = service.get("/quote").await;
            assert_eq!(answer, QUOTE, "a single client waits for nobody");
            assert_eq!(service.get("/elsewhere").await, "404", "no such path");
            assert_eq!(service.post("/quote", "").await, "405", "quotes are read");
        })
        .await;
}

/// Lets 32 clients ask at once, up to three times, because on a busy machine a call takes longer than 20 ms.
async fn together(service: &Service) -> Vec<Answer> {
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers = crowd(32, async |_| service.get("/quote").await).await;
        if answers.iter().all(|answer| *answer == QUOTE) {
            break;
        }
        pause(500).await;
    }
    answers
}

#[tokio::test]
async fn clients_who_come_together_are_all_served() {
    CHAPTER
        .every_variant(async |service| {
            let answers = together(service).await;
            let peak = service.count("database_calls_in_flight_peak");
            assert!(
                peak <= 8,
                "{peak} calls were inside the database at once, which takes 8: more permits do not make it faster"
            );
            assert_all(
                &answers,
                QUOTE,
                "32 requests take 80 ms, and their clients wait for 250: let as many wait as can be answered in time",
            );
        })
        .await;
}

#[tokio::test]
async fn what_is_taken_is_given_back() {
    CHAPTER
        .every_variant(async |service| {
            // Before a connection is free, during the call, and after it.
            for after in [1, 10, 30, 80] {
                service.hang_up(30, get("/quote"), after).await;
            }
            let answer = service.ask_until(QUOTE, get("/quote")).await;
            let why = "whatever a request takes, a place or a connection, must be given back when its future is \
                 dropped or its task ends";
            assert_eq!(answer, QUOTE, "120 clients hung up, and the next one was not served; {why}");
            pause(500).await;
            assert_all(&together(service).await, QUOTE, why);
        })
        .await;
}

mod of_a_fix {
    use super::*;

    #[tokio::test]
    async fn clients_who_have_left_cost_the_database_nothing() {
        CHAPTER
            .every_fix(async |service| {
                service.hang_up(400, get("/quote"), 100).await;
                let answer = service.ask_until(QUOTE, get("/quote")).await;
                assert_eq!(answer, QUOTE, "400 clients hung up, and the next one was not served");
                pause(1000).await;
                let calls = service.count("database_calls_total");
                assert!(
                    calls <= 200,
                    "400 clients asked at once and left after 100 ms, in which the database makes 40 calls; it made \
                     {calls}. Let no more requests wait than can be answered in time"
                );
            })
            .await;
    }

    #[tokio::test]
    async fn a_call_that_has_begun_runs_to_its_end() {
        CHAPTER
            .every_fix(async |service| {
                service.hang_up(8, get("/quote"), 10).await;
                let (mut begun, mut whole) = (0, 0);
                // A call takes 20 ms, and longer where the machine stands still.
                for _ in 0..10 {
                    pause(500).await;
                    begun = service.count("database_calls_total");
                    whole = service.count("whole_database_calls_total");
                    if whole == begun {
                        break;
                    }
                }
                assert_eq!(
                    whole, begun,
                    "{begun} calls were begun and {whole} ended: a client that hung up has cut one off; ask the \
                     database in a task of its own"
                );
            })
            .await;
    }
}
