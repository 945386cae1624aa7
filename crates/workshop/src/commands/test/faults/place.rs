//! A workshop of its own, with a reader's work in it, for commands that are stopped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::child::{Running, Starting};
use serde_json::Value;

use super::super::context::Context;
use super::super::scratch::Scratch;
use crate::chapters::Chapter;
use crate::exercise::Exercise;
use crate::exit::CliError;
use crate::git::Git;

/// Its folder's name has what scripts and shells trip over.
const NAME: &str = "stopped, wherever it läuft";
/// A reader's edit, under the shipped code.
const EDIT: &str = "\n// A reader's own line, äöü.\n";
/// The variable by which processes of a command are known.
const MARKER: &str = "WORKSHOP_FAULTS";
/// What is started must be gone by then. It takes far less: only a machine that stands still takes
/// longer.
const GONE: Duration = Duration::from_secs(60);

/// A branch of the reader's.
const BRANCH: &str = "mine";

/// The copy of the workshop.
pub(super) struct Place<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) scratch: Scratch<'a>,
    pub(super) chapter: Chapter,
    /// The chapter's compiled binary.
    pub(super) program: PathBuf,
    /// The reader's exercise.
    mine: String,
    shipped: String,
    /// The branches that `steps` makes, when it comes to its end.
    steps: usize,
    captures: BTreeMap<String, String>,
    head: String,
}

impl<'a> Place<'a> {
    pub(super) fn make(context: &'a Context<'a>) -> Result<Self, CliError> {
        let chapter = context.chapters.first().cloned();
        let chapter = chapter.ok_or_else(|| CliError::bad("there is no chapter"))?;
        let more = ["k6", "locust", "flamegraphs", "reference"];
        let scratch = Scratch::copy_with(context, NAME, &more)?;
        let exercise = Exercise::read(&chapter)?;
        let mine = format!("{}{EDIT}", exercise.shipped);
        scratch.put(&chapter, &mine)?;
        let tools = scratch.folder().join(".tools");
        fs::create_dir_all(scratch.folder().join("tmp"))
            .and_then(|()| fs::create_dir_all(tools.join("bin")))
            .map_err(CliError::because("the copy cannot be written"))?;
        #[cfg(unix)]
        for (there, name) in [
            (context.tools.k6(), "bin/k6"),
            (context.tools.venv(), "venv"),
        ] {
            std::os::unix::fs::symlink(there, tools.join(name))
                .map_err(CliError::because("the copy cannot be written"))?;
        }
        let mut place = Self {
            program: scratch.target().join("debug").join(chapter.package()),
            context,
            chapter,
            mine,
            shipped: exercise.shipped,
            steps: 0,
            captures: BTreeMap::new(),
            head: String::new(),
            scratch,
        };
        let git = |words: &str| {
            let mut git = context.command("git", words);
            context.run(git.current_dir(place.scratch.folder()))
        };
        git("init --quiet --initial-branch=main")?;
        git("add --all --force chapters crates Cargo.toml Cargo.lock .cargo")?;
        git("-c user.name=reader -c user.email=reader@localhost commit --quiet -m mine")?;
        git(&format!("branch {BRANCH}"))?;
        let package = place.chapter.package();
        context.run(&mut place.scratch.cargo(&format!("build --package {package}")))?;
        context.run(&mut place.scratch.own("steps"))?;
        place.steps = place.branches()?.len();
        place.head = place.git()?.say(["rev-parse", BRANCH])?;
        place.captures = place.captured()?;
        place.remove_steps()?;
        Ok(place)
    }

    fn git(&self) -> Result<Git, CliError> {
        Git::at(self.scratch.folder())
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.scratch.folder().join("tmp")
    }

    /// The learner's file in the copy.
    pub(super) fn exercise(&self) -> PathBuf {
        let within = self
            .context
            .workshop
            .shown(&self.chapter.source("exercise"));
        self.scratch.folder().join(within)
    }

    /// Branches besides the reader's.
    fn branches(&self) -> Result<Vec<String>, CliError> {
        let all = self
            .git()?
            .say(["for-each-ref", "--format=%(refname)", "refs/heads"])?;
        let own = ["refs/heads/main".to_owned(), format!("refs/heads/{BRANCH}")];
        let others = all
            .lines()
            .filter(|name| !own.iter().any(|own| own == name));
        Ok(others.map(str::to_owned).collect())
    }

    fn remove_steps(&self) -> Result<(), CliError> {
        for branch in self.branches()? {
            self.git()?.say(["update-ref", "-d", &branch])?;
        }
        Ok(())
    }

