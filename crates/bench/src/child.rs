//! The one way to start another program, so that it never outlives this one, however this one ends.
//!
//! A child is a group of processes of its own: Ctrl-C in the terminal reaches the workshop alone,
//! which then ends its children. What ends them when the workshop is killed depends on what they
//! are ([`Kin`]). A program of the workshop's own calls [`instead`] first in its `main`; in another,
//! such as a test, a child that is not a server may outlive a kill.

mod guard;
mod output;
pub(crate) mod processes;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{
    Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio,
};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use loadgen::cpus;
use loadgen::interrupt::Interrupt;

pub use self::guard::{Keeper, instead};
pub(crate) use self::output::panics_in;
pub use self::output::{Tail, lines_of};

/// How often a child is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What a child is, and with it how it is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kin {
    /// A chapter's server: it starts nobody, and ends by itself when its standard input closes.
    Server,
    /// It starts nobody, and has nothing to tidy up: a load tool.
    Tool,
    /// It may start others, which end with it: a shell, a compiler, somebody else's service.
    Family,
}

impl Kin {
    /// What it may take to end by itself once it is asked to.
    fn grace(self) -> Duration {
        match self {
            Self::Server => Duration::from_secs(2),
            Self::Tool => Duration::ZERO,
            // The guard kills what it guards long before.
            Self::Family => Duration::from_secs(20),
        }
    }
}

/// A program that is to be started.
#[derive(Debug)]
pub struct Starting<'a> {
    command: &'a Command,
    kin: Kin,
    cpus: &'a [usize],
    memory: Option<u64>,
    stdout: Stdio,
    /// Nowhere unless it is said, or somebody waits for the output.
    stderr: Option<Stdio>,
}

impl<'a> Starting<'a> {
    /// `command` with its arguments, folder and variables. What was set for its standard input and
    /// outputs does not count.
    pub fn of(command: &'a Command, kin: Kin) -> Self {
        Self {
            command,
            kin,
            cpus: &[],
            memory: None,
            stdout: Stdio::null(),
            stderr: None,
        }
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
        let mut command = guard::leashed(self.command, self.kin, self.memory)?;
        command
            .stdin(match self.kin {
                Kin::Tool => Stdio::null(),
                Kin::Server | Kin::Family => Stdio::piped(),
            })
            .stdout(self.stdout)
            .stderr(self.stderr.unwrap_or_else(Stdio::null));
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = spawn(command, self.cpus.to_vec())?;
        Ok(Running {
            leash: child.stdin.take(),
            child,
            kin: self.kin,
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

/// A child. Dropping it ends it, with all that it started if it is a [`Kin::Family`].
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Servers and guards end when this closes: also when this process is killed.
    leash: Option<ChildStdin>,
    kin: Kin,
}

impl Running {
    /// The process's number: of the guard, for a [`Kin::Family`].
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
        // A number that was waited for may be another process's: forget it in the same breath.
        let mut living = living();
        let ended = self.child.try_wait();
        if !matches!(ended, Ok(None)) {
            living.remove(&self.child.id());
        }
        ended
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

    /// Ends it: asks first where it can be asked, and does not wait for long.
    pub fn end(&mut self) {
        drop(self.leash.take());
        // There is no guard elsewhere: what a family's first process starts is its own affair.
        let is_asked = self.kin != Kin::Family || guard::is_there();
        if is_asked && self.exit_within(self.kin.grace()).is_some() {
            return;
        }
        self.kill();
    }

    /// Ends it at once, as a crash would: it finishes nothing.
    pub fn kill(&mut self) {
        if !matches!(self.try_wait(), Ok(None)) {
            return;
        }
        // What a guard would have ended must end before it.
        #[cfg(unix)]
        if self.kin == Kin::Family {
            processes::kill_below(self.child.id());
        }
        kill_group(self.child.id());
        let _ = self.child.kill();
        let mut living = living();
        let _ = self.child.wait();
        living.remove(&self.child.id());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Kills all children that run, before this process ends without dropping anything.
pub fn kill_all() {
    for child in std::mem::take(&mut *living()) {
        kill_group(child);
    }
}

/// The numbers of the children that run and were not waited for. Guards are none of them: they end
/// what they guard as soon as this process is gone.
fn living() -> std::sync::MutexGuard<'static, BTreeSet<u32>> {
    static LIVING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill_group(child: u32) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};

        let group = i32::try_from(child).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }
    let _ = child;
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

/// A command, the CPUs that it may use, and who waits for the child.
type Job = (Command, Vec<usize>, Sender<io::Result<Child>>);

/// Starts a child from the one thread that starts all of them and lives as long as the process: a
/// child inherits its thread's CPUs, and the kernel kills it when that thread is gone.
fn spawn(command: Command, cpus: Vec<usize>) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<Job>> = OnceLock::new();

    let starter = STARTER.get_or_init(|| {
        let (jobs, waiting) = channel::<Job>();
        std::thread::spawn(move || {
            let all = cpus::available();
            for (mut command, cpus, to) in waiting {
                let _ = to.send(spawn_here(&mut command, &cpus));
                if cfg!(target_os = "linux") && !cpus.is_empty() {
                    let _ = cpus::pin_current_thread(&all);
                }
            }
        });
        jobs
    });
    let gone = || io::Error::other("the thread that starts programs is gone");
    let (to, child) = channel();
    starter
        .send((command, cpus, to))
        .map_err(|_| gone())
        .and_then(|()| child.recv().unwrap_or_else(|_| Err(gone())))
}

fn spawn_here(command: &mut Command, cpus: &[usize]) -> io::Result<Child> {
    if cfg!(target_os = "linux") {
        cpus::pin_current_thread(cpus).map_err(io::Error::other)?;
    }
    // Held, so that a child is killed with the others or not started any more.
    let mut living = living();
    let child = command.spawn()?;
    if !guard::is_guard(command) {
        living.insert(child.id());
    }
    Ok(child)
}
