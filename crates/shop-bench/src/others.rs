//! The shops of other commits, each built once.

use std::path::PathBuf;
use std::process::Command;

use children::Interrupt;
use engine::service::program::digest;
use terminal::exit::CliError;
use terminal::git::{Commit, Git};

use crate::shop::{Built, Shop, cargo};

/// Folders and files of the shop that no program is made of.
const BESIDE_A_PROGRAM: [&str; 4] = [
    "capstone/README.md",
    "capstone/hints.md",
    "capstone/reference",
    "capstone/tests",
];

/// The shops of other commits, in a worktree that is always at the same place: cargo builds anew what lies elsewhere.
pub struct Others<'a> {
    git: Git,
    worktree: PathBuf,
    programs: PathBuf,
    shop: &'a Shop,
}

impl<'a> Others<'a> {
    /// Makes the worktree.
    ///
    /// # Errors
    ///
    /// Returns an error if git or the disk refuses.
    pub fn open(shop: &'a Shop) -> Result<Self, CliError> {
        let others = Self {
            git: Git::at(shop.root())?,
            worktree: shop.state().join("other"),
            programs: shop.state().join("programs"),
            shop,
        };
        std::fs::create_dir_all(&others.programs)
            .map_err(CliError::because(others.programs.display()))?;
        others.close();
        let at = others.worktree.display().to_string();
        let words = ["worktree", "add", "--detach", "--quiet", "--no-checkout"];
        others.git.say([&words[..], &[&at, "HEAD"]].concat())?;
        Ok(others)
    }

    /// Finds a commit.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit.
    pub fn commit(&self, revision: &str) -> Result<Commit, CliError> {
        let asked = format!("{revision}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let Some(hash) = self.git.ask([&words[..], &[&asked]].concat()) else {
            return Err(CliError::usage(format!("{revision} is no commit here")));
        };
        Commit::of(&self.git, &hash)
    }

    /// Builds the shop of a commit. It can be started until the next call, for its templates lie in the worktree.
    /// The build may replace the program that cargo built for the shop itself: build that one again before you use it.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit has no shop, or if it does not compile.
    pub fn shop(&self, commit: &str, interrupt: &Interrupt) -> Result<Built, CliError> {
        let checkout = Git::within(&self.worktree);
        checkout.say(["checkout", "--quiet", "--force", "--detach", commit])?;
        let folder = self.worktree.join("capstone");
        if !folder.join("Cargo.toml").is_file() {
            return Err(CliError::usage(format!("{commit} has no capstone")));
        }
        let database = match self.shop.database {
            Some(_) => "-postgres",
            None => "",
        };
        let program = self.programs.join(self.digest(commit)? + database);
        if !program.is_file() {
            let mut cargo = Command::new(cargo());
            cargo
                .current_dir(&folder)
                // There its dependencies are built already.
                .env("CARGO_TARGET_DIR", self.shop.folder().join("target"));
            let built = self.shop.built_by(cargo, "capstone", interrupt)?;
            let new = program.with_extension("new");
            std::fs::copy(built, &new).map_err(CliError::because(program.display()))?;
            std::fs::rename(&new, &program).map_err(CliError::because(program.display()))?;
        }
        Ok(Built {
            program,
            folder,
            database: self.shop.database.clone(),
        })
    }

    /// A digest of all that a program may be made of: commits that differ in pages have the same one.
    fn digest(&self, commit: &str) -> Result<String, CliError> {
        let words = [
            "ls-tree",
            "--full-tree",
            commit,
            "capstone/",
            "instruments/",
        ];
        let mut made_of = Vec::new();
        for line in self.git.say(words)?.lines() {
            let path = line.rsplit('\t').next().unwrap_or_default();
            if !BESIDE_A_PROGRAM.contains(&path) {
                made_of.push(line.to_owned());
            }
        }
        Ok(digest(made_of.join("\n")))
    }

    fn close(&self) {
        let at = self.worktree.display().to_string();
        _ = self
            .git
            .say(["worktree", "remove", "--force", "--force", &at]);
        // One that was killed may have left the folder without git knowing it.
        _ = std::fs::remove_dir_all(&self.worktree);
        _ = self.git.say(["worktree", "prune"]);
    }
}

impl Drop for Others<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
