//! The process to look at: found by its number or its name, and refused if nobody can look at it.

use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use diagnosis::Process;
use ecosystem::printable;
use terminal::exit::CliError;

/// Bytes of a name that the system keeps.
const NAME_BYTES: usize = 15;

/// Flag of a thread of the kernel, in the file `stat` (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Number of the capability that allows looking into other users' processes.
const CAP_SYS_PTRACE: u64 = 19;

/// Byte of an ELF file for programs of 64 bits.
const BITS_64: u8 = 2;

/// A process that may be looked at.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) process: Process,
    /// Name of the process, as the system keeps it.
    pub(crate) name: String,
    /// Time at which it began, in ticks since the system did: another process of this number began later.
    began: u64,
}

impl Target {
    /// Finds the process with the number `pid`.
    ///
    /// # Errors
    ///
    /// Fails if there is no such process, or nobody can look at it.
    pub(crate) fn by_pid(pid: u32) -> Result<Self, CliError> {
        if pid == std::process::id() {
            return Err(CliError::usage(format!(
                "{pid} is this command itself: name the process to look at"
            )));
        }
        let process = Process::of(pid);
        let Some(stat) = Stat::of(process) else {
            return Err(CliError::invalid(format!(
                "no process has the number {pid}"
            )));
        };
        let cannot = |why: String| {
            let name = printable(&stat.name);
            CliError::invalid(format!("process {pid} ({name}) {why}"))
        };
        if stat.is_of_kernel {
            return Err(cannot(
                "is a thread of the kernel, and runs no program".to_owned(),
            ));
        }
        if matches!(stat.state, 'Z' | 'X') {
            return Err(cannot(
                "has ended: it only waits for its parent to take notice".to_owned(),
            ));
        }
        let status = Status::of(process);
        if let Some(leader) = status
            .number("Tgid")
            .filter(|leader| *leader != u64::from(pid))
        {
            return Err(cannot(format!(
                "is a thread of process {leader}: use --pid {leader}"
            )));
        }
        if let Some(tracer) = status.number("TracerPid").filter(|tracer| *tracer != 0) {
            let name = fs::read(format!("/proc/{tracer}/comm")).unwrap_or_default();
            let name = String::from_utf8_lossy(&name);
            return Err(cannot(format!(
                "is being traced by process {tracer} ({}), such as a debugger: end that first",
                printable(name.trim())
            )));
        }
        // The kernel asks the same question for this file as for a stop.
        let asked = fs::read(process.path(&format!("task/{pid}/syscall")));
        if asked.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
            return Err(cannot(denied(pid, &status)));
        }
        if !is_64_bit(process) {
            return Err(cannot(
                "is a 32-bit program, whose stacks cannot be read here".to_owned(),
            ));
        }
        Ok(Self {
            process,
            name: stat.name,
            began: stat.began,
        })
    }

    /// Finds the one process that is called `name`.
    ///
    /// # Errors
    ///
    /// Fails if there are none or several, or if nobody can look at it.
    pub(crate) fn by_name(name: &str) -> Result<Self, CliError> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            if let Ok(pid) = entry.file_name().to_string_lossy().parse()
                && pid != std::process::id()
                && is_called(pid, name)
            {
                found.push(pid);
            }
        }
        found.sort_unstable();
        match found[..] {
            [] => Err(CliError::invalid(format!(
                "no process is called {name}: `ps -e` lists their names"
            ))),
            [pid] => Self::by_pid(pid),
            _ => {
                let mut listed = format!(
                    "{} processes are called {name}: choose one by --pid",
                    found.len()
                );
                for pid in found {
                    // Writing to a String cannot fail.
                    let _ = write!(listed, "\n  --pid {pid:<8} {}", command_line(pid));
                }
                Err(CliError::usage(listed))
            }
        }
    }

    /// Returns whether the process still runs.
    pub(crate) fn is_alive(&self) -> bool {
        let stat = Stat::of(self.process);
        stat.is_some_and(|stat| stat.began == self.began && !matches!(stat.state, 'Z' | 'X'))
    }
}

/// The system's line on a process.
pub(crate) struct Stat {
    name: String,
    state: char,
    is_of_kernel: bool,
    began: u64,
    /// CPU time that all its threads used, in ticks of 10 ms.
    pub(crate) ticks: u64,
}

impl Stat {
    pub(crate) fn of(process: Process) -> Option<Self> {
        Self::parse(&process.text("stat").ok()?)
    }

    /// Reads the line, by proc(5): the fields count from 1, and the third follows the name.
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?.1.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            name: name.to_owned(),
            state: rest.chars().next()?,
            is_of_kernel: number(9)? & KERNEL_THREAD != 0,
            began: number(22)?,
            ticks: number(14)? + number(15)?,
        })
    }
}

/// The file `status` of a process.
pub(crate) struct Status(String);

impl Status {
    pub(crate) fn of(process: Process) -> Self {
        Self(process.text("status").unwrap_or_default())
    }

    /// Returns the text behind a name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    }

    /// Returns the first number behind a name.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.split_whitespace().next()?.parse().ok()
    }

    /// Returns the effective user, which is the second of the numbers.
    fn user(&self) -> Option<&str> {
        self.text("Uid")?.split_whitespace().nth(1)
    }
}

