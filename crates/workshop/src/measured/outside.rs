//! Programs of other people that run beside a measurement: nginx and a service in Go.

use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::child::{self, Running, Starting};
use loadgen::interrupt::Interrupt;
use measurement::chapter_file::{Baselines, ChapterFile};
use tempfile::TempDir;

use crate::chapters::Chapter;
use crate::exit::CliError;
use crate::files;
use crate::tools;

/// How long one may take to listen.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long Go may take to compile it, modules fetched.
const TIME_TO_COMPILE: Duration = Duration::from_secs(10 * 60);
/// Bytes of the line that says where it listens.
const LONGEST_LINE: usize = 4096;

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
            .arg(chapter.folder.join("nginx.conf"));
        let running = Starting::of(&command)
            .on(pinned)
            .stderr(Stdio::inherit())
            .start()
            .map_err(CliError::because("nginx cannot be run"))?;
        let process = Outside {
            _process: running,
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
    interrupt: &Interrupt,
) -> Result<(Outside, SocketAddr), CliError> {
    let go = tools::go().ok_or_else(|| {
        CliError::bad(
            "Go is not installed, and this capture measures a service in Go: https://go.dev/dl",
        )
    })?;
    let built = files::temporary()?;
    let program = built.path().join("baseline");
    let mut go = Command::new(go.0);
    go.current_dir(chapter.folder.join(folder))
        .args(["build", "-o"])
        .arg(&program)
        .arg(".");
    let compiled = Starting::of(&go)
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .start()
        .and_then(|mut go| go.wait(interrupt, TIME_TO_COMPILE))
        .map_err(CliError::of_child("go cannot be run"))?;
    if !compiled.is_some_and(|status| status.success()) {
        return Err(CliError::bad(format!(
            "{folder} does not compile; Go's words are above"
        )));
    }
    let mut command = Command::new(&program);
    command.args(["-port", "0", "-upstream", upstream]);
    let mut running = Starting::of(&command)
        .on(pinned)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .start()
        .map_err(CliError::because("the Go program cannot be run"))?;
    let said = child::lines_of(running.stdout(), LONGEST_LINE);
    let process = Outside {
        _process: running,
        _folder: built,
    };
    let line = said.recv_timeout(TIMEOUT).map_err(|_| {
        CliError::bad(format!(
            "the service of {folder} did not say within {} s where it listens; its words are above",
            TIMEOUT.as_secs()
        ))
    })?;
    let url = line.split_whitespace().last().unwrap_or_default();
    Ok((process, address(url)?))
}

fn address(url: &str) -> Result<SocketAddr, CliError> {
    let bare = url.strip_prefix("http://").unwrap_or(url);
    bare.trim_end_matches('/').parse().map_err(|_| {
        CliError::bad(format!(
            "`{url}` is no address such as http://127.0.0.1:18081/"
        ))
    })
}
