//! Report on a process's connections, in a process of its own, because all of them count.
#![cfg(target_os = "linux")]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use debug_endpoints::DebugEndpoints;

/// Starts a server that answers each line on a connection in two pieces, with a moment between.
fn in_two_pieces(is_nodelay: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_nodelay(is_nodelay).expect("set");
            thread::spawn(move || {
                while matches!(stream.read(&mut [0; 64]), Ok(1..)) {
                    for piece in [b"one", b"two"] {
                        let _ = stream.write_all(piece);
                        thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
    });
    address
}

/// Sends `times` requests on one connection.
fn asks(address: SocketAddr, times: u32) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("set");
    for _ in 0..times {
        stream.write_all(b"?").expect("sent");
        stream.read_exact(&mut [0; 6]).expect("both");
    }
}

/// Runs the loads one after the other, so that each is the only one.
#[test]
fn connections_are_counted_and_nagle_is_accused_where_it_holds_something_back() {
    let admin = DebugEndpoints::new().listen("127.0.0.1:0").expect("a port");
    // Each load lasts nearly as long as the look: where many connections have ended, the first look at the table takes a while.
    let told = |load: &(dyn Fn() + Sync), format: &str| {
        thread::scope(|scope| {
            let path = format!("/debug/sockets?seconds=3{format}");
            let answer = scope.spawn(move || common::ask(admin, &path).text());
            thread::sleep(Duration::from_millis(200));
            load();
            answer.join().expect("an answer")
        })
    };

    // A watcher that is held up may miss data that waits only for a moment, so this tries several times.
    let told_of = |load: &(dyn Fn() + Sync), format: &str, words: &[&str]| {
        let mut missed = Vec::new();
        while missed.len() < 5 {
            let text = told(load, format);
            if words.iter().all(|word| text.contains(word)) {
                return text;
            }
            missed.push(text);
        }
        panic!("{words:?} are not all in any of {missed:#?}");
    };

    let slow = in_two_pieces(false);
    let accused = format!(
        "1 of 1 connections on port {} hold small pieces back, by Nagle's algorithm",
        slow.port()
    );
    // Loopback delays acknowledgements like any other network, unless the kernel is configured otherwise.
    told_of(&|| asks(slow, 60), "", &[&accused, "Set TCP_NODELAY"]);

    let quick = in_two_pieces(true);
    let port = format!("port {}", quick.port());
    let text = told_of(&|| asks(quick, 1200), "", &[&port]);
    assert!(!text.contains("hold small pieces back"), "{text}");

    // A new connection for each call, held for longer than a look takes.
    let says = format!("Connections to {quick} are hardly used again");
    let json = told_of(
        &|| {
            for _ in 0..50 {
                let held = TcpStream::connect(quick).expect("it listens");
                thread::sleep(Duration::from_millis(50));
                drop(held);
            }
        },
        "&format=json",
        &[&says],
    );
    assert!(json.contains("\"namespace_opened\":"), "{json}");

    // Nobody reads this one, and the kernel has nowhere to put what comes.
    let unread = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let to = unread.local_addr().expect("bound");
    let lost = format!("The socket on port {} lost ", to.port());
    let sends = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let large = vec![0; 60_000];
    let floods = || {
        for _ in 0..2000 {
            let _ = sends.send_to(&large, to);
        }
    };
    let text = told_of(&floods, "", &[&lost, "nobody reads it"]);
    assert!(text.contains("UDP receives on port"), "{text}");
    drop(unread);

    let picture = common::ask(admin, "/debug/sockets?seconds=1&format=svg");
    assert_eq!(picture.status, 400, "{}", picture.text());
}
