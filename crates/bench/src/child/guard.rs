//! What this program is, started once more: a guard, a leash or a keeper.
//!
//! A *guard* starts somebody else's command and sees to it that nothing of it is left: it ends the
//! command, and every process that the command started, when its own standard input closes, which
//! is when the workshop ends, however it ends. On Linux it adopts what daemonises itself, and the
//! kernel kills the command should the guard itself be killed.
//!
//! A *leash* asks the kernel to kill it when its parent is gone, limits its memory, and becomes the
//! command. A *keeper* removes a folder when its standard input closes.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Kin;

/// The first argument of a guard; the command and its arguments follow.
const GUARD: &str = "__guard";
/// The first argument of a leash; the parent's number, the bytes of memory or `-`, the command and
/// its arguments follow.
const LEASH: &str = "__leash";
/// The first argument of a keeper; the folder follows.
const KEEPER: &str = "__keeper";

/// Whether this program has roles: whether its `main` called [`instead`].
static HAS_ROLES: AtomicBool = AtomicBool::new(false);

/// What this process is to be instead of a command line, if it was started as a guard, leash or
/// keeper. Call it first in `main`, on the main thread: the kernel ties a command to the thread that
/// starts it.
pub fn instead() -> Option<ExitCode> {
    HAS_ROLES.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    match (role.to_str()?, &rest[..]) {
        #[cfg(unix)]
        (GUARD, [program, arguments @ ..]) => Some(unix::guard(program, arguments)),
        #[cfg(unix)]
        (LEASH, [parent, memory, program, arguments @ ..]) => {
            Some(unix::become_command(parent, memory, program, arguments))
        }
        (KEEPER, [folder]) => Some(keeper(Path::new(folder))),
        _ => None,
    }
}

/// Whether families get a guard: on Unix, in a program that has roles.
pub(super) fn is_there() -> bool {
    cfg!(unix) && HAS_ROLES.load(Ordering::Relaxed)
}

/// Whether the command is one that [`leashed`] made for a family.
pub(super) fn is_guard(command: &Command) -> bool {
    is_there() && command.get_args().next() == Some(GUARD.as_ref())
}

/// `command`, started by a guard or on a leash; itself where there are no roles.
pub(super) fn leashed(command: &Command, kin: Kin, memory: Option<u64>) -> io::Result<Command> {
    let mut leashed = match kin {
        Kin::Family if is_there() => {
            let mut guard = Command::new(own()?);
            guard.arg(GUARD).arg(command.get_program());
            guard
        }
        Kin::Server | Kin::Tool if is_there() && cfg!(target_os = "linux") => {
            let memory = memory.map_or("-".to_owned(), |bytes| bytes.to_string());
            let mut leash = Command::new(own()?);
            leash
                .args([LEASH, &std::process::id().to_string(), &memory])
                .arg(command.get_program());
            leash
        }
        _ => Command::new(command.get_program()),
    };
    leashed.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => leashed.env(name, value),
            None => leashed.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        leashed.current_dir(folder);
    }
    Ok(leashed)
}

/// This very program. Where another build has taken its place on the disk meanwhile, as a test of this
/// workshop may do, it is still to be had as the running one.
fn own() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let is_gone = cfg!(target_os = "linux") && !own.exists();
    Ok(if is_gone {
        "/proc/self/exe".into()
    } else {
        own
    })
}

/// Removes a folder when it is dropped, or this process ends, however it ends.
#[derive(Debug)]
pub struct Keeper {
    _process: Child,
}

impl Keeper {
    /// Of `folder`, which need not exist yet.
    ///
    /// # Errors
    ///
    /// When no process can be started.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut keeper = Command::new(own()?);
        keeper
            .arg(KEEPER)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut keeper, 0);
        let process = keeper.spawn()?;
        Ok(Self { _process: process })
    }
}

