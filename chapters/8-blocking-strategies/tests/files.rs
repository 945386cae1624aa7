//! Bodies in files leave nothing behind, of clients that hang up as of a server that is killed.
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bench::server::Server;
use bench::testing::{TIME_OUT, get, start};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter8");

/// Requests for long bodies whose answers nobody waits for.
fn under_way(server: &Server) -> Vec<TcpStream> {
    let begin = |_| {
        let mut stream = TcpStream::connect(server.service()).expect("it listens");
        let request = b"GET /summarize?bytes=60000000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(request).expect("it reads");
        stream
    };
    (0..8).map(begin).collect()
}

/// Waits until any process has files without a name open in `folder`, or none. Linux alone tells.
fn wait_for_files(folder: &Path, are_wanted: bool) {
    let is_open = || {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let handles = processes.flat_map(|process| fs::read_dir(process.path().join("fd")));
        let files = handles
            .flatten()
            .flatten()
            .flat_map(|file| file.path().read_link());
        files.into_iter().any(|file| file.starts_with(folder))
    };
    let began = Instant::now();
    while cfg!(target_os = "linux") && is_open() != are_wanted {
        assert!(began.elapsed() < TIME_OUT, "files: {}", !are_wanted);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn no_file_is_left_by_requests_that_are_given_up_or_by_a_server_that_is_killed() {
    for variant in ["problem", "solution"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let arguments = ["--files", folder.to_str().expect("text")];
        let mut server = start(PROGRAM, variant, 0, &arguments);
        let given_up = under_way(&server);
        wait_for_files(&folder, true);
        drop(given_up);
        wait_for_files(&folder, false);
        let _under_way = under_way(&server);
        wait_for_files(&folder, true);
        server.kill();
        let server = start(PROGRAM, variant, 0, &arguments);
        let answer = get(&server, "/summarize?bytes=1000000");
        assert_eq!(answer.as_deref(), Ok("255 is the highest of 1000000 bytes"));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
    }
}
