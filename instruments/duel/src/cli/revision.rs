//! A git revision that is built in a worktree of its own, and started from that build.

mod kept;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::report::Program;
use children::Interrupt;
use engine::comparison::ComparisonError;
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

/// Place in the build command for the number of a round's layout.
pub(super) const LAYOUT: &str = "{layout}";

/// Advice for builds that differ in their layout.
pub(super) const SHUFFLED: &str = "for cargo and the linker LLD, say --build 'cargo rustc --release --bin NAME -- \
     -Clink-arg=-Wl,--shuffle-sections=.text*={layout}'";

/// Status with which a shell reports that a program does not exist.
const NOT_FOUND: i32 = 127;

/// Advice for a revision with submodules, whose files git does not check out.
const SUBMODULES: &str = "the checkout has no files of the submodules in .gitmodules: if the build needs them, begin \
     --build with `git submodule update --init --recursive && `";

/// Name of the checkout within a temporary folder.
const SOURCE: &str = "source";

/// A built revision. Dropping it removes the worktree.
pub(super) struct Revision<'a> {
    /// `base` or `change`.
    name: &'a str,
    /// Command that built it.
    build: String,
    root: PathBuf,
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
        let Ok(git) = Git::at(&self.path) else {
            return Vec::new();
        };
        let list = git.ask([&["ls-files"], patterns].concat());
        let list = list.unwrap_or_default();
        list.lines().map(str::to_owned).collect()
    }

    /// Returns the folders in which cargo may make a `target`: the root, `within`, and each with a `Cargo.lock`.
    fn of_cargo(&self, within: &Path) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for mut lock in self.files(&["Cargo.lock", "*/Cargo.lock"]) {
            lock.truncate(lock.len() - "Cargo.lock".len());
            folders.push(self.path.join(lock));
        }
        folders.extend([self.path.clone(), self.path.join(within)]);
        folders
    }

    /// Returns a source that is older than the checkout, if there is one.
    fn set_back(&self) -> Option<String> {
        let checkout = modified(&self.path.join(".git"))?;
        for source in self.files(&["*.rs"]) {
            if let Some(time) = modified(&self.path.join(&source))
                && time < checkout
            {
                return Some(source);
            }
        }
        None
    }
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).ok()?.modified().ok()
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
    for line in list.unwrap_or_default().lines() {
        let Some(path) = line.strip_prefix("worktree ") else {
            continue;
        };
        let path = Path::new(path);
        let mut above = path.ancestors().skip(1);
        if path.ends_with(SOURCE)
            && let (Some(temporary), Some(parent)) = (above.next(), above.next())
            && !temporary.exists()
            && files::is_temporary(parent)
        {
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
            build: build.to_owned(),
            root,
            folder,
            kept,
            worktree,
        };
        let build = &*for_round(build, 0);
        say(&format!("{name}: {build} at {commit}"));
        let modules = ready.worktree.path.join(".gitmodules");
        let lacks_submodules = modules.is_file() && !build.contains("submodule");
        if lacks_submodules {
            say(&format!("{name}: {SUBMODULES}"));
        }
        let ended = run_to_end(
            &format!("build of the {name}"),
            &ready.kept.with(build),
            &ready.folder,
            interrupt,
        );
        ended.map_err(|error| match error {
            CommandError::Ended { .. } if lacks_submodules => {
                CliError::new(Exit::Invalid, format!("{error}; {SUBMODULES}"))
            }
            error => failed(error),
        })?;
        match ready.worktree.set_back() {
            Some(file) => Err(CliError::new(
                Exit::Invalid,
                format!(
                    "the build of the {name} set back the time of {file}, which tells cargo what to build \
                     again after another revision; leave that out of --build"
                ),
            )),
            None => Ok(ready),
        }
    }

    /// Builds it anew for a round, counted from 0, and replaces what it has `started`. The first round has the first build.
    ///
    /// # Errors
    ///
    /// Fails if the build does, or if it makes the same program as for the round before.
    pub(super) fn rebuild(
        &self,
        round: u32,
        started: &mut Started,
        interrupt: &Interrupt,
    ) -> Result<(), ComparisonError> {
        if round == 0 {
            return Ok(());
        }
        let build = for_round(&self.build, round);
        let what = format!("build of the {}", self.name);
        run_to_end(&what, &self.kept.with(&build), &self.folder, interrupt)?;
        let program = fs::read(&started.path).map(digest);
        let program = program.map_err(|error| {
            ComparisonError::Invalid(format!("{}: {error}", started.program.file))
        })?;
        if program == started.program.sha256 {
            return Err(ComparisonError::Invalid(format!(
                "the {what} makes the same program with another {LAYOUT}; {SHUFFLED}."
            )));
        }
        started.program.sha256 = program;
        Ok(())
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
            CommandError::Ended { status, .. } if status.code() == Some(NOT_FOUND) => {
                let why = "its build made no such program; what cargo makes is below ./target";
                CliError::new(Exit::Invalid, format!("{error}; {why}"))
            }
            error => failed(error),
        })?;
        let programs = server.programs();
        let Some(last) = programs.last() else {
            return Ok(None);
        };
        let Some((file, image, run_by)) = self.built_among(&programs) else {
            return Err(self.refused(&format!(
                "starts {}, which is neither in its checkout nor in its build; name what the build makes, by a path within the checkout",
                last.file.display()
            )));
        };
        let shown = self.within(&file).unwrap_or_default();
        let bytes = fs::read(&image);
        let path = file.clone();
        let sha256 = bytes.map(digest).map_err(CliError::because(&shown))?;
        let program = Program {
            file: shown,
            sha256,
        };
        Ok(Some(Started {
            program,
            path,
            run_by,
        }))
    }

    /// Returns the file of this build that runs, another name of the same file, and the program that runs it if it is a
    /// script.
    fn built_among(&self, programs: &[Running]) -> Option<(PathBuf, PathBuf, Option<String>)> {
        for program in programs {
            if self.within(&program.file).is_some() {
                return Some((program.file.clone(), program.image.clone(), None));
            }
        }
        for program in programs {
            if let Some(file) = self.script(program) {
                let run_by = program.file.display().to_string();
                return Some((file.clone(), file, Some(run_by)));
            }
        }
        None
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
        for word in &program.words {
            let (module, _) = word.split_once(':').unwrap_or((word, ""));
            let module = module.replace('.', "/") + ".py";
            for name in [word, &module] {
                if let Ok(file) = fs::canonicalize(program.folder.join(name))
                    && file.is_file()
                    && self.within(&file).is_some()
                {
                    return Some(file);
                }
            }
        }
        None
    }
}

