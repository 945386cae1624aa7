//! A chapter's server as a child process: started, queried, and never left behind.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use children::{Interrupt, Running, Starting, Tail, panics_in};
use sysinfo::System;

use crate::bench::metrics::Metrics;
use engine::load::ask::{Unanswered, get};

/// Longest time until a server listens; one that takes longer hangs.
const START_TIME_OUT: Duration = Duration::from_secs(30);
/// Longest time for a server's counters. On a machine that ten other programs share, ten seconds were too few.
const METRICS_TIME_OUT: Duration = Duration::from_secs(60);

/// Longest line, in bytes, that a server may print before it serves.
const LONGEST_LINE: usize = 4096;

/// Variable from which tokio takes the number of workers for `#[tokio::main]`.
const WORKERS: &str = "TOKIO_WORKER_THREADS";

/// A server to start.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// The chapter's compiled binary.
    pub program: &'a Path,
    /// Its variant.
    pub variant: &'a str,
    /// Seed of the data, which also changes the right answer; 0 gives the data that readers see.
    pub data_seed: u64,
    /// Further arguments, such as `--tls`.
    pub arguments: &'a [String],
    /// CPUs that the server may use; empty for all. On systems where processes cannot inherit them (macOS,
    /// Windows), it uses all.
    pub cpus: &'a [usize],
    /// Worker threads of its runtime, unless its code sets the number; `None` for one per CPU.
    pub workers: Option<u32>,
}

impl<'a> Launch<'a> {
    /// Makes the launch of a variant as readers start it, on all CPUs.
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

/// Error of a server that could not be started or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It ended before it listened.
    #[error("the {variant} server ended before it listened ({status}): {stderr}")]
    Ended {
        /// The variant.
        variant: String,
        /// Its exit status.
        status: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// It runs, but never reported that it listens.
    #[error(
        "the {variant} server did not say within {} s that it listens; look for an endless loop \
         or a lock before `serve` in its code{}", START_TIME_OUT.as_secs(), and_said(.said)
    )]
    Hangs {
        /// The variant.
        variant: String,
        /// The end of its standard error, or else the last line of its output.
        said: String,
    },
    /// It cannot be run, or gave no answer; the text says which, and why.
    #[error("{0}")]
    Failed(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl ServerError {
    /// Makes the error of a server of `variant` that gave no answer for `path`. Only a time-out may be the fault of
    /// other programs.
    pub(crate) fn no(variant: &str, path: &str, reason: &Unanswered) -> Self {
        let advice = match reason {
            Unanswered::TimeOut => {
                "; if other programs keep the machine busy, close them and run this again"
            }
            Unanswered::Grpc(_) | Unanswered::Failed(_) => "",
        };
        Self::Failed(format!(
            "the {variant} server gave no {path}: {reason}{advice}"
        ))
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
    /// Fails if it cannot be started, ends, or does not listen in time, or if `interrupt` is set.
    pub fn start(launch: &Launch<'_>, interrupt: &Interrupt) -> Result<Self, ServerError> {
        let started = Instant::now();
        let mut child = spawn(launch).map_err(|reason| {
            let program = launch.program.display();
            ServerError::Failed(format!(
                "cannot start {program}: {reason}; build it again with `cargo build`"
            ))
        })?;
        let errors = Tail::of(child.stderr());
        let lines = children::lines_of(child.stdout(), LONGEST_LINE);
        // The value owns the process, because it must end in any case from here on.
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
        let status = match self.child.exit_within(Duration::from_secs(2)) {
            Some(status) => status.to_string(),
            None => "its output is closed".to_owned(),
        };
        ServerError::Ended {
            variant: self.variant.clone(),
            status,
            stderr: self.errors.at_the_end() + &self.why_ended(),
        }
    }

    /// Returns the address at which the service listens.
    pub fn service(&self) -> SocketAddr {
        self.service
    }

    /// Returns the address of profiles and counters.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Returns whether it is an optimised build; the server itself reports if it is not.
    pub fn is_optimised(&self) -> bool {
        self.optimised
    }

    /// Returns the time since the process was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns whether the process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Explains the end of the process, in words that follow "ended"; empty if its stderr does not tell.
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

    /// Returns the panics in the kept end of its stderr, one line each: `file:line: message`.
    pub fn panics(&self) -> Vec<String> {
        panics_in(&self.errors.text())
    }

    /// Reads the current values of the counters.
    ///
    /// # Errors
    ///
    /// Fails if the admin listener does not answer.
    pub fn metrics(&self) -> Result<Metrics, ServerError> {
        let text = self.ask("/metrics", METRICS_TIME_OUT)?;
        Ok(Metrics::parse(&String::from_utf8_lossy(&text)))
    }

    /// Requests `path` from the admin listener and returns the body.
    ///
    /// # Errors
    ///
    /// Fails if it does not answer within `time_out`, or refuses.
    pub fn ask(&self, path: &str, time_out: Duration) -> Result<Vec<u8>, ServerError> {
        get(self.admin, path, time_out)
            .map_err(|reason| ServerError::no(&self.variant, path, &reason))
    }

    /// Requests `path` like [`Server::ask`], but gives up as soon as `interrupt` is set, because a profile
    /// may take long.
    ///
    /// # Errors
    ///
    /// Fails if it is interrupted, and like [`Server::ask`].
    pub fn ask_unless(
        &self,
        interrupt: &Interrupt,
        path: &str,
        time_out: Duration,
    ) -> Result<Vec<u8>, ServerError> {
        match get_unless(interrupt, self.admin, path, time_out) {
            Ok(Some(body)) => Ok(body),
            Ok(None) => Err(ServerError::Interrupted),
            Err(reason) => Err(ServerError::no(&self.variant, path, &reason)),
        }
    }
}

/// Returns the body as [`get`] does, or `None` as soon as `interrupt` is set. The request then goes on in the background
/// until the caller ends the server.
fn get_unless(
    interrupt: &Interrupt,
    address: SocketAddr,
    path: &str,
    time_out: Duration,
) -> Result<Option<Vec<u8>>, Unanswered> {
    let path = path.to_owned();
    let (sender, answers) = mpsc::channel();
    thread::spawn(move || sender.send(get(address, &path, time_out)));
    loop {
        if interrupt.is_set() {
            return Ok(None);
        }
        match answers.recv_timeout(Duration::from_millis(50)) {
            Ok(answer) => return answer.map(Some),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Unanswered::Failed("the request panicked".to_owned()));
            }
        }
    }
}

