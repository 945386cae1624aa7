//! The embedded generator against servers that behave well and badly. Times are bounded from the
//! side that a busy machine cannot push them over.

mod faults;
mod server;
mod timing;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use loadgen::cpus;
use loadgen::interrupt::Interrupt;
use loadgen::{GeneratorError, Settings, run};
use measurement::load::{Arrivals, Bystander, Exchange, Load, Writes};
use measurement::outcome::Outcome;
use server::{Reaction, Server, answer, ok};

/// `users` who ask for `/read` without a pause for half a second.
fn load(users: u32) -> Load {
    Load {
        warm_up: Duration::from_millis(100),
        duration: Duration::from_millis(500),
        time_out: Duration::from_secs(10),
        ..Load::closed(Exchange::get("/read", "6"), users)
    }
}

fn send(target: SocketAddr, load: &Load) -> Outcome {
    send_with(target, load, &[]).unwrap()
}

fn send_with(target: SocketAddr, load: &Load, cpus: &[usize]) -> Result<Outcome, GeneratorError> {
    let settings = Settings {
        cpus,
        interrupt: &Interrupt::new(),
        progress: None,
    };
    run(target, load, &settings)
}

#[test]
fn counts_agree_with_the_server() {
    let server = Server::start(|_, _| ok("6"));
    let outcome = send(server.address, &load(8));
    assert!(outcome.completed > 0);
    assert!(outcome.completed <= server.requests() as u64);
    assert_eq!(outcome.per_second.iter().sum::<u64>(), outcome.completed);
    assert_eq!(outcome.error_count(), 0, "{:?}", outcome.errors);
    assert_eq!(outcome.wrong_answers, 0);
    assert!(outcome.unfinished <= 8);
    // One for each user, and the one that looks whether anybody is there.
    assert_eq!(server.connections(), 9);
    assert!(outcome.latency.min_ms > 0.0);
    assert!(outcome.latency.at(0.5) <= outcome.latency.at(0.99));
    assert!(outcome.generator.cpu_share.is_some());
    assert!(outcome.service_latency.is_none());
}

#[test]
fn two_threads_share_the_users() {
    let cpus = cpus::available();
    if cpus.len() < 2 || cfg!(target_os = "macos") {
        return;
    }
    let server = Server::start(|_, _| {
        Reaction::Late(Duration::from_millis(5), server::answer("200 OK", "6"))
    });
    let outcome = send_with(server.address, &load(9), &cpus[..2]).unwrap();
    assert!(outcome.completed > 0);
    assert_eq!(outcome.per_second.iter().sum::<u64>(), outcome.completed);
    assert_eq!(outcome.generator.users, 9);
    assert_eq!(server.connections(), 10);
}

#[test]
fn more_threads_than_users_are_not_started() {
    let cpus = cpus::available();
    if cpus.len() < 2 || cfg!(target_os = "macos") {
        return;
    }
    let server = Server::start(|_, _| ok("6"));
    let outcome = send_with(server.address, &load(1), &cpus).unwrap();
    assert!(outcome.completed > 0);
}

#[test]
fn a_connection_a_request_where_the_load_says_so() {
    let server = Server::start(|_, text| {
        assert!(text.contains("\r\nconnection: close\r\n"));
        ok("6")
    });
    let outcome = send(
        server.address,
        &Load {
            keep_alive: false,
            ..load(4)
        },
    );
    assert!(outcome.completed > 0);
    assert_eq!(outcome.error_count(), 0, "{:?}", outcome.errors);
    assert!(server.connections() > server.requests());
}

#[test]
fn method_path_and_body_arrive_as_the_load_has_them() {
    let server = Server::start(|_, text| {
        let right = text.starts_with("POST /sum?of=ids HTTP/1.1\r\n")
            && text.contains("\r\nhost: 127.0.0.1:")
            && text.contains("\r\ncontent-type: application/json\r\n")
            && text.ends_with("\r\n\r\n[1,2,3]");
        ok(if right { "6" } else { text })
    });
    let mut load = load(2);
    load.exchange.method = "POST".to_owned();
    load.exchange.path = "/sum?of=ids".to_owned();
    load.exchange.body = Some("[1,2,3]".to_owned());
    let outcome = send(server.address, &load);
    assert_eq!(outcome.first_wrong_answer, None);
    assert!(outcome.completed > 0);
}

