//! A git revision that is built in a worktree of its own, and started from that build.

mod kept;
mod submodules;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::report::Program;
use engine::load::interrupt::Interrupt;
use engine::service::program::Program as Running;
use engine::service::program::digest;
use engine::service::{CommandError, CommandServer, Launch, run_to_end};
use tempfile::TempDir;

use self::kept::Kept;
use terminal::exit::{CliError, Exit};
use terminal::files;
use terminal::git::{Commit, Git};

/// Prefix of a revision on the command line.
pub(super) const GIT: &str = "git:";

/// Status with which a shell reports that a program does not exist.
const NOT_FOUND: &str = "exit code 127";

/// Name of the checkout within a temporary folder.
const SOURCE: &str = "source";

/// A built revision. Dropping it removes the worktree.
pub(super) struct Revision<'a> {
    /// `base` or `change`.
    name: &'a str,
    root: PathBuf,
    /// The commit and the command that built it.
    made_by: String,
    /// The folder within the worktree that the command was called in.
    folder: PathBuf,
    /// Target folder of its build.
    kept: Kept,
    worktree: Worktree,
}

/// Checkout that is removed when the value is dropped.
struct Worktree {
    git: Git,
    path: PathBuf,
    temporary: TempDir,
}

impl Worktree {
    fn add(git: Git, commit: &str) -> Result<Self, CliError> {
        let temporary = files::temporary()?;
        let path = temporary.path().join(SOURCE);
        // Dropping this value removes what a failed checkout leaves, such as one that a hook of the repository refuses.
        let worktree = Self {
            git,
            path,
            temporary,
        };
        let words = ["worktree", "add", "--detach", "--quiet"].map(OsStr::new);
        let what = [worktree.path.as_os_str(), commit.as_ref()];
        let added = worktree.git.say(words.into_iter().chain(what));
        added.map_err(|error| CliError::new(Exit::Invalid, error))?;
        Ok(worktree)
    }

    /// Returns the tracked files that match these patterns.
    fn files(&self, patterns: &[&str]) -> Vec<String> {
        let git = Git::at(&self.path).ok();
        let list = git.and_then(|git| git.ask([&["ls-files"], patterns].concat()));
        list.iter()
            .flat_map(|list| list.lines())
            .map(str::to_owned)
            .collect()
    }

    /// Returns the folders in which cargo may make a `target`: the root, `within`, and each with a `Cargo.lock`.
    fn of_cargo(&self, within: &Path) -> Vec<PathBuf> {
        let locks = self.files(&["Cargo.lock", "*/Cargo.lock"]);
        let folders = locks.iter().filter_map(|lock| Path::new(lock).parent());
        let folders = folders.chain([Path::new(""), within]);
        folders.map(|folder| self.path.join(folder)).collect()
    }

    /// Returns a source that is older than the checkout, if there is one.
    fn set_back(&self) -> Option<String> {
        let time = |file: &str| fs::metadata(self.path.join(file)).and_then(|file| file.modified());
        let checkout = time(".git").ok()?;
        let mut sources = self.files(&["*.rs"]).into_iter();
        sources.find(|source| time(source).is_ok_and(|time| time < checkout))
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        remove(&self.git, &self.path);
    }
}

/// Removes a worktree. If git fails, the files go with the temporary folder, and the next comparison removes the
/// worktree from git's list.
fn remove(git: &Git, worktree: &Path) {
    let words = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
    let _ = git.say(words.into_iter().chain([worktree.as_os_str()]));
}

/// Removes from git's list the worktrees of comparisons that were killed. Their temporary folders are gone.
fn prune(git: &Git) {
    let list = git.ask(["worktree", "list", "--porcelain"]);
    let list = list.unwrap_or_default();
    let paths = list
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    for path in paths.map(Path::new).filter(|path| path.ends_with(SOURCE)) {
        let mut above = path.ancestors().skip(1);
        let is_gone = above.next().is_some_and(|folder| !folder.exists());
        if is_gone && above.next().is_some_and(files::is_temporary) {
            remove(git, path);
        }
    }
}

impl<'a> Revision<'a> {
    /// Builds `commit` for the side `name` with the command `build`. If nothing has been built for this side before,
    /// the build begins with a copy of the build of `like`.
    pub(super) fn build(
        name: &'a str,
        commit: &Commit,
        build: &str,
        like: Option<&Self>,
        interrupt: &Interrupt,
        say: &dyn Fn(&str),
    ) -> Result<Self, CliError> {
        let (root, within) = repository()?;
        let git = Git::at(&root)?;
        prune(&git);
        // The checkout must be newer than the other side's build. Cargo does not rebuild sources that are older
        // than a build.
        let worktree = Worktree::add(git, &commit.hash)?;
        submodules::check_out(&root, &commit.hash, &worktree.path, say)?;
        let folder = worktree.path.join(&within);
        if !folder.is_dir() {
            return Err(CliError::usage(format!(
                "--{name}: the commit {} has no folder {}",
                commit.short,
                within.display()
            )));
        }
        let like = like.map(|like| like.kept.folder());
        let kept = Kept::of(&root, name, worktree.temporary.path(), like);
        kept.link_into(worktree.of_cargo(&within));
        let ready = Self {
            name,
            root,
            made_by: format!("{} {build}", commit.hash),
            folder,
            kept,
            worktree,
        };
        say(&format!("{name}: {build} at {commit}"));
        run_to_end(
            &format!("build of the {name}"),
            &ready.kept.with(build),
            &ready.folder,
            interrupt,
        )
        .map_err(failed)?;
        match ready.worktree.set_back() {
            Some(file) => Err(CliError::new(
                Exit::Invalid,
                format!(
                    "the build of the {name} set back the time of {file}, by which cargo tells what to build \
                     again after another revision; leave that out of --build"
                ),
            )),
            None => Ok(ready),
        }
    }

