//! A service whose answers are streams of events.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Pauses before the first event, and before each of the [`FURTHER`] others.
pub(super) const FIRST: Duration = Duration::from_millis(40);
pub(super) const NEXT: Duration = Duration::from_millis(10);
pub(super) const FURTHER: u32 = 5;

/// Starts a service, which runs as long as the test's process, and returns its URL. The head of an answer comes at once.
pub(super) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(&stream));
        }
    });
    url
}

fn serve(mut stream: &TcpStream) {
    stream.set_nodelay(true).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    for _end in lines.filter(String::is_empty) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut parts = vec![(Duration::ZERO, head.to_owned())];
        for event in 0..=FURTHER {
            let text = format!("data: {event}\n\n");
            let pause = if event == 0 { FIRST } else { NEXT };
            parts.push((pause, format!("{:x}\r\n{text}\r\n", text.len())));
        }
        parts.push((Duration::ZERO, "0\r\n\r\n".to_owned()));
        for (pause, part) in parts {
            thread::sleep(pause);
            if stream.write_all(part.as_bytes()).is_err() {
                return;
            }
        }
    }
}
