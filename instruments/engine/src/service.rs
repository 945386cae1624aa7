//! A reader's own service as a child process: any command that listens on a given port.

pub mod program;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use children::{Interrupt, Running, Starting, Tail, last_lines, panics_in, processes};

use crate::load::ask::get;
use crate::load::{Protocol, Target};

/// Exit status of a command that succeeded.
const DONE: &str = "exit code 0";
/// Interval between looks at a starting server.
const LOOK: Duration = Duration::from_millis(20);

/// A command, and the folder and limits for running it.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// Name in messages, such as `base`.
    pub name: &'a str,
    /// Command for the shell. `{port}` stands for the port to listen on, which the variable `PORT` holds as well, and
    /// `{admin_port}` for a second one.
    pub command: &'a str,
    /// Folder that it runs in.
    pub folder: &'a Path,
    /// A path that answers with a status of 200 to 299 once the service is ready; without it a
    /// port that accepts connections is enough.
    pub ready: Option<&'a str>,
    /// Longest time until it is ready.
    pub ready_within: Duration,
    /// Protocol that it speaks.
    pub protocol: &'a Protocol,
    /// CPUs that it may use; empty for all. Linux only.
    pub cpus: &'a [usize],
}

/// A command that could not be run, or did not become a server.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command cannot be started, no port is free, or nobody listens.
    #[error("{0}")]
    Failed(String),
    /// The command ended.
    #[error("the {name} ended {when} ({status}){}{}", it_said(.said), is_daemon(.status))]
    Ended {
        /// Name of the command.
        name: String,
        /// Words on when or how it ended, such as `before it was ready`.
        when: &'static str,
        /// Its exit status.
        status: String,
        /// End of its output.
        said: String,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// Returns advice for a command that ended well: a service in the background can be neither measured nor ended.
fn is_daemon(status: &str) -> &'static str {
    if status == DONE {
        "; the command itself has to run as long as the service does: start it in the foreground, without \
         `&` or a daemon's option"
    } else {
        ""
    }
}

fn not_started(name: &str, reason: impl std::fmt::Display) -> CommandError {
    CommandError::Failed(format!("the {name} cannot be started: {reason}"))
}

fn it_said(said: &str) -> String {
    if said.is_empty() {
        "; it printed nothing".to_owned()
    } else {
        format!("; it printed: {said}")
    }
}

/// A running command, with all that it started.
#[derive(Debug)]
struct Process {
    name: String,
    running: Running,
    output: Tail,
    errors: Tail,
}

/// Kind of a command.
enum Kind<'a> {
    /// A command that makes something, and ends. Its daemons, such as a compiler's cache, are left alone because others
    /// use them as well.
    Build,
    /// A command that runs until it is ended, with all that it started.
    Service {
        variables: &'a [(&'a str, String)],
        cpus: &'a [usize],
    },
}

impl Process {
    /// Starts a service with these variables, on these CPUs, or a build.
    fn start(
        name: &str,
        command: &str,
        folder: &Path,
        kind: &Kind<'_>,
    ) -> Result<Self, CommandError> {
        let (variables, cpus): (&[_], &[_]) = match kind {
            Kind::Build => (&[], &[]),
            Kind::Service { variables, cpus } => (variables, cpus),
        };
        let mut shell = shell(command);
        shell
            .current_dir(folder)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            // A backtrace would push the panic's message out of the lines that are kept.
            .env("RUST_BACKTRACE", "0");
        let mut starting = Starting::of(&shell).on(cpus);
        if matches!(kind, Kind::Service { .. }) {
            starting = starting.with_daemons();
        }
        let mut running = starting
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .start()
            .map_err(|error| not_started(name, error))?;
        Ok(Self {
            name: name.to_owned(),
            output: Tail::of(running.stdout()),
            errors: Tail::of(running.stderr()),
            running,
        })
    }

    /// Returns the exit status once the command has ended.
    fn ended(&mut self) -> Option<String> {
        let status = self.running.try_wait().ok().flatten()?;
        // Wait until all of its output has come.
        self.output.at_the_end();
        self.errors.at_the_end();
        Some(match status.code() {
            Some(code) if code > 128 => format!("signal {}", code - 128),
            Some(code) => format!("exit code {code}"),
            None => status.to_string(),
        })
    }

    fn fault(&self, when: &'static str, status: String) -> CommandError {
        CommandError::Ended {
            name: self.name.clone(),
            when,
            status,
            said: self.said(),
        }
    }

    /// Returns its last panic, or else its last lines on one line: of standard error if there are any, or of standard
    /// output.
    fn said(&self) -> String {
        let errors = self.errors.text();
        if let Some(panic) = panics_in(&errors).pop() {
            return format!("panicked at {panic}");
        }
        match last_lines(&errors) {
            Some(said) => said,
            None => last_lines(&self.output.text()).unwrap_or_default(),
        }
    }
}

/// Returns a shell that runs `command`.
#[cfg(unix)]
pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    shell
}

/// Returns a shell that runs `command`.
#[cfg(not(unix))]
pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}

