//! Contract of chapter 9, which every variant must keep. Only a fix can pass the tests in `of_a_fix`.
//!
//!     VARIANT=exercise cargo test -p chapter9 --test contract

use std::time::Duration;

use course::bench::contract::{Answer, Chapter, Service, assert_all, assert_in_time, crowd, post};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter9"),
    variants: &["problem", "solution", "bigger-pool", "compare-and-set"],
    fixes: &["solution", "compare-and-set"],
};

const TWO: &str = r#"{"product":1,"quantity":2}"#;
/// Answer to an order, with the prices for the data seed of the contract tests.
const SOLD: &str = r#"200 {"product":1,"quantity":2,"cents":2208}"#;

async fn order(service: &Service, body: &str) -> Answer {
    service.post("/order", body).await
}

/// Asserts that the books hold this number of orders, and that the stock lacks exactly what they took.
async fn assert_books(service: &Service, orders: u64, after: &str) {
    let books = service.get("/books").await;
    assert_eq!(
        books,
        format!(r#"200 {{"orders":{orders},"missing":0}}"#),
        "after {after}, `orders` must count those that were confirmed, and `missing` pieces that were taken \
         and not sold must be 0; take from the stock and write the order in one transaction"
    );
}

#[tokio::test]
async fn orders_are_answered_and_those_that_cannot_be_taken_are_refused() {
    CHAPTER
        .every_variant(async |service| {
            for (body, expected) in [
                (TWO, SOLD),
                (r#"{"product":1000,"quantity":1}"#, "404"),
                (r#"{"product":1,"quantity":2000000000}"#, "409"),
                (r#"{"product":1,"quantity":0}"#, "422"),
                ("{", "400"),
            ] {
                let answer = order(service, body).await;
                assert_eq!(answer, expected, "the order was {body}");
            }
            assert_eq!(service.get("/order").await, "405", "orders are posted");
            assert_eq!(service.get("/elsewhere").await, "404", "no such path");
            assert_books(
                service,
                1,
                "one order that was taken and four that were refused",
            )
            .await;
        })
        .await;
}

#[tokio::test]
async fn no_order_is_lost_or_written_twice() {
    CHAPTER
        .every_variant(async |service| {
            let answers = crowd(40, async |_| order(service, TWO).await).await;
            assert_all(
                &answers,
                SOLD,
                "orders at once may have to wait, but none may fail: let no transaction be open while the \
                 price is awaited",
            );
            assert_books(service, 40, "40 orders at once").await;
        })
        .await;
}

#[tokio::test]
async fn the_last_pieces_are_sold_once() {
    CHAPTER
        .every_variant(async |service| {
            let nearly_all = r#"{"product":1,"quantity":999999990}"#;
            let first = order(service, nearly_all).await;
            assert!(first.body().is_some(), "a large order was told {first}");
            let answers = crowd(20, async |_| order(service, TWO).await).await;
            let sold = answers.iter().filter(|answer| **answer == SOLD).count();
            assert!(
                sold <= 5,
                "ten pieces were left, 20 customers ordered two each, and {sold} were served; the stock that was \
                 read may be old when the price comes: let the statement that takes the pieces look again"
            );
            let late: Vec<Answer> = answers.into_iter().filter(|answer| *answer != SOLD).collect();
            assert_all(
                &late,
                "409",
                "five customers can be served, and the others must be told that it is sold out; where it is 503, \
                 no connection was free in time: an order may hold only one, and none while the price is awaited",
            );
            assert_eq!(
                sold, 5,
                "ten pieces were left, and 20 customers ordered two each; five of them must be served"
            );
            assert_books(service, 6, "the last pieces were sold").await;
        })
        .await;
}

#[tokio::test]
async fn without_a_price_an_order_is_a_502_and_takes_nothing() {
    for fault in ["status", "garbage"] {
        CHAPTER
            .with(&["--upstream-fault", fault])
            .every_variant(async |service| {
                let answer = order(service, TWO).await;
                assert_eq!(
                    answer, "502",
                    "the pricing service failed (`{fault}`): pass its error on with `?`"
                );
                assert_books(service, 0, "an order without a price").await;
            })
            .await;
    }
}

#[tokio::test]
async fn a_price_that_never_comes_is_a_502_after_two_seconds() {
    CHAPTER
        .with(&["--upstream-fault", "silence", "--upstream-fault-after", "1"])
        .every_variant(async |service| {
            assert_eq!(order(service, TWO).await, SOLD, "the first price comes");
            let answer = order(service, TWO).await;
            assert_eq!(
                answer, "502",
                "the price did not come; an order may not be sold at the last customer's price"
            );
            assert_in_time(
                answer.after < Duration::from_secs(5),
                format_args!(
                    "the price did not come, and the customer was told so after {:.1} s instead of 2",
                    answer.after.as_secs_f64()
                ),
            );
            assert_books(service, 1, "one order, and one without a price").await;
        })
        .await;
}

#[tokio::test]
async fn orders_that_failed_hold_up_nobody() {
    CHAPTER
        .with(&["--upstream-fault", "status", "--upstream-faults", "60"])
        .every_variant(async |service| {
            let answers = crowd(60, async |_| order(service, TWO).await).await;
            assert_all(
                &answers,
                "502",
                "the pricing service failed them all; where it is 503, connections were not there in time: \
                 hold none while the price is awaited, and keep none after an error",
            );
            let answer = order(service, TWO).await;
            assert_eq!(answer, SOLD, "60 orders failed, and the next one must be sold again");
            assert_books(service, 1, "60 orders that failed and one that was sold").await;
        })
        .await;
}

#[tokio::test]
async fn users_who_hang_up_hold_up_nobody_and_take_nothing() {
    CHAPTER
        .every_variant(async |service| {
            // From before the price comes until the last statements have run.
            for after in (20..120).step_by(10) {
                service.hang_up(30, post("/order", TWO), after).await;
            }
            let answer = order(service, TWO).await;
            assert_eq!(
                answer, SOLD,
                "300 customers hung up, and the next one was not served; whatever an order takes, a \
                 connection or a permit, must be given back when its future is dropped"
            );
            let books = service.get("/books").await;
            let books = books.body().unwrap_or_default().to_owned();
            assert!(
                books.ends_with(r#""missing":0}"#),
                "300 customers hung up at different moments, and the books say {books}: pieces were taken \
                 and not sold; take them and write the order in one transaction"
            );
        })
        .await;
}

mod of_a_fix {
    use super::*;

    #[tokio::test]
    async fn no_connection_lies_idle_for_the_last_pieces_either() {
        CHAPTER
            .every_fix(async |service| {
                let mut customer = service.user();
                let nearly_all = r#"{"product":1,"quantity":999999990}"#;
                for body in [nearly_all, TWO, TWO, TWO] {
                    customer.post("/order", body).await;
                }
                let idle = service.metric("pool_connections_in_use_at_answer");
                assert!(
                    idle <= 0.1,
                    "of four orders of one customer, {idle:.2} connections on average were lent when the price \
                     came; no order may hold one while it waits, however little is left"
                );
            })
            .await;
    }
}
