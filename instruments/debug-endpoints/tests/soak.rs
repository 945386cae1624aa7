//! Profiles of all kinds in turn, of a service under load, in a process of its own: its first CPU profile is
//! taken under load too.
//!
//! A sampler that takes a lock in a signal handler deadlocks sooner or later, and so does whoever looks
//! names up while the allocator records its callers. `PROFILES` says how many rounds there are.
#![cfg(all(unix, feature = "cpu"))]

mod common;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use common::{Answer, ask, service};
use debug_endpoints::DebugEndpoints;

/// Computes for about a millisecond.
async fn computes() -> String {
    tokio::task::yield_now().await;
    let began = Instant::now();
    let mut numbers = Vec::new();
    while began.elapsed() < Duration::from_millis(1) {
        numbers.push(numbers.len());
    }
    numbers.len().to_string()
}

/// The answer, as soon as no other profile is being taken.
fn ask_until_free(address: SocketAddr, path: &str) -> Answer {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = ask(address, path);
        if answer.status != 409 {
            return answer;
        }
        assert!(Instant::now() < patience, "{path}: always busy");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn profiles_of_all_kinds_under_load_leave_the_service_standing() {
    let rounds = std::env::var("PROFILES").map_or(10, |rounds| rounds.parse().expect("a number"));
    let (_runtime, own, admin) = service(DebugEndpoints::new, |debug| {
        Router::new().route("/", get(computes)).layer(debug.layer())
    });
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(ask(own, "/").status, 200);
                }
            })
        })
        .collect();

    let mut deepest = 0;
    for round in 0..rounds {
        // Both at once, as a collector asks; every other time whoever asked for the second hangs up.
        let waits = std::thread::spawn(move || {
            if round % 2 == 0 {
                let waits = ask_until_free(admin, "/debug/pprof/await?seconds=0.1&captures=2000");
                assert_eq!(waits.status, 200, "{}", waits.text());
            } else {
                let mut stream = TcpStream::connect(admin).expect("it listens");
                stream
                    .write_all(b"GET /debug/await?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    .expect("sent");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let cpu = "/debug/pprof/profile?seconds=0.1&frequency=250&format=folded";
        let cpu = ask_until_free(admin, cpu);
        assert_eq!(cpu.status, 200, "{}", cpu.text());
        let folded = cpu.text();
        let of_handler = folded.lines().filter(|stack| {
            ["tokio::runtime", "hyper::", "soak::computes"]
                .iter()
                .all(|frame| stack.contains(frame))
        });
        let depths = of_handler.map(|stack| stack.split(';').count());
        deepest = depths.max().unwrap_or(0).max(deepest);
        waits.join().expect("both were taken");
        if cfg!(feature = "heap") {
            let heap = ask_until_free(admin, "/debug/heap?seconds=0.05");
            assert_eq!(heap.status, 200, "{}", heap.text());
        }
    }
    assert!(
        deepest > 15,
        "no full stack from the runtime to the handler"
    );
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("every request was answered");
    }
    assert_eq!(ask(own, "/").status, 200);
}
