//! What a service owes its customers when there are too many of them, and when it dies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bench::testing::{get, launch, post, start};
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::load::{Arrivals, Exchange, Load};
use measurement::outcome::Outcome;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter9");
const BODY: &str = r#"{"product":1,"quantity":2}"#;

fn order() -> Exchange {
    post("/order", BODY, r#"{"product":1,"quantity":2,"cents":2194}"#)
}

/// A load that may go wrong.
fn run(service: SocketAddr, load: &Load) -> Outcome {
    let interrupt = Interrupt::new();
    loadgen::run(service, load, &Settings::of(&interrupt)).expect("the load can be sent")
}

/// Status and headers of the answer to one order.
fn head(service: SocketAddr) -> String {
    let mut stream = TcpStream::connect(service).expect("it listens");
    let length = BODY.len();
    write!(
        stream,
        "POST /order HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{BODY}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.to_lowercase()
}

/// Four times as many orders as five connections can hold for 50 ms each.
#[test]
fn who_gets_no_connection_in_time_is_told_when_to_come_back() {
    let server = start(PROGRAM, "problem", 0, &[]);
    let service = server.service();
    let load = Load {
        arrivals: Arrivals::Open { per_second: 400.0 },
        duration: Duration::from_secs(9),
        ..Load::closed(order(), 3_000)
    };
    let loaded = std::thread::spawn(move || run(service, &load));
    // By now the queue is about as long as anybody waits for a connection. Of fifty at once it holds no
    // more than a few.
    std::thread::sleep(Duration::from_millis(2_500));
    let asked: Vec<_> = (0..50)
        .map(|_| std::thread::spawn(move || head(service)))
        .collect();
    let refusal = asked
        .into_iter()
        .map(|one| one.join().expect("an answer"))
        .find(|answer| answer.starts_with("http/1.1 503 "));
    let outcome = loaded.join().expect("it ends");
    let refusal = refusal.unwrap_or_else(|| panic!("no refusal: {outcome:?}"));
    assert!(refusal.contains("\r\nretry-after: 1\r\n"), "{refusal}");
    assert!(outcome.completed > 0, "{outcome:?}");
    let books = get(&server, "/books").expect("it has recovered");
    assert!(books.ends_with(r#""missing":0}"#), "{books}");
}

#[test]
fn a_database_that_is_not_there_is_told_in_one_sentence() {
    for (url, words) in [
        ("postgres://me:secret@127.0.0.1:1/shop", "refused"),
        ("mysql://127.0.0.1/shop", "driver"),
        ("sqlite:/no/such/folder/orders.db", "unable to open"),
    ] {
        let refused = launch(PROGRAM, "problem", 0, &["--database", url]);
        let said = refused.expect_err("there is none").to_string();
        assert!(said.contains("the database cannot be opened"), "{said}");
        assert!(said.contains(words), "{url}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn a_lock_on_a_row_is_refused_where_there_is_none() {
    let refused = launch(PROGRAM, "open-transaction", 0, &[]);
    let said = refused.expect_err("SQLite locks no rows").to_string();
    assert!(said.contains("--database postgres://"), "{said}");
}

// ANCHOR: killed
/// What was confirmed is there after a crash, and what is there was ordered.
#[test]
fn a_server_that_is_killed_under_load_has_lost_and_invented_nothing() {
    const USERS: u32 = 40;
    for (variant, after_ms) in [
        ("problem", 700),
        ("solution", 400),
        ("compare-and-set", 550),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("orders.db");
        let database = format!("sqlite:{}?mode=rwc", file.display());
        let arguments = ["--database", database.as_str()];
        let mut server = start(PROGRAM, variant, 0, &arguments);
        let service = server.service();
        let loaded = std::thread::spawn(move || run(service, &Load::closed(order(), USERS)));
        std::thread::sleep(Duration::from_millis(after_ms));
        server.kill();
        let confirmed = loaded.join().expect("it ends").completed;

        let server = start(PROGRAM, variant, 0, &arguments);
        let books = get(&server, "/books").expect("it is back");
        let (orders, missing) = books
            .trim_start_matches(r#"{"orders":"#)
            .split_once(r#","missing":"#)
            .expect("both");
        assert_eq!(missing, "0}", "{variant}: stock and orders do not add up");
        let orders: u64 = orders.parse().expect("a count");
        assert!(confirmed > 0, "{variant}: it was killed too early");
        // Each user may have had one order that was written and never confirmed.
        let possible = confirmed..=confirmed + u64::from(USERS);
        assert!(
            possible.contains(&orders),
            "{variant}: {orders} of {confirmed}"
        );
    }
}
// ANCHOR_END: killed
