//! A process of its own that starts somebody else's command and sees to it that nothing of it is
//! left, whatever becomes of the workshop.
//!
//! The workshop's own servers end when their standard input closes. A reader's service does not,
//! and may stand behind a shell. So the workshop starts itself again as a guard, which starts the
//! command: the guard ends the command, and every process that the command started, when its own
//! standard input closes, which is when the workshop ends, however it ends. On Linux it adopts what
//! daemonises itself, and the kernel kills the command should the guard itself be killed.

use std::ffi::OsString;
use std::process::ExitCode;

/// The first argument of a process that is a guard; the command for the shell follows.
pub const GUARD: &str = "__guard";

/// The first argument of a process that becomes the command.
const BECOME: &str = "__become";

/// What this process is to be instead of a command line, if it was started as a guard. Call it
/// first in `main`, on the main thread: the kernel ties the command to the thread that starts it.
pub fn instead() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    match (role.to_str()?, &rest[..]) {
        #[cfg(unix)]
        (GUARD, [command]) => Some(unix::guard(command)),
        #[cfg(unix)]
        (BECOME, [command]) => Some(unix::become_command(command)),
        _ => None,
    }
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::io::Read;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, ExitCode, Stdio};
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};

    use super::BECOME;
    use crate::server::processes;

    /// How often the command is looked at: seldom, for the guard shares the command's CPUs.
    const LOOK: Duration = Duration::from_millis(100);
    /// What a service may take to end by itself when it is asked to.
    const TIME_TO_END: Duration = Duration::from_secs(2);

    pub(super) fn guard(command: &OsStr) -> ExitCode {
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let child = std::env::current_exe().and_then(|own| {
            Command::new(own)
                .arg(BECOME)
                .arg(command)
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
        let asked = Instant::now();
        let mut was_empty = false;
        for signal in [Signal::TERM, Signal::KILL] {
            while signal == Signal::KILL || asked.elapsed() < TIME_TO_END {
                let is_over = !matches!(child.try_wait(), Ok(None));
                let left = descendants(child, is_over);
                if left.is_empty() && was_empty || asked.elapsed() > 4 * TIME_TO_END {
                    return;
                }
                was_empty = left.is_empty();
                for pid in left {
                    let _ = kill_process(pid, signal);
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
    pub(super) fn become_command(command: &OsStr) -> ExitCode {
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        let error = Command::new("sh").arg("-c").arg(command).exec();
        eprintln!("sh cannot be run: {error}");
        ExitCode::from(126)
    }
}
