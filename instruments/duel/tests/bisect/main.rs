//! `duel bisect` in somebody's repository.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use terminal::testing::{git, once_in_three};

/// The service of `service.rs`, compiled once.
fn service() -> &'static Path {
    static SERVICE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = SERVICE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("service");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bisect/service.rs");
        let mut rustc = Command::new("rustc");
        rustc
            .args(["--edition", "2024", source, "-o"])
            .arg(&program);
        assert!(rustc.status().unwrap().success());
        (folder, program)
    });
    program
}

/// Repository in which each commit holds the time of an answer, in milliseconds.
struct Project(TempDir);

impl Project {
    fn new(delays: &[&str]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        fs::create_dir(project.0.path().join("pids")).unwrap();
        fs::write(project.0.path().join(".gitignore"), "pids\n").unwrap();
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        for (number, delay) in delays.iter().enumerate() {
            let content = format!("{delay}\n# {number}\n");
            fs::write(project.0.path().join("delay"), content).unwrap();
            project.git(&["add", "."]);
            project.git(&["commit", "--quiet", "-m", &format!("Commit {number}")]);
        }
        project
    }

    fn git(&self, words: &[&str]) -> String {
        git(self.0.path(), words)
    }

    /// Returns the command for the shortest possible search. A commit without a delay does not build.
    fn bisect(&self, words: &str) -> Command {
        let service = service().display();
        let pids = self.0.path().join("pids");
        let build = format!(
            "head -n 1 delay | grep . && mkdir -p $CARGO_TARGET_DIR && cp {service} $CARGO_TARGET_DIR/shop"
        );
        let run = format!(
            "$CARGO_TARGET_DIR/shop {{port}} $(head -n 1 delay) {}",
            pids.display()
        );
        let mut duel = Command::new(env!("CARGO_BIN_EXE_duel"));
        duel.args(["bisect", "--build", &build, "--run", &run, "--get", "/"])
            .args("--users 8 --seconds 0.2 --warm-up 0 --margin 50% --format json".split(' '))
            .args(if words.contains("--at-most") {
                &[][..]
            } else {
                &["--at-most", "90"]
            })
            .args(words.split_whitespace())
            .current_dir(&self.0)
            .stdin(Stdio::null());
        duel
    }

    /// Returns its services that still run after at most 30 s, and the number of its checkouts.
    fn left(&self) -> (Vec<String>, usize) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let runs = |pid: &String| {
            let status = Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
            let status = String::from_utf8(status.unwrap().stdout).unwrap();
            !status.trim().is_empty() && !status.starts_with('Z')
        };
        loop {
            let pids = fs::read_dir(self.0.path().join("pids")).unwrap();
            let pids = pids.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let left: Vec<String> = pids.filter(runs).collect();
            let checkouts = self.git(&["worktree", "list"]).lines().count();
            if left.is_empty() && checkouts == 1 || Instant::now() > deadline {
                return (left, checkouts);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn said(output: &Output) -> (Value, String) {
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (
        serde_json::from_slice(&output.stdout).unwrap_or_default(),
        err,
    )
}

/// Searches until no wrong commit is suspected, and returns what the search says. A busy machine may leave too few rounds,
/// or too noisy ones: then no commit is suspected, or once a wrong one.
#[track_caller]
fn searched(project: &Project, words: &str, is_right: impl Fn(&Value) -> bool) -> (Value, String) {
    once_in_three(|| {
        let output = project.bisect(words).output().unwrap();
        let (value, err) = said(&output);
        let right_code = match value["verdict"].as_str().unwrap() {
            "found" => 0,
            "inconclusive" | "nothing_to_find" => 1,
            _ => 3,
        };
        assert_eq!(output.status.code(), Some(right_code), "{err}");
        let is_open = value["likely"].as_array().unwrap().is_empty();
        (is_open || is_right(&value), (value, err))
    })
}

fn suspects(value: &Value, commit: &String) -> bool {
    let mut likely = value["likely"].as_array().unwrap().iter();
    likely.any(|one| one == commit)
}

#[test]
fn the_commit_that_made_it_slower_is_found_beside_one_that_does_not_build() {
    let project = Project::new(&["10", "", "10", "100", "100", "100"]);
    let right = project.git(&["rev-parse", "HEAD~2"]);
    let is_right = |value: &Value| {
        let is_open = value["verdict"] != "found";
        let times = value["step"]["times"].as_f64().unwrap_or_default();
        suspects(value, &right) && (is_open || value["commit"] == right && times > 2.0)
    };
    let (value, _) = searched(&project, "--good HEAD~5 --bad main", is_right);
    if value["verdict"] == "found" {
        assert!(value["probability"].as_f64().unwrap() >= 0.95, "{value}");
        let reason = value["reason"].as_str().unwrap();
        for words in [
            "Commit 3 made it ",
            " times slower (",
            " % sure; ",
            " of 5 commits tried",
        ] {
            assert!(reason.contains(words), "{reason}");
        }
        assert_eq!(value["commits"].as_array().unwrap().len(), 5);
    }
    assert_eq!(project.left(), (Vec::new(), 1));
}

#[test]
fn a_commit_that_does_not_build_is_not_told_apart_from_the_next() {
    let project = Project::new(&["10", "", "100"]);
    let both = ["HEAD~1", "HEAD"].map(|one| project.git(&["rev-parse", one]));
    let are_both = |value: &Value| both.iter().all(|one| suspects(value, one));
    let (value, err) = searched(&project, "--good HEAD~2 --bad main", are_both);
    if value["likely"] != Value::Array(Vec::new()) {
        assert_eq!(value["verdict"], "inconclusive", "{value}");
        let skipped = value["commits"][0]["skipped"].as_str().unwrap();
        assert!(
            skipped.contains("the build of the change ended with an error"),
            "{skipped}"
        );
        assert!(err.contains("cannot tell them apart"), "{err}");
    }
}

#[test]
fn without_a_slower_commit_there_is_nothing_to_find() {
    let project = Project::new(&["10", "10", "10"]);
    let words = "--good HEAD~2 --bad HEAD --at-most 20";
    let (value, _) = searched(&project, words, |_| false);
    assert!(value["commit"].is_null());
}

#[test]
fn wrong_usage_is_told_before_anything_runs() {
    let project = Project::new(&["4", "4"]);
    for (words, sentence) in [
        (
            "--good none --bad HEAD",
            "--good none: the repository has no such revision",
        ),
        (
            "--good HEAD --bad HEAD~1",
            "--good names no commit that came before that of --bad",
        ),
        ("--good HEAD --bad HEAD", "nothing lies between them"),
        ("--good HEAD~1 --bad HEAD --confidence 1", "such as 0.95"),
        (
            "--good HEAD~1 --bad HEAD --metric rps",
            "there are 'requests_per_second'",
        ),
    ] {
        let output = project.bisect(words).output().unwrap();
        let (_, err) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains(sentence), "{err}");
    }
    assert_eq!(
        fs::read_dir(project.0.path().join("pids")).unwrap().count(),
        0
    );
}

#[test]
fn an_interrupt_leaves_neither_a_service_nor_a_checkout() {
    let project = Project::new(&["10", "10", "100"]);
    let mut duel = project.bisect("--good HEAD~2 --bad HEAD");
    let mut running = duel
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Both services of the first comparison: noise may end the search after it.
    while fs::read_dir(project.0.path().join("pids")).unwrap().count() < 2 {
        assert!(running.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = Command::new("kill")
        .args(["-INT", &running.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    assert_eq!(project.left(), (Vec::new(), 1));
}
