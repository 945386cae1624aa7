//! A chapter's server as a child process: started, asked, and never left behind.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use sysinfo::System;

use engine::ask::{Unanswered, get, get_unless};
use engine::child::{self, Running, Starting, Tail, panics_in};
use engine::load::interrupt::Interrupt;
use engine::prometheus::Metrics;

/// A server that says nothing for so long after its start hangs.
const START_TIME_OUT: Duration = Duration::from_secs(15);

/// Bytes of a line that a server prints before it serves.
const LONGEST_LINE: usize = 4096;

/// By this variable tokio decides how many workers `#[tokio::main]` gets.
const WORKERS: &str = "TOKIO_WORKER_THREADS";

/// What to start.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// The chapter's compiled binary.
    pub program: &'a Path,
    /// Which of its variants.
    pub variant: &'a str,
    /// Varies the data, and with it the right answer; 0 is what readers see.
    pub data_seed: u64,
    /// Further arguments, such as `--tls`.
    pub arguments: &'a [String],
    /// CPUs that the server may use; empty for all. Where the system lets
    /// no process inherit them (macOS, Windows), all are used.
    pub cpus: &'a [usize],
    /// Worker threads of its runtime, where its code does not say how many; `None` for one a CPU.
    pub workers: Option<u32>,
}

impl<'a> Launch<'a> {
    /// A variant as readers start it, on all CPUs.
    pub fn of(program: &'a Path, variant: &'a str) -> Self {
        Self {
            program,
            variant,
            data_seed: 0,
            arguments: &[],
            cpus: &[],
            workers: None,
        }
    }
}

/// A server that could not be started or asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It ended before it listened.
    #[error("the {variant} server ended before it listened ({status}): {stderr}")]
    Ended {
        /// Which variant.
        variant: String,
        /// Its exit status.
        status: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// It runs, but never said that it listens.
    #[error(
        "the {variant} server did not say within {} s that it listens; look for an endless loop \
         or a lock before `serve` in its code{}", START_TIME_OUT.as_secs(), and_said(.said)
    )]
    Hangs {
        /// Which variant.
        variant: String,
        /// The end of its standard error, or else the last line of its output.
        said: String,
    },
    /// It cannot be run, or gave no answer: which, and why.
    #[error("{0}")]
    Failed(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl ServerError {
    /// A server of `variant` that did not give what is at `path`.
    pub(crate) fn no(variant: &str, path: &str, reason: impl std::fmt::Display) -> Self {
        Self::Failed(format!("the {variant} server gave no {path}: {reason}"))
    }
}

fn and_said(said: &str) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!("; it said: {said}")
    }
}

/// A running server. Dropping it ends the process.
#[derive(Debug)]
pub struct Server {
    variant: String,
    child: Running,
    errors: Tail,
    service: SocketAddr,
    admin: SocketAddr,
    optimised: bool,
    started: Instant,
}

impl Server {
    /// Starts a server on free ports and waits until it listens.
    ///
    /// # Errors
    ///
    /// When it cannot be started, ends or stays silent, or `interrupt` is set.
    pub fn start(launch: &Launch<'_>, interrupt: &Interrupt) -> Result<Self, ServerError> {
        let started = Instant::now();
        let mut child = spawn(launch).map_err(|reason| {
            let program = launch.program.display();
            ServerError::Failed(format!(
                "cannot start {program}: {reason}; build it again with `cargo build`"
            ))
        })?;
        let errors = Tail::of(child.stderr());
        let lines = child::lines_of(child.stdout(), LONGEST_LINE);
        // From here on the process must end whatever happens: the value owns it.
        let mut server = Self {
            variant: launch.variant.to_owned(),
            child,
            errors,
            service: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin: SocketAddr::from(([127, 0, 0, 1], 0)),
            optimised: true,
            started,
        };
        server.await_ready(&lines, interrupt)?;
        Ok(server)
    }

