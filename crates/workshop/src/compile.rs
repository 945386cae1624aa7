//! Compiles a chapter with cargo: its progress on the terminal, the compiler's errors kept.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use children::{Interrupt, Starting};
use serde::Deserialize;

use crate::chapters::{Chapter, Workshop};
use terminal::exit::CliError;

/// Interval at which a build checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time for cargo to end after its last message.
const TIME_TO_END: Duration = Duration::from_secs(60);
/// Longest message of cargo, in bytes. Longer ones are ignored.
const LONGEST_MESSAGE: usize = 1 << 20;

/// The reason why there is no binary.
#[derive(Debug)]
pub(crate) enum CompileError {
    /// The compiler's errors, as it would print them.
    Refused(String),
    /// Cargo could not do its work.
    Cargo(CliError),
}

impl From<CompileError> for CliError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Refused(errors) => Self::bad(format!(
                "the chapter does not compile; mend its code, or put the exercise back with \
                 `cargo workshop reset N`\n\n{errors}"
            )),
            CompileError::Cargo(error) => error,
        }
    }
}

/// The lines of `cargo build --message-format=json` that matter here.
#[derive(Debug, Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-message")]
    Said { message: Diagnostic },
    #[serde(rename = "compiler-artifact")]
    Made {
        target: Target,
        executable: Option<PathBuf>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    level: String,
    rendered: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

/// A server and the contract tests that start it.
#[derive(Debug)]
pub(crate) struct Graded {
    pub(crate) server: PathBuf,
    pub(crate) contract: PathBuf,
}

/// The chapter's server as readers run it, and its build that counts the root cause where that
/// takes features of its own.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) served: PathBuf,
    pub(crate) counted: Option<PathBuf>,
}

/// The test target with a chapter's contract.
const CONTRACT: &str = "contract";
/// Target of the emulated machine's programs. With the target named, its flags do not reach
/// build scripts and procedural macros, which run here.
const MACHINE: &str = "x86_64-unknown-linux-gnu";

/// Builds what a chapter's package has.
pub(crate) struct Build<'a> {
    pub(crate) workshop: &'a Workshop,
    pub(crate) chapter: &'a Chapter,
    pub(crate) interrupt: &'a Interrupt,
}

impl Build<'_> {
    /// All servers that a proof or a check of the chapter needs.
    pub(crate) fn programs(&self, features: &[String]) -> Result<Programs, CompileError> {
        let package = self.chapter.package();
        let counted = if features.is_empty() {
            None
        } else {
            let built = self.server(&features.join(","))?;
            Some(kept(&built, &package, features)?)
        };
        Ok(Programs {
            served: self.server("")?,
            counted,
        })
    }

    /// The server; `features` as on cargo's command line.
    pub(crate) fn server(&self, features: &str) -> Result<PathBuf, CompileError> {
        let package = self.chapter.package();
        let mut cargo = self.cargo(&package);
        cargo.args(["--bin", &package, "--features", features]);
        built(cargo, &package, &package, self.interrupt)
    }

    /// The server and the contract tests that a check needs, by one call of cargo. Two calls would compile the
    /// chapter twice wherever the tests ask a dependency for more features than the server does.
    ///
    /// With `features` the one server counts the root cause, too. Counting slows problem and exercise alike, and the
    /// check only asks that the exercise is no worse.
    pub(crate) fn graded(&self, features: &[String]) -> Result<Graded, CompileError> {
        let package = self.chapter.package();
        let features_of_cargo = features.join(",");
        let mut cargo = self.cargo(&package);
        cargo.args(["--bin", &package, "--test", CONTRACT]);
        cargo.args(["--features", &features_of_cargo]);
        let mut made = executables(cargo, &package, self.interrupt)?;
        let mut take = |target: &str| made.remove(target).ok_or_else(|| not_built(&package));
        let (server, contract) = (take(&package)?, take(CONTRACT)?);
        if features.is_empty() {
            return Ok(Graded { server, contract });
        }
        let server = kept(&server, &package, features)?;
        Ok(Graded { server, contract })
    }

    /// The server and the machine's first program, with everything linked in, to addresses that are
    /// fixed: the machine has no library, and no room for debug information.
    pub(crate) fn for_a_machine(&self) -> Result<(PathBuf, PathBuf), CompileError> {
        let build = |package: &str| {
            let mut cargo = self.cargo(package);
            cargo
                .args(["--target", MACHINE])
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .env(
                    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
                    "-Ctarget-feature=+crt-static -Crelocation-model=static",
                )
                .env("CARGO_PROFILE_DEV_DEBUG", "none")
                .env("CARGO_PROFILE_DEV_STRIP", "symbols");
            built(cargo, package, package, self.interrupt)
        };
        Ok((build(&self.chapter.package())?, build("numa-guest")?))
    }

    fn cargo(&self, package: &str) -> Command {
        let mut cargo = Command::new(program());
        cargo.current_dir(self.workshop.root());
        cargo.args(["build", "--message-format=json", "--package", package]);
        cargo
    }
}

