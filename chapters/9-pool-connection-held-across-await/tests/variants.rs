//! What a reader relies on: all variants answer alike, and they differ in whether a connection waits
//! for the pricing service.

use bench::server::Server;
use bench::testing::{ask, assert_contract, count, get, load, post, start, value};
use measurement::load::Load;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter9");
/// Variants whose orders hold a connection while they ask for the price.
const HELD: [&str; 3] = ["problem", "exercise", "bigger-pool"];
const RELEASED: [&str; 2] = ["solution", "compare-and-set"];

fn order(server: &Server, body: &str) -> Result<String, String> {
    ask(server, &post("/order", body, ""))
}

/// The connections that were lent when the upstream answered, on average, while one user ordered.
fn idle_connections(variant: &str) -> f64 {
    let server = start(PROGRAM, variant, 0, &[]);
    for _ in 0..5 {
        order(&server, r#"{"product": 1, "quantity": 1}"#).expect("there is enough");
    }
    value(&server, "pool_connections_in_use_at_answer")
}

#[test]
fn all_variants_answer_alike() {
    let expected = [
        (0, r#"{"product":1,"quantity":2,"cents":2194}"#),
        (7, r#"{"product":1,"quantity":2,"cents":2208}"#),
    ];
    for (data_seed, right) in expected {
        for variant in HELD.into_iter().chain(RELEASED) {
            let server = start(PROGRAM, variant, data_seed, &[]);
            for (body, answer) in [
                (r#"{"product": 1, "quantity": 2}"#, Ok(right)),
                (
                    r#"{"product": 9, "quantity": 2}"#,
                    Err("404 Not Found: no such product"),
                ),
                (
                    r#"{"product": 1, "quantity": 4000000000}"#,
                    Err("409 Conflict: sold out"),
                ),
                (r#"{"product": 1, "quantity": 0}"#, Err("422 ")),
                (r#"{"product": 1, "quantity": -2}"#, Err("422 ")),
                ("{", Err("400 ")),
            ] {
                match (order(&server, body), answer) {
                    (Ok(said), Ok(right)) => assert_eq!(said, right, "{variant}"),
                    (Err(said), Err(right)) => {
                        assert!(said.starts_with(right), "{variant}: {said}");
                    }
                    (said, _) => panic!("{variant}: {said:?} to {body}"),
                }
            }
            assert_eq!(
                get(&server, "/books").as_deref(),
                Ok(r#"{"orders":1,"missing":0}"#)
            );
        }
    }
}

#[test]
fn where_it_is_held_a_connection_lies_idle_while_the_price_is_awaited() {
    for variant in HELD {
        let idle = idle_connections(variant);
        assert!((idle - 1.0).abs() < 1e-9, "{variant}: {idle}");
    }
}

#[test]
fn where_it_is_given_back_none_does() {
    for variant in RELEASED {
        let idle = idle_connections(variant);
        // A whole one less, however late the pool learns that a connection has come back.
        assert!(idle < 0.5, "{variant}: {idle}");
    }
}

#[test]
fn the_pool_is_the_only_queue_and_what_is_sold_adds_up() {
    for (variant, connections) in [("problem", 5), ("bigger-pool", 20)] {
        let server = start(PROGRAM, variant, 0, &[]);
        orders_of_users(&server, 40);
        let peak = count(&server, "pool_connections_in_use_peak");
        assert_eq!(peak, connections, "{variant}");
        assert_books(&server, variant);
    }
    for variant in RELEASED {
        let server = start(PROGRAM, variant, 0, &[]);
        orders_of_users(&server, 40);
        assert_books(&server, variant);
    }
}

fn assert_books(server: &Server, variant: &str) {
    let books = get(server, "/books").expect("the database answers");
    assert!(books.ends_with(r#""missing":0}"#), "{variant}: {books}");
}

fn orders_of_users(server: &Server, users: u32) {
    let answer = r#"{"product":1,"quantity":2,"cents":2194}"#;
    let exchange = post("/order", r#"{"product":1,"quantity":2}"#, answer);
    load(server, &Load::closed(exchange, users));
}

#[test]
fn a_lock_on_a_row_is_refused_where_there_is_none() {
    let refused = bench::testing::launch(PROGRAM, "open-transaction", 0, &[]);
    let said = refused.expect_err("SQLite locks no rows").to_string();
    assert!(said.contains("--database postgres://"), "{said}");
}

#[test]
fn variants_keep_the_contract() {
    let variants = ["exercise", "solution", "bigger-pool", "compare-and-set"];
    assert_contract(PROGRAM, include_str!("../chapter.toml"), &variants);
}
