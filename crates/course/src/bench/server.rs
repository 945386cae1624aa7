//! A chapter's server as a child process: started, queried, and never left behind.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use children::{Interrupt, panics_in};
use sysinfo::System;

use crate::bench::metrics::Metrics;
use engine::load::ask::{Unanswered, get};
use engine::service::{self, CommandError, CommandServer, Start};

/// Longest time until a server listens; one that takes longer hangs.
const START_TIME_OUT: Duration = Duration::from_secs(30);
/// Longest time for a server's counters. On a machine that ten other programs share, ten seconds were too few.
const METRICS_TIME_OUT: Duration = Duration::from_secs(60);

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
        /// `true` if it was idle, and so waited for something else than a CPU.
        is_idle: bool,
    },
    /// It cannot be run, or gave no answer; the text says which, and why.
    #[error("{0}")]
    Failed(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl ServerError {
    /// Makes the error of a server that was not started as `launch` says, or did not come to listen.
    fn at_start(launch: &Launch<'_>, error: CommandError) -> Self {
        let variant = launch.variant.to_owned();
        match error {
            CommandError::Ended {
                status, printed, ..
            } => Self::Ended {
                variant,
                status: status.to_string(),
                stderr: format!("{0}{1}", printed.errors, why_ended(&printed.errors)),
            },
            CommandError::Silent {
                printed, is_idle, ..
            } => Self::Hangs {
                variant,
                is_idle,
                said: match printed.output.lines().last() {
                    Some(last) if printed.errors.is_empty() => last.to_owned(),
                    _ => printed.errors,
                },
            },
            CommandError::Failed(why) => {
                Self::Failed(format!("{why}; build it again with `cargo build`"))
            }
            CommandError::Interrupted => Self::Interrupted,
        }
    }

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
    service: CommandServer,
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
        let command = command(launch);
        let service = service::Launch {
            name: launch.variant,
            start: Start::Program {
                command: &command,
                memory: memory_limit(),
            },
            ready_within: START_TIME_OUT,
            cpus: launch.cpus,
        };
        Ok(Self {
            variant: launch.variant.to_owned(),
            service: CommandServer::start(&service, interrupt)
                .map_err(|error| ServerError::at_start(launch, error))?,
            started,
        })
    }

    /// Returns the address at which the service listens.
    pub fn service(&self) -> SocketAddr {
        self.service.address()
    }

    /// Returns the address of profiles and counters.
    pub fn admin(&self) -> SocketAddr {
        self.service.admin_address()
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.service.id()
    }

    /// Returns whether it is an optimised build; the server itself reports if it is not.
    pub fn is_optimised(&self) -> bool {
        !self
            .service
            .announced()
            .iter()
            .any(|line| line.contains("UNOPTIMISED"))
    }

    /// Returns the time since the process was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns whether the process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.service.has_ended()
    }

    /// Explains the end of the process, in words that follow "ended"; empty if its stderr does not tell.
    pub fn why_ended(&mut self) -> String {
        why_ended(&self.service.errors())
    }

    /// Ends the process at once, as a crash would: it finishes nothing.
    pub fn kill(&mut self) {
        self.service.kill();
    }

    /// Returns the panics in the kept end of its stderr, one line each: `file:line: message`.
    pub fn panics(&mut self) -> Vec<String> {
        panics_in(&self.service.errors())
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
        get(self.admin(), path, time_out)
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
        match get_unless(interrupt, self.admin(), path, time_out) {
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

/// Returns the command that starts a server.
fn command(launch: &Launch<'_>) -> Command {
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
    command
}

/// Explains the end of a server with these last words, in words that follow "ended"; empty if they do not tell.
fn why_ended(said: &str) -> String {
    match memory_limit() {
        Some(limit) if said.contains(OUT_OF_MEMORY) => format!(
            ": it asked for more than the {} MiB of memory that a server may have here, half of what \
             there is",
            limit >> 20
        ),
        _ => String::new(),
    }
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
