//! A git repository with a folder `chapters`, small enough to be made for every test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A workshop in a folder that goes with it.
pub(crate) struct Workshop {
    folder: TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        let workshop = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        workshop.write("chapters/README.md", "");
        git(&workshop.path(""), "init --quiet");
        workshop
    }

    pub(crate) fn path(&self, within: &str) -> PathBuf {
        self.folder.path().join(within)
    }

    pub(crate) fn write(&self, within: &str, text: &str) {
        let file = self.path(within);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub(crate) fn read(&self, within: &str) -> String {
        std::fs::read_to_string(self.path(within)).unwrap()
    }

    /// `shop-bench WORDS`, ready to be changed before it runs.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shop-bench"));
        command
            .args(words.split_whitespace())
            .current_dir(self.folder.path())
            .env_remove("NO_COLOR");
        command
    }

    pub(crate) fn run(&self, words: &str) -> Said {
        Said::of(&mut self.command(words))
    }
}

/// Runs git in a repository and returns what it printed.
#[track_caller]
pub(crate) fn git(root: &Path, words: &str) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(words.split_whitespace())
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {words}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Output of a command, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Asserts the exit code and returns what standard output held.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// Asserts the exit code and that the sentence is one, and returns it.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        let sentence = self.err.trim_end();
        assert!(sentence.starts_with("error: "), "{self:?}");
        assert_eq!(sentence.lines().count(), 1, "{self:?}");
        sentence.to_owned()
    }
}

/// The files in a folder, by name.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        names.push(entry.unwrap().file_name().to_string_lossy().into_owned());
    }
    names.sort();
    names
}
