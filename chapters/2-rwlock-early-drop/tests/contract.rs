//! Contract of chapter 2, which every variant must keep. Only a fix can pass the tests in `of_a_fix`.
//!
//!     VARIANT=exercise cargo test -p chapter2 --test contract

use std::time::Duration;

use course::bench::contract::{Chapter, assert_all, assert_in_time, crowd, get, pause, post};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter2"),
    variants: &[
        "problem",
        "solution",
        "mutex-held",
        "mutex-dropped",
        "snapshot",
    ],
    fixes: &["solution", "mutex-dropped", "snapshot"],
};

/// The ids of the three clients, with the data that contracts are tried on: 8, 9 and 10.
const SUM: &str = "200 27";
const DONE: &str = "200 subscribed";

#[tokio::test]
async fn requests_are_answered_and_those_that_make_no_sense_are_refused() {
    CHAPTER
        .every_variant(async |service| {
            for (request, expected) in [
                (get("/read"), SUM),
                (get("/topics/87-89-34"), "200 cats,dogs"),
                (post("/subscribe", "87-89-34 snakes"), DONE),
                (post("/subscribe", "87-89-34 birds"), DONE),
                (post("/subscribe", "87-89-34 snakes"), DONE),
                (get("/topics/87-89-34"), "200 birds,cats,dogs,snakes"),
                (get("/topics/12-67-22"), "200 birds,mice,snakes"),
                (get("/topics/00-00-00"), "404"),
                (post("/subscribe", "00-00-00 snakes"), "404"),
                (post("/subscribe", "87-89-34"), "400"),
                (post("/subscribe", "87-89-34 two words"), "400"),
                (get("/elsewhere"), "404"),
            ] {
                let shown = format!("{request:?}");
                let answer = service.send(request).await;
                assert_eq!(answer, expected, "the request was {shown}");
            }
            assert_eq!(
                service.count("database_records_total"),
                3,
                "three writes were accepted: record each once, and none that is refused"
            );
        })
        .await;
}

/// Sends all requests on one connection, without waiting for answers. A variant that leaves a write to a task of
/// its own has not made it yet when it reads the next request.
#[tokio::test]
async fn a_write_that_was_answered_can_be_read() {
    CHAPTER
        .with(&[])
        .workers(1)
        .every_variant(async |service| {
            let mut requests = Vec::new();
            for number in 0..10 {
                requests.push(post("/subscribe", format!("12-67-22 new{number}")));
                requests.push(get("/topics/12-67-22"));
            }
            let answers = service.user().pipelined(requests).await;
            for (number, read) in answers.iter().skip(1).step_by(2).enumerate() {
                let topics = read.body().unwrap_or_default();
                assert!(
                    topics.split(',').any(|topic| topic == format!("new{number}")),
                    "topic `new{number}` was answered as subscribed, and the next request read {read}; make \
                     the write before you answer it"
                );
            }
        })
        .await;
}

#[tokio::test]
async fn all_writes_are_kept_and_recorded_in_their_order() {
    CHAPTER
        .with(&[])
        .workers(4)
        .every_variant(async |service| {
            let answers = crowd(40, async |number| {
                let mut user = service.user();
                let mut answers = Vec::new();
                for time in 0..30 {
                    let topic = format!("87-89-34 topic{}", 30 * number + time);
                    answers.push(user.post("/subscribe", topic).await);
                }
                answers
            })
            .await;
            assert_all(&answers.concat(), DONE, "no write may fail because of others");
            let topics = service.get("/topics/87-89-34").await;
            let topics = topics.body().unwrap_or_default();
            let kept = topics.split(',').filter(|topic| topic.starts_with("topic"));
            assert_eq!(
                kept.count(),
                1200,
                "of 1,200 topics that were written at once so many are there: a write must not start from a copy \
                 that another one has changed meanwhile"
            );
            assert_eq!(
                service.count("database_records_total"),
                1200,
                "1,200 writes were made; record each once"
            );
            let log = service.admin("/debug/records");
            let lengths = log.split(r#""value":""#).skip(1);
            let lengths = lengths.map(|value| value.split('"').next().unwrap_or_default().len());
            assert!(
                lengths.is_sorted(),
                "topics were only added, and a later record has fewer of them: the database would end with an \
                 old list; record a write while its guard lives"
            );
        })
        .await;
}

#[tokio::test]
async fn every_read_calls_the_database_and_is_answered_when_its_call_has_ended() {
    CHAPTER
        .with(&["--database-ms", "200"])
        .every_variant(async |service| {
            let answers = crowd(5, async |_| service.get("/read").await).await;
            assert_all(&answers, SUM, "every read must get the sum of the ids");
            assert_eq!(
                service.count("database_calls_total"),
                5,
                "5 reads must make 5 calls of the database; call it once in each"
            );
            let early = answers.iter().map(|answer| answer.after).min();
            assert!(
                early >= Some(Duration::from_millis(190)),
                "a read was answered after {early:?}, and its call of the database takes 200 ms; await the call \
                 before you answer"
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
            for (request, expected) in [(post("/subscribe", "87-89-34 fish"), DONE), (get("/read"), SUM)] {
                let answer = service.send(request).await;
                assert_eq!(
                    answer, expected,
                    "2,500 users hung up, and the next one was not answered; whatever a request takes, a lock, \
                     a permit or a place in a queue, must be given back when its future is dropped"
                );
            }
        })
        .await;
}

mod of_a_fix {
    use super::*;

    /// Sends users one after the other, each at another moment of the others' calls. They also write new topics,
    /// and read all topics of a client.
    #[tokio::test]
    async fn no_request_waits_for_the_call_of_another() {
        const CALL: Duration = Duration::from_millis(400);
        CHAPTER
            .with(&["--database-ms", "400"])
            .every_fix(async |service| {
                // If the machine stands still for a moment, all users who wait then are late: a third of all.
                // So there are three attempts.
                let mut late = 0;
                for attempt in 0..3 {
                    let all = crowd(60, async |number| {
                        pause(20 * u64::from(number)).await;
                        let mut user = service.user();
                        let read = user.get("/read").await.after;
                        let client = ["87-89-34", "12-67-22"][number as usize % 2];
                        let topic = format!("{client} new{}", 60 * attempt + number);
                        let write = user.post("/subscribe", topic).await.after;
                        let topics = user.get(&format!("/topics/{client}")).await.after;
                        // Half of a call. Even on a busy machine nobody waits so long.
                        let limits = [(read, CALL * 3 / 2), (write, CALL / 2), (topics, CALL / 2)];
                        limits.into_iter().filter(|(after, limit)| after > limit).count()
                    })
                    .await;
                    late = all.into_iter().sum();
                    if late <= 18 || late > 90 {
                        break;
                    }
                }
                assert_in_time(
                    late <= 18,
                    format_args!(
                        "{late} of 180 requests waited for half of another one's call of the database or longer; no \
                         guard, neither to read nor to write, may be alive while a request waits for its call"
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
                    assert_all(&answers, SUM, "every read must get the sum of the ids");
                    peak = service.count("database_calls_in_flight_peak");
                    if peak >= 360 {
                        break;
                    }
                }
                assert_in_time(
                    peak >= 360,
                    format_args!(
                        "400 users asked at once, and at most {peak} calls of the database ran at a time; look for \
                         what still makes a request wait: a lock, a small semaphore, a thread that blocks"
                    ),
                );
            })
            .await;
    }
}
