//! Programs of other people that run beside a measurement: nginx and a service in Go.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadgen::cpus;
use measurement::chapter_file::{Baselines, ChapterFile};
use tempfile::TempDir;

use crate::chapters::Chapter;
use crate::exit::CliError;
use crate::files;
use crate::running::Running;
use crate::tools;

/// How long one may take to listen.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A program with the folder that it needs.
#[derive(Debug)]
pub(crate) struct Outside {
    _process: Running,
    _folder: TempDir,
}

/// nginx with the chapter's configuration: an upstream, and a proxy before it.
#[derive(Debug)]
pub(crate) struct Nginx {
    _process: Outside,
    /// What the chapter says of it.
    pub(super) baselines: Baselines,
}

impl Nginx {
    /// Starts it on these CPUs, and waits until it listens.
    pub(crate) fn start(
        chapter: &Chapter,
        file: &ChapterFile,
        pinned: &[usize],
    ) -> Result<Self, CliError> {
        let Some(baselines) = file.baselines.clone() else {
            return Err(CliError::usage(format!(
                "chapter {} calls no upstream: leave out --upstream",
                chapter.number
            )));
        };
        let nginx = tools::nginx().ok_or_else(|| {
            CliError::bad("nginx is not installed: https://nginx.org, or `apt install nginx-light`")
        })?;
        let address = address(&baselines.nginx_upstream)?;
        if TcpStream::connect_timeout(&address, TIMEOUT).is_ok() {
            return Err(CliError::bad(format!(
                "{address} is taken by another program: stop it, as nginx.conf needs that port"
            )));
        }
        let folder = files::temporary()?;
        let mut command = Command::new(nginx);
        command
            .arg("-p")
            .arg(folder.path())
            .args(["-e", "stderr", "-c"])
            .arg(chapter.folder.join("nginx.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        let child = spawn_on(command, pinned).map_err(CliError::because("nginx cannot be run"))?;
        let process = Outside {
            _process: child.into(),
            _folder: folder,
        };
        let began = Instant::now();
        while TcpStream::connect_timeout(&address, TIMEOUT).is_err() {
            if began.elapsed() > TIMEOUT {
                return Err(CliError::bad(format!(
                    "nginx does not listen on {address}; its words are above"
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self {
            _process: process,
            baselines,
        })
    }

    /// Where it answers as a proxy.
    pub(crate) fn proxy(&self) -> Result<SocketAddr, CliError> {
        address(&self.baselines.nginx_proxy)
    }
}

/// The chapter's service in Go, on these CPUs.
pub(crate) fn start_go(
    chapter: &Chapter,
    folder: &str,
    upstream: &str,
    pinned: &[usize],
) -> Result<(Outside, SocketAddr), CliError> {
    let go = tools::go().ok_or_else(|| {
        CliError::bad(
            "Go is not installed, and this capture measures a service in Go: https://go.dev/dl",
        )
    })?;
    let built = files::temporary()?;
    let program = built.path().join("baseline");
    let compiled = Command::new(go.0)
        .current_dir(chapter.folder.join(folder))
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .stdin(Stdio::null())
        .status()
        .map_err(CliError::because("go cannot be run"))?;
    if !compiled.success() {
        return Err(CliError::bad(format!(
            "{folder} does not compile; Go's words are above"
        )));
    }
    let mut command = Command::new(&program);
    command
        .args(["-port", "0", "-upstream", upstream])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child =
        spawn_on(command, pinned).map_err(CliError::because("the Go program cannot be run"))?;
    let said = child.stdout.take();
    let process = Outside {
        _process: child.into(),
        _folder: built,
    };
    let line = said
        .and_then(|out| BufReader::new(out).lines().next())
        .and_then(Result::ok)
        .unwrap_or_default();
    let url = line.split_whitespace().last().unwrap_or_default();
    Ok((process, address(url)?))
}

/// A child inherits the CPUs of the thread that starts it: one for this.
fn spawn_on(mut command: Command, pinned: &[usize]) -> std::io::Result<Child> {
    let pinned = pinned.to_vec();
    std::thread::spawn(move || {
        if cfg!(target_os = "linux") {
            cpus::pin_current_thread(&pinned).map_err(std::io::Error::other)?;
        }
        command.spawn()
    })
    .join()
    .unwrap_or_else(|_| Err(std::io::Error::other("the starting thread panicked")))
}

fn address(url: &str) -> Result<SocketAddr, CliError> {
    let bare = url.strip_prefix("http://").unwrap_or(url);
    bare.trim_end_matches('/').parse().map_err(|_| {
        CliError::bad(format!(
            "`{url}` is no address such as http://127.0.0.1:18081/"
        ))
    })
}
