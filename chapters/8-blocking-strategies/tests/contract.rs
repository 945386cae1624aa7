//! Contract of chapter 8, which every variant must keep. Only a fix can pass the tests in `of_a_fix`.
//!
//!     VARIANT=exercise cargo test -p chapter8 --test contract

use course::bench::contract::{Answer, Chapter, Service, crowd, get};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter8"),
    variants: &[
        "problem",
        "solution",
        "few-at-once",
        "permit",
        "dispatch",
        "per-body",
        "async-client",
    ],
    fixes: &["solution", "permit", "dispatch", "per-body", "async-client"],
};

/// Options for an archive as fast as the machine.
const FAST: [&str; 2] = ["--archive-mib-per-second", "0"];

/// Returns the right answer. With the data seed of the contract tests, bodies are a little longer than
/// requested, and their highest byte is another one.
fn summary_of(bytes: u64) -> String {
    format!("200 248 is the highest of {} bytes", bytes + 7)
}

async fn summarize(service: &Service, bytes: u64) -> Answer {
    service.get(&format!("/summarize?bytes={bytes}")).await
}

#[tokio::test]
async fn bodies_of_all_lengths_are_kept_and_read_back() {
    CHAPTER
        .with(&FAST)
        .every_variant(async |service| {
            for bytes in [0, 1, 777_777, 1_048_576] {
                assert_eq!(
                    summarize(service, bytes).await,
                    summary_of(bytes),
                    "the summary must be of every byte of the body: of its last, short part as well"
                );
            }
            let kept = service.count("bodies_kept_total");
            assert_eq!(
                kept, 4,
                "4 bodies were summarised, and by its bytes the archive was sent and gave back so many; send \
                 all of a body, and make the summary of what is read back"
            );
        })
        .await;
}

#[tokio::test]
async fn parts_are_kept_in_the_order_in_which_they_come() {
    const BODIES: u32 = 24;
    CHAPTER
        .every_variant(async |service| {
            let answers = crowd(BODIES, async |_| summarize(service, 1_048_576).await).await;
            let highest = answers.iter().map(|answer| answer.header("position").to_owned());
            let highest: Vec<String> = highest.collect();
            let sent = (1..=BODIES.into()).map(|number| lab::highest_at(number, 1_048_576 + 7));
            let sent: Vec<String> = sent.map(|position| position.to_string()).collect();
            let moved = highest.iter().filter(|position| !sent.contains(position)).count();
            assert_eq!(
                moved, 0,
                "in so many of 24 bodies the highest byte is not where the upstream sent it: parts were \
                 sent out of order; await each before the next, or let one thread send a body"
            );
        })
        .await;
}

#[tokio::test]
async fn what_is_too_long_or_makes_no_sense_is_refused() {
    CHAPTER
        .with(&FAST)
        .every_variant(async |service| {
            for (path, expected) in [
                ("/summarize?bytes=67108865", "413"),
                ("/summarize?bytes=many", "400"),
                ("/elsewhere", "404"),
                ("/ping", "200 pong"),
            ] {
                let answer = service.get(path).await;
                assert_eq!(answer, expected, "`GET {path}` is answered otherwise");
            }
        })
        .await;
}

/// Uses a slow archive: a variant that answers before it has read the body back answers far too early.
#[tokio::test]
async fn a_body_is_answered_when_it_has_been_read_back() {
    CHAPTER
        .with(&["--archive-mib-per-second", "8"])
        .every_variant(async |service| {
            let answer = summarize(service, 2_097_152).await;
            assert_eq!(answer, summary_of(2_097_152), "the summary is of all bytes");
            assert_eq!(
                service.count("bodies_kept_total"),
                1,
                "a body was answered before it had been sent and read back; await the off-loaded work \
                 before you answer"
            );
        })
        .await;
}

#[tokio::test]
async fn an_archive_that_fails_is_a_502_and_a_full_one_a_507() {
    for (status, expected) in [("503", "502"), ("507", "507")] {
        CHAPTER
            .with(&["--archive-status", status])
            .every_variant(async |service| {
                let answer = summarize(service, 1_048_576).await;
                assert_eq!(
                    answer, expected,
                    "the archive answered {status}: pass its error on with `?`, from the other thread as \
                     well"
                );
            })
            .await;
    }
}

#[tokio::test]
async fn an_upstream_that_fails_is_a_502() {
    for fault in ["status", "hang-up", "break-off"] {
        CHAPTER
            .with(&["--upstream-fault", fault])
            .every_variant(async |service| {
                let answer = summarize(service, 1_048_576).await;
                assert_eq!(
                    answer, "502",
                    "the upstream failed (`{fault}`): a body that did not come whole has no summary; pass \
                     its error on with `?`"
                );
            })
            .await;
    }
}

#[tokio::test]
async fn bodies_that_broke_off_hold_up_nobody() {
    CHAPTER
        .with(&["--upstream-fault", "break-off", "--upstream-faults", "100"])
        .every_variant(async |service| {
            crowd(100, async |_| summarize(service, 1_048_576).await).await;
            let answer = summarize(service, 1_048_576).await;
            assert_eq!(
                answer,
                summary_of(1_048_576),
                "100 bodies broke off, and then one came whole; whatever a request takes, a permit or a \
                 place in a queue, must be given back on an error, too"
            );
        })
        .await;
}

#[tokio::test]
async fn users_who_hang_up_hold_up_nobody() {
    CHAPTER
        .every_variant(async |service| {
            // The critical moment depends on the machine, so users hang up at several moments.
            for after in (5..80).step_by(8) {
                service.hang_up(8, get("/summarize"), after).await;
            }
            assert_eq!(service.get("/ping").await, "200 pong", "80 users hung up");
            assert_eq!(
                service.get("/summarize").await,
                summary_of(1_048_576),
                "80 users hung up, and the next one was not answered; whatever a request takes, a permit \
                 or a place in a queue, must be given back when its future is dropped"
            );
        })
        .await;
}

mod of_a_fix {
    use super::*;

    /// A short body also means a wait: with a slow archive it lasts many ticks. A reactor that hands over its
    /// tasks and then blocks counts as the reactor until another thread has taken over.
    #[tokio::test]
    async fn shorter_bodies_are_waited_for_elsewhere_too() {
        for (bytes, speed) in [(524_288, "256"), (100_000, "8")] {
            CHAPTER
                .with(&["--archive-mib-per-second", speed])
                .every_fix(async |service| {
                    crowd(8, async |_| {
                        for _ in 0..3 {
                            summarize(service, bytes).await;
                        }
                    })
                    .await;
                    let share = service.metric("reactor_archive_calls_share");
                    assert!(
                        share <= 0.5,
                        "with bodies of {bytes} bytes the reactor's own thread waited for {:.0} % of the calls to \
                         the archive; off-load short ones, too: a slow archive blocks it as well",
                        100.0 * share
                    );
                })
                .await;
        }
    }
}
