//! Starts other programs, so that none outlives this one, however this one ends.
//!
//! A child is a group of processes of its own. Ctrl-C in the terminal reaches only this process, which then ends its
//! children. If a child ends by itself, the rest of its group ends with it.
//!
//! On Unix each child has a *watcher*, a shell of a few lines in the child's group. It waits until this process is
//! gone, even by `kill -9`, and then ends the group.
//!
//! A program may leave the group for a session of its own, as a daemon does. Only this process ends such a program, and
//! only while the process that started it still runs. On Linux it also does so later if the child was started
//! [with daemons](Starting::with_daemons).
//!
//! On systems other than Unix, only servers notice that this process was killed.

pub mod cpus;
pub mod environment;
mod interrupt;
pub mod limits;
mod output;
pub mod processes;
pub mod program;
pub mod quota;
pub mod tool;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{
    Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio,
};
use std::time::{Duration, Instant};

use self::processes::Process;

pub use self::interrupt::Interrupt;
pub use self::output::{Tail, last_lines, lines_of, panics_in};

/// Interval between looks at a child.
const LOOK: Duration = Duration::from_millis(20);
/// Longest time for a child to end by itself once it is asked to. The watcher in [`WATCHED`] waits as long.
const GRACE: Duration = Duration::from_secs(2);

/// Shell script that starts a watcher and then becomes the program. Its arguments are the watcher's first signal, the
/// memory limit in KiB or `-`, the variable that gets the child's number or `-`, the program and its arguments.
///
/// The watcher reads a pipe whose other end this process holds and never writes to. A shell gives background commands
/// no standard input, hence descriptor 3.
#[cfg(unix)]
const WATCHED: &str = r#"
exec 3<&0
(
    {
        read -r line <&3
        trap '' TERM
        kill -"$1" 0
        PATH=/usr/bin:/bin sleep 2
        kill -KILL 0
    } >/dev/null 2>&1 &
)
[ "$2" = - ] || ulimit -d "$2" 2>/dev/null
[ "$1" = 0 ] || exec </dev/null
[ "$3" = - ] || export "$3=$$"
shift 3
exec 3<&- "$@"
"#;

/// A program that is to be started.
#[derive(Debug)]
pub struct Starting<'a> {
    command: &'a Command,
    stops_with_stdin: bool,
    cpus: &'a [usize],
    memory: Option<u64>,
    with_daemons: bool,
    stdout: Stdio,
    /// Destination of standard error. Without one it goes nowhere, or into the result of [`Starting::output`].
    stderr: Option<Stdio>,
}

impl<'a> Starting<'a> {
    /// Prepares `command` with its arguments, folder and variables. Ignores its settings of standard input and outputs.
    pub fn of(command: &'a Command) -> Self {
        Self {
            command,
            stops_with_stdin: false,
            cpus: &[],
            memory: None,
            with_daemons: false,
            stdout: Stdio::null(),
            stderr: None,
        }
    }

    /// Makes the program end when its standard input closes, as a chapter's server with `--stop-with-stdin` does. Other
    /// programs are ended by SIGTERM, on systems with signals.
    #[must_use]
    pub fn stops_with_stdin(mut self) -> Self {
        self.stops_with_stdin = true;
        self
    }

    /// Restricts the program to these CPUs. An empty list, or a system other than Linux, means all CPUs.
    #[must_use]
    pub fn on(mut self, cpus: &'a [usize]) -> Self {
        self.cpus = cpus;
        self
    }

    /// Limits the program's data memory to `bytes` (`ulimit -d`). Linux only.
    #[must_use]
    pub fn with_memory(mut self, bytes: Option<u64>) -> Self {
        self.memory = bytes;
        self
    }

    /// Counts daemons, whose parents end at once, to the program and ends them with it. Linux only. Do not use it for
    /// builds: others use their daemons as well, such as a compiler's cache.
    #[must_use]
    pub fn with_daemons(mut self) -> Self {
        self.with_daemons = true;
        self
    }

    /// Sends standard output to `to`. The default is nowhere.
    #[must_use]
    pub fn stdout(mut self, to: impl Into<Stdio>) -> Self {
        self.stdout = to.into();
        self
    }

