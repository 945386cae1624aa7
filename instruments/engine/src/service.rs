//! A service as a child process: any command that listens on a given port, or a program that prints where it listens.

pub mod program;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use children::processes::{self, CpuWanted};
use children::{Interrupt, Running, Starting, Tail, last_lines, panics_in};

use crate::load::ask::get;
use crate::load::{Protocol, Target};

/// Interval between looks at a starting server.
const LOOK: Duration = Duration::from_millis(20);
/// Number of lines that are kept of what a program prints before it is ready.
const LINES_KEPT: usize = 40;
/// Largest number of such lines that are read at a time.
const MOST_LINES: usize = 1000;
/// Longest such line, in bytes.
const LONGEST_LINE: usize = 4096;

/// A service to start, and its limits.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// Name in messages, such as `base`.
    pub name: &'a str,
    /// The command or program.
    pub start: Start<'a>,
    /// Longest time until it is ready.
    pub ready_within: Duration,
    /// CPUs that it may use; empty for all. Linux only.
    pub cpus: &'a [usize],
}

/// Start of a service, and the way in which it becomes known where it listens.
#[derive(Debug, Clone)]
pub enum Start<'a> {
    /// A command that is told the port.
    Shell {
        /// Command for the shell. `{port}` stands for the port to listen on, which the variable `PORT` holds as well, and
        /// `{admin_port}` for a second one.
        command: &'a str,
        /// Folder that it runs in.
        folder: &'a Path,
        /// A path that answers with a status of 200 to 299 once the service is ready; without it a
        /// port that accepts connections is enough.
        ready: Option<&'a str>,
        /// Protocol that it speaks.
        protocol: &'a Protocol,
    },
    /// A program that picks free ports. Once it is ready, it prints a line with two URLs: the service's, and that of a
    /// second port for administrators. It ends when its standard input closes.
    Program {
        /// The program with its arguments, folder and variables.
        command: &'a Command,
        /// Most data memory that it may use, in bytes. Linux only.
        memory: Option<u64>,
    },
}

/// A command that could not be run, or did not become a server.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command cannot be started, no port is free, or nobody listens.
    #[error("{0}")]
    Failed(String),
    /// The command ended.
    #[error("the {name} ended {when} ({}){printed}{}", in_words(*.status), is_daemon(*.status))]
    Ended {
        /// Name of the command.
        name: String,
        /// Words on when or how it ended, such as `before it was ready`.
        when: &'static str,
        /// Its exit status.
        status: ExitStatus,
        /// End of its output.
        printed: Printed,
    },
    /// A program runs, and has not printed where it listens.
    #[error("the {name} did not print within {} s where it listens{printed}", .within.as_secs())]
    Silent {
        /// Name of the program.
        name: String,
        /// Time that it had.
        within: Duration,
        /// `true` if it waited in the second half of that time, and not for a CPU.
        is_idle: bool,
        /// End of its output.
        printed: Printed,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// End of what a command printed. It is formatted as the last panic, or else as the last lines in one: of standard error
/// if there are any, or of standard output.
#[derive(Debug, Clone, Default)]
pub struct Printed {
    /// Last lines of standard output.
    pub output: String,
    /// Last lines of standard error.
    pub errors: String,
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(panic) = panics_in(&self.errors).pop() {
            return write!(f, "; it printed: panicked at {panic}");
        }
        match last_lines(&self.errors).or_else(|| last_lines(&self.output)) {
            Some(said) => write!(f, "; it printed: {said}"),
            None => f.write_str("; it printed nothing"),
        }
    }
}

