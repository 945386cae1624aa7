//! The step-by-step branches: the same for everybody, and nobody's work lost.

use std::path::Path;
use std::process::Command;

use crate::workshop::{PROBLEM, SHIPPED, SOLUTION, Workshop};
use terminal::testing::Ran;

const BRANCH: &str = "steps/chapter1";
const EXERCISE: &str = "chapters/1-small/src/exercise.rs";

/// `git WORDS` as a reader called Ann would run it, on a day of hers.
#[track_caller]
pub(crate) fn git(folder: &Path, words: &str) -> String {
    git_as(["Ann", "ann@example.org"], folder, words)
}

#[track_caller]
fn git_as([name, mail]: [&str; 2], folder: &Path, words: &str) -> String {
    let done = Command::new("git")
        .args(["-c", &format!("user.name={name}")])
        .args(["-c", &format!("user.email={mail}")])
        .args("-c init.defaultBranch=main -c commit.gpgSign=false".split(' '))
        .args(words.split(' '))
        .envs([
            ("GIT_AUTHOR_DATE", "@1700000000 +0200"),
            ("GIT_COMMITTER_DATE", "@1700000000 +0200"),
        ])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "git {words}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A workshop whose files are committed.
pub(crate) fn committed() -> Workshop {
    let workshop = Workshop::new();
    let root = workshop.path("");
    git(&root, "init --quiet");
    git(&root, "add .");
    git(&root, "commit --quiet --message Begin");
    workshop
}

fn tip(workshop: &Workshop) -> String {
    git(&workshop.path(""), &format!("rev-parse {BRANCH}"))
}

fn commit_something(workshop: &Workshop) {
    workshop.write("more.txt", "more");
    git(&workshop.path(""), "add more.txt");
    git(&workshop.path(""), "commit --quiet --message More");
}

fn amend(workshop: &Workshop, identity: [&str; 2]) {
    std::fs::write(workshop.exercise(), "//! Mine.\n").unwrap();
    let words = "commit --quiet --all --amend --no-edit";
    git_as(identity, &workshop.path(""), words);
}

/// The refusal that names the branch, and the branch as it was.
#[track_caller]
fn is_left_alone(workshop: &Workshop) -> String {
    let before = tip(workshop);
    let said = workshop.run("steps").refused(1);
    assert!(said.contains("`steps/chapter1`"), "{said}");
    assert_eq!(tip(workshop), before);
    said
}

#[test]
fn every_step_is_a_commit_that_says_why_and_changes_the_exercise_alone() {
    let workshop = committed();
    let root = workshop.path("");
    let said = workshop.run("steps").good();
    assert!(said.contains("steps/chapter1 (created)"), "{said}");
    assert_eq!(git(&root, "rev-list --count main..steps/chapter1"), "2");
    let steps = [("steps/chapter1~1", PROBLEM), (BRANCH, SOLUTION)];
    for (step, code) in steps {
        let shown = git(&root, &format!("show {step}:{EXERCISE}"));
        assert_eq!(shown, code.trim_end());
        let changed = git(&root, &format!("diff --name-only main {step}"));
        assert_eq!(changed, EXERCISE);
        let message = git(&root, &format!("show --no-patch --format=%B {step}"));
        assert!(message.starts_with("Chapter 1, "), "{message}");
        assert!(
            message.contains("\n\nWorkshop-Step: chapter1 "),
            "{message}"
        );
        assert!(message.lines().all(|line| line.len() <= 72), "{message}");
    }
}

#[test]
fn the_capstones_way_is_a_commit_for_each_mail_of_its_mailbox() {
    let workshop = Workshop::new();
    let root = workshop.path("");
    workshop.write("capstone/src/main.rs", "slow\n");
    let mail = |subject: &str, from: &str, to: &str| {
        format!(
            "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: Ann <ann@example.org>\n\
             Date: Wed, 25 Nov 2026 09:46:40 +0000\nSubject: {subject}\n\nSeen: {from}\n\n\
             diff --git a/capstone/src/main.rs b/capstone/src/main.rs\n--- a/capstone/src/main.rs\n+++ \
             b/capstone/src/main.rs\n@@ -1 +1 @@\n-{from}\n+{to}\n\n"
        )
    };
    let mailbox = "capstone/reference/way/commits.mbox";
    let first = mail("Answer faster", "slow", "faster");
    let second = mail("Answer fast", "faster", "fast");
    workshop.write(mailbox, &(first + &second));
    git(&root, "init --quiet");
    git(&root, "add .");
    git(&root, "commit --quiet --message Begin");

    // Its branch holds the answers, so nobody gets it unasked.
    let said = workshop.run("steps").good();
    assert!(!said.contains("capstone"), "{said}");
    assert_eq!(git(&root, "branch --list steps/capstone"), "");
    let said = workshop.run("steps capstone").good();
    assert!(said.contains("steps/capstone (created)"), "{said}");
    assert!(!said.contains("chapter"), "{said}");
    for (step, code) in [("~2", "slow"), ("~1", "faster"), ("", "fast")] {
        let shown = git(
            &root,
            &format!("show steps/capstone{step}:capstone/src/main.rs"),
        );
        assert_eq!(shown, code);
    }
    let message = git(&root, "show --no-patch --format=%B steps/capstone");
    assert_eq!(
        message,
        "Answer fast\n\nSeen: faster\n\nWorkshop-Step: capstone 2/2 02-answer-fast"
    );
    assert!(
        workshop
            .run("steps capstone")
            .good()
            .contains("steps/capstone (as it was)")
    );

    workshop.write(mailbox, &second);
    git(&root, "commit --quiet --all --message More");
    let said = workshop.run("steps capstone").refused(2);
    assert!(
        said.contains("`Answer fast` of capstone/reference/way/commits.mbox does not apply"),
        "{said}"
    );
}

#[test]
fn a_chapter_that_is_named_gets_its_branch_alone() {
    let workshop = Workshop::new();
    let root = workshop.path("");
    for file in [
        "chapter.toml",
        "src/problem.rs",
        "src/exercise.rs",
        "src/solution.rs",
    ] {
        let text = workshop.read(&format!("chapters/1-small/{file}"));
        let text = text.replace("chapter = 1", "chapter = 2");
        let text = text.replace("\"chapter1\"", "\"chapter2\"");
        workshop.write(&format!("chapters/2-small/{file}"), &text);
    }
    git(&root, "init --quiet");
    git(&root, "add .");
    git(&root, "commit --quiet --message Begin");
    let said = workshop.run("steps 2").good();
    assert!(said.contains("steps/chapter2 (created)"), "{said}");
    assert!(!said.contains("steps/chapter1"), "{said}");
    assert_eq!(git(&root, "branch --list steps/chapter1"), "");
    let said = workshop.run("steps 1").good();
    assert!(said.contains("steps/chapter1 (created)"), "{said}");
}

#[test]
fn the_same_input_gives_the_same_commits_everywhere() {
    let workshop = committed();
    let first = workshop.run("steps --format json").json();
    crate::results::described(&first);
    assert_eq!(first[0]["change"], "created");
    assert_eq!(first[0]["steps"][1]["commit"], tip(&workshop));
    let again = workshop.run("steps --format json").json();
    assert_eq!(again[0]["change"], "unchanged");
    assert_eq!(again[0]["steps"], first[0]["steps"]);

    // Another person's clone, shallow, in another time zone.
    commit_something(&workshop);
    workshop.run("steps").good();
    let root = workshop.path("");
    git(&root, "clone --quiet --no-local --depth 1 . shallow");
    let shallow = workshop.path("shallow");
    assert_eq!(git(&shallow, "rev-list --count HEAD"), "1");
    let mut steps = workshop.command("steps");
    steps.envs([("TZ", "Asia/Tokyo"), ("GIT_AUTHOR_NAME", "Bob")]);
    Ran::of(steps.current_dir(&shallow)).good();
    assert_eq!(
        git(&shallow, &format!("rev-parse {BRANCH}")),
        tip(&workshop)
    );
}

#[test]
fn uncommitted_work_and_the_index_stay_as_they_are() {
    let workshop = committed();
    let root = workshop.path("");
    std::fs::write(workshop.exercise(), "//! Mine.\n").unwrap();
    workshop.write("staged.txt", "staged");
    git(&root, "add staged.txt");
    let status = git(&root, "status --porcelain");
    let index = std::fs::read(workshop.path(".git/index")).unwrap();
    workshop.run("steps").good();
    assert_eq!(std::fs::read(workshop.path(".git/index")).unwrap(), index);
    assert_eq!(git(&root, "status --porcelain"), status);
    assert_eq!(git(&root, "branch --show-current"), "main");
    assert_eq!(workshop.read(EXERCISE), "//! Mine.\n");
    // The steps come from what is committed.
    let shown = git(&root, &format!("show main:{EXERCISE}"));
    assert_eq!(shown, SHIPPED.trim_end());
}

#[test]
fn the_branch_follows_head() {
    let workshop = committed();
    let root = workshop.path("");
    workshop.run("steps").good();
    let before = tip(&workshop);
    // A reader who looks at a step gets the same ones.
    git(&root, "checkout --quiet steps/chapter1~1");
    workshop.run("steps").good();
    assert_eq!(tip(&workshop), before);
    git(&root, "checkout --quiet main");
    commit_something(&workshop);
    let said = workshop.run("steps").good();
    assert!(said.contains("(updated)"), "{said}");
    assert_ne!(tip(&workshop), before);
    let base = git(&root, &format!("merge-base main {BRANCH}"));
    assert_eq!(base, git(&root, "rev-parse main"));
}

#[test]
fn what_is_the_readers_is_left_alone() {
    type Does = fn(&Workshop);
    let on_the_branch = |workshop: &Workshop, does: Does| {
        workshop.run("steps").good();
        git(&workshop.path(""), &format!("switch --quiet {BRANCH}"));
        does(workshop);
        git(&workshop.path(""), "switch --quiet main");
    };
    for readers in [
        // A commit on top.
        &(|workshop: &Workshop| on_the_branch(workshop, commit_something)) as &dyn Fn(&Workshop),
        // A branch with this name.
        &|workshop| {
            git(&workshop.path(""), &format!("branch {BRANCH}"));
        },
        // A step amended, and even by somebody who carries the generator's name.
        &|workshop| on_the_branch(workshop, |w| amend(w, ["Ann", "ann@example.org"])),
        &|workshop| {
            on_the_branch(workshop, |w| {
                amend(w, ["Profiling workshop", "steps@workshop.invalid"]);
            });
        },
        // A commit that only the steps hold.
        &|workshop| {
            commit_something(workshop);
            workshop.run("steps").good();
            git(&workshop.path(""), "reset --quiet --hard HEAD~1");
        },
    ] {
        let workshop = committed();
        readers(&workshop);
        let said = is_left_alone(&workshop);
        let rename = "git branch -m steps/chapter1 my-steps-chapter1";
        assert!(said.contains(rename), "{said}");
    }
}

#[test]
fn a_branch_that_is_checked_out_is_left_alone() {
    let workshop = committed();
    let root = workshop.path("");
    workshop.run("steps").good();
    git(&root, &format!("worktree add --quiet tree {BRANCH}"));
    // Nothing to move: no reason to refuse.
    workshop.run("steps").good();
    commit_something(&workshop);
    let said = is_left_alone(&workshop);
    assert!(said.contains("is checked out in"), "{said}");
}

#[test]
fn what_is_in_the_way_of_a_step_is_named() {
    for (prepares, code, sentence) in [
        (&["branch steps"] as &[_], 1, "git branch -m steps my-steps"),
        (
            &[
                "rm --quiet --cached chapters/1-small/src/solution.rs",
                "commit --quiet --message Forget",
            ],
            2,
            "chapters/1-small/src/solution.rs is not committed",
        ),
    ] {
        let workshop = committed();
        for words in prepares {
            git(&workshop.path(""), words);
        }
        let said = workshop.run("steps").refused(code);
        assert!(said.contains(sentence), "{said}");
    }
}

#[test]
fn without_git_or_a_repository_of_its_own_or_a_commit_one_is_told() {
    let workshop = Workshop::new();
    let said = workshop.run("steps").refused(2);
    assert!(said.contains("clone the workshop with git"), "{said}");
    git(&workshop.path(""), "init --quiet");
    let said = workshop.run("steps").refused(2);
    assert!(said.contains("no commit yet"), "{said}");
    let nothing = tempfile::tempdir().unwrap();
    let said = Ran::of(workshop.command("steps").env("PATH", nothing.path())).refused(1);
    assert!(said.contains("git is not installed"), "{said}");
    let inner = workshop.path("inner");
    std::fs::create_dir_all(inner.join("chapters")).unwrap();
    std::fs::write(inner.join("Cargo.toml"), "").unwrap();
    let said = Ran::of(workshop.command("steps").current_dir(&inner)).refused(2);
    assert!(said.contains("inside another git repository"), "{said}");
}
