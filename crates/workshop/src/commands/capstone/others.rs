//! The shops of other commits, each built once.

use std::path::PathBuf;
use std::process::Command;

use engine::load::interrupt::Interrupt;
use engine::service::program::digest;
use terminal::exit::CliError;
use terminal::git::{Commit, Git};

use super::{Built, Shop};

/// What no program is made of.
const BESIDE_A_PROGRAM: [&str; 4] = [
    "capstone/README.md",
    "capstone/hints.md",
    "capstone/reference",
    "capstone/tests",
];

/// A worktree, always at the same place: cargo builds anew what lies elsewhere.
pub(super) struct Others<'a> {
    git: Git,
    worktree: PathBuf,
    programs: PathBuf,
    shop: &'a Shop,
}

impl<'a> Others<'a> {
    pub(super) fn open(shop: &'a Shop) -> Result<Self, CliError> {
        let others = Self {
            git: Git::at(shop.workshop.root())?,
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

    /// The commit that somebody calls `revision`.
    pub(super) fn commit(&self, revision: &str) -> Result<Commit, CliError> {
        let asked = format!("{revision}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let found = self.git.ask([&words[..], &[&asked]].concat());
        let hash = found.ok_or_else(|| CliError::usage(format!("{revision} is no commit here")))?;
        Commit::of(&self.git, &hash)
    }

    /// The shop of a commit, ready to be started until another one is asked for: its templates lie in the worktree.
    /// What cargo built for the shop itself has to be asked for anew.
    pub(super) fn shop(&self, commit: &str, interrupt: &Interrupt) -> Result<Built, CliError> {
        let checkout = Git::within(&self.worktree);
        checkout.say(["checkout", "--quiet", "--force", "--detach", commit])?;
        let folder = self.worktree.join("capstone");
        if !folder.join("Cargo.toml").is_file() {
            return Err(CliError::usage(format!("{commit} has no capstone")));
        }
        let database = self.shop.database.as_ref().map_or("", |_| "-postgres");
        let program = self.programs.join(self.digest(commit)? + database);
        if !program.is_file() {
            let mut cargo = Command::new(crate::compile::program());
            cargo
                .current_dir(&folder)
                // There its dependencies are built already.
                .env("CARGO_TARGET_DIR", self.shop.folder().join("target"));
            let built = self.shop.built_by(cargo, "capstone", interrupt)?;
            let bytes = std::fs::copy(built, program.with_extension("new"));
            bytes
                .and_then(|_| std::fs::rename(program.with_extension("new"), &program))
                .map_err(CliError::because(program.display()))?;
        }
        Ok(Built {
            program,
            folder,
            database: self.shop.database.clone(),
        })
    }

    /// Of all that a program may be made of: commits that differ in pages have the same one.
    fn digest(&self, commit: &str) -> Result<String, CliError> {
        let words = [
            "ls-tree",
            "--full-tree",
            commit,
            "capstone/",
            "instruments/",
        ];
        let listed = self.git.say(words)?;
        let made_of = listed.lines().filter(|line| {
            let path = line.rsplit('\t').next().unwrap_or_default();
            !BESIDE_A_PROGRAM.contains(&path)
        });
        Ok(digest(made_of.collect::<Vec<_>>().join("\n")))
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
