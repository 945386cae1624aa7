//! Compiles the fixtures and runs one of them.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use task_reader::{Binary, Index, Reader, Snapshot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Debug,
    Release,
    /// A release build that does not clean up after a panic.
    Aborting,
}

/// A running fixture.
pub struct Program {
    child: Child,
    source: String,
    port: u16,
}

impl Program {
    /// Compiles a fixture, starts it and waits until its tasks are where they stay.
    pub fn start(name: &str, profile: Profile) -> Self {
        Self::start_with(name, profile, &[])
    }

    /// Does the same with arguments.
    pub fn start_with(name: &str, profile: Profile, arguments: &[&str]) -> Self {
        let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        Self::start_in(&fixtures, name, profile, arguments)
    }

    /// Does the same with a version of tokio.
    pub fn start_with_tokio(version: &str, name: &str) -> Self {
        let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("with-tokio-{version}"));
        std::fs::create_dir_all(folder.join("src/bin")).unwrap();
        // The manifest names the second.
        for source in [format!("src/bin/{name}.rs"), "src/bin/pools.rs".to_owned()] {
            std::fs::copy(fixtures.join(&source), folder.join(&source)).unwrap();
        }
        let manifest = std::fs::read_to_string(fixtures.join("Cargo.toml")).unwrap();
        // The pools want newer versions.
        let is_of_pools = |line: &&str| {
            let pools = ["[[bin]]", "bb8 =", "deadpool =", "sqlx ="];
            line.contains("pools") || pools.iter().any(|pool| line.starts_with(pool))
        };
        let lines: Vec<&str> = manifest.lines().filter(|line| !is_of_pools(line)).collect();
        let manifest = lines.join("\n").replace(
            "tokio = { version = \"1\"",
            &format!("tokio = {{ version = \"={version}\""),
        );
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        Self::start_in(&folder, name, Profile::Debug, &[])
    }

    fn start_in(fixtures: &Path, name: &str, profile: Profile, arguments: &[&str]) -> Self {
        let folder = fixtures.file_name().unwrap();
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join("target")
            .join(folder);
        let mut build = Command::new(env!("CARGO"));
        build
            .current_dir(fixtures)
            .args(["build", "--bin", name, "--target-dir"])
            .arg(&target);
        let profile = match profile {
            Profile::Debug => "dev",
            Profile::Release => "release",
            Profile::Aborting => "aborting",
        };
        build.args(["--profile", profile]);
        if name == "pools" {
            build.args(["--features", "pools"]);
        }
        assert!(
            build.status().unwrap().success(),
            "the fixtures do not compile"
        );
        let folder = if profile == "dev" { "debug" } else { profile };
        let program = target.join(folder).join(name);
        let mut child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut port = 0;
        loop {
            let line = lines.next().unwrap_or_else(|| panic!("{name} ended"));
            if let Some(number) = line.strip_prefix("port ") {
                port = number.parse().unwrap();
            }
            if line == "ready" {
                break;
            }
        }
        let source = std::fs::read_to_string(fixtures.join(format!("src/bin/{name}.rs"))).unwrap();
        Self {
            child,
            source,
            port,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the port that it listens at, if it does.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn snapshot(&self) -> Snapshot {
        let binary = Binary::of_process(self.pid()).unwrap();
        let index = Index::new(&binary).unwrap();
        Reader::new(&index).snapshot(self.pid()).unwrap()
    }

    /// Returns the line that a comment marks.
    pub fn line(&self, mark: &str) -> u64 {
        let mark = format!("// {mark}");
        let number = self
            .source
            .lines()
            .position(|line| line.trim_end().ends_with(&mark));
        number.unwrap_or_else(|| panic!("no line is marked {mark}")) as u64 + 1
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the line of the macro in a function that begins at a line, as far as these fixtures have one.
pub fn macro_of(function: &str, begins: u64) -> u64 {
    match function {
        "kinds::selected_pinned" => begins + 4,
        _ => begins + 1,
    }
}

/// Returns what the system says of each thread that is stopped.
pub fn stopped(pid: u32) -> Vec<String> {
    let mut stopped = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .flatten()
    {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        if matches!(state, Some('t' | 'T')) {
            stopped.push(stat);
        }
    }
    stopped
}