    /// Returns the command `run` with the variable by which it finds this build.
    pub(super) fn command(&self, run: &str) -> String {
        self.kept.with(run)
    }

    /// Returns the folder in which its build is started.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts the build once, as `launch` says, and finds out which program runs; `None` if the system
    /// does not tell.
    ///
    /// # Errors
    ///
    /// Fails if the command does not start, or starts a program that is not of this revision.
    pub(super) fn started(
        &self,
        launch: &Launch<'_>,
        interrupt: &Interrupt,
    ) -> Result<Option<Started>, CliError> {
        let server = CommandServer::start(launch, interrupt).map_err(|error| match error {
            CommandError::Ended { ref status, .. } if status == NOT_FOUND => {
                let why = "its build made no such program; what cargo makes is below ./target";
                CliError::new(Exit::Invalid, format!("{error}; {why}"))
            }
            error => failed(error),
        })?;
        let programs = server.programs();
        let Some(last) = programs.last() else {
            return Ok(None);
        };
        let built = programs.iter().find_map(|program| {
            self.within(&program.file)?;
            Some((program.file.clone(), program.image.clone(), None))
        });
        let script = || {
            programs.iter().find_map(|program| {
                let file = self.script(program)?;
                Some((file.clone(), file, Some(program.file.display().to_string())))
            })
        };
        let (file, image, run_by) = built.or_else(script).ok_or_else(|| {
            self.refused(&format!(
                "starts {}, which is neither in its checkout nor in its build; name what the build makes, by a path within the checkout",
                last.file.display()
            ))
        })?;
        let shown = self.within(&file).unwrap_or_default();
        let bytes = fs::read(&image);
        let sha256 = bytes.map(digest).map_err(CliError::because(&shown))?;
        if !self.kept.had(&file, &image) {
            self.kept.note(&self.made_by, &sha256);
        } else if !self.kept.noted(&self.made_by, &sha256) {
            return Err(self.refused(&format!(
                "starts {shown}, which an earlier build left there; let --build make it"
            )));
        }
        let program = Program {
            file: shown,
            sha256,
        };
        Ok(Some(Started { program, run_by }))
    }

    fn refused(&self, what: &str) -> CliError {
        let name = self.name;
        CliError::new(Exit::Invalid, format!("--run of the {name} {what}"))
    }

    /// Returns the name of a file in the checkout, or in its target folder; `None` for any other file.
    fn within(&self, file: &Path) -> Option<String> {
        let source = fs::canonicalize(&self.worktree.path).ok()?;
        let shown = match file.strip_prefix(&source) {
            Ok(within) => within.to_owned(),
            Err(_) => Path::new("target").join(file.strip_prefix(self.kept.folder()).ok()?),
        };
        Some(shown.display().to_string())
    }

    /// Returns the file of the checkout that a program from elsewhere was told to run: `server.js` of
    /// `node server.js`, `app.py` of `python -m uvicorn app:service`.
    fn script(&self, program: &Running) -> Option<PathBuf> {
        // A program in the reader's repository is no interpreter.
        if program.file.starts_with(&self.root) {
            return None;
        }
        program.words.iter().find_map(|word| {
            let module = word.split(':').next()?.replace('.', "/") + ".py";
            let files = [word, &module].map(|name| fs::canonicalize(program.folder.join(name)));
            let mut files = files.into_iter().flatten();
            files.find(|file| file.is_file() && self.within(file).is_some())
        })
    }
}

/// Program that a revision's command started.
pub(super) struct Started {
    pub(super) program: Program,
    /// The program from elsewhere that runs the file, if one does.
    pub(super) run_by: Option<String>,
}

fn failed(error: CommandError) -> CliError {
    match error {
        CommandError::Interrupted => CliError::interrupted(),
        other => CliError::new(Exit::Invalid, other),
    }
}

/// Finds the commit that `revision`, given to `option`, names. `main...topic` names the commit where the two parted,
/// as in `git diff`.
pub(super) fn commit(git: &Git, option: &str, revision: &str) -> Result<Commit, CliError> {
    let none = |what: &str| CliError::usage(format!("{option}{revision}: {what}"));
    let hash = if let Some((one, other)) = revision.split_once("...") {
        let mut ends = Vec::new();
        for end in [one, other] {
            let end = if end.is_empty() { "HEAD" } else { end };
            ends.push(commit(git, option, end)?.hash);
        }
        git.ask(["merge-base", &ends[0], &ends[1]])
            .ok_or_else(|| none("the two have no commit in common"))?
    } else {
        // A revision that begins with a dash would be an option.
        let is_name = !revision.is_empty() && !revision.starts_with('-');
        let asked = format!("{revision}^{{commit}}");
        let found = is_name.then(|| git.ask(["rev-parse", "--verify", "--quiet", &asked]));
        found
            .flatten()
            .ok_or_else(|| none("the repository has no such revision"))?
    };
    Commit::of(git, &hash)
}

/// Returns the root of the repository that this folder lies in, and the path from there to this folder.
pub(super) fn repository() -> Result<(PathBuf, PathBuf), CliError> {
    let git = Git::within(Path::new("."));
    let asked = |what| git.ask(["rev-parse", what]).map(PathBuf::from);
    asked("--show-toplevel")
        .zip(asked("--show-prefix"))
        .ok_or_else(|| {
            CliError::usage(format!(
                "{GIT}REVISION needs git, and a git repository in this folder; change to yours, or \
                 name commands"
            ))
        })
}