/// Those who still write into it are on their way to their end: tries for a while.
fn keeper(folder: &Path) -> ExitCode {
    const TIME_TO_TRY: Duration = Duration::from_secs(5);

    // A guard above asks all to end, this one among them, when its work is about to begin.
    #[cfg(unix)]
    let _deaf = unix::deaf();
    let mut rest = [0; 64];
    while io::stdin().read(&mut rest).is_ok_and(|count| count > 0) {}
    let began = Instant::now();
    while std::fs::remove_dir_all(folder).is_err() && folder.exists() {
        if began.elapsed() > TIME_TO_TRY {
            return ExitCode::FAILURE;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    ExitCode::SUCCESS
}

#[cfg(unix)]
mod unix {
    use std::collections::BTreeSet;
    use std::ffi::{OsStr, OsString};
    use std::io::Read;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, ExitCode, Stdio};
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{SignalKind, signal};

    use super::LEASH;
    use crate::child::processes;

    /// How often the command is looked at: seldom, for the guard shares the command's CPUs.
    const LOOK: Duration = Duration::from_millis(100);
    /// What a service may take to end by itself when it is asked to.
    const TIME_TO_END: Duration = Duration::from_secs(2);

    pub(super) fn guard(program: &OsStr, arguments: &[OsString]) -> ExitCode {
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let child = super::own().and_then(|own| {
            Command::new(own)
                .args([LEASH, &std::process::id().to_string(), "-"])
                .arg(program)
                .args(arguments)
                .stdin(Stdio::null())
                .process_group(0)
                .spawn()
        });
        let mut child = match child {
            Ok(child) => child,
            Err(error) => {
                eprintln!("the command cannot be started: {error}");
                return ExitCode::from(126);
            }
        };
        let code = wait(&mut child, &closed());
        end_all(&mut child);
        ExitCode::from(code)
    }

    /// Told when standard input closes.
    fn closed() -> Receiver<()> {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut rest = [0; 64];
            while std::io::stdin()
                .read(&mut rest)
                .is_ok_and(|count| count > 0)
            {}
            drop(sender);
        });
        receiver
    }

    /// The command's exit code as a shell has it, or 0 when nobody wants it any more.
    fn wait(child: &mut Child, closed: &Receiver<()>) -> u8 {
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                let code = status
                    .code()
                    .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
                return u8::try_from(code).unwrap_or(1);
            }
            if closed.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
                return 0;
            }
        }
    }

    /// Asks everything that the command started to end, and then does not ask. Something that was
    /// just being started may be seen only at the second look, so there are two without a find.
    fn end_all(child: &mut Child) {
        let began = Instant::now();
        let mut was_empty = false;
        // A second time would mean: at once.
        let mut asked = BTreeSet::new();
        for signal in [Signal::TERM, Signal::KILL] {
            while signal == Signal::KILL || began.elapsed() < TIME_TO_END {
                let is_over = !matches!(child.try_wait(), Ok(None));
                let left = descendants(child, is_over);
                if left.is_empty() && was_empty || began.elapsed() > 4 * TIME_TO_END {
                    return;
                }
                was_empty = left.is_empty();
                for pid in left {
                    if asked.insert((pid.as_raw_nonzero(), signal.as_raw())) {
                        let _ = kill_process(pid, signal);
                    }
                }
                std::thread::sleep(LOOK / 5);
            }
        }
    }

    /// What lives below this process; where the system does not tell, the command's own group.
    fn descendants(child: &Child, is_over: bool) -> Vec<Pid> {
        let pid = |id: u32| i32::try_from(id).ok().and_then(Pid::from_raw);
        if let Some(living) = processes::below(std::process::id()) {
            return living.iter().filter_map(|one| pid(one.id)).collect();
        }
        if !is_over && let Some(group) = pid(child.id()) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        Vec::new()
    }

    /// Tied to its parent's life, this process becomes the command.
    pub(super) fn become_command(
        parent: &OsStr,
        memory: &OsStr,
        program: &OsStr,
        arguments: &[OsString],
    ) -> ExitCode {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Resource, Rlimit, getppid, setrlimit};

            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            // It may have died before it could be asked for.
            let now = getppid().map(|pid| pid.as_raw_nonzero().to_string());
            if now.as_deref().map(OsStr::new) != Some(parent) {
                return ExitCode::FAILURE;
            }
            if let Some(bytes) = memory.to_str().and_then(|bytes| bytes.parse().ok()) {
                let limit = Rlimit {
                    current: Some(bytes),
                    maximum: Some(bytes),
                };
                let _ = setrlimit(Resource::Data, limit);
            }
        }
        let _ = (parent, memory);
        let error = Command::new(program).args(arguments).exec();
        eprintln!("{} cannot be run: {error}", program.display());
        ExitCode::from(126)
    }

    /// From now on nothing but a kill ends this process; `None` where the system does not say how.
    pub(super) fn deaf() -> Option<impl Sized> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .ok()?;
        let within = runtime.enter();
        let kinds = [
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::terminate(),
        ];
        let heard = kinds.map(|kind| signal(kind).ok());
        drop(within);
        Some((runtime, heard))
    }
}
