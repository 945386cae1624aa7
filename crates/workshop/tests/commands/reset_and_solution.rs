//! The learner's file: never lost, put back whole, compared with the solution.

use crate::workshop::{CHAPTER, SHIPPED, SOLUTION, Workshop};
#[cfg(unix)]
use terminal::testing::Ran;
use terminal::testing::names;

fn exercise(workshop: &Workshop) -> String {
    std::fs::read_to_string(workshop.exercise()).unwrap()
}

#[test]
fn reset_keeps_the_learners_file_and_says_where() {
    let workshop = Workshop::new();
    // The last is no text.
    let attempts: [&[u8]; 3] = [b"//! Mine.\n", b"fn two() {}", b"fn \xff\xfe() {}\r\n"];
    for (before, mine) in attempts.into_iter().enumerate() {
        std::fs::write(workshop.exercise(), mine).unwrap();
        let said = workshop.run("reset 1").good();
        let kept = said.split_whitespace().last().unwrap();
        assert!(
            kept.starts_with(".workshop/kept/chapter1-exercise-20"),
            "{said}"
        );
        assert_eq!(std::fs::read(workshop.path(kept)).unwrap(), mine);
        assert_eq!(exercise(&workshop), SHIPPED);
        assert_eq!(names(&workshop.path(".workshop/kept")).len(), before + 1);
    }
}

#[test]
fn reset_brings_a_deleted_exercise_back_and_leaves_a_shipped_one() {
    let workshop = Workshop::new();
    std::fs::remove_file(workshop.exercise()).unwrap();
    let said = workshop.run("reset 1").good();
    assert!(said.contains("is back as it was shipped"), "{said}");
    assert_eq!(exercise(&workshop), SHIPPED);
    // As git checks it out on Windows.
    std::fs::write(workshop.exercise(), SHIPPED.replace('\n', "\r\n")).unwrap();
    let said = workshop.run("reset 1").good();
    assert!(said.contains("nothing to do"), "{said}");
    assert!(names(&workshop.path(".workshop/kept")).is_empty());
}

/// The link is the reader's, and so is the text that it leads to.
#[cfg(unix)]
#[test]
fn reset_keeps_what_a_link_leads_to() {
    let workshop = Workshop::new();
    workshop.write("mine.rs", "mine");
    std::fs::remove_file(workshop.exercise()).unwrap();
    std::os::unix::fs::symlink("../../../mine.rs", workshop.exercise()).unwrap();
    workshop.run("reset 1").good();
    let kept = names(&workshop.path(".workshop/kept"));
    assert_eq!(
        workshop.read(&format!(".workshop/kept/{}", kept[0])),
        "mine"
    );
    assert_eq!(workshop.read("mine.rs"), "mine");
    assert_eq!(exercise(&workshop), SHIPPED);
}

/// An editor that writes into the file it has opened saves a moment too late: nothing of it is lost.
#[test]
fn reset_keeps_a_save_that_is_on_its_way() {
    use std::io::Write;

    let workshop = Workshop::new();
    std::fs::write(workshop.exercise(), "before\n").unwrap();
    let opened = std::fs::File::options()
        .append(true)
        .open(workshop.exercise());
    workshop.run("reset 1").good();
    opened.unwrap().write_all(b"saved\n").unwrap();
    let kept = names(&workshop.path(".workshop/kept"));
    let kept = workshop.read(&format!(".workshop/kept/{}", kept[0]));
    assert_eq!(kept, "before\nsaved\n");
    assert_eq!(exercise(&workshop), SHIPPED);
}

/// Each of them keeps what it found, under a name of its own.
#[test]
fn resets_at_the_same_time_lose_nothing() {
    let workshop = Workshop::new();
    std::fs::write(workshop.exercise(), "mine").unwrap();
    let resets: Vec<_> = (0..8)
        .map(|_| workshop.command("reset 1").spawn().unwrap())
        .collect();
    for mut reset in resets {
        reset.wait().unwrap();
    }
    let kept = names(&workshop.path(".workshop/kept"));
    let kept = kept
        .iter()
        .map(|name| workshop.read(&format!(".workshop/kept/{name}")));
    assert_eq!(kept.collect::<Vec<_>>(), ["mine"]);
    assert_eq!(exercise(&workshop), SHIPPED);
    assert_eq!(names(&workshop.path(CHAPTER).join("src")).len(), 3);
}

/// `/dev/full` would do for one file, but not for a folder: a limit on the size
/// of files is the full disk that a test can have.
#[cfg(unix)]
#[test]
fn reset_changes_nothing_on_a_full_disk() {
    let workshop = Workshop::new();
    let mine = "//! Mine.\n".repeat(400);
    std::fs::write(workshop.exercise(), &mine).unwrap();
    workshop.write(
        &format!("{CHAPTER}/exercise-intro.md"),
        &"Think first.\n".repeat(400),
    );
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" reset 1"])
        .arg(env!("CARGO_BIN_EXE_cargo-workshop"));
    let said = Ran::of(limited.current_dir(workshop.path(""))).refused(1);
    assert!(said.contains("so nothing was changed"), "{said}");
    assert_eq!(exercise(&workshop), mine);
    assert!(names(&workshop.path(".workshop/kept")).is_empty());
}

#[test]
fn the_solution_is_a_diff_that_git_can_apply() {
    let workshop = Workshop::new();
    let diff = workshop.run("solution 1").good();
    assert!(
        diff.starts_with("--- a/chapters/1-small/src/exercise.rs\n+++ b/"),
        "{diff}"
    );
    assert!(diff.contains("\n@@ -3,5 +3,5 @@\n"), "{diff}");
    assert!(diff.contains("-    1 + 1\n+    2\n"), "{diff}");
    assert!(!diff.contains("Exercise"), "{diff}");
    assert!(
        !diff.contains('\u{1b}'),
        "colours belong on terminals: {diff}"
    );
    workshop.write("solution.patch", &diff);
    let applied = std::process::Command::new("git")
        .args(["apply", "solution.patch"])
        .current_dir(workshop.path(""))
        .output()
        .unwrap();
    assert!(applied.status.success(), "{applied:?}");
    let exercise = exercise(&workshop);
    assert_eq!(exercise.lines().last(), SOLUTION.lines().last());
    let said = workshop.run("solution 1").good();
    assert!(said.contains("is the solution's already"), "{said}");
}

#[test]
fn a_missing_solution_is_a_sentence() {
    let workshop = Workshop::new();
    std::fs::remove_file(workshop.path(CHAPTER).join("src/solution.rs")).unwrap();
    let said = workshop.run("solution 1").refused(2);
    assert!(said.contains("git restore"), "{said}");
}
