//! Profiles of all kinds in turn, of a service under load. It has a process of its own, so that its first CPU profile
//! is also taken under load.
//!
//! A sampler that takes a lock in a signal handler deadlocks sooner or later. So does a thread that looks names up
//! while the allocator records its callers. A profiler that stops threads for their stacks must not end the calls that
//! they are in. `PROFILES` sets the number of rounds.
#![cfg(all(target_os = "linux", feature = "cpu"))]
#![allow(unsafe_code)] // Calls whose errors the standard library hides.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use common::{Answer, ENDPOINTS, ask, service, status};
use debug_endpoints::{DebugEndpoints, Incidents};

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

/// Asks until no other profile is being taken, and returns the answer.
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

fn rounds(plain: u32) -> u32 {
    std::env::var("PROFILES").map_or(plain, |rounds| rounds.parse().expect("a number"))
}

/// Clients that ask one request after the other.
struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    fn on(service: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(ask(service, "/").status, 200);
                }
            })
        };
        let clients = (0..8).map(client).collect();
        Self { stop, clients }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("every request was answered");
        }
    }
}

/// Lock for the tests, since the signals of CPU profiles interrupt calls.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn profiles_of_all_kinds_under_load_leave_the_service_standing() {
    let _alone = ALONE.lock();
    let rounds = rounds(10);
    let (_runtime, own, admin) = service(DebugEndpoints::new, |debug| {
        Router::new().route("/", get(computes)).layer(debug.layer())
    });
    let load = Load::on(own);
    let mut deepest = 0;
    let mut has_waits = false;
    for round in 0..rounds * 10 {
        // On a busy machine a tenth of a second may have no sample at all.
        if round >= rounds && deepest > 15 && has_waits {
            break;
        }
        // Ask for both at once, as a collector does. Every other time, the client of the second hangs up.
        let waits = std::thread::spawn(move || {
            if round % 2 == 0 {
                let waits = ask_until_free(admin, "/debug/pprof/await?seconds=0.1&captures=2000");
                assert!(matches!(waits.status, 200 | 404), "{}", waits.text());
                waits.status == 200
            } else {
                let mut stream = TcpStream::connect(admin).expect("it listens");
                stream
                    .write_all(b"GET /debug/await?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    .expect("sent");
                std::thread::sleep(Duration::from_millis(5));
                false
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
        has_waits |= waits.join().expect("both were taken");
        if cfg!(feature = "heap") {
            let heap = ask_until_free(admin, "/debug/heap?seconds=0.05");
            assert_eq!(heap.status, 200, "{}", heap.text());
        }
    }
    assert!(
        deepest > 15,
        "no full stack from the runtime to the handler"
    );
    assert!(has_waits, "no profile of waits");
    load.end();
    assert_eq!(ask(own, "/").status, 200);
}

/// Most memory, in KiB, that the service and its clients have after any number of rounds.
const MOST_RESIDENT: u64 = 150 << 10;

/// Asks on one connection, again and again, until `stop`. Returns the number of answers.
///
/// # Panics
///
/// Panics at an answer that does not come, or is wrong.
fn ask_on_one_connection(service: SocketAddr, stop: &AtomicBool) -> u64 {
    let mut stream = TcpStream::connect(service).expect("it listens");
    let time_out = Some(Duration::from_secs(60));
    stream.set_read_timeout(time_out).expect("set");
    let mut answers = BufReader::new(stream.try_clone().expect("cloned"));
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) {
        let request = b"GET /short HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).expect("sent");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = answers.read_line(&mut head).expect("an answer in time");
            assert!(read > 0, "closed after {answered} answers");
        }
        let mut body = [0; 2];
        answers.read_exact(&mut body).expect("a whole answer");
        assert!(head.starts_with("HTTP/1.1 200") && body == *b"ok", "{head}");
        answered += 1;
    }
    answered
}

#[test]
fn all_endpoints_at_once_lose_no_request_and_keep_little_memory() {
    let _alone = ALONE.lock();
    let rounds = rounds(5);
    let (_runtime, own, admin) = service(
        || DebugEndpoints::new().record_incidents(Incidents::new()),
        |debug| {
            let routes = Router::new().route("/", get(computes));
            routes
                .route("/short", get(async || "ok"))
                .layer(debug.layer())
        },
    );
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for _ in 0..8 {
        let stop = Arc::clone(&stop);
        clients.push(std::thread::spawn(move || {
            ask_on_one_connection(own, &stop)
        }));
    }
    for round in 0..rounds {
        let mut asking = Vec::new();
        for path in ENDPOINTS {
            asking.push(std::thread::spawn(move || {
                let answer = ask(admin, &format!("{path}seconds=0.3"));
                // Another of them takes the same profile, there is too little of a tail, or the build has no types of tasks.
                let is_expected = [200, 404, 409, 501].contains(&answer.status);
                assert!(is_expected, "{path}: {}: {}", answer.status, answer.text());
            }));
        }
        // One client hangs up.
        has_answer_soon(admin, "/debug/threads?seconds=60");
        for asking in asking {
            asking.join().expect("an answer that is expected");
        }
        if round % 50 == 49 {
            println!(
                "{} rounds: {} KiB resident",
                round + 1,
                status("VmRSS:", 10)
            );
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut answered = 0;
    for client in clients {
        answered += client.join().expect("no request is lost");
    }
    let resident = status("VmRSS:", 10);
    println!("{rounds} rounds: {answered} requests, none lost; {resident} KiB resident at the end");
    assert!(resident <= MOST_RESIDENT, "{resident} KiB");
}

/// Returns whether there is any answer within a tenth of a second, such as the error that another profile is being
/// taken.
fn has_answer_soon(address: SocketAddr, path: &str) -> bool {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let soon = Some(Duration::from_millis(100));
    stream.set_read_timeout(soon).expect("set");
    stream.read(&mut [0; 16]).is_ok()
}

/// Waits in one way, again and again, until `stop`. Returns the number of waits, and that of waits that went wrong.
fn waiter(
    stop: &Arc<AtomicBool>,
    mut wait: impl FnMut() -> bool + Send + 'static,
) -> JoinHandle<(u32, u32)> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let (mut waits, mut wrong) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            waits += 1;
            wrong += u32::from(!wait());
        }
        (waits, wrong)
    })
}

