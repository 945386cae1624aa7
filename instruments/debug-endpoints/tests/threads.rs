//! Places at which threads are blocked, in services with each kind of fault.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
#![allow(unsafe_code)] // To forbid this process what containers forbid.

mod common;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use common::{ask, ask_until};
use debug_endpoints::DebugEndpoints;
use tokio::runtime::Runtime;

/// There is one profile at a time in a process, and these tests share one.
static ALONE: Mutex<()> = Mutex::new(());

/// Lock like that of a map whose guards can be held across an await.
struct Shard {
    is_taken: Mutex<bool>,
    freed: Condvar,
}

struct Guard;

/// Flag that ends threads that wait in vain.
static IS_OVER: AtomicBool = AtomicBool::new(false);

static SHARD: Shard = Shard {
    is_taken: Mutex::new(false),
    freed: Condvar::new(),
};

impl Shard {
    fn lock(&self) -> Guard {
        let is_taken = self.is_taken.lock().expect("nobody panics");
        let is_over = || IS_OVER.load(Relaxed);
        let taken = self
            .freed
            .wait_while(is_taken, |taken| *taken && !is_over());
        *taken.expect("nobody panics") = true;
        Guard
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        *SHARD.is_taken.lock().expect("nobody panics") = false;
        SHARD.freed.notify_one();
    }
}

async fn visit() -> &'static str {
    let _guard = SHARD.lock();
    // The thread that should wake this task up is blocked on the guard.
    tokio::time::sleep(Duration::from_millis(20)).await;
    "visited"
}

/// Starts a [`common::service`]; a failing test does not wait for workers that are blocked for ever.
fn service(app: impl FnOnce(&DebugEndpoints) -> Router) -> (Service, SocketAddr, SocketAddr) {
    let (runtime, own, admin) = common::service(DebugEndpoints::new, app);
    (Service(Some(runtime)), own, admin)
}

struct Service(Option<Runtime>);

impl Drop for Service {
    fn drop(&mut self) {
        self.0.take().expect("one").shutdown_background();
    }
}

/// Sends a request without waiting for its answer; it goes on as long as the returned stream lives.
fn send(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n").expect("sent");
    stream
}

/// Returns the line of a profile that has all of these parts; profiles are taken until there is one.
fn line_with(admin: SocketAddr, parts: &[&str]) -> String {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let folded = ask(admin, "/debug/threads?seconds=0.3").text();
        let mut lines = folded.lines();
        let found = lines.find(|line| parts.iter().all(|part| line.contains(part)));
        if let Some(line) = found {
            return line.to_owned();
        }
        assert!(Instant::now() < patience, "no {parts:?} in\n{folded}");
    }
}

#[test]
fn a_guard_held_across_an_await_is_found_when_no_worker_is_left() {
    let _alone = ALONE.lock();
    let (_service, own, admin) = service(|debug| {
        Router::new()
            .route("/visit", get(visit))
            .layer(debug.layer())
    });
    let _stuck: Vec<_> = (0..8).map(|_| send(own, "/visit")).collect();
    let line = line_with(
        admin,
        &[
            "tokio worker;(blocked in futex);",
            "threads::visit",
            "Shard",
        ],
    );
    // A build without debug information has no lines.
    if option_env!("CARGO_PROFILE_TEST_DEBUG") != Some("0") {
        assert!(line.contains("tests/threads.rs:"), "{line}");
    }
    let folded = ask(admin, "/debug/threads?seconds=3").text();
    assert!(
        folded.starts_with("tokio worker;(blocked in futex)"),
        "blocked first:\n{folded}"
    );
    let json = ask(admin, "/debug/threads/last?format=json");
    let json: serde_json::Value = serde_json::from_slice(&json.body).expect("JSON");
    let threads = json["threads"].as_array().expect("threads");
    let stuck = |thread: &&serde_json::Value| {
        thread["is_runtime"] == true && thread["role"] == "tokio worker" && thread["blocked"] == 1.0
    };
    let stuck = threads.iter().find(stuck).expect("a worker");
    let own = stuck["stacks"][0]["own"].as_str().expect("a function");
    assert!(own.contains("threads::") && !own.contains("std::"), "{own}");
    // Sleeping threads are stopped once, and not at each of the moments.
    let (moments, stops) = (&stuck["samples"], stuck["stops"].as_u64());
    assert!(
        stops.is_some_and(|stops| stops < 5),
        "{stops:?} stops in {moments} moments"
    );
    IS_OVER.store(true, Relaxed);
    SHARD.freed.notify_all();
}