/// Runs `command` in `folder` to its end, such as a build.
///
/// # Errors
///
/// Returns an error if the command cannot be run, if it ends with another code than 0, or if `interrupt` is set.
pub fn run_to_end(
    name: &str,
    command: &str,
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<(), CommandError> {
    let mut running = Process::start(name, command, folder, &Kind::Build)?;
    loop {
        if interrupt.is_set() {
            return Err(CommandError::Interrupted);
        }
        match running.ended() {
            Some(status) if status == DONE => return Ok(()),
            Some(status) => return Err(running.fault("with an error", status)),
            None => std::thread::sleep(LOOK),
        }
    }
}

/// A service that is ready. Dropping it ends all of its processes.
#[derive(Debug)]
pub struct CommandServer {
    process: Process,
    address: SocketAddr,
    admin_port: u16,
}

/// CPU time and memory that a service has used since its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// CPU seconds.
    pub(crate) cpu_s: f64,
    /// The most memory at once, in bytes.
    pub(crate) peak_bytes: Option<f64>,
}

impl CommandServer {
    /// Starts a service on a free port and waits until it is ready.
    ///
    /// # Errors
    ///
    /// Returns an error if the service cannot be started, ends or stays silent, or if `interrupt` is set.
    pub fn start(launch: &Launch<'_>, interrupt: &Interrupt) -> Result<Self, CommandError> {
        let [port, admin_port] = free_ports()
            .map_err(|error| not_started(launch.name, format!("no port is free: {error}")))?;
        let command = launch
            .command
            .replace("{port}", &port.to_string())
            .replace("{admin_port}", &admin_port.to_string());
        let variables = [("PORT", port.to_string())];
        let process = Process::start(
            launch.name,
            &command,
            launch.folder,
            &Kind::Service {
                variables: &variables,
                cpus: launch.cpus,
            },
        )?;
        let mut server = Self {
            process,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            admin_port,
        };
        server.await_ready(launch, interrupt)?;
        Ok(server)
    }

    fn await_ready(
        &mut self,
        launch: &Launch<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), CommandError> {
        let started = Instant::now();
        loop {
            if interrupt.is_set() {
                return Err(CommandError::Interrupted);
            }
            self.is_alive("before it was ready")?;
            if self.is_ready(launch) {
                // A server that could not have the port may end only now, while another process answers. A daemon's
                // first process ends once it listens.
                return self.is_alive_after(2 * LOOK, "before it was ready");
            }
            if started.elapsed() > launch.ready_within {
                return Err(CommandError::Failed(format!(
                    "the {} did not answer at 127.0.0.1:{port}{} within {} s: it must listen on the port \
                     that `{{port}}` in its command or the variable PORT gives, here {port}{}",
                    launch.name,
                    launch.ready.unwrap_or_default(),
                    launch.ready_within.as_secs(),
                    it_said(&self.process.said()),
                    port = self.address.port()
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Returns whether it is ready. Also finds out which of the two loopback addresses it listens on.
    fn is_ready(&mut self, launch: &Launch<'_>) -> bool {
        let port = self.address.port();
        let loopback = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ];
        let time_out = Duration::from_secs(1);
        for address in loopback {
            if TcpStream::connect_timeout(&address, time_out).is_ok() {
                self.address = address;
                let Some(path) = launch.ready else {
                    return true;
                };
                let target = Target {
                    address,
                    protocol: launch.protocol.clone(),
                    headers: Arc::default(),
                };
                return get(target, path, time_out).is_ok();
            }
        }
        false
    }

    /// Checks that the service has not ended; `when` says what it was doing.
    ///
    /// # Errors
    ///
    /// Returns an error if it has ended.
    pub fn is_alive(&mut self, when: &'static str) -> Result<(), CommandError> {
        match self.process.ended() {
            None => Ok(()),
            Some(status) => Err(self.process.fault(when, status)),
        }
    }

    /// Checks as [`Self::is_alive`] does, and waits up to `time` for the service to end.
    ///
    /// # Errors
    ///
    /// Returns an error if it has ended by then.
    pub(crate) fn is_alive_after(
        &mut self,
        time: Duration,
        when: &'static str,
    ) -> Result<(), CommandError> {
        // `is_alive` looks up how it ended.
        self.process.running.exit_within(time);
        self.is_alive(when)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address for administrators, if its command listens on such a port.
    pub fn admin_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.ip(), self.admin_port)
    }

    /// Returns the number of the command's first process.
    pub fn id(&self) -> u32 {
        self.process.running.id()
    }

    /// Returns CPU time and memory of all of its processes; `None` where the system does not tell.
    pub(crate) fn used(&self) -> Option<Used> {
        let processes = processes::from(self.id())?;
        Some(Used {
            cpu_s: processes::cpu_seconds(&processes),
            peak_bytes: processes::peak_memory(&processes),
        })
    }
}

/// Returns two different ports that nobody listens on at this moment.
fn free_ports() -> std::io::Result<[u16; 2]> {
    // Both are open at once, so they differ.
    let one = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok([one.local_addr()?.port(), other.local_addr()?.port()])
}
