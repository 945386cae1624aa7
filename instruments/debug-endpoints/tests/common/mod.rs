//! Requests over TCP, as anybody could send them.
#![allow(dead_code)] // Not every test needs all of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

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
