//! The server as a program: its ports and its end.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use course::bench::testing::TIME_OUT;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter1");

#[test]
fn a_taken_port_is_one_sentence_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    for (option, other) in [("--port", "--admin-port"), ("--admin-port", "--port")] {
        let output = Command::new(PROGRAM)
            .args([option, &port, other, "0"])
            .output()
            .expect("the server can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&port) && said.contains(option), "{said}");
    }
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
