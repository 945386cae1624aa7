//! Behavior of a service when it has too many customers, and when it dies.

use std::time::Duration;

use children::Interrupt;
use course::bench::contract::{Chapter, crowd};
use course::bench::testing::{get, launch, post, start};
use course::measurement::load::Exchange;
use engine::load::Settings;
use engine::traffic::Traffic;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter9");
const BODY: &str = r#"{"product":1,"quantity":2}"#;

fn order() -> Exchange {
    post("/order", BODY, r#"{"product":1,"quantity":2,"cents":2194}"#)
}

/// Sends more customers at once than five connections can serve, at 50 ms each, before the pool's time-out.
#[tokio::test]
async fn who_gets_no_connection_in_time_is_told_when_to_come_back() {
    const CUSTOMERS: u32 = 800;
    let problem = Chapter {
        program: PROGRAM,
        variants: &["problem"],
        fixes: &[],
    };
    problem
        .every_variant(async |service| {
            let answers = crowd(CUSTOMERS, async |_| service.post("/order", BODY).await).await;
            let (sold, refused): (Vec<_>, Vec<_>) =
                answers.iter().partition(|answer| answer.body().is_some());
            assert!(!sold.is_empty() && !refused.is_empty(), "{answers:?}");
            for answer in refused {
                assert_eq!(*answer, "503");
                assert_eq!(answer.header("retry-after"), "1");
            }
            let books = service.get("/books").await;
            assert!(books.to_string().ends_with(r#""missing":0}"#), "{books}");
        })
        .await;
}

#[test]
fn a_database_that_is_not_there_is_told_in_one_sentence() {
    for (url, words) in [
        (
            "postgres://me:secret@127.0.0.1:1/shop",
            "--features postgres",
        ),
        ("sqlite:/no/such/folder/orders.db", "unable to open"),
    ] {
        let refused = launch(PROGRAM, "problem", 0, &["--database", url]);
        let said = refused.expect_err("there is none").to_string();
        assert!(said.contains("the database cannot be opened"), "{said}");
        assert!(said.contains(words), "{url}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

/// Kills a server under load. Afterwards the books must hold every confirmed order, and none that nobody placed.
#[test]
fn a_server_that_is_killed_under_load_has_lost_and_invented_nothing() {
    const USERS: u32 = 40;
    let orders_in = |books: &str| -> u64 {
        let count = books.trim_start_matches(r#"{"orders":"#).split(',').next();
        count.expect("one").parse().expect("a count")
    };
    for (variant, after_ms) in [
        ("problem", 300),
        ("solution", 100),
        ("compare-and-set", 200),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("orders.db");
        let database = format!("sqlite:{}?mode=rwc", file.display());
        let arguments = ["--database", database.as_str()];
        let mut server = start(PROGRAM, variant, 0, &arguments);
        let service = server.service();
        let loaded = std::thread::spawn(move || {
            let interrupt = Interrupt::new();
            let load = Traffic {
                duration: Duration::from_secs(2),
                ..order().by(USERS)
            };
            engine::load::run(service, &load, &Settings::of(&interrupt))
        });
        // Once there are more orders than users, one of them was confirmed.
        let is_confirmed = |books: String| orders_in(&books) > u64::from(USERS);
        while !loaded.is_finished() && !get(&server, "/books").is_ok_and(is_confirmed) {}
        std::thread::sleep(Duration::from_millis(after_ms));
        server.kill();
        let outcome = loaded.join().expect("it ends");
        let confirmed = outcome.expect("the load can be sent").users.right_in_all;

        let server = start(PROGRAM, variant, 0, &arguments);
        let books = get(&server, "/books").expect("it is back");
        let adds_up = books.ends_with(r#""missing":0}"#);
        assert!(adds_up, "{variant}: stock and orders do not add up");
        let orders = orders_in(&books);
        assert!(confirmed > 0, "{variant}: it was killed too early");
        // Each user may have had one order that was written and never confirmed.
        let possible = confirmed..=confirmed + u64::from(USERS);
        assert!(
            possible.contains(&orders),
            "{variant}: {orders} of {confirmed}"
        );
    }
}
