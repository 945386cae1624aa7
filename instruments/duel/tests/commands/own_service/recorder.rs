//! A service that writes down the paths that it is asked for.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Paths of all requests so far, in their order.
#[derive(Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    /// Starts a service, which runs as long as the test's process. Returns its URL, too.
    pub(super) fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let recorder = Self::default();
        let recorders = recorder.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let recorder = recorders.clone();
                thread::spawn(move || recorder.serve(&stream));
            }
        });
        (recorder, url)
    }

    /// Returns the paths since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn serve(&self, mut stream: &TcpStream) {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some(rest) = line.strip_prefix("GET ") {
                let path = rest.split(' ').next().unwrap_or_default();
                self.0.lock().unwrap().push(path.to_owned());
            }
            if line.is_empty() {
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    }
}
