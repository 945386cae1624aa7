//! Programs of other people that run beside a measurement: nginx and a service in Go.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::measurement::chapter_file::Baselines;
use children::{Running, Starting};
use tempfile::TempDir;

use crate::bench::rounds::{Bench, RunError};

/// Longest time until such a program listens.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for Go to fetch modules and compile its program.
const TIME_TO_COMPILE: Duration = Duration::from_secs(10 * 60);
/// Longest line with the program's address, in bytes.
const LONGEST_LINE: usize = 4096;

/// Finds nginx. Debian keeps it in a folder that only root's `PATH` includes.
pub fn nginx() -> Option<PathBuf> {
    children::find("nginx")
        .or_else(|| Some(PathBuf::from("/usr/sbin/nginx")).filter(|file| file.is_file()))
}

/// A running program with the folder that it needs.
#[derive(Debug)]
pub(super) struct Outside {
    _process: Running,
    _folder: TempDir,
}

/// nginx with the chapter's configuration: an upstream, and a proxy before it.
#[derive(Debug)]
pub(super) struct Nginx {
    _process: Outside,
    /// The chapter's settings for it.
    pub(super) baselines: Baselines,
}

impl Nginx {
    /// Starts it on the server's CPUs, and waits until it listens; `None` for a chapter without baselines.
    pub(super) fn start(bench: &Bench<'_>, folder: &Path) -> Result<Option<Self>, RunError> {
        let Some(baselines) = bench.chapter.baselines().cloned() else {
            return Ok(None);
        };
        let Some(nginx) = nginx() else {
            return Err(failed(
                "nginx is not installed: https://nginx.org, or `apt install nginx-light`",
            ));
        };
        let address = address(&baselines.nginx_upstream)?;
        if TcpStream::connect_timeout(&address, TIMEOUT).is_ok() {
            return Err(failed(format!(
                "{address} is taken by another program: stop it, as nginx.conf needs that port"
            )));
        }
        let own = temporary()?;
        let mut command = Command::new(nginx);
        command
            .arg("-p")
            .arg(own.path())
            .args(["-e", "stderr", "-c"])
            .arg(folder.join("nginx.conf"));
        let running = Starting::of(&command)
            .on(&bench.placement.server)
            .stderr(Stdio::inherit())
            .start()
            .map_err(RunError::of_child("nginx cannot be run"))?;
        let process = Outside {
            _process: running,
            _folder: own,
        };
        let began = Instant::now();
        while TcpStream::connect_timeout(&address, TIMEOUT).is_err() {
            if began.elapsed() > TIMEOUT {
                return Err(failed(format!(
                    "nginx does not listen on {address}; its words are above"
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(Self {
            _process: process,
            baselines,
        }))
    }

    /// Returns the arguments of a service that calls it.
    pub(super) fn arguments(&self) -> [String; 2] {
        [
            "--upstream".to_owned(),
            self.baselines.nginx_upstream.clone(),
        ]
    }

    /// Returns the address at which it answers as a proxy.
    pub(super) fn proxy(&self) -> Result<SocketAddr, RunError> {
        address(&self.baselines.nginx_proxy)
    }
}

/// Starts the chapter's service in Go on the server's CPUs, and returns its address.
pub(super) fn start_go(
    bench: &Bench<'_>,
    folder: &Path,
    baselines: &Baselines,
) -> Result<(Outside, SocketAddr), RunError> {
    let source = &baselines.go;
    let Some(go) = children::find("go") else {
        return Err(failed(
            "Go is not installed, and this capture measures a service in Go: https://go.dev/dl",
        ));
    };
    let own = temporary()?;
    let program = own.path().join("baseline");
    let mut go = Command::new(go);
    go.current_dir(folder.join(source))
        .args(["build", "-o"])
        .arg(&program)
        .arg(".");
    let compiled = Starting::of(&go)
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .start()
        .and_then(|mut go| go.wait(bench.interrupt, TIME_TO_COMPILE))
        .map_err(RunError::of_child("go cannot be run"))?;
    if !compiled.is_some_and(|status| status.success()) {
        return Err(failed(format!(
            "{source} does not compile; Go's words are above"
        )));
    }
    let mut command = Command::new(&program);
    command.args(["-port", "0", "-upstream", &baselines.nginx_upstream]);
    let mut running = Starting::of(&command)
        .on(&bench.placement.server)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .start()
        .map_err(RunError::of_child("the Go program cannot be run"))?;
    let said = children::lines_of(running.stdout(), LONGEST_LINE);
    let process = Outside {
        _process: running,
        _folder: own,
    };
    let line = said.recv_timeout(TIMEOUT).map_err(|_| {
        failed(format!(
            "the service of {source} did not say within {} s where it listens; its words are above",
            TIMEOUT.as_secs()
        ))
    })?;
    let url = line.split_whitespace().last().unwrap_or_default();
    Ok((process, address(url)?))
}

fn failed(what: impl Into<String>) -> RunError {
    RunError::Outside(what.into())
}

fn temporary() -> Result<TempDir, RunError> {
    tempfile::tempdir().map_err(RunError::of_child("a temporary folder cannot be made"))
}

fn address(url: &str) -> Result<SocketAddr, RunError> {
    let bare = url.strip_prefix("http://").unwrap_or(url);
    bare.trim_end_matches('/').parse().map_err(|_| {
        failed(format!(
            "`{url}` is no address such as http://127.0.0.1:18081/"
        ))
    })
}