    /// Sends standard error to `to`. The default is nowhere.
    #[must_use]
    pub fn stderr(mut self, to: impl Into<Stdio>) -> Self {
        self.stderr = Some(to.into());
        self
    }

    /// Starts the program.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such program, or if the system cannot start it.
    pub fn start(self) -> io::Result<Running> {
        let program = self.command.get_program();
        if find(program).is_none() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no program {}", program.display()),
            ));
        }
        if self.with_daemons {
            processes::adopt_orphans();
        }
        let mut command = watched(&self);
        command
            .stdin(if cfg!(unix) || self.stops_with_stdin {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(self.stdout)
            .stderr(self.stderr.unwrap_or(Stdio::null()));
        let mut child = spawn(&mut command, self.cpus)?;
        Ok(Running {
            stdin: child.stdin.take(),
            child,
            stops_with_stdin: self.stops_with_stdin,
            has_ended: false,
        })
    }

    /// Starts the program and waits for its end. Returns `None` if that takes longer than `within`. Keeps the last
    /// `kept` bytes of its output, and of its standard error unless that was sent elsewhere.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::start`], and one of the kind [`io::ErrorKind::Interrupted`] if `interrupt` is set.
    pub fn output(
        mut self,
        interrupt: &Interrupt,
        within: Duration,
        kept: usize,
    ) -> io::Result<Option<Output>> {
        self.stderr.get_or_insert_with(Stdio::piped);
        let mut running = self.stdout(Stdio::piped()).start()?;
        let stdout = output::whole(running.stdout(), kept);
        let stderr = output::whole(running.stderr(), kept);
        let Some(status) = running.wait(interrupt, within)? else {
            return Ok(None);
        };
        Ok(Some(Output {
            status,
            stdout: stdout.join().unwrap_or_default(),
            stderr: stderr.join().unwrap_or_default(),
        }))
    }
}

/// Removes from `command` the variables in which cargo describes the package of the program that it runs.
///
/// Build scripts, such as ring's, ask cargo to run them again when these variables change. With them, a cargo that
/// the command starts compiles ring and all above it, and the reader's next cargo compiles that once more.
pub fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}

/// Returns the command with a watcher beside it, or the command itself where there is no shell.
fn watched(starting: &Starting<'_>) -> Command {
    let command = starting.command;
    #[cfg(unix)]
    let mut watched = {
        use std::os::unix::process::CommandExt;

        let mut shell = Command::new("/bin/sh");
        let memory = match starting.memory {
            Some(bytes) if cfg!(target_os = "linux") => (bytes / 1024).to_string(),
            _ => "-".to_owned(),
        };
        // A server ends by itself once its standard input is closed, so its watcher only begins with signal 0.
        let first = if starting.stops_with_stdin {
            "0"
        } else {
            "TERM"
        };
        let mark = if starting.with_daemons {
            processes::MARK
        } else {
            "-"
        };
        shell
            .args(["-c", WATCHED, "sh", first, &memory, mark])
            .arg(command.get_program())
            .process_group(0);
        shell
    };
    #[cfg(not(unix))]
    let mut watched = Command::new(command.get_program());
    watched.args(command.get_args());
    forget_package(&mut watched);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => watched.env(name, value),
            None => watched.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        watched.current_dir(folder);
    }
    watched
}

/// Spawns a command on `cpus`. A child inherits the CPUs of the thread that starts it, hence a pinned thread.
fn spawn(command: &mut Command, cpus: &[usize]) -> io::Result<Child> {
    if cpus.is_empty() || !cfg!(target_os = "linux") {
        return command.spawn();
    }
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            cpus::pin_current_thread(cpus).map_err(io::Error::other)?;
            command.spawn()
        });
        match pinned.join() {
            Ok(spawned) => spawned,
            Err(_) => Err(io::Error::other("the thread that starts programs panicked")),
        }
    })
}

/// A running child. Dropping it ends it, with all that it started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Pipe whose end makes the watcher end the child, and a server end by itself.
    stdin: Option<ChildStdin>,
    stops_with_stdin: bool,
    /// Set once the child has been waited for. Its number may belong to another process by then.
    has_ended: bool,
}