/// Formats an exit status. A shell ends with 128 and more for a signal.
fn in_words(status: ExitStatus) -> String {
    match status.code() {
        Some(code) if code > 128 => format!("signal {}", code - 128),
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

/// Returns advice for a command that ended well: a service in the background can be neither measured nor ended.
fn is_daemon(status: ExitStatus) -> &'static str {
    if status.success() {
        "; the command itself has to run as long as the service does: start it in the foreground, without \
         `&` or a daemon's option"
    } else {
        ""
    }
}

fn not_started(name: &str, reason: impl fmt::Display) -> CommandError {
    CommandError::Failed(format!("the {name} cannot be started: {reason}"))
}

/// A running command, with all that it started.
#[derive(Debug)]
struct Process {
    name: String,
    running: Running,
    output: Tail,
    errors: Tail,
}

impl Process {
    /// Starts a command. Its standard output is kept if `is_kept`, and otherwise left to the caller.
    fn start(name: &str, starting: Starting<'_>, is_kept: bool) -> Result<Self, CommandError> {
        let mut running = starting
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .start()
            .map_err(|error| not_started(name, error))?;
        let output = if is_kept { running.stdout() } else { None };
        Ok(Self {
            name: name.to_owned(),
            output: Tail::of(output),
            errors: Tail::of(running.stderr()),
            running,
        })
    }

    /// Returns the exit status once the command has ended.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.running.try_wait().ok().flatten()
    }

    fn fault(&self, when: &'static str, status: ExitStatus) -> CommandError {
        CommandError::Ended {
            name: self.name.clone(),
            when,
            status,
            // Wait until all of its output has come.
            printed: Printed {
                output: self.output.at_the_end(),
                errors: self.errors.at_the_end(),
            },
        }
    }

    /// Returns what it has printed so far.
    fn printed(&self) -> Printed {
        Printed {
            output: self.output.text(),
            errors: self.errors.text(),
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
    let build = in_folder(command, folder);
    // Its daemons, such as a compiler's cache, are left alone because others use them as well.
    let mut running = Process::start(name, Starting::of(&build), true)?;
    loop {
        if interrupt.is_set() {
            return Err(CommandError::Interrupted);
        }
        match running.ended() {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(running.fault("with an error", status)),
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Returns a shell that runs `command` in `folder`.
fn in_folder(command: &str, folder: &Path) -> Command {
    let mut shell = shell(command);
    // A backtrace would push the panic's message out of the lines that are kept.
    shell.current_dir(folder).env("RUST_BACKTRACE", "0");
    shell
}

/// A service that is ready. Dropping it ends all of its processes.
#[derive(Debug)]
pub struct CommandServer {
    process: Process,
    address: SocketAddr,
    admin: SocketAddr,
    /// Last lines of a program's standard output until it was ready.
    announced: Vec<String>,
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
        let mut server = match launch.start {
            Start::Shell {
                command, folder, ..
            } => Self::start_command(launch, command, folder),
            Start::Program { command, memory } => Self::start_program(launch, command, memory),
        }?;
        // There are none of a command, whose output is kept.
        let lines = children::lines_of(server.process.running.stdout(), LONGEST_LINE);
        let started = Instant::now();
        let mut half_way = None;
        while started.elapsed() <= launch.ready_within {
            if half_way.is_none() && started.elapsed() > launch.ready_within / 2 {
                half_way = CpuWanted::by(server.id());
            }
            if interrupt.is_set() {
                return Err(CommandError::Interrupted);
            }
            server.is_alive("before it was ready")?;
            match launch.start {
                Start::Shell {
                    ready, protocol, ..
                } if server.answers(ready, protocol) => {
                    // A server that could not have the port may end only now, while another process answers. A daemon's
                    // first process ends once it listens.
                    server.is_alive_after(2 * LOOK, "before it was ready")?;
                    return Ok(server);
                }
                Start::Program { .. } if server.has_announced(&lines) => return Ok(server),
                Start::Shell { .. } | Start::Program { .. } => std::thread::sleep(LOOK),
            }
        }
        Err(server.is_silent(launch, half_way.as_ref()))
    }

    /// Starts a command, and tells it two free ports.
    fn start_command(
        launch: &Launch<'_>,
        command: &str,
        folder: &Path,
    ) -> Result<Self, CommandError> {
        let [port, admin_port] = free_ports()
            .map_err(|error| not_started(launch.name, format!("no port is free: {error}")))?;
        let command = command
            .replace("{port}", &port.to_string())
            .replace("{admin_port}", &admin_port.to_string());
        let mut command = in_folder(&command, folder);
        command.env("PORT", port.to_string());
        let starting = Starting::of(&command).on(launch.cpus).with_daemons();
        Ok(Self {
            process: Process::start(launch.name, starting, true)?,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            admin: SocketAddr::from((Ipv4Addr::LOCALHOST, admin_port)),
            announced: Vec::new(),
        })
    }

    /// Starts a program, which picks its ports.
    fn start_program(
        launch: &Launch<'_>,
        command: &Command,
        memory: Option<u64>,
    ) -> Result<Self, CommandError> {
        let starting = Starting::of(command)
            .on(launch.cpus)
            .with_memory(memory)
            .stops_with_stdin();
        let unknown = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Self {
            process: Process::start(launch.name, starting, false)?,
            address: unknown,
            admin: unknown,
            announced: Vec::new(),
        })
    }

    /// Returns whether a command's service is ready. Also finds out which of the two loopback addresses it listens on.
    fn answers(&mut self, ready: Option<&str>, protocol: &Protocol) -> bool {
        let port = self.address.port();
        let loopback = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ];
        let time_out = Duration::from_secs(1);
        for address in loopback {
            if TcpStream::connect_timeout(&address, time_out).is_ok() {
                self.address = address;
                self.admin.set_ip(address.ip());
                let Some(path) = ready else {
                    return true;
                };
                let target = Target {
                    address,
                    protocol: protocol.clone(),
                    headers: Arc::default(),
                };
                return get(target, path, time_out).is_ok();
            }
        }
        false
    }

    /// Reads what a program has printed, and returns whether that names its addresses.
    fn has_announced(&mut self, lines: &Receiver<String>) -> bool {
        // It may print without end.
        for line in lines.try_iter().take(MOST_LINES) {
            let found = addresses(&line);
            if self.announced.len() == LINES_KEPT {
                self.announced.remove(0);
            }
            self.announced.push(line);
            if let [service, admin] = found[..] {
                (self.address, self.admin) = (service, admin);
                return true;
            }
        }
        false
    }

    /// Makes the error of a service that was not ready in time, with the CPU time that it had wanted `half_way`.
    fn is_silent(&self, launch: &Launch<'_>, half_way: Option<&CpuWanted>) -> CommandError {
        let mut printed = self.process.printed();
        let Start::Shell {
            ready, protocol, ..
        } = launch.start
        else {
            printed.output = self.announced.join("\n");
            return CommandError::Silent {
                name: launch.name.to_owned(),
                within: launch.ready_within,
                is_idle: CpuWanted::is_idle_since(half_way, self.id()),
                printed,
            };
        };
        let target = Target {
            protocol: protocol.clone(),
            ..Target::from(self.address)
        };
        CommandError::Failed(format!(
            "the {} did not answer at 127.0.0.1:{port}{} within {} s: it must listen on the port \
             that `{{port}}` in its command or the variable PORT gives, here {port}{}{printed}",
            launch.name,
            ready.unwrap_or_default(),
            launch.ready_within.as_secs(),
            target.advice(),
            port = self.address.port()
        ))
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

    /// Returns the address for administrators, if it listens on such a port.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Returns the last lines that a program printed on standard output until it was ready.
    pub fn announced(&self) -> &[String] {
        &self.announced
    }

    /// Returns the last lines of its standard error so far; of a service that has ended, the very last one among them.
    pub fn errors(&mut self) -> String {
        match self.process.ended() {
            Some(_) => self.process.errors.at_the_end(),
            None => self.process.errors.text(),
        }
    }

    /// Returns whether its first process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.process.ended().is_some()
    }

    /// Ends it at once, as a crash would: it finishes nothing.
    pub fn kill(&mut self) {
        self.process.running.kill();
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

/// Returns the addresses of the URLs in a line.
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
    fn the_ready_line_yields_service_and_admin() {
        let line =
            "chapter1 problem listens on http://127.0.0.1:8080, admin on http://127.0.0.1:6060";
        let ports: Vec<u16> = addresses(line).iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [8080, 6060]);
        assert!(addresses("warming up").is_empty());
    }
}
