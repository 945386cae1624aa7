//! The one way to start another program, so that it does not outlive this one, however this one ends.
//!
//! A child is a group of processes of its own: Ctrl-C in the terminal reaches the workshop alone,
//! which then ends its children. A child that ends by itself takes with it what it left in its group.
//!
//! On Unix each child has a *watcher*, a shell of a few lines that waits in the child's group until
//! this process is gone, and then ends the group: also after `kill -9`. A program that leaves the group
//! for a session of its own, as a daemon does, is ended while the process that started it still runs, and only by
//! a living process; on Linux also after that, if it was started by a child [with daemons](Starting::with_daemons).
//! Elsewhere only servers notice that this process was killed.

mod output;
pub mod processes;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{
    Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio,
};
use std::time::{Duration, Instant};

use crate::load::cpus;
use crate::load::interrupt::Interrupt;

use self::processes::Process;

pub use self::output::{Tail, lines_of};
pub use self::output::{last_lines, panics_in};

/// How often a child is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// What a child may take to end by itself once it is asked to; [`WATCHED`] gives it as long.
const GRACE: Duration = Duration::from_secs(2);

/// Starts a watcher, and becomes the program. The arguments are the signal that the watcher begins
/// with, the limit of memory in KiB or `-`, the variable that gets the child's number or `-`, the program and its
/// arguments. The watcher reads the pipe that this process holds the other end of, and nobody writes to. A shell gives
/// what it starts in the background no standard input, hence descriptor 3.
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
    /// Nowhere unless it is said, or somebody waits for the output.
    stderr: Option<Stdio>,
}

impl<'a> Starting<'a> {
    /// `command` with its arguments, folder and variables. What was set for its standard input and
    /// outputs does not count.
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

    /// It is asked to end by closing its standard input, as a chapter's server with
    /// `--stop-with-stdin`; others by SIGTERM, where there are signals.
    #[must_use]
    pub fn stops_with_stdin(mut self) -> Self {
        self.stops_with_stdin = true;
        self
    }

    /// On these CPUs only; an empty list, and systems other than Linux, are all CPUs.
    #[must_use]
    pub fn on(mut self, cpus: &'a [usize]) -> Self {
        self.cpus = cpus;
        self
    }

    /// With so many bytes of memory at most, where the system can be told (Linux).
    #[must_use]
    pub fn with_memory(mut self, bytes: Option<u64>) -> Self {
        self.memory = bytes;
        self
    }

    /// With what it starts as daemons, whose parents end at once: they are counted to it and end with it (Linux).
    /// Not for builds, whose daemons, such as a compiler's cache, are for others as well.
    #[must_use]
    pub fn with_daemons(mut self) -> Self {
        self.with_daemons = true;
        self
    }

    /// Where its standard output goes; nowhere otherwise.
    #[must_use]
    pub fn stdout(mut self, to: impl Into<Stdio>) -> Self {
        self.stdout = to.into();
        self
    }

    /// Where its standard error goes; nowhere otherwise.
    #[must_use]
    pub fn stderr(mut self, to: impl Into<Stdio>) -> Self {
        self.stderr = Some(to.into());
        self
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// When there is no such program, or the system does not start another.
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
            .stderr(self.stderr.unwrap_or_else(Stdio::null));
        let mut child = spawn(&mut command, self.cpus)?;
        Ok(Running {
            stdin: child.stdin.take(),
            child,
            stops_with_stdin: self.stops_with_stdin,
            has_ended: false,
        })
    }

    /// Starts it, and waits for its end; `None` is the clock. Of what it printed the last `kept`
    /// bytes are kept, of its standard error only if that was not sent elsewhere.
    ///
    /// # Errors
    ///
    /// As [`Self::start`]; of the kind [`io::ErrorKind::Interrupted`] when `interrupt` is set.
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

/// Takes from `command` what cargo tells the program that it runs about that program's package.
///
/// Build scripts, such as ring's, ask cargo to run them again when these variables change. With them, a cargo that
/// the command starts compiles ring and all above it, and the reader's next cargo compiles that once more.
pub fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let of_package = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if of_package {
            command.env_remove(name);
        }
    }
}

