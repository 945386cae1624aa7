//! A git repository with a folder `chapters`, small enough to be made for every test.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use terminal::testing::{Ran, git};

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
        git(&workshop.path(""), &["init", "--quiet"]);
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

    pub(crate) fn run(&self, words: &str) -> Ran {
        Ran::of(&mut self.command(words))
    }
}
