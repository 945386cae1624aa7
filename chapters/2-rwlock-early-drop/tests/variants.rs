//! What a reader relies on: all variants answer alike, and they differ in whether a write is made
//! while others are in the database.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use bench::server::{Launch, Server};
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::load::{Exchange, Load, Writes};
use measurement::outcome::Outcome;

const VARIANTS: [&str; 6] = [
    "problem",
    "exercise",
    "solution",
    "mutex-held",
    "mutex-dropped",
    "snapshot",
];
const USERS: u32 = 40;

fn start(variant: &str, data_seed: u64) -> Server {
    let launch = Launch {
        data_seed,
        ..Launch::of(Path::new(env!("CARGO_BIN_EXE_chapter2")), variant)
    };
    Server::start(&launch, &Interrupt::new()).expect("the server starts")
}

/// The status and the body of the answer to one request.
fn ask(server: &Server, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server.service()).expect("it listens");
    let length = body.len();
    let head = "HTTP/1.1\r\nhost: localhost\r\nconnection: close";
    write!(
        stream,
        "{request} {head}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).expect("a status");
    format!("{status} {body}")
}

/// Two seconds of users who never pause. `write_share` of their requests are writes.
fn load(server: &Server, write_share: f64) -> Outcome {
    let write = Exchange {
        method: "POST".to_owned(),
        body: Some("87-89-34 snakes".to_owned()),
        ..Exchange::get("/subscribe", "subscribed")
    };
    let load = Load {
        writes: (write_share > 0.0).then_some(Writes {
            exchange: write,
            share: write_share,
        }),
        warm_up: Duration::from_millis(200),
        duration: Duration::from_secs(2),
        ..Load::closed(Exchange::get("/read", "6"), USERS)
    };
    let interrupt = Interrupt::new();
    let settings = Settings::of(&interrupt);
    let outcome = loadgen::run(server.service(), &load, &settings).expect("it can be sent");
    assert_eq!(outcome.wrong_answers, 0);
    assert_eq!(outcome.error_count(), 0);
    outcome
}

fn count(server: &Server, metric: &str) -> u64 {
    let metrics = server.metrics().expect("the admin listener answers");
    metrics.count(metric).expect("the lab counts it")
}

/// The most calls that were in the database while a write was made, at every fifth request a write.
fn calls_while_writing(variant: &str) -> u64 {
    let server = start(variant, 0);
    let outcome = load(&server, 0.2);
    assert!(outcome.writes > 0, "{variant} made no write");
    assert!(count(&server, "database_records_total") >= outcome.writes);
    count(&server, "database_calls_in_flight_at_record_peak")
}

#[test]
fn all_variants_answer_alike() {
    for (data_seed, sum) in [(0, "200 6"), (1_000, "200 3006")] {
        for variant in VARIANTS {
            let server = start(variant, data_seed);
            for (request, body, expected) in [
                ("GET /read", "", sum),
                ("GET /topics/87-89-34", "", "200 cats,dogs"),
                ("POST /subscribe", "87-89-34 snakes", "200 subscribed"),
                ("POST /subscribe", "87-89-34 birds", "200 subscribed"),
                ("POST /subscribe", "87-89-34 snakes", "200 subscribed"),
                ("GET /topics/87-89-34", "", "200 birds,cats,dogs,snakes"),
                ("GET /topics/12-67-22", "", "200 birds,mice,snakes"),
                ("GET /read", "", sum),
                ("POST /subscribe", "00-00-00 snakes", "404 "),
                ("GET /topics/00-00-00", "", "404 "),
                ("POST /subscribe", "87-89-34", "400 "),
                ("POST /subscribe", "87-89-34 ", "400 "),
                ("POST /subscribe", "87-89-34 two words", "400 "),
            ] {
                let answer = ask(&server, request, body);
                assert_eq!(answer, expected, "{variant}: {request} {body}");
            }
            assert_eq!(count(&server, "database_records_total"), 3, "{variant}");
            assert_eq!(count(&server, "database_calls_total"), 2, "{variant}");
        }
    }
}

#[test]
fn where_guards_are_held_no_write_is_made_during_a_call() {
    for variant in ["problem", "mutex-held"] {
        assert_eq!(calls_while_writing(variant), 0, "{variant}");
    }
}

#[test]
fn where_guards_end_early_writes_are_made_during_calls() {
    for variant in ["solution", "mutex-dropped", "snapshot"] {
        let calls = calls_while_writing(variant);
        assert!(calls >= u64::from(USERS / 2), "{variant}: {calls}");
    }
}

/// A test that only reads does not notice the fault.
#[test]
fn without_writes_the_problem_lets_every_user_into_the_database_at_once() {
    for (variant, expected) in [("problem", USERS), ("mutex-held", 1)] {
        let server = start(variant, 0);
        load(&server, 0.0);
        let peak = count(&server, "database_calls_in_flight_peak");
        assert_eq!(peak, u64::from(expected), "{variant}");
    }
}