    fn await_ready(
        &mut self,
        lines: &Receiver<String>,
        interrupt: &Interrupt,
    ) -> Result<(), ServerError> {
        let mut last = String::new();
        while self.started.elapsed() < START_TIME_OUT {
            if interrupt.is_set() {
                return Err(ServerError::Interrupted);
            }
            match lines.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => {
                    if line.contains("UNOPTIMISED") {
                        self.optimised = false;
                    }
                    if let [service, admin] = addresses(&line)[..] {
                        (self.service, self.admin) = (service, admin);
                        return Ok(());
                    }
                    last = line;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let stderr = self.errors.text();
        Err(ServerError::Hangs {
            variant: self.variant.clone(),
            said: if stderr.is_empty() { last } else { stderr },
        })
    }

    fn ended(&mut self) -> ServerError {
        // Its output is closed; give the exit itself a moment.
        let status = self.child.exit_within(Duration::from_secs(2));
        ServerError::Ended {
            variant: self.variant.clone(),
            status: status.map_or("its output is closed".to_owned(), |s| s.to_string()),
            stderr: self.errors.at_the_end() + &self.why_ended(),
        }
    }

    /// Where the service listens.
    pub fn service(&self) -> SocketAddr {
        self.service
    }

    /// Where profiles and counters are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// `false` when the server said that its figures mean nothing.
    pub fn is_optimised(&self) -> bool {
        self.optimised
    }

    /// Since the process was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether the process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Why the process ended, as far as its stderr tells: words that go on after "ended".
    pub fn why_ended(&self) -> String {
        let said = self.errors.at_the_end();
        match memory_limit() {
            Some(limit) if said.contains(OUT_OF_MEMORY) => format!(
                ": it asked for more than the {} MiB of memory that a server may have here, half of what \
                 there is",
                limit >> 20
            ),
            _ => String::new(),
        }
    }

    /// Ends the process at once, as a crash would: it finishes nothing.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// The panics among the end of its stderr, one line each: `file:line: message`.
    pub fn panics(&self) -> Vec<String> {
        panics_in(&self.errors.text())
    }

    /// The counters of this moment.
    ///
    /// # Errors
    ///
    /// When the admin listener does not answer.
    pub fn metrics(&self) -> Result<Metrics, ServerError> {
        let text = self.ask("/metrics", Duration::from_secs(10))?;
        Ok(Metrics::parse(&String::from_utf8_lossy(&text)))
    }

    /// The body of `path` on the admin listener.
    ///
    /// # Errors
    ///
    /// When it does not answer within `time_out`, or refuses.
    pub fn ask(&self, path: &str, time_out: Duration) -> Result<Vec<u8>, ServerError> {
        get(self.admin, path, time_out)
            .map_err(|reason| ServerError::no(&self.variant, path, reason))
    }

    /// As [`Server::ask`], given up as soon as `interrupt` is set: a profile takes as long as it is asked to.
    ///
    /// # Errors
    ///
    /// When it is interrupted, and as [`Server::ask`].
    pub fn ask_unless(
        &self,
        interrupt: &Interrupt,
        path: &str,
        time_out: Duration,
    ) -> Result<Vec<u8>, ServerError> {
        get_unless(interrupt, self.admin, path, time_out).map_err(|why| match why {
            Unanswered::Interrupted => ServerError::Interrupted,
            Unanswered::Failed(reason) => ServerError::no(&self.variant, path, reason),
        })
    }
}

fn spawn(launch: &Launch<'_>) -> std::io::Result<Running> {
    let mut command = Command::new(launch.program);
    command
        .arg(launch.variant)
        .args(["--port", "0", "--admin-port", "0", "--stop-with-stdin"])
        .args(["--data-seed", &launch.data_seed.to_string()])
        .args(launch.arguments)
        // A hundred backtraces would push the first panic out of what is kept.
        .env("RUST_BACKTRACE", "0")
        // Services that call another one would go through the reader's proxy if there is one.
        .env("NO_PROXY", "127.0.0.1,localhost");
    // Its temporary files go with this process's, should it have no time to remove them.
    for folder in ["TMPDIR", "TMP", "TEMP"] {
        command.env(folder, tempfile::env::temp_dir());
    }
    // The reader's own setting would change what is measured.
    command.env_remove(WORKERS);
    if let Some(workers) = launch.workers {
        command.env(WORKERS, workers.to_string());
    }
    Starting::of(&command)
        .stops_with_stdin()
        .on(launch.cpus)
        .with_memory(memory_limit())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .start()
}

/// What a server may take: half of the memory that this machine, or its container, has. One that asks
/// for more is refused, and ends, before everything else on the machine stands still.
fn memory_limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();

    *LIMIT.get_or_init(|| {
        let mut system = System::new();
        system.refresh_memory();
        let own = system.cgroup_limits().map(|limits| limits.total_memory);
        let all = own.unwrap_or(u64::MAX).min(system.total_memory());
        (all > 0).then_some(all / 2)
    })
}

/// What Rust says last when the system gives no more memory.
const OUT_OF_MEMORY: &str = "memory allocation of ";

fn addresses(line: &str) -> Vec<SocketAddr> {
    line.split("http://")
        .skip(1)
        .filter_map(|rest| {
            rest.split(|c: char| c == ',' || c.is_whitespace())
                .next()?
                .parse()
                .ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_yields_service_and_admin() {
        let line =
            "chapter1 problem listens on http://127.0.0.1:8080, admin on http://127.0.0.1:6060";
        let ports: Vec<u16> = addresses(line).iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [8080, 6060]);
        assert!(addresses("warming up").is_empty());
    }
}
