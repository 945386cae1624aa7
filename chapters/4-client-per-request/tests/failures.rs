//! An upstream that fails is an answer of this service, and no end of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Instant;

use bench::server::Server;
use bench::testing;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter4");
const VARIANTS: [&str; 4] = ["problem", "solution", "no-pool", "hyper-shared"];

/// An upstream that tells its counts once, as the lab asks at the start. Then it only listens,
/// until the listener that it returns is dropped.
fn mute_upstream() -> (SocketAddr, JoinHandle<TcpListener>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let counts = "server accepts handled requests\n 1 1 1 \nReading: 0 Writing: 1 Waiting: 0\n";
    let mute = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the lab asks");
        let mut request = [0; 256];
        let _ = stream.read(&mut request).expect("a request");
        let answer = format!("HTTP/1.0 200 OK\r\n\r\n{counts}");
        stream.write_all(answer.as_bytes()).expect("an answer");
        listener
    });
    (address, mute)
}

fn start(variant: &str, upstream: SocketAddr) -> Server {
    let upstream = format!("http://{upstream}/");
    testing::start(PROGRAM, variant, 0, &["--upstream", &upstream])
}

fn refusal(server: &Server) -> String {
    testing::get(server, "/io").expect_err("no answer of the upstream")
}

#[test]
fn an_upstream_that_is_gone_is_a_502_that_says_why() {
    for variant in VARIANTS {
        let (address, mute) = mute_upstream();
        let server = start(variant, address);
        drop(mute.join().expect("it was asked"));
        let said = refusal(&server);
        assert!(said.starts_with("502"), "{variant}: {said}");
        assert!(said.contains("os error"), "{variant}: {said}");
    }
}

#[test]
fn an_upstream_that_never_answers_is_a_502_after_five_seconds() {
    let asked: Vec<_> = VARIANTS
        .into_iter()
        .map(|variant| {
            std::thread::spawn(move || {
                let (address, mute) = mute_upstream();
                let server = start(variant, address);
                let _listens = mute.join().expect("it was asked");
                let asked = Instant::now();
                let said = refusal(&server);
                assert!(said.starts_with("502"), "{variant}: {said}");
                let waited = asked.elapsed().as_secs_f64();
                assert!((4.5..15.0).contains(&waited), "{variant}: {waited} s");
            })
        })
        .collect();
    for one in asked {
        one.join().expect("no assertion failed");
    }
}