/// Copies a build with features to a name of its own: the next build puts another program in its place.
fn kept(built: &Path, package: &str, features: &[String]) -> Result<PathBuf, CompileError> {
    let suffix = std::env::consts::EXE_SUFFIX;
    let kept = built.with_file_name(format!("{package}-{}{suffix}", features.join("-")));
    // A server that still runs keeps its file: the copy is a new one.
    let copied = std::fs::copy(built, kept.with_extension("new"))
        .and_then(|_| std::fs::rename(kept.with_extension("new"), &kept));
    match copied {
        Ok(()) => Ok(kept),
        Err(error) => Err(CompileError::Cargo(CliError::bad(format!(
            "{} cannot be written ({error}); free some space",
            kept.display()
        )))),
    }
}

/// Prints on a terminal, before cargo begins, what follows the build.
pub(crate) fn announce(next: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("Compiling: minutes the first time, then seconds. After that {next}.");
    }
}

/// The cargo that runs this program, or the one on the PATH.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Runs `cargo`, which is a `cargo build --message-format=json`, and finds the executable of the target.
pub(crate) fn built(
    cargo: Command,
    package: &str,
    target: &str,
    interrupt: &Interrupt,
) -> Result<PathBuf, CompileError> {
    let mut made = executables(cargo, package, interrupt)?;
    made.remove(target).ok_or_else(|| not_built(package))
}

/// Runs `cargo`, which is a `cargo build --message-format=json`, and lists the executables by their targets.
fn executables(
    mut cargo: Command,
    package: &str,
    interrupt: &Interrupt,
) -> Result<BTreeMap<String, PathBuf>, CompileError> {
    let failed = |what: String| CompileError::Cargo(CliError::bad(what));
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        // Cargo sees a pipe, where it would leave out colours and the bar.
        cargo.envs([
            ("CARGO_TERM_COLOR", "always"),
            ("CARGO_TERM_PROGRESS_WHEN", "always"),
            ("CARGO_TERM_PROGRESS_WIDTH", "80"),
        ]);
    }
    let mut child = Starting::of(&cargo)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .start()
        .map_err(|e| {
            failed(format!(
                "{} cannot be run: {e}; install Rust from https://rustup.rs",
                cargo.get_program().display()
            ))
        })?;
    let progress = child
        .stderr()
        .map(|stderr| std::thread::spawn(move || pass_on(stderr, &mut std::io::stderr())));
    let lines = children::lines_of(child.stdout(), LONGEST_MESSAGE);
    let mut errors = String::new();
    let mut made = BTreeMap::new();
    loop {
        if interrupt.is_set() {
            return Err(CompileError::Cargo(CliError::interrupted()));
        }
        let line = match lines.recv_timeout(LOOK) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match serde_json::from_str(&line) {
            Ok(Message::Said { message }) if message.level == "error" => {
                errors.push_str(&message.rendered.unwrap_or_default());
            }
            Ok(Message::Made {
                target,
                executable: Some(file),
            }) => {
                made.insert(target.name, file);
            }
            _ => {}
        }
    }
    // It has closed its output.
    let status = child
        .wait(interrupt, TIME_TO_END)
        .map_err(|e| CompileError::Cargo(CliError::of_child("cargo was lost")(e)))?;
    let said = match progress.map(std::thread::JoinHandle::join) {
        Some(Ok(said)) => said,
        _ => String::new(),
    };
    if status.is_some_and(|status| status.success()) {
        Ok(made)
    } else if let Some(cause) = outside_cause(&said, &errors) {
        Err(failed(format!("{package} cannot be compiled: {cause}")))
    } else if errors.is_empty() {
        Err(not_built(package))
    } else {
        Err(CompileError::Refused(errors))
    }
}

