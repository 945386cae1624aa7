//! Compiles the fixtures and runs one of them.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use diagnosis::evidence::Tasks;
use task_reader::{Binary, Index, Reader, Snapshot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Debug,
    Release,
    /// A release build that does not clean up after a panic.
    Aborting,
}

/// Fixtures with dependencies of their own, each behind a feature of its name.
const WITH_FEATURES: [&str; 2] = ["bodies", "pools"];

/// Another compiler than that of the tests.
pub const SECOND_TOOLCHAIN: &str = "nightly";

/// How to compile and start a program.
pub struct Build {
    folder: PathBuf,
    name: String,
    profile: Profile,
    arguments: Vec<String>,
    /// Toolchain, other than that of the tests.
    toolchain: Option<&'static str>,
    flags: Option<&'static str>,
}

impl Build {
    /// Builds a program of the fixtures without optimisation.
    pub fn new(name: &str) -> Self {
        Self::within(&fixtures(), name)
    }

    /// Builds a program of another package.
    pub fn within(folder: &Path, name: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            profile: Profile::Debug,
            arguments: Vec::new(),
            toolchain: None,
            flags: None,
        }
    }

    /// Builds a program of the fixtures with a version of tokio.
    pub fn with_tokio(version: &str, name: &str) -> Self {
        let fixtures = fixtures();
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("with-tokio-{version}"));
        std::fs::create_dir_all(folder.join("src/bin")).unwrap();
        let source = format!("src/bin/{name}.rs");
        std::fs::copy(fixtures.join(&source), folder.join(&source)).unwrap();
        let manifest = std::fs::read_to_string(fixtures.join("Cargo.toml")).unwrap();
        // What some programs alone need may want newer versions.
        let is_of_some = |line: &&str| {
            let words = ["[[bin]]", "optional = true", "dep:"];
            WITH_FEATURES.iter().any(|name| line.contains(name))
                || words.iter().any(|word| line.contains(word))
        };
        let lines: Vec<&str> = manifest.lines().filter(|line| !is_of_some(line)).collect();
        let manifest = lines.join("\n").replace(
            "tokio = { version = \"1\"",
            &format!("tokio = {{ version = \"={version}\""),
        );
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        Self::within(&folder, name)
    }

    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    pub fn toolchain(mut self, toolchain: Option<&'static str>) -> Self {
        self.toolchain = toolchain;
        self
    }

    /// Sets flags of the compiler.
    pub fn flags(mut self, flags: &'static str) -> Self {
        self.flags = Some(flags);
        self
    }

    /// Compiles the program, and returns its path.
    fn compile(&self) -> PathBuf {
        let mut target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("target");
        let folder = self.folder.file_name().unwrap().to_str().unwrap();
        let of_build = [Some(folder), self.toolchain, self.flags.map(|_| "flags")];
        target.push(of_build.into_iter().flatten().collect::<Vec<_>>().join("-"));
        let mut build = match self.toolchain {
            None => Command::new(env!("CARGO")),
            Some(toolchain) => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", toolchain, "cargo"]);
                rustup
            }
        };
        let profile = match self.profile {
            Profile::Debug => "dev",
            Profile::Release => "release",
            Profile::Aborting => "aborting",
        };
        build
            .current_dir(&self.folder)
            .args(["build", "--bin", &self.name, "--profile", profile])
            .arg("--target-dir")
            .arg(&target)
            .envs(self.flags.map(|flags| ("RUSTFLAGS", flags)));
        if WITH_FEATURES.contains(&&*self.name) {
            build.args(["--features", &self.name]);
        }
        let status = build
            .status()
            .expect("cargo, or rustup for a second compiler");
        assert!(
            status.success(),
            "{} does not compile; a second compiler comes with `rustup toolchain install {SECOND_TOOLCHAIN}`",
            self.name
        );
        let folder = if profile == "dev" { "debug" } else { profile };
        target.join(folder).join(&self.name)
    }

    /// Compiles the program, starts it and waits until its tasks are where they stay.
    pub fn start(self) -> Program {
        let mut child = Command::new(self.compile())
            .args(&self.arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut port = 0;
        loop {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("{} ended", self.name));
            if let Some(number) = line.strip_prefix("port ") {
                port = number.parse().unwrap();
            }
            if line == "ready" {
                break;
            }
        }
        let source = self.folder.join(format!("src/bin/{}.rs", self.name));
        Program {
            child,
            source: std::fs::read_to_string(source).unwrap(),
            port,
        }
    }
}

/// Checks up to three times: a program says that its tasks are where they stay after a time, for which some may have stood
/// still. A fault fails each check, of which each starts the program anew.
#[track_caller]
pub fn once_in_three(check: impl Fn()) {
    for _ in 0..2 {
        if catch_unwind(AssertUnwindSafe(&check)).is_ok() {
            return;
        }
    }
    check();
}

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
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
        Build::new(name).profile(profile).start()
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

    /// Returns what several snapshots say together.
    pub fn tasks(&self) -> Tasks {
        let binary = Binary::of_process(self.pid()).unwrap();
        let index = Index::new(&binary).unwrap();
        let reader = Reader::new(&index);
        let (_, tasks) = reader.watch(self.pid(), Duration::ZERO, &|| true).unwrap();
        tasks
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
