//! The server as a program: its ports, its profiles, its end.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use bench::server::{Server, get};
use bench::testing::{self, TIME_OUT};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter1");

fn start(variant: &str) -> Server {
    testing::start(PROGRAM, variant, 0, &[])
}

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the server can be run")
}

#[test]
fn a_taken_port_is_one_sentence_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    for (option, other) in [("--port", "--admin-port"), ("--admin-port", "--port")] {
        let output = run(&[option, &port, other, "0"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&port) && said.contains(option), "{said}");
    }
}

#[test]
fn an_unknown_variant_is_a_usage_error() {
    let output = run(&["fast"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("problem, exercise, solution"), "{said}");
}

#[test]
fn it_ends_when_whoever_started_it_is_gone() {
    let temporary = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(PROGRAM)
        .args(["--port", "0", "--admin-port", "0", "--stop-with-stdin"])
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server can be run");
    let mut first = [0];
    let mut out = child.stdout.take().expect("piped");
    out.read_exact(&mut first).expect("it announces itself");
    drop(child.stdin.take());
    let asked = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        assert!(asked.elapsed() < TIME_OUT, "it still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Elsewhere the profiler's file stays: nobody tells its name.
    if cfg!(target_os = "linux") {
        let left = std::fs::read_dir(temporary.path()).expect("a folder");
        assert_eq!(left.count(), 0, "temporary files are left");
    }
}

#[test]
fn a_profile_that_makes_no_sense_is_refused_in_a_sentence() {
    let server = start("solution");
    for (path, expected) in [
        ("/debug/pprof/profile?seconds=0", "400"),
        ("/debug/pprof/profile?seconds=1&frequency=5000", "400"),
        ("/debug/pprof/last", "404"),
        ("/debug/nothing", "404"),
    ] {
        let refusal = get(server.admin(), path, TIME_OUT).expect_err("refused");
        assert!(refusal.starts_with(expected), "{path}: {refusal}");
    }
}

#[cfg(unix)]
mod profiles {
    use std::net::SocketAddr;

    use super::*;
    use loadgen::Settings;
    use loadgen::interrupt::Interrupt;
    use measurement::load::{Exchange, Load};

    /// Two hundred users without a pause, until `body` returns.
    fn under_load(server: &Server, body: impl FnOnce()) {
        let load = Load {
            duration: Duration::from_secs(300),
            ..Load::closed(Exchange::get("/read", "6"), 200)
        };
        let enough = Interrupt::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let settings = Settings::of(&enough);
                loadgen::run(server.service(), &load, &settings)
            });
            body();
            enough.set();
        });
    }

    fn ask(admin: SocketAddr, path: &str) -> Vec<u8> {
        get(admin, path, TIME_OUT).unwrap_or_else(|refusal| panic!("{path}: {refusal}"))
    }

    #[test]
    fn a_cpu_profile_has_full_stacks_from_the_runtime_to_the_system_call() {
        // Samples fall on the kernel's ticks, and the service's timers may keep step with them so
        // that it always runs in between. A fresh server starts at another phase.
        let seen = (0..10).any(|_| {
            let server = start("solution");
            let mut deep = None;
            under_load(&server, || deep = deepest_stack(&server));
            deep > Some(15)
        });
        assert!(seen, "ten servers, and no full stack");
    }

    /// Frames of the deepest stack that goes through tokio and hyper, in a profile that is there in
    /// all its formats.
    fn deepest_stack(server: &Server) -> Option<usize> {
        std::thread::sleep(Duration::from_millis(300));
        let path = "/debug/pprof/profile?seconds=1&format=folded";
        let folded = ask(server.admin(), path);
        let svg = ask(server.admin(), "/debug/pprof/last?format=svg");
        assert!(svg.starts_with(b"<?xml"));
        let pprof = ask(server.admin(), "/debug/pprof/last");
        assert!(pprof.starts_with(&[0x1f, 0x8b]), "not gzipped");
        String::from_utf8_lossy(&folded)
            .lines()
            .filter(|line| line.contains("tokio::runtime") && line.contains("hyper::"))
            .map(|line| line.split(';').count())
            .max()
    }

    #[test]
    fn an_idle_server_still_has_a_picture() {
        let server = start("problem");
        let folded = ask(
            server.admin(),
            "/debug/pprof/profile?seconds=0.5&format=folded&idle=true",
        );
        assert!(folded.starts_with(b"[idle] "));
        let svg = ask(server.admin(), "/debug/pprof/last?format=svg&idle=true");
        assert!(String::from_utf8_lossy(&svg).contains("[idle]"));
    }

    #[test]
    fn one_profile_at_a_time() {
        let server = start("solution");
        let admin = server.admin();
        let first = std::thread::spawn(move || ask(admin, "/debug/pprof/profile?seconds=2"));
        std::thread::sleep(Duration::from_millis(500));
        let refusal = get(admin, "/debug/pprof/profile?seconds=1", TIME_OUT).expect_err("busy");
        assert!(refusal.starts_with("409"), "{refusal}");
        first.join().expect("the first profile is not disturbed");
    }

    /// The first sample of a process is special: pprof builds its unwinder then. On a loaded
    /// server that must not meet an allocation half done.
    #[test]
    fn the_first_profile_of_a_loaded_server_does_not_hang_it() {
        for _ in 0..15 {
            let server = start("solution");
            under_load(&server, || {
                std::thread::sleep(Duration::from_millis(100));
                ask(
                    server.admin(),
                    "/debug/pprof/profile?seconds=0.1&frequency=250",
                );
            });
        }
    }

    /// A sampler that takes a lock in a signal handler deadlocks sooner or later: soak it.
    #[test]
    fn a_hundred_profiles_under_load_leave_the_server_standing() {
        let server = start("solution");
        under_load(&server, || {
            for _ in 0..100 {
                ask(
                    server.admin(),
                    "/debug/pprof/profile?seconds=0.03&frequency=250",
                );
            }
        });
        assert_eq!(testing::get(&server, "/read").as_deref(), Ok("6"));
        assert_eq!(testing::count(&server, "panics_total"), 0);
    }
}