    /// Digests of the recorded files of the chapter.
    fn captured(&self) -> Result<BTreeMap<String, String>, CliError> {
        let folder = format!("flamegraphs/{}", self.chapter.package());
        let refused = || CliError::because(format!("{folder} cannot be read"));
        let entries = fs::read_dir(self.scratch.folder().join(&folder)).map_err(refused())?;
        let digest = |path: &Path| -> std::io::Result<String> {
            Ok(bench::provenance::digest(fs::read(path)?))
        };
        entries
            .filter(|entry| entry.as_ref().is_ok_and(|one| one.path().is_file()))
            .map(|entry| {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                Ok((name, digest(&entry.path())?))
            })
            .collect::<std::io::Result<_>>()
            .map_err(refused())
    }

    /// Starts a command whose processes, and whose temporary files, can be told from all others.
    pub(super) fn start(&self, command: &mut Command, marker: &str) -> Result<Running, CliError> {
        self.mark(command, marker);
        let said = self.said();
        let refused = || CliError::because(format!("{} cannot be written", said.display()));
        let out = File::create(&said).map_err(refused())?;
        let both = out.try_clone().map_err(refused())?;
        Starting::of(command)
            .stdout(Stdio::from(out))
            .stderr(both)
            .start()
            .map_err(CliError::because("a command cannot be started"))
    }

    pub(super) fn mark(&self, command: &mut Command, marker: &str) {
        command.env(MARKER, marker).env("TMPDIR", self.temporary());
    }

    fn said(&self) -> PathBuf {
        self.context.folder.join("faults.said")
    }

    /// What the last command printed, both outputs together.
    pub(super) fn last_said(&self) -> String {
        let bytes = fs::read(self.said()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// That nothing of the reader's was lost and nothing was left, whatever the command was; then all
    /// is put as it was.
    pub(super) fn is_whole(&self) -> Result<(), CliError> {
        let folder = self.scratch.folder();
        let lost = |what: String| Err(CliError::bad(what));
        let exercise = fs::read_to_string(self.exercise()).unwrap_or_default();
        if exercise != self.mine {
            // Only `reset` takes it away; and then it is kept.
            let kept = fs::read_dir(folder.join(".workshop/kept"));
            let mut kept = kept.into_iter().flatten().flatten();
            let is_kept = |kept: &fs::DirEntry| {
                fs::read_to_string(kept.path()).is_ok_and(|text| text == self.mine)
            };
            if !kept.any(|one| is_kept(&one)) || ![&self.shipped, ""].contains(&&*exercise) {
                return lost("the reader's exercise is gone".to_owned());
            }
            let _ = fs::remove_dir_all(folder.join(".workshop/kept"));
            self.scratch.put(&self.chapter, &self.mine)?;
        }
        let progress = fs::read_to_string(folder.join(".workshop/progress.json"));
        if progress.is_ok_and(|text| serde_json::from_str::<Value>(&text).is_err()) {
            return lost("progress.json is damaged".to_owned());
        }
        if self.captured()? != self.captures {
            return lost("the capture is not as it was".to_owned());
        }
        let head = self.git()?.say(["rev-parse", BRANCH])?;
        let steps = self.branches()?.len();
        if head != self.head || ![0, self.steps].contains(&steps) {
            return lost(format!(
                "of {} branches there are {steps}, and the reader's is {head}",
                self.steps
            ));
        }
        self.remove_steps()?;
        let left = fs::read_dir(self.temporary())
            .into_iter()
            .flatten()
            .flatten();
        let left: Vec<String> = left.map(|one| one.path().display().to_string()).collect();
        if !left.is_empty() {
            return lost(format!("temporary files are left: {}", left.join(", ")));
        }
        let said = self.last_said();
        if said.contains("panicked at") && !said.contains("exercise.rs") {
            return lost(format!("it panicked: {said}"));
        }
        Ok(())
    }
}

/// Waits until nothing of a command lives any more; how long that took since `since`.
pub(super) fn gone(marker: &str, since: Instant) -> Result<Duration, CliError> {
    loop {
        let left = living(marker);
        if left.is_empty() {
            return Ok(since.elapsed());
        }
        if since.elapsed() > GONE {
            return Err(CliError::bad(format!(
                "{} s later there still ran: {}",
                GONE.as_secs(),
                left.join("; ")
            )));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes that have the marker among their variables.
fn living(marker: &str) -> Vec<String> {
    let marker = format!("{MARKER}={marker}");
    let has_it = |folder: &Path| {
        fs::read(folder.join("environ")).is_ok_and(|variables| {
            let mut variables = variables.split(|&byte| byte == 0);
            variables.any(|variable| variable == marker.as_bytes())
        })
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|entry| entry.path())
        .filter(|folder| has_it(folder))
        .map(|folder| {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            format!("{} {line}", folder.display())
        })
        .collect()
}