/// The command, started with a watcher beside it; itself where there is no shell.
fn watched(starting: &Starting<'_>) -> Command {
    let command = starting.command;
    #[cfg(unix)]
    let mut watched = {
        use std::os::unix::process::CommandExt;

        let mut shell = Command::new("/bin/sh");
        let memory = starting.memory.filter(|_| cfg!(target_os = "linux"));
        let memory = memory.map_or("-".to_owned(), |bytes| (bytes / 1024).to_string());
        // A server is on its way to its end once its standard input is closed: signal 0 is none.
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

/// A child inherits the CPUs of the thread that starts it.
fn spawn(command: &mut Command, cpus: &[usize]) -> io::Result<Child> {
    if cpus.is_empty() || !cfg!(target_os = "linux") {
        return command.spawn();
    }
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            cpus::pin_current_thread(cpus).map_err(io::Error::other)?;
            command.spawn()
        });
        let panicked = |_| Err(io::Error::other("the thread that starts programs panicked"));
        pinned.join().unwrap_or_else(panicked)
    })
}

/// A child. Dropping it ends it, with all that it started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// The watcher ends the child when this closes, and a server ends by itself.
    stdin: Option<ChildStdin>,
    stops_with_stdin: bool,
    /// Its number may be another process's by now.
    has_ended: bool,
}

impl Running {
    /// The process's number, and its group's.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, once, where that is a pipe.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its standard error, once, where that is a pipe.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    ///
    /// When the system does not tell.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = self.child.try_wait()?;
        if ended.is_some() && !self.has_ended {
            // The watcher is in the group still, so the number is nobody else's.
            let below = self.signal(Signal::Kill);
            processes::bury(self.id(), &below);
            self.has_ended = true;
        }
        Ok(ended)
    }

    /// Waits for its end, or ends it when the reader or the clock says so; `None` is the clock.
    ///
    /// # Errors
    ///
    /// Of the kind [`io::ErrorKind::Interrupted`] when `interrupt` is set; or the system's.
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

    /// How it ended, if it does within `time`.
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

    /// Ends it: asks first, and does not wait for long.
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

    /// Whether it runs, or something that was asked to end with it.
    fn is_there(&mut self) -> bool {
        let runs = matches!(self.child.try_wait(), Ok(None));
        runs || !self.stops_with_stdin && self.has_left_any()
    }

    /// Whether anything of its group lives, or of its daemons.
    fn has_left_any(&self) -> bool {
        let id = self.child.id();
        processes::is_any_in(id) || processes::below(id).is_some_and(|below| !below.is_empty())
    }

    /// Ends it at once, as a crash would: it finishes nothing.
    pub fn kill(&mut self) {
        if !self.has_ended {
            let below = self.signal(Signal::Kill);
            let _ = self.child.kill();
            let _ = self.child.wait();
            processes::bury(self.id(), &below);
            self.has_ended = true;
        }
    }

    /// To its group, and to what it started that has left the group, which is returned.
    fn signal(&self, signal: Signal) -> Vec<Process> {
        let id = self.child.id();
        let below = processes::below(id).unwrap_or_default();
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal as OfUnix, kill_process, kill_process_group};

            let signal = match signal {
                Signal::Terminate => OfUnix::TERM,
                Signal::Kill => OfUnix::KILL,
            };
            let pid = |id: u32| i32::try_from(id).ok().and_then(Pid::from_raw);
            for one in &below {
                let _ = pid(one.id).map(|pid| kill_process(pid, signal));
            }
            let _ = pid(id).map(|group| kill_process_group(group, signal));
        }
        let _ = signal;
        below
    }
}

/// How a child is told to end.
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

/// Removes a folder, which need not exist yet, once this process has ended, however it ends: where
/// there is a shell.
///
/// # Errors
///
/// When no shell can be started.
pub fn remove_at_the_end(folder: &Path) -> io::Result<impl Send + Sync> {
    // Those who still write into it are on their way to their end: it tries for a while.
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

/// The file that `program` names: itself if it is a path, else the first of that name in `PATH`.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let program = Path::new(program.as_ref());
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let name = program.as_os_str().to_owned();
    std::env::split_paths(&std::env::var_os("PATH")?)
        .flat_map(|folder| {
            let mut with_suffix = name.clone();
            with_suffix.push(std::env::consts::EXE_SUFFIX);
            [folder.join(&name), folder.join(with_suffix)]
        })
        .find(|candidate| candidate.is_file())
}