/// Starts one waiter for each kind of call that a stop might end.
fn waiters(stop: &Arc<AtomicBool>) -> [(&'static str, JoinHandle<(u32, u32)>); 5] {
    let (silent, open) = UnixStream::pair().expect("a pair");
    let time_out = Duration::from_millis(30);
    silent.set_read_timeout(Some(time_out)).expect("set");
    // Both stay open: the last to wait on them is not the one that has them.
    let (silent, _) = (&*Box::leak(Box::new(silent)), Box::leak(Box::new(open)));
    let socket = silent.as_raw_fd();
    // SAFETY: it has no conditions.
    let events = unsafe { libc::epoll_create1(0) };
    let (poll_in, tv_nsec) = (libc::POLLIN, 30_000_000);
    let poll = move || {
        let mut one = libc::pollfd {
            fd: socket,
            events: poll_in,
            revents: 0,
        };
        // SAFETY: it is one.
        unsafe { libc::poll(&raw mut one, 1, 30) == 0 }
    };
    let sleep = move || {
        let time = libc::timespec { tv_sec: 0, tv_nsec };
        // SAFETY: it reads the time.
        unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) == 0 }
    };
    let read = move || {
        let error = (&mut &*silent).read(&mut [0]).expect_err("nothing comes");
        error.kind() == std::io::ErrorKind::WouldBlock
    };
    let epoll = move |time_out| {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: there is room for one.
        unsafe { libc::epoll_wait(events, &raw mut event, 1, time_out) == 0 }
    };
    // This waiter computes in between, so it has mostly moved on between a look and the stop.
    let computes = move || {
        std::hint::black_box((0..20_000).map(std::hint::black_box).sum::<u64>());
        epoll(1)
    };
    [
        ("poll", waiter(stop, poll)),
        ("nanosleep", waiter(stop, sleep)),
        ("read with a time-out", waiter(stop, read)),
        ("epoll_wait", waiter(stop, move || epoll(30))),
        ("short epoll_wait", waiter(stop, computes)),
    ]
}

#[test]
fn stacks_of_threads_end_no_call_and_lose_no_request() {
    static HANDLED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn handle(_: libc::c_int) {
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    let _alone = ALONE.lock();
    let rounds = rounds(50);
    let (_runtime, own, admin) = service(DebugEndpoints::new, |debug| {
        Router::new().route("/", get(computes)).layer(debug.layer())
    });
    let load = Load::on(own);
    let stop = Arc::new(AtomicBool::new(false));
    let waiters = waiters(&stop);
    let handler = handle as extern "C" fn(libc::c_int);
    // SAFETY: the handler counts and does nothing else.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let mut sent = 0;
    for round in 0..rounds {
        // Looking names up takes longer than all else, so most clients hang up once a profile has begun.
        if round % 10 > 0 {
            while has_answer_soon(admin, "/debug/threads?seconds=60") {}
        } else {
            let profile = ask_until_free(admin, "/debug/threads?seconds=0.1&all=true");
            let (status, head) = (profile.status, &profile.head);
            assert!(
                status == 200 && !head.contains("no stacks"),
                "{head}\n{}",
                profile.text()
            );
        }
        // Send the signal only to a thread that waits in none of these calls: the main one.
        // SAFETY: the handler is installed.
        sent += u32::from(unsafe {
            libc::syscall(
                libc::SYS_tgkill,
                std::process::id(),
                std::process::id(),
                libc::SIGUSR1,
            ) == 0
        });
        // If two of these signals are pending for a thread, the system keeps one, so wait for each.
        let patience = Instant::now() + Duration::from_secs(60);
        while HANDLED.load(Ordering::Relaxed) < sent {
            assert!(Instant::now() < patience, "signal {sent} is lost");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    stop.store(true, Ordering::Relaxed);
    for (call, waiter) in waiters {
        let (waits, wrong) = waiter.join().expect("it ends");
        assert!(
            waits > 0 && (wrong == 0 || cfg!(target_arch = "aarch64")),
            "{call}: {wrong} of {waits} were interrupted"
        );
    }
    load.end();
    assert_eq!(HANDLED.load(Ordering::Relaxed), sent, "no signal is lost");
    // The last abandoned profile may still stop threads; a profile that gets an answer comes after it.
    assert_eq!(
        ask_until_free(admin, "/debug/threads?seconds=0.1").status,
        200
    );
    // SAFETY: it is told to write nothing.
    let child = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) };
    assert_eq!(child, -1, "no child is left, not even a dead one");
}
