//! A project that has nothing to do with the workshop, its service, and all processes that ran for it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use terminal::testing::{Ran, git};

/// Returns the service of `own_service/service.rs`, compiled once. It needs nothing but the compiler.
pub(super) fn service() -> &'static Path {
    static SERVICE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = SERVICE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("service");
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/commands/own_service/service.rs"
        );
        let compiled = Command::new("rustc")
            .args(["--edition", "2024", "-C", "opt-level=1", "-o"])
            .args([program.as_os_str(), source.as_ref()])
            .status();
        assert!(compiled.unwrap().success());
        (folder, program)
    });
    program
}

/// Folder of a project, with the ids of the processes that ran for it.
pub(super) struct Project {
    pub(super) folder: TempDir,
}

impl Project {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("pids")).unwrap();
        Self { folder }
    }

    pub(super) fn path(&self, within: &str) -> PathBuf {
        self.folder.path().join(within)
    }

    /// Returns a command that starts the service.
    pub(super) fn serve(&self, options: &str) -> String {
        format!("{} {}", service().display(), self.options(options))
    }

    /// Returns the options of the service in such a command.
    pub(super) fn options(&self, options: &str) -> String {
        let pids = self.path("pids").display().to_string();
        format!("--port {{port}} --pids {pids} {options}")
    }

    /// Returns the command that runs `duel LINE` in a shell.
    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec \"$0\" {line}")])
            .arg(env!("CARGO_BIN_EXE_duel"))
            .current_dir(self.folder.path());
        command
    }

    pub(super) fn run(&self, line: &str) -> Ran {
        Ran::of(&mut self.command(line))
    }

    /// Runs the shortest possible comparison of two commands.
    pub(super) fn compare(&self, base: &str, change: &str, line: &str) -> Ran {
        Ran::of(&mut self.comparing(base, change, line))
    }

    pub(super) fn comparing(&self, base: &str, change: &str, line: &str) -> Command {
        let most = if line.contains("--at-most") {
            ""
        } else {
            "--at-most 1"
        };
        let mut command = self.command(&format!(
            "compare --base \"$1\" --change \"$2\" --seconds 0.1 --warm-up 0 --users 2 {most} {line}"
        ));
        command.args([base, change]);
        command
    }

    /// Returns its processes that still run after at most 30 s.
    pub(super) fn left(&self) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let left: Vec<String> = fs::read_dir(self.path("pids"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|pid| runs(pid))
                .collect();
            if left.is_empty() || Instant::now() > deadline {
                return left;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn ever_ran(&self) -> usize {
        fs::read_dir(self.path("pids")).unwrap().count()
    }

    pub(super) fn git(&self, words: &[&str]) -> String {
        git(self.folder.path(), words)
    }
}

/// Returns whether a process has ended, or does within a minute.
pub(super) fn ends(pid: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while runs(pid) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

fn runs(pid: &str) -> bool {
    let status = Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    !status.trim().is_empty() && !status.starts_with('Z')
}

/// Service that runs until the value is dropped, and its URL.
pub(super) struct Running(Child, pub(super) String);

impl Running {
    pub(super) fn start(options: &str) -> Self {
        let mut child = Command::new(service())
            .args(["--port", "0"])
            .args(options.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut url).unwrap();
        Self(child, url.trim().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks the exit code, and that the output has these words, in upper or lower case.
#[track_caller]
pub(super) fn told(said: &Ran, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    for word in words {
        assert!(has(said, &[word]), "no `{word}` in {said:?}");
    }
}

/// Returns whether the output has these words, in upper or lower case.
pub(super) fn has(said: &Ran, words: &[&str]) -> bool {
    let all = format!("{}{}", said.out, said.err).to_lowercase();
    words.iter().all(|word| all.contains(&word.to_lowercase()))
}

/// Checks that a comparison ran, and that its output has these words. Its verdict may be any on a busy machine. If
/// the servers get no CPU for a whole slice, the output says only that.
#[track_caller]
pub(super) fn compared(said: &Ran, words: &[&str]) {
    assert!(matches!(said.code, Some(0 | 1 | 3)), "{said:?}");
    let silent = ["gave no answer", "answered nothing", "had no answer"];
    if !silent.iter().any(|words| said.out.contains(words)) {
        told(said, said.code.unwrap(), words);
    }
}
