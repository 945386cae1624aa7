//! A workshop with one chapter, small enough to be made for every test.

use std::path::PathBuf;
use std::process::Command;

#[cfg(unix)]
use course::bench::testing::write_script;
use tempfile::TempDir;
use terminal::testing::Ran;

/// Text of `problem.rs`; the exercise starts as the same code.
pub(crate) const PROBLEM: &str = "//! The problem.\n\nfn answer() -> u32 {\n    1 + 1\n}\n";
/// Text of `solution.rs`.
pub(crate) const SOLUTION: &str = "//! The solution.\n\nfn answer() -> u32 {\n    2\n}\n";
/// Text of the exercise as it is shipped.
pub(crate) const SHIPPED: &str =
    "//! Exercise: fix it.\n//!\n//! Think first.\n\nfn answer() -> u32 {\n    1 + 1\n}\n";
/// The chapter's folder within the workshop.
pub(crate) const CHAPTER: &str = "chapters/1-small";

/// A workshop of one chapter in a folder that goes with it.
pub(crate) struct Workshop {
    folder: TempDir,
}

impl Workshop {
    /// Makes one, without a git repository.
    pub(crate) fn new() -> Self {
        let workshop = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        workshop.write("Cargo.toml", "[workspace]\n");
        let chapter_file = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../chapters/1-mutex-held-across-await/chapter.toml"
        ));
        for (name, text) in [
            ("chapter.toml", chapter_file),
            ("exercise-intro.md", "Exercise: fix it.\n\nThink first.\n"),
            ("hints.md", "## One?\n\nLook.\n\n## Two?\n\nAct.\n"),
            ("src/problem.rs", PROBLEM),
            ("src/exercise.rs", SHIPPED),
            ("src/solution.rs", SOLUTION),
        ] {
            workshop.write(&format!("{CHAPTER}/{name}"), text);
        }
        workshop
    }

    pub(crate) fn path(&self, within: &str) -> PathBuf {
        self.folder.path().join(within)
    }

    pub(crate) fn exercise(&self) -> PathBuf {
        self.path(CHAPTER).join("src/exercise.rs")
    }

    pub(crate) fn write(&self, within: &str, text: &str) {
        let file = self.path(within);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub(crate) fn read(&self, within: &str) -> String {
        std::fs::read_to_string(self.path(within)).unwrap()
    }

    /// Writes a program made of shell commands.
    #[cfg(unix)]
    pub(crate) fn program(&self, within: &str, script: &str) -> PathBuf {
        let file = self.path(within);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        write_script(&file, &format!("#!/bin/sh\n{script}\n"));
        file
    }

    /// Writes a program made of shell commands into the folder `path`.
    #[cfg(unix)]
    pub(crate) fn stand_in(&self, name: &str, script: &str) -> PathBuf {
        self.program(&format!("path/{name}"), script)
    }

    /// `cargo workshop WORDS`, ready to be changed before it runs.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-workshop"));
        command
            .args(words.split_whitespace())
            .current_dir(self.folder.path())
            .env_remove("CI")
            .env_remove("NO_COLOR");
        command
    }

    pub(crate) fn run(&self, words: &str) -> Ran {
        Ran::of(&mut self.command(words))
    }
}