impl Running {
    /// Returns the number of the process and of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes its standard output if that is a pipe and has not been taken yet.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Takes its standard error if that is a pipe and has not been taken yet.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns its exit status if it has ended, and then kills what it left behind.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = self.child.try_wait()?;
        if ended.is_some() && !self.has_ended {
            // The watcher is still in the group, so the number belongs to no other process.
            let below = self.signal(Signal::Kill);
            processes::bury(self.id(), &below);
            self.has_ended = true;
        }
        Ok(ended)
    }

    /// Waits for its end. If that takes longer than `within`, ends it and returns `None`.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind [`io::ErrorKind::Interrupted`] if `interrupt` is set, or the system's error.
    pub fn wait(
        &mut self,
        interrupt: &Interrupt,
        within: Duration,
    ) -> io::Result<Option<ExitStatus>> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            if interrupt.is_set() {
                self.end();
                return Err(io::ErrorKind::Interrupted.into());
            }
            if began.elapsed() > within {
                self.end();
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Returns its exit status if it ends within `time`.
    pub fn exit_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + time;
        loop {
            match self.try_wait() {
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                ended => return ended.ok().flatten(),
            }
        }
    }

    /// Asks it to end, and kills it if it is still there after two seconds.
    pub fn end(&mut self) {
        if self.has_ended {
            return;
        }
        if self.stops_with_stdin {
            self.stdin = None;
        } else {
            self.signal(Signal::Terminate);
        }
        let deadline = Instant::now() + GRACE;
        let is_asked = cfg!(unix) || self.stops_with_stdin;
        while is_asked && self.is_there() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }

    /// Returns whether it runs, or anything that was asked to end with it.
    fn is_there(&mut self) -> bool {
        let runs = matches!(self.child.try_wait(), Ok(None));
        runs || !self.stops_with_stdin && self.has_left_any()
    }

    /// Returns whether any process of its group or any of its daemons lives.
    fn has_left_any(&self) -> bool {
        let id = self.child.id();
        processes::is_any_in(id) || !processes::below(id).unwrap_or_default().is_empty()
    }

    /// Kills it at once, as a crash would: it finishes nothing.
    pub fn kill(&mut self) {
        if !self.has_ended {
            let below = self.signal(Signal::Kill);
            let _ = self.child.kill();
            let _ = self.child.wait();
            processes::bury(self.id(), &below);
            self.has_ended = true;
        }
    }

    /// Sends `signal` to its group, and to processes below it that have left the group. Returns all processes below it.
    fn signal(&self, signal: Signal) -> Vec<Process> {
        let id = self.child.id();
        let below = processes::below(id).unwrap_or_default();
        #[cfg(unix)]
        {
            use rustix::process::{Signal as OfUnix, kill_process, kill_process_group};

            let signal = match signal {
                Signal::Terminate => OfUnix::TERM,
                Signal::Kill => OfUnix::KILL,
            };
            for one in &below {
                if let Some(pid) = processes::pid(one.id) {
                    let _ = kill_process(pid, signal);
                }
            }
            if let Some(group) = processes::pid(id) {
                let _ = kill_process_group(group, signal);
            }
        }
        let _ = signal;
        below
    }
}

/// Signal that ends a child.
#[derive(Debug, Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Removes `folder`, which need not exist yet, once this process has ended, however it ends. Needs a shell.
///
/// # Errors
///
/// Returns an error if no shell can be started.
pub fn remove_at_the_end(folder: &Path) -> io::Result<impl Send + Sync> {
    // Processes that are about to end may still write into it, so the shell tries for a while.
    const REMOVE: &str = r#"
        trap '' HUP INT TERM
        PATH=/usr/bin:/bin
        read -r line
        for second in 1 2 3 4 5; do rm -rf -- "$1" && exit; sleep 1; done
    "#;

    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", REMOVE, "sh"]).arg(folder);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Returns the file that `program` names: itself if it is a path, else the first of that name in `PATH`.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let program = Path::new(program.as_ref());
    if program.components().count() > 1 {
        return if program.is_file() {
            Some(program.to_owned())
        } else {
            None
        };
    }
    let mut with_suffix = program.as_os_str().to_owned();
    with_suffix.push(std::env::consts::EXE_SUFFIX);
    for folder in std::env::split_paths(&std::env::var_os("PATH")?) {
        for candidate in [folder.join(program), folder.join(&with_suffix)] {
            if candidate.is_file() {
                return Some(candidate);
            }
        }
    }
    None
}