/// Program that a revision's command started.
pub(super) struct Started {
    pub(super) program: Program,
    /// Path of the program's file.
    path: PathBuf,
    /// The program from elsewhere that runs the file, if one does.
    pub(super) run_by: Option<String>,
}

/// Returns the command that builds for a round, counted from 0. 0 would mean to some linkers that nothing is shuffled.
fn for_round(build: &str, round: u32) -> String {
    build.replace(LAYOUT, &(round + 1).to_string())
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
    let (mut hash, mut none) = (None, "the repository has no such revision");
    if let Some((one, other)) = revision.split_once("...") {
        let mut ends = Vec::new();
        for end in [one, other] {
            let end = if end.is_empty() { "HEAD" } else { end };
            ends.push(commit(git, option, end)?.hash);
        }
        hash = git.ask(["merge-base", &ends[0], &ends[1]]);
        none = "the two have no commit in common";
    // A revision that begins with a dash would be an option.
    } else if !revision.is_empty() && !revision.starts_with('-') {
        let asked = format!("{revision}^{{commit}}");
        hash = git.ask(["rev-parse", "--verify", "--quiet", &asked]);
    }
    if let Some(hash) = hash {
        return Commit::of(git, &hash);
    }
    let elsewhere = format!("refs/remotes/origin/{revision}");
    let on_origin = git.ask(["rev-parse", "--verify", "--quiet", &elsewhere]);
    let advice = match on_origin {
        Some(_) => format!("; origin has a branch of this name: write origin/{revision}"),
        None => String::new(),
    };
    Err(CliError::usage(format!(
        "{option}{revision}: {none}{advice}"
    )))
}

/// Returns the root of the repository that this folder lies in, and the path from there to this folder.
pub(super) fn repository() -> Result<(PathBuf, PathBuf), CliError> {
    let git = Git::within(Path::new("."));
    match (
        git.ask(["rev-parse", "--show-toplevel"]),
        git.ask(["rev-parse", "--show-prefix"]),
    ) {
        (Some(root), Some(within)) => Ok((root.into(), within.into())),
        _ => Err(CliError::usage(format!(
            "{GIT}REVISION needs git, and a git repository in this folder; change to yours, or \
             name commands"
        ))),
    }
}
