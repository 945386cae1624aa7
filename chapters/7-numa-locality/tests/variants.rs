//! What a reader relies on: all variants answer alike, and each makes the copies and keeps to the
//! CPUs that it says.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use bench::environment::numa_nodes;
use bench::server::{Launch, Server, get};
use loadgen::interrupt::Interrupt;
use measurement::regions::Placement;

const VARIANTS: [&str; 7] = [
    "problem",
    "exercise",
    "solution",
    "basic",
    "thread-isolated",
    "copies",
    "pinned",
];
const TIMEOUT: Duration = Duration::from_secs(30);

fn start(variant: &str) -> Server {
    let arguments = ["--texts", "20000"].map(str::to_owned);
    let launch = Launch {
        arguments: &arguments,
        ..Launch::of(Path::new(env!("CARGO_BIN_EXE_chapter7")), variant)
    };
    Server::start(&launch, &Interrupt::new()).expect("the server starts")
}

/// What `/check` answers to a body, on a connection of its own.
fn check(service: SocketAddr, body: &str) -> String {
    let mut stream = TcpStream::connect(service).expect("it listens");
    let length = body.len();
    let request = format!(
        "POST /check HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.rsplit("\r\n").next().unwrap_or_default().to_owned()
}

/// What a variant says of itself after it was asked on several connections at once.
fn placement(variant: &str) -> Placement {
    let server = start(variant);
    let service = server.service();
    let clients: Vec<_> = (0..8)
        .map(|_| thread::spawn(move || check(service, "a letter")))
        .collect();
    for client in clients {
        assert_eq!(client.join().expect("it ends"), "false");
    }
    let text = get(server.admin(), "/debug/placement", TIMEOUT).expect("it tells");
    serde_json::from_slice(&text).expect("a placement")
}

#[test]
fn all_variants_answer_alike() {
    let number = |number: u32| format!("{number:020}").repeat(32);
    for variant in VARIANTS {
        let server = start(variant);
        for (body, answer) in [
            (number(0), "true"),
            (number(19_999) + " and more", "true"),
            (number(20_000), "false"),
            (number(7)[..639].to_owned(), "false"),
            (
                "None of the forbidden texts begins as this letter does. ".repeat(12),
                "false",
            ),
            (String::new(), "false"),
        ] {
            assert_eq!(check(server.service(), &body), answer, "{variant}: {body}");
        }
        let elsewhere = get(server.service(), "/chess", TIMEOUT);
        assert!(elsewhere.expect_err("no such path").starts_with("404"));
    }
}

#[test]
fn who_keeps_copies_has_one_for_each_region_and_one_to_copy_from() {
    for (variant, copies) in [("problem", 1), ("pinned", 1)] {
        assert_eq!(placement(variant).copies.len(), copies, "{variant}");
    }
    let solution = placement("solution").copies;
    assert_eq!(solution.len(), numa_nodes() as usize + 1);
    // Workers that wander may not have come to every node yet.
    assert!((2..=solution.len()).contains(&placement("copies").copies.len()));
}

#[test]
#[cfg(target_os = "linux")]
fn only_pinned_workers_with_a_copy_of_their_region_are_at_home() {
    if loadgen::cpus::count() < 2 {
        // With one CPU every thread counts as pinned to it.
        return;
    }
    for (variant, pinned, at_home) in [
        ("problem", false, false),
        ("copies", false, false),
        ("pinned", true, false),
        ("solution", true, true),
    ] {
        for reader in placement(variant).readers {
            assert_eq!(reader.pinned_to.is_some(), pinned, "{variant}: {reader:?}");
            let home = if at_home { reader.reads } else { 0 };
            assert_eq!(reader.at_home, home, "{variant}: {reader:?}");
        }
    }
}
