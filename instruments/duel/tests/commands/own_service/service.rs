//! A service for tests, of the standard library alone. Its command line chooses its behaviour.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

struct Service {
    answer: String,
    delay: Duration,
    /// One in so many requests takes this time instead of `delay`; none does if the number is 0.
    late: (u64, Duration),
    stops_after: u64,
    /// Number of steps of work for each request, whatever time they take.
    work: u64,
    is_changing: bool,
    dies_after: u64,
    /// `true` if every third request is refused.
    is_shedding: bool,
    requests: AtomicU64,
}

fn main() {
    let mut port = std::env::var("PORT").unwrap_or_default();
    let mut service = Service {
        answer: "right".to_owned(),
        delay: Duration::ZERO,
        late: (0, Duration::ZERO),
        stops_after: u64::MAX,
        work: 0,
        is_changing: false,
        dies_after: u64::MAX,
        is_shedding: false,
        requests: AtomicU64::new(0),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value");
        match word.as_str() {
            "--port" => port = value(),
            "--answer" => service.answer = value(),
            "--delay-ms" => service.delay = Duration::from_millis(value().parse().expect("ms")),
            "--late-every" => service.late.0 = value().parse().expect("a number"),
            "--late-ms" => service.late.1 = Duration::from_millis(value().parse().expect("ms")),
            "--stops-after" => service.stops_after = value().parse().expect("a number"),
            "--work" => service.work = value().parse().expect("a number"),
            "--shedding" => service.is_shedding = true,
            "--changing" => service.is_changing = true,
            "--fixed" => {}
            "--admin-port" => drop(value()),
            "--dies-after" => service.dies_after = value().parse().expect("a number"),
            // The test reads the ids of all processes that ran, to see whether any still runs.
            "--pids" => {
                let id = std::process::id().to_string();
                std::fs::write(format!("{}/{id}", value()), "").expect("a folder");
            }
            "--silent" => std::thread::sleep(Duration::from_secs(600)),
            "--refuses" => {
                eprintln!("no database here");
                std::process::exit(7);
            }
            other => panic!("no {other}"),
        }
    }
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("a free port");
    println!("http://{}", listener.local_addr().expect("a port"));
    let service = Arc::new(service);
    for stream in listener.incoming() {
        let service = Arc::clone(&service);
        std::thread::spawn(move || serve(stream.expect("a connection"), &service));
    }
}

fn serve(mut stream: TcpStream, service: &Service) {
    let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
    while let Some(Ok(first)) = lines.next() {
        while lines
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        let number = service.requests.fetch_add(1, Ordering::Relaxed);
        if number >= service.dies_after {
            eprintln!("out of paper");
            std::process::exit(9);
        }
        let is_late = number.checked_rem(service.late.0) == Some(1);
        std::thread::sleep(if is_late { service.late.1 } else { service.delay });
        if number >= service.stops_after {
            std::thread::sleep(Duration::from_secs(600));
        }
        work(service.work);
        let path = first.split(' ').nth(1).unwrap_or_default();
        let (status, body) = match path {
            _ if service.is_shedding && number % 3 == 1 => {
                ("503 Service Unavailable", "come back later".to_owned())
            }
            "/moved" => ("302 Found", String::new()),
            "/none" => ("404 Not Found", "no such page".to_owned()),
            "/metrics" => (
                "200 OK",
                format!("served_total{{a=\"b\"}} {number}\ndb_connections_idle_in_use 3\n"),
            ),
            _ if service.is_changing => ("200 OK", format!("{number}")),
            _ => ("200 OK", service.answer.clone()),
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Computes `steps` steps, each of which needs the one before it.
fn work(steps: u64) {
    let step = |number: u64, step| number.wrapping_mul(6_364_136_223_846_793_005) ^ step;
    std::hint::black_box((0..steps).fold(1, step));
}
