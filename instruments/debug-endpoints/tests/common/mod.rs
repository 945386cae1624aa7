//! Requests over TCP, as anybody could send them.
#![allow(dead_code)] // Not every test needs all of it.

pub(crate) mod schema;

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use debug_endpoints::DebugEndpoints;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{Barrier, Mutex};

/// Paths of all endpoints that no feature takes away; a query may follow.
pub(crate) const ENDPOINTS: [&str; 15] = [
    "/debug?",
    "/debug/metrics?",
    "/debug/heartbeat?",
    "/debug/memory?",
    "/debug/sockets?",
    "/debug/await?",
    "/debug/await?format=svg&",
    "/debug/await?tail=99&",
    "/debug/threads?",
    "/debug/tasks?",
    "/debug/pprof/profile?",
    "/debug/pprof/flamegraph?",
    "/debug/look?",
    "/debug/look?tail=99&",
    "/debug/incidents?",
];

/// Starts a service on a runtime with two workers, and returns the runtime, the service's address, and that of its
/// endpoints' listener.
pub(crate) fn service(
    debug: impl FnOnce() -> DebugEndpoints,
    app: impl FnOnce(&DebugEndpoints) -> Router,
) -> (Runtime, SocketAddr, SocketAddr) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (own, admin) = runtime.block_on(async {
        let debug = debug();
        let app = app(&debug).into_make_service_with_connect_info::<SocketAddr>();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("bound");
        tokio::spawn(async move { axum::serve(listener, app).await });
        (own, debug.listen("127.0.0.1:0").expect("a free port"))
    });
    (runtime, own, admin)
}

/// Begins two tasks that wait for each other's lock for ever, and returns once they do.
pub(crate) fn deadlock(runtime: &Runtime) {
    static MET: AtomicUsize = AtomicUsize::new(0);
    async fn transfer(from: Arc<Mutex<u64>>, to: Arc<Mutex<u64>>, meet: Arc<Barrier>) {
        let debited = from.lock().await;
        meet.wait().await;
        MET.fetch_add(1, Ordering::Relaxed);
        let credited = to.lock().await;
        drop((debited, credited));
    }
    let (one, other) = (Arc::new(Mutex::new(1)), Arc::new(Mutex::new(2)));
    let meet = Arc::new(Barrier::new(2));
    let wanted = MET.load(Ordering::Relaxed) + 2;
    runtime.spawn(transfer(one.clone(), other.clone(), meet.clone()));
    runtime.spawn(transfer(other, one, meet));
    // Once both have the first lock, they have no other place to go to.
    wait_until("two tasks have met", || {
        MET.load(Ordering::Relaxed) == wanted
    });
    std::thread::sleep(Duration::from_millis(200));
}

/// Waits for a condition, for at most a minute.
#[track_caller]
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < patience, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Tries up to three times what a machine that stands still for a moment can spoil, and returns what was seen once it was
/// not. A fault spoils each attempt. An attempt asserts what the machine cannot touch.
#[track_caller]
pub(crate) fn once_in_three<Seen: Debug>(attempt: impl Fn() -> (bool, Seen)) -> Seen {
    let mut spoilt = Vec::new();
    while spoilt.len() < 3 {
        let (is_right, seen) = attempt();
        if is_right {
            return seen;
        }
        spoilt.push(seen);
    }
    panic!("not once in three times: {spoilt:?}");
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) fn ask(address: SocketAddr, path: &str) -> Answer {
    ask_as(address, path, &[("Host", "127.0.0.1:6060")])
}

/// Asks until the answer is right, for at most a minute: a profile of some tenths of a second may lack what a machine that
/// stands still did not run.
#[track_caller]
pub(crate) fn ask_until(
    address: SocketAddr,
    path: &str,
    is_right: impl Fn(&Answer) -> bool,
) -> Answer {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = ask(address, path);
        if is_right(&answer) {
            return answer;
        }
        assert!(Instant::now() < patience, "{path}: {}", answer.text());
    }
}

pub(crate) fn ask_as(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    let time_out = Some(Duration::from_secs(120));
    stream.set_read_timeout(time_out).expect("a time-out");
    write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n").expect("sent");
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n").expect("sent");
    }
    write!(stream, "\r\n").expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.expect("a whole head");
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    Answer {
        status: status.expect("a status"),
        body: answer.split_off(end + 4),
        head,
    }
}

/// Returns a number of this process's status, in KiB or as bits.
pub(crate) fn status(name: &str, radix: u32) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.expect(name);
    let word = line.split_whitespace().next().expect("a value");
    u64::from_str_radix(word, radix).expect("a number")
}

/// Returns the number of samples in folded stacks that contain a part.
pub(crate) fn samples_of(profile: &Answer, part: &str) -> u64 {
    let mut samples = 0;
    for line in profile.text().lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a line");
        if stack.contains(part) {
            samples += count.parse::<u64>().expect("a number");
        }
    }
    samples
}