/// Builds the program `package`, which is no default member, and prints a note if that will take a while.
pub(crate) fn other_program(
    workshop: &Workshop,
    package: &str,
    interrupt: &Interrupt,
) -> Result<PathBuf, CliError> {
    let folder = workshop.root();
    if !folder.join("Cargo.toml").is_file() {
        return Err(CliError::bad(format!(
            "{package} is compiled from {}, which is not there: run this in a clone of the workshop, or install {package}",
            folder.display()
        )));
    }
    // Cargo takes a target folder relative to the folder in which it runs.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let target = folder.join(target);
    let built_before = target.join("debug").join(package);
    if !built_before
        .with_extension(std::env::consts::EXE_EXTENSION)
        .is_file()
    {
        eprintln!(
            "Compiling {package}, a program of its own: a minute or two, the first time only."
        );
    }
    let mut cargo = Command::new(program());
    cargo
        .args([
            "build",
            "--message-format=json",
            "--locked",
            "--package",
            package,
        ])
        .current_dir(folder);
    Ok(built(cargo, package, package, interrupt)?)
}

/// Ends this process as `command` does, which takes its place.
pub(crate) fn hand_over(mut command: Command) -> CliError {
    let name = command.get_program().display().to_string();
    #[cfg(unix)]
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    let error = match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    };
    CliError::bad(format!("{name} cannot be run: {error}"))
}
fn not_built(package: &str) -> CompileError {
    CompileError::Cargo(CliError::bad(format!(
        "cargo could not build {package}; its output is above"
    )))
}

/// The system's words for a full disk, as cargo, the compiler and the linker pass them on.
const DISK_IS_FULL: &str = "No space left on device";

/// Words of cargo's errors, each with the advice for the reader.
const CAUSES: [(&str, &str); 8] = [
    (DISK_IS_FULL, FREE_SOME_SPACE),
    ("Read-only file system", WRITE_ELSEWHERE),
    ("Permission denied", WRITE_ELSEWHERE),
    ("Could not resolve host", GO_ONLINE),
    ("Couldn't connect to server", GO_ONLINE),
    ("failed to download", GO_ONLINE),
    ("spurious network error", GO_ONLINE),
    ("without --offline", GO_ONLINE),
];
const FREE_SOME_SPACE: &str = "the disk is full; free some space and run this again";
const WRITE_ELSEWHERE: &str = "cargo cannot write to its folder; mend the folder's permissions, or name another in \
                               CARGO_TARGET_DIR";
const GO_ONLINE: &str = "a crate has to be downloaded and the network does not answer; go online once and run this \
                         again";

/// Returns the cause outside of the code, if there is one. A full disk can show in the compiler's errors, too.
fn outside_cause(said: &str, errors: &str) -> Option<&'static str> {
    if errors.contains(DISK_IS_FULL) {
        return Some(FREE_SOME_SPACE);
    }
    let known = CAUSES.iter().find(|(words, _)| said.contains(words));
    known.map(|(_, cause)| *cause)
}

/// Erases the rest of a terminal's line.
const ERASE: &[u8] = b"\x1b[K";

/// Number of bytes to keep from the end of cargo's output.
const KEPT: usize = 1 << 16;

/// Passes cargo's progress on, and returns the end of it. Leaves out the line that says what failed: it would stand
/// before the compiler's errors, which give the reason.
fn pass_on(progress: impl Read, to: &mut impl Write) -> String {
    let mut said = Vec::new();
    let mut line = Vec::new();
    let mut remarks = Remarks::begun(Instant::now());
    // The bar is drawn anew after a carriage return.
    for byte in BufReader::new(progress).bytes().map_while(Result::ok) {
        line.push(byte);
        if byte == b'\n' || byte == b'\r' {
            let is_left_out = String::from_utf8_lossy(&line).contains("could not compile `");
            if is_left_out {
                // Cargo erases its bar before the line.
                line.truncate(if line.starts_with(ERASE) {
                    ERASE.len()
                } else {
                    0
                });
            }
            // A terminal that is gone is no reason to stop, here and below.
            let _ = to.write_all(&line);
            let text = String::from_utf8_lossy(&line);
            if let Some(remark) = remarks.after(&text, Instant::now()) {
                let _ = to.write_all(ERASE);
                let _ = writeln!(to, "{remark}");
            }
            if said.len() > KEPT {
                said.clear();
            }
            said.append(&mut line);
        }
    }
    let _ = to.write_all(&line);
    said.append(&mut line);
    String::from_utf8_lossy(&said).into_owned()
}

