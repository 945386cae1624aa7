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
}

/// A running fixture.
pub struct Program {
    child: Child,
    source: String,
}

impl Program {
    /// Compiles a fixture, starts it and waits until its tasks are where they stay.
    pub fn start(name: &str, profile: Profile) -> Self {
        let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        Self::start_in(&fixtures, name, profile)
    }

    /// Does the same with a version of tokio.
    pub fn start_with_tokio(version: &str, name: &str) -> Self {
        let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("with-tokio-{version}"));
        let source = format!("src/bin/{name}.rs");
        std::fs::create_dir_all(folder.join("src/bin")).unwrap();
        std::fs::copy(fixtures.join(&source), folder.join(&source)).unwrap();
        let manifest = std::fs::read_to_string(fixtures.join("Cargo.toml")).unwrap();
        let manifest = manifest.replace(
            "tokio = { version = \"1\"",
            &format!("tokio = {{ version = \"={version}\""),
        );
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        Self::start_in(&folder, name, Profile::Debug)
    }

    fn start_in(fixtures: &Path, name: &str, profile: Profile) -> Self {
        let folder = fixtures.file_name().unwrap();
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join("target")
            .join(folder);
        let mut build = Command::new(env!("CARGO"));
        build
            .current_dir(fixtures)
            .args(["build", "--bin", name, "--target-dir"])
            .arg(&target);
        if profile == Profile::Release {
            build.arg("--release");
        }
        assert!(
            build.status().unwrap().success(),
            "the fixtures do not compile"
        );
        let folder = if profile == Profile::Release {
            "release"
        } else {
            "debug"
        };
        let program = target.join(folder).join(name);
        let mut child = Command::new(program)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.map_while(Result::ok).find(|line| line == "ready");
        assert!(ready.is_some(), "{name} ended");
        let source = std::fs::read_to_string(fixtures.join(format!("src/bin/{name}.rs"))).unwrap();
        Self { child, source }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
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