static CHILD: Mutex<Option<Child>> = Mutex::new(None);
static SENDER: Mutex<Option<mpsc::Sender<()>>> = Mutex::new(None);
type End = fn();

/// Counter that is raised to end threads that sleep in vain.
static TURN: AtomicU32 = AtomicU32::new(0);

fn sleep_in_vain() {
    let turn = TURN.load(Relaxed);
    while TURN.load(Relaxed) == turn {
        std::thread::sleep(Duration::from_millis(20));
    }
}

async fn logs() {
    let mut unread = Command::new("sleep");
    let mut unread = unread
        .arg("60")
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let mut pipe = unread.stdin.take().expect("piped");
    *CHILD.lock().expect("nobody panics") = Some(unread);
    let line = [b'.'; 1024];
    while pipe.write_all(&line).is_ok() {}
}
async fn sleeps() {
    sleep_in_vain();
}
async fn waits_for_a_pool() {
    let (sender, receiver) = mpsc::channel();
    *SENDER.lock().expect("nobody panics") = Some(sender);
    assert!(receiver.recv().is_err());
}
async fn exports() {
    let work = tokio::task::spawn_blocking(sleep_in_vain);
    work.await.expect("no panic");
}
async fn gives_its_tasks_away() {
    tokio::task::block_in_place(sleep_in_vain);
}

#[test]
fn a_blocking_call_is_found_with_the_handler_that_makes_it_and_the_role_of_its_thread() {
    let _alone = ALONE.lock();
    let (_service, own, admin) = service(|debug| {
        let routes = Router::new()
            .route("/logs", get(logs))
            .route("/sleeps", get(sleeps));
        let routes = routes
            .route("/exports", get(exports))
            .route("/away", get(gives_its_tasks_away));
        routes
            .route("/waits", get(waits_for_a_pool))
            .layer(debug.layer())
    });
    let over: End = || _ = TURN.fetch_add(1, Relaxed);
    let killed: End = || {
        let mut child = CHILD.lock().expect("nobody panics");
        let child = child.as_mut().expect("started");
        child.kill().and_then(|()| child.wait()).expect("killed");
    };
    let disconnected: End = || *SENDER.lock().expect("nobody panics") = None;
    for (path, role, state, function, end) in [
        (
            "/logs",
            "tokio worker",
            "(blocked in write: ",
            "::logs",
            killed,
        ),
        (
            "/sleeps",
            "tokio worker",
            "(blocked in clock_nanosleep)",
            "::sleeps",
            over,
        ),
        (
            "/waits",
            "tokio worker",
            "(blocked in futex)",
            "::waits_for_a_pool",
            disconnected,
        ),
        (
            "/exports",
            "tokio blocking thread",
            "(blocked in clock_nanosleep)",
            "::sleep_in_vain",
            over,
        ),
        (
            "/away",
            "tokio blocking thread",
            "(blocked in clock_nanosleep)",
            "::gives_its_tasks_away",
            over,
        ),
    ] {
        let request = send(own, path);
        line_with(admin, &[&format!("{role};{state}"), function]);
        let folded = ask(admin, "/debug/threads/last").text();
        assert!(!folded.contains("(idle"), "{folded}");
        // One of two workers, in no call that could be interrupted or in its park, once it gets there.
        ask_until(admin, "/debug/threads?seconds=0.3&idle=true", |idle| {
            let idle = idle.text();
            idle.contains("(idle: parked worker)") || idle.contains("(idle: epoll_wait)")
        });
        end();
        request.peek(&mut [0]).expect("an answer");
    }
    let drawn = ask(admin, "/debug/threads/last?format=svg");
    assert!(
        drawn.text().contains("<svg") || !cfg!(feature = "flamegraph"),
        "{}",
        drawn.text()
    );
    let refused = ask(admin, "/debug/threads?seconds=600&format=pprof");
    assert!(refused.status == 400 && refused.text().contains("folded, svg and json"));
}

