//! A service of the standard library alone that answers after a delay.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().expect("a port, a delay and a folder");
    let (port, delay_ms, pids) = (word(), word(), word());
    // The test reads the ids of all processes that ran, to see whether any still runs.
    std::fs::write(format!("{pids}/{}", std::process::id()), "").expect("a folder");
    let delay = Duration::from_millis(delay_ms.parse().expect("milliseconds"));
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("a free port");
    for stream in listener.incoming() {
        std::thread::spawn(move || serve(stream.expect("a connection"), delay));
    }
}

fn serve(mut stream: TcpStream, delay: Duration) {
    let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
    while let Some(Ok(_)) = lines.next() {
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        std::thread::sleep(delay);
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nright").is_err() {
            return;
        }
    }
}
