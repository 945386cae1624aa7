//! What a look costs: figures that say nothing on a busy machine. Run it alone:
//! `cargo test --release -p duel-task-reader --test figures -- --ignored --nocapture`.

mod common;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{Build, Profile};
use task_reader::{Binary, Index, Reader};

/// Snapshots for the median and the worst stop.
const SNAPSHOTS: usize = 100;

/// Connections that ask, and requests of all of them together.
const CONNECTIONS: u64 = 8;
const REQUESTS: u64 = 100_000;

#[test]
#[ignore = "takes minutes, and measures"]
fn weekly_figures() {
    println!(
        "tasks | index s | first s | later s | median ms still | worst ms still | KiB copied | peak MiB"
    );
    for tasks in [100, 10_000, 100_000] {
        let program = Build::new("many").profile(Profile::Release);
        let program = program.argument(&tasks.to_string()).start();
        let began = Instant::now();
        let binary = Binary::of_process(program.pid()).unwrap();
        let index = Index::new(&binary).unwrap();
        let indexed = began.elapsed();
        let reader = Reader::new(&index);
        let (mut stops, mut copied) = (Vec::new(), 0);
        let (mut first, mut last) = (Duration::ZERO, Duration::ZERO);
        let snapshots = if tasks > 10_000 {
            SNAPSHOTS / 10
        } else {
            SNAPSHOTS
        };
        for number in 0..snapshots {
            let began = Instant::now();
            let snapshot = reader.snapshot(program.pid()).unwrap();
            last = began.elapsed();
            if number == 0 {
                first = last;
                assert!(
                    snapshot.tasks.len() >= tasks.min(100_000),
                    "{}",
                    snapshot.tasks.len()
                );
            }
            stops.push(snapshot.standstill.longest);
            copied = snapshot.standstill.bytes;
        }
        stops.sort_unstable();
        println!(
            "{tasks} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {}",
            indexed.as_secs_f64(),
            first.as_secs_f64(),
            last.as_secs_f64(),
            stops[stops.len() / 2].as_secs_f64() * 1e3,
            stops[stops.len() - 1].as_secs_f64() * 1e3,
            copied >> 10,
            peak_mib(),
        );
    }
}

#[test]
#[ignore = "takes minutes, and measures"]
fn weekly_no_request_is_lost() {
    let program = Build::new("many").profile(Profile::Release);
    let program = program.argument("1000").start();
    let binary = Binary::of_process(program.pid()).unwrap();
    let index = Index::new(&binary).unwrap();
    let reader = Reader::new(&index);
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let port = program.port();
            std::thread::spawn(move || requests(port, REQUESTS / CONNECTIONS))
        })
        .collect();
    let mut looks = 0;
    while clients.iter().any(|client| !client.is_finished()) {
        reader.snapshot(program.pid()).unwrap();
        looks += 1;
    }
    let answered: u64 = clients
        .into_iter()
        .map(|client| client.join().unwrap())
        .sum();
    println!("{answered} of {REQUESTS} requests were answered while {looks} snapshots were taken");
    assert_eq!(answered, REQUESTS);
    assert!(looks > 0);
}

/// Asks so often, and returns how many answers were right.
fn requests(port: u16, number: u64) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut right = 0;
    for request in 0..number {
        let asked = request.to_le_bytes()[0];
        let mut answer = [0];
        let is_answered = stream
            .write_all(&[asked])
            .and_then(|()| stream.read_exact(&mut answer));
        right += u64::from(is_answered.is_ok() && answer[0] == asked.wrapping_add(1));
    }
    right
}

/// Returns the most memory that this process has had, in MiB.
fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}