/// Returns why the system does not let this command look into a process, and what to do.
fn denied(pid: u32, status: &Status) -> String {
    let own = Status::of(Process::this());
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let capabilities = own
        .text("CapEff")
        .and_then(|set| u64::from_str_radix(set, 16).ok());
    let may_all = capabilities.is_some_and(|set| set & (1 << CAP_SYS_PTRACE) != 0);
    let who = if status.user() == own.user() {
        Who::Own
    } else {
        Who::Other(status.user().unwrap_or("?").to_owned())
    };
    why_denied(pid, &who, scope.trim(), may_all)
}

/// Owner of a process.
enum Who {
    Own,
    /// The user of this number.
    Other(String),
}

fn why_denied(pid: u32, who: &Who, scope: &str, may_all: bool) -> String {
    let as_root = format!(
        "run `sudo \"$(command -v duel)\" look --pid {pid}`, or once `sudo setcap cap_sys_ptrace+ep \"$(command -v duel)\"`"
    );
    let in_container = "in a container, start that with `--cap-add SYS_PTRACE`";
    match (who, scope) {
        (_, "3") => "cannot be looked at: ptrace_scope is 3, so this system lets nobody until it is started again with a \
                     lower kernel.yama.ptrace_scope"
            .to_owned(),
        _ if may_all => format!(
            "cannot be looked at, although this command has CAP_SYS_PTRACE: a security module or a user namespace \
             forbids it; {in_container}"
        ),
        (Who::Other(user), _) => {
            format!("belongs to another user ({user}): {as_root}; {in_container}")
        }
        (Who::Own, "2") => {
            format!("cannot be looked at: ptrace_scope is 2, which lets root alone: {as_root}; {in_container}")
        }
        (Who::Own, "1") => format!(
            "cannot be looked at: ptrace_scope is 1, which lets only its parents: {as_root}, or \
             `sudo sysctl kernel.yama.ptrace_scope=0`; {in_container}"
        ),
        (Who::Own, _) => format!(
            "cannot be looked at: it has rights that this command lacks, or forbids it (PR_SET_DUMPABLE): {as_root}; \
             {in_container}"
        ),
    }
}

/// Returns whether the process runs a program of 64 bits; true if that is not known.
fn is_64_bit(process: Process) -> bool {
    let mut head = [0; 5];
    let program = fs::File::open(process.path("exe"));
    let read = program.and_then(|mut file| file.read_exact(&mut head));
    read.is_err() || head[4] == BITS_64
}

/// Returns whether a process is called `name`: itself, its program, or the command that started it.
fn is_called(pid: u32, name: &str) -> bool {
    let process = Process::of(pid);
    let Some(stat) = Stat::of(process) else {
        return false;
    };
    if stat.is_of_kernel || matches!(stat.state, 'Z' | 'X') {
        return false;
    }
    let kept = name.as_bytes().get(..NAME_BYTES).unwrap_or(name.as_bytes());
    if stat.name == String::from_utf8_lossy(kept) {
        return true;
    }
    let program = fs::read_link(process.path("exe")).unwrap_or_default();
    let command = fs::read(process.path("cmdline")).unwrap_or_default();
    let command = command.split(|byte| *byte == 0).next().unwrap_or_default();
    let command = String::from_utf8_lossy(command).into_owned();
    [program.as_path(), Path::new(&command)].iter().any(|path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.trim_end_matches(" (deleted)") == name
    })
}

/// Returns the command line of a process, with at most 100 characters.
fn command_line(pid: u32) -> String {
    let line = fs::read(Process::of(pid).path("cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let line: String = printable(line.trim()).chars().take(100).collect();
    line.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_brackets_and_spaces() {
        let line = "42 (my (shop) 1) S 1 42 42 0 -1 4194560 9 0 0 0 70 30 0 0 20 0 3 0 5555 1 1";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.name.as_str(), stat.state), ("my (shop) 1", 'S'));
        assert_eq!(
            (stat.ticks, stat.began, stat.is_of_kernel),
            (100, 5555, false)
        );
        assert!(Stat::parse("42 (cut").is_none());
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let own = |scope| why_denied(7, &Who::Own, scope, false);
        for (says, remedy) in [
            (own("1"), "kernel.yama.ptrace_scope=0"),
            (own("2"), "setcap"),
            (own("3"), "until it is started again"),
            (own(""), "PR_SET_DUMPABLE"),
            (
                why_denied(7, &Who::Other("33".to_owned()), "0", false),
                "sudo",
            ),
            (why_denied(7, &Who::Own, "1", true), "--cap-add SYS_PTRACE"),
        ] {
            assert!(says.contains(remedy), "{says}");
        }
        assert!(why_denied(7, &Who::Other("33".to_owned()), "0", false).contains("user (33)"));
    }

    #[test]
    fn nobody_looks_at_himself_or_at_nothing() {
        let own = Target::by_pid(std::process::id()).unwrap_err();
        assert!(own.to_string().contains("this command itself"), "{own}");
        let none = Target::by_pid(u32::MAX / 2).unwrap_err();
        assert!(
            none.to_string().contains("no process has the number"),
            "{none}"
        );
    }
}