fn spawn(launch: &Launch<'_>) -> std::io::Result<Running> {
    let mut command = Command::new(launch.program);
    command
        .arg(launch.variant)
        .args(["--port", "0", "--admin-port", "0", "--stop-with-stdin"])
        .args(["--data-seed", &launch.data_seed.to_string()])
        .args(launch.arguments)
        // A hundred backtraces would push the first panic out of the kept part of stderr.
        .env("RUST_BACKTRACE", "0")
        // Services that call another one would go through the reader's proxy if there is one.
        .env("NO_PROXY", "127.0.0.1,localhost");
    // Its temporary files lie in this process's folder, in case it has no time to remove them.
    for folder in ["TMPDIR", "TMP", "TEMP"] {
        command.env(folder, tempfile::env::temp_dir());
    }
    // The reader's own setting would change the measurement.
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

/// Returns the memory that a server may take: half of what this machine, or its container, has. A server that
/// asks for more is refused, and ends before everything else on the machine stands still.
fn memory_limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();

    *LIMIT.get_or_init(|| {
        let mut system = System::new();
        system.refresh_memory();
        let own = system.cgroup_limits().map(|limits| limits.total_memory);
        let all = own.unwrap_or(u64::MAX).min(system.total_memory());
        if all == 0 {
            return None;
        }
        Some(all / 2)
    })
}

/// Beginning of Rust's last message when the system gives no more memory.
const OUT_OF_MEMORY: &str = "memory allocation of ";

fn addresses(line: &str) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for rest in line.split("http://").skip(1) {
        let mut words = rest.split(|c: char| c == ',' || c.is_whitespace());
        if let Some(word) = words.next()
            && let Ok(address) = word.parse()
        {
            addresses.push(address);
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_never_answers_is_left_at_once_by_whoever_is_interrupted() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let interrupt = Interrupt::new();
        let asked = std::thread::scope(|scope| {
            let asking =
                scope.spawn(|| get_unless(&interrupt, address, "/", Duration::from_secs(3600)));
            // The request is on its way.
            let _connection = silent.accept().unwrap();
            interrupt.set();
            asking.join().unwrap()
        });
        assert_eq!(asked, Ok(None));
    }

    #[test]
    fn the_ready_line_yields_service_and_admin() {
        let line =
            "chapter1 problem listens on http://127.0.0.1:8080, admin on http://127.0.0.1:6060";
        let ports: Vec<u16> = addresses(line).iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [8080, 6060]);
        assert!(addresses("warming up").is_empty());
    }

    #[test]
    fn only_a_time_out_may_be_the_fault_of_other_programs() {
        let said = |reason| ServerError::no("problem", "/metrics", &reason).to_string();
        assert_eq!(
            said(Unanswered::TimeOut),
            "the problem server gave no /metrics: time_out; if other programs keep the machine busy, close them and run \
             this again"
        );
        let refused = "connect: connection refused";
        assert_eq!(
            said(Unanswered::Failed(refused.to_owned())),
            format!("the problem server gave no /metrics: {refused}")
        );
    }
}