/// Cargo's words when it waits for another cargo.
const CARGO_WAITS: &str = "Blocking waiting for file lock";
/// Crates that are compiled already pass in the first of these moments; the crates between the two tell the pace.
const PACE_FROM: Duration = Duration::from_secs(5);
const PACE_TO: Duration = Duration::from_secs(25);
/// Shorter waits need no estimate.
const WORTH_A_WORD: Duration = Duration::from_secs(45);

/// Lines for a reader while cargo works: the other program that it waits for, and how long it will compile.
struct Remarks {
    begun: Instant,
    has_waited: bool,
    /// Moment and number of compiled crates from which the pace is measured.
    from: Option<(Instant, u32)>,
    is_estimated: bool,
}

impl Remarks {
    fn begun(begun: Instant) -> Self {
        Self {
            begun,
            has_waited: false,
            from: None,
            is_estimated: false,
        }
    }

    /// Returns the remark to print after this line of cargo's; each is printed once.
    fn after(&mut self, line: &str, now: Instant) -> Option<String> {
        if !self.has_waited && line.contains(CARGO_WAITS) {
            self.has_waited = true;
            return Some(
                "Another cargo compiles in this folder, such as your editor's. This continues when that ends.".to_owned(),
            );
        }
        let (compiled, all) = crates_in(line)?;
        let elapsed = now - self.begun;
        if elapsed < PACE_FROM || self.is_estimated {
            return None;
        }
        let (since, first) = *self.from.get_or_insert((now, compiled));
        if elapsed < PACE_TO || compiled <= first {
            return None;
        }
        self.is_estimated = true;
        let each = (now - since) / (compiled - first);
        let left = each * all.saturating_sub(compiled);
        let minutes = left.as_secs_f64() / 60.0;
        (left >= WORTH_A_WORD).then(|| {
            format!("{compiled} of {all} crates are compiled: about {minutes:.0} minutes more at this pace.")
        })
    }
}

/// Reads from cargo's bar, such as `Building [=>   ] 41/320: serde`, how many crates are compiled, and of how many.
fn crates_in(line: &str) -> Option<(u32, u32)> {
    let (numbers, _) = line.split_once("] ")?.1.split_once(':')?;
    let (compiled, all) = numbers.split_once('/')?;
    Some((compiled.parse().ok()?, all.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_learns_what_is_waited_for_and_how_long() {
        let begun = Instant::now();
        let mut remarks = Remarks::begun(begun);
        let mut after =
            |line: &str, seconds| remarks.after(line, begun + Duration::from_secs(seconds));
        let waits = "    Blocking waiting for file lock on artifact directory\n";
        assert!(after(waits, 0).unwrap().starts_with("Another cargo"));
        assert_eq!(after(waits, 1), None);
        let bar = |compiled| {
            format!("\x1b[36m    Building\x1b[0m [==>    ] {compiled}/320: serde, tokio\r")
        };
        // These need no compiling.
        assert_eq!(after(&bar(100), 1), None);
        assert_eq!(after(&bar(100), 5), None);
        assert_eq!(after(&bar(119), 24), None);
        // 20 in 20 seconds, and 200 are left.
        let estimate = after(&bar(120), 25).unwrap();
        assert_eq!(
            estimate,
            "120 of 320 crates are compiled: about 3 minutes more at this pace."
        );
        assert_eq!(after(&bar(121), 26), None);
    }

    #[test]
    fn all_but_the_line_that_says_what_failed_is_passed_on() {
        let said = "   Compiling a v1\n    Building 1/2\r\x1b[Kerror: could not compile `a` (bin)\n\
                    error: no space";
        let mut passed = Vec::new();
        pass_on(said.as_bytes(), &mut passed);
        assert_eq!(
            String::from_utf8(passed).unwrap(),
            "   Compiling a v1\n    Building 1/2\r\x1b[Kerror: no space"
        );
    }
}
