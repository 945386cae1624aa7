//! Bodies in files leave nothing behind, and a full disk is an answer.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench::server::get;

const TIMEOUT: Duration = Duration::from_secs(20);
const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter8");

/// A server that is ended by force when it is dropped.
struct Service {
    process: Child,
    address: SocketAddr,
}

impl Service {
    /// `None` if it ends before it listens.
    fn start(command: &mut Command) -> Option<Self> {
        command.args(["--port", "0", "--admin-port", "0", "--stop-with-stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().ok()?;
        let said = BufReader::new(process.stdout.take()?);
        let address = said.lines().map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("listens on http://")?;
            address.split(',').next()?.parse().ok()
        });
        if address.is_none() {
            let _ = process.wait();
        }
        let address = address?;
        Some(Self { process, address })
    }

    fn variant(variant: &str, files: &Path) -> Self {
        let mut command = Command::new(PROGRAM);
        let server = Self::start(command.arg(variant).arg("--files").arg(files));
        server.expect("the server starts")
    }

    fn ask(&self, path: &str) -> Result<String, String> {
        let body = get(self.address, path, TIMEOUT)?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Asks and does not wait for the answer.
    fn begin(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    }

    /// Files without a name that the server has open in `folder`.
    #[cfg(target_os = "linux")]
    fn open_files(&self, folder: &Path) -> usize {
        let Ok(open) = std::fs::read_dir(format!("/proc/{}/fd", self.process.id())) else {
            return 0;
        };
        open.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
            .filter(|file| file.starts_with(folder))
            .count()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // As `kill -9` does: nothing of it runs any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}

#[test]
fn no_file_is_left_behind_by_a_server_that_was_killed_and_started_again() {
    for variant in ["problem", "solution"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let server = Service::variant(variant, &folder);
        let path = "/summarize?bytes=60000000";
        let under_way: Vec<TcpStream> = (0..16).map(|_| server.begin(path)).collect();
        #[cfg(target_os = "linux")]
        {
            let began = Instant::now();
            while server.open_files(&folder) < 4 {
                assert!(began.elapsed() < TIMEOUT, "{variant} writes no file");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        drop(server);
        drop(under_way);
        assert_eq!(names(&folder), 0, "{variant}");
        let server = Service::variant(variant, &folder);
        let answer = server.ask("/summarize?bytes=1000000");
        assert_eq!(answer.as_deref(), Ok("255 is the highest of 1000000 bytes"));
        assert_eq!(names(&folder), 0, "{variant}");
    }
}

/// Clients that hang up take their files with them.
#[cfg(target_os = "linux")]
#[test]
fn a_request_that_is_given_up_gives_up_its_file() {
    for variant in ["problem", "solution"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let server = Service::variant(variant, &folder);
        let path = "/summarize?bytes=60000000";
        let under_way: Vec<TcpStream> = (0..8).map(|_| server.begin(path)).collect();
        let wait_for = |files: fn(usize) -> bool| {
            let began = Instant::now();
            while !files(server.open_files(&folder)) {
                assert!(began.elapsed() < TIMEOUT, "{variant}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        wait_for(|files| files > 0);
        drop(under_way);
        wait_for(|files| files == 0);
    }
}

#[test]
fn a_full_disk_is_a_507_and_nobody_else_suffers() {
    for variant in ["problem", "solution", "tokio-fs"] {
        let folder = tempfile::tempdir().expect("a folder");
        // No file may be longer. Shells count in blocks of 512 or 1,024 bytes.
        let mut limited = Command::new("sh");
        limited.args(["-c", r#"trap "" XFSZ && ulimit -f 4096 && exec "$@""#, "sh"]);
        limited
            .args([PROGRAM, variant, "--files"])
            .arg(folder.path());
        let server = Service::start(&mut limited).expect("the server starts");
        let refusal = server.ask("/summarize?bytes=8000000");
        let refusal = refusal.expect_err("8 MB in 4 MiB");
        assert!(refusal.starts_with("507"), "{variant}: {refusal}");
        // The room that it took is free again.
        for bytes in [1_000, 1_900_000] {
            let answer = server.ask(&format!("/summarize?bytes={bytes}"));
            let expected = format!("255 is the highest of {bytes} bytes");
            assert_eq!(answer, Ok(expected), "{variant}");
        }
        assert_eq!(server.ask("/ping").as_deref(), Ok("pong"));
    }
}