static ROW: Mutex<()> = Mutex::new(());

fn query() {
    std::thread::sleep(Duration::from_millis(20));
}

fn read_row() {
    let turn = TURN.load(Relaxed);
    while TURN.load(Relaxed) == turn {
        let _row = ROW.lock().expect("nobody panics");
        query();
    }
}

async fn row() {
    let read = tokio::task::spawn_blocking(read_row);
    read.await.expect("no panic");
}

#[test]
fn blocking_threads_that_queue_for_a_lock_are_told_with_who_is_past_it() {
    let _alone = ALONE.lock();
    let (_service, own, admin) = service(|debug| {
        let routes = Router::new().route("/row", get(row));
        routes.layer(debug.layer())
    });
    let requests: Vec<_> = (0..4).map(|_| send(own, "/row")).collect();
    line_with(admin, &["blocking thread;(blocked in futex)", "read_row"]);
    ask_until(admin, "/debug/look?seconds=2", |look| {
        let look = look.text();
        look.contains("for a lock at threads::read_row")
            && look.contains("One past it is in clock_nanosleep at threads::")
    });
    TURN.fetch_add(1, Relaxed);
    for request in requests {
        request.peek(&mut [0]).expect("an answer");
    }
}

#[test]
fn where_calls_are_forbidden_there_are_names_states_and_calls_and_the_reason() {
    const HERE: &str = "where_calls_are_forbidden_there_are_names_states_and_calls_and_the_reason";
    let Ok(forbidden) = std::env::var("FORBIDDEN") else {
        for call in ["ptrace", "process_vm_readv"] {
            // A filter cannot be taken back, so each runs in another process.
            let mut tests = Command::new(std::env::current_exe().expect("this program"));
            let output = tests
                .env("FORBIDDEN", call)
                .args([HERE, "--exact", "--nocapture"])
                .output();
            let output = output.expect("started");
            assert!(
                output.status.success(),
                "{call}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        return;
    };
    let is_ptrace = forbidden == "ptrace";
    forbid(if is_ptrace {
        libc::SYS_ptrace
    } else {
        libc::SYS_process_vm_readv
    });
    let (_service, own, admin) = service(|_| {
        Router::new().route(
            "/",
            get(async || std::thread::sleep(Duration::from_secs(60))),
        )
    });
    let _request = send(own, "/");
    line_with(admin, &["tokio-rt-worker;(blocked in clock_nanosleep)"]);
    let head = ask(admin, "/debug/threads?seconds=0.3").head;
    let note = format!("x-note: no stacks: the system does not allow {forbidden}");
    assert!(head.contains(&note), "{head}");
    if !is_ptrace {
        IS_OVER.store(false, Relaxed);
        std::thread::spawn(|| {
            while !IS_OVER.load(Relaxed) {
                std::hint::black_box((0..1000_u64).sum::<u64>());
            }
        });
        ask_until(admin, "/debug/pprof/profile?seconds=1", |profile| {
            let head = &profile.head;
            head.contains("the system does not allow process_vm_readv")
        });
        IS_OVER.store(true, Relaxed);
    }
}

/// Forbids a system call, as seccomp profiles of containers do.
fn forbid(call: libc::c_long) {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let eperm = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let call = u32::try_from(call).expect("a small number");
    let mut steps = [
        step(0x20, 0, 0, 0),    // The call's number,
        step(0x15, 0, 1, call), // if it is this one,
        step(0x06, 0, 0, eperm),
        step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: it reads the steps, which are as many as it is told.
    let is_set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    assert!(is_set, "{}", std::io::Error::last_os_error());
}