#[test]
fn two_thousand_users_at_once() {
    let server = Server::start(|_, _| ok("6"));
    let mut load = load(2000);
    load.arrivals = Arrivals::Closed {
        think: Duration::from_millis(500),
    };
    load.duration = Duration::from_secs(1);
    let outcome = send(server.address, &load);
    assert_eq!(outcome.error_count(), 0, "{:?}", outcome.errors);
    assert_eq!(server.connections(), 2001);
    // 4,000 a second if nothing else ran here.
    assert!(outcome.requests_per_second <= 4100.0);
    assert!(outcome.requests_per_second > 1000.0);
}

#[test]
fn an_interrupt_ends_the_run_soon() {
    let server = Server::start(|_, _| Reaction::Silence);
    let interrupt = Interrupt::new();
    let setter = interrupt.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        setter.set();
    });
    let start = Instant::now();
    let load = Load {
        duration: Duration::from_secs(60),
        ..load(50)
    };
    let settings = Settings {
        cpus: &[],
        interrupt: &interrupt,
        progress: None,
    };
    let result = run(server.address, &load, &settings);
    assert!(matches!(result, Err(GeneratorError::Interrupted)));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn progress_is_told() {
    let server = Server::start(|_, _| ok("6"));
    let told = std::cell::RefCell::new(Vec::new());
    let settings = Settings {
        cpus: &[],
        interrupt: &Interrupt::new(),
        progress: Some(&|progress| told.borrow_mut().push(progress)),
    };
    run(server.address, &load(2), &settings).unwrap();
    let told = told.borrow();
    assert!(!told.is_empty());
    assert!(
        told.windows(2)
            .all(|pair| pair[0].elapsed <= pair[1].elapsed)
    );
    assert!(
        told.iter()
            .all(|progress| progress.total >= Duration::from_millis(600))
    );
}

#[test]
fn what_cannot_be_sent_is_said_in_a_sentence() {
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let sentence = |target, load: &Load, cpus: &[usize]| {
        send_with(target, load, cpus).unwrap_err().to_string()
    };
    let text = sentence(nobody, &load(1), &[]);
    assert!(
        text.starts_with(&format!("no server answers at {nobody}: ")),
        "{text}"
    );
    assert!(text.contains("cargo run -p chapter1"), "{text}");

    let text = sentence(nobody, &load(0), &[]);
    assert!(
        text.contains("it has no users") && text.contains("chapter.toml"),
        "{text}"
    );

    let mut endless = load(1);
    endless.arrivals = Arrivals::Open { per_second: 0.0 };
    assert!(sentence(nobody, &endless, &[]).contains("its rate"));

    if cfg!(target_os = "linux") {
        let server = Server::start(|_, _| ok("6"));
        let text = sentence(server.address, &load(1), &[4000]);
        assert!(
            text.starts_with("cannot pin a thread to CPU [4000]"),
            "{text}"
        );
    }
}

#[test]
fn writes_have_their_share_and_leave_the_latencies_alone() {
    let server = Server::start(|_, text| {
        if text.starts_with("POST /subscribe ") {
            ok("subscribed")
        } else {
            Reaction::Late(Duration::from_millis(20), answer("200 OK", "6"))
        }
    });
    let mut load = load(20);
    load.writes = Some(Writes {
        exchange: Exchange {
            method: "POST".to_owned(),
            body: Some("87-89-34 snakes".to_owned()),
            ..Exchange::get("/subscribe", "subscribed")
        },
        share: 0.25,
    });
    let outcome = send(server.address, &load);
    assert_eq!(outcome.wrong_answers, 0, "{:?}", outcome.first_wrong_answer);
    let share = outcome.writes as f64 / outcome.completed as f64;
    assert!((share - 0.25).abs() < 0.05, "{share} of writes");
    assert!(outcome.latency.min_ms >= 20.0, "{:?}", outcome.latency);
}

#[test]
fn bystanders_keep_their_pace_beside_a_slow_load() {
    let server = Server::start(|_, text| {
        if text.starts_with("GET /ping ") {
            ok("pong")
        } else {
            Reaction::Late(Duration::from_millis(100), answer("200 OK", "6"))
        }
    });
    let mut load = load(4);
    load.duration = Duration::from_secs(1);
    load.bystander = Some(Bystander {
        exchange: Exchange::get("/ping", "pong"),
        per_second: 100.0,
    });
    let outcome = send(server.address, &load);
    let bystander = outcome.bystander.expect("the load has a bystander");
    assert!(bystander.errors.is_empty(), "{:?}", bystander.errors);
    assert!(
        (20..=110).contains(&bystander.completed),
        "{}",
        bystander.completed
    );
    assert!(outcome.latency.min_ms >= 100.0, "its own requests only");
}
