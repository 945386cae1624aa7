//! Hints one at a time, and what is remembered of them.

use crate::results::described;
use crate::workshop::{CHAPTER, Workshop};
#[cfg(unix)]
use terminal::testing::Ran;
use terminal::testing::names;

#[test]
fn hints_come_one_at_a_time_and_then_the_solution() {
    let workshop = Workshop::new();
    let first = workshop.run("hint 1").good();
    assert!(first.starts_with("Hint 1 of 2: One?\n\nLook.\n"), "{first}");
    assert!(!first.contains("Two?"), "{first}");
    let second = workshop.run("hint 1").good();
    assert!(second.starts_with("Hint 2 of 2: Two?"), "{second}");
    assert!(second.contains("cargo workshop solution 1"), "{second}");
    let none = workshop.run("hint 1").good();
    assert!(none.contains("--upto 2"), "{none}");
    let again = workshop.run("hint 1 --upto 1 --format json").json();
    described(&again);
    assert_eq!(
        again,
        serde_json::json!({
            "schema": "hint/1", "chapter": 1, "seen": 2, "total": 2,
            "hints": [{"number": 1, "title": "One?", "text": "Look."}],
        })
    );
}

#[test]
fn a_damaged_progress_file_is_set_aside_and_so_is_the_next() {
    let workshop = Workshop::new();
    let damaged = ["{\"chapters\": {\"1\": ", "no JSON"];
    for text in damaged {
        workshop.write(".workshop/progress.json", text);
        let said = workshop.run("hint 1");
        assert!(said.err.contains("is damaged"), "{said:?}");
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
        assert!(said.good().starts_with("Hint 1 of 2"));
    }
    for (name, text) in ["progress", "progress-2"].into_iter().zip(damaged) {
        let aside = format!(".workshop/{name}.json.damaged");
        assert_eq!(workshop.read(&aside), text);
    }
    let second = workshop.run("hint 1").good();
    assert!(second.starts_with("Hint 2 of 2"), "{second}");
}

/// The disk is full: nothing but the words is lost. `/dev/full` is Linux's.
#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_told_in_a_sentence() {
    let workshop = Workshop::new();
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let mut hint = workshop.command("hint 1");
    let said = hint.stdout(full()).output().unwrap();
    let words = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(2), "{words}");
    assert!(
        words.starts_with("error: standard output cannot"),
        "{words}"
    );
    assert!(workshop.run("hint 1").good().starts_with("Hint 2 of 2"));
    hint.stderr(full());
    assert_eq!(hint.status().unwrap().code(), Some(2));
}

#[test]
fn a_state_folder_that_cannot_be_written_costs_the_memory_and_no_more() {
    let workshop = Workshop::new();
    workshop.write(".workshop", "a file where the folder should be");
    for _ in 0..2 {
        let said = workshop.run("hint 1");
        assert!(said.err.contains("progress is not remembered"), "{said:?}");
        assert!(said.good().starts_with("Hint 1 of 2"));
    }
    assert!(workshop.run("").good().contains("not begun"));
}

#[test]
fn the_overview_tells_the_smallest_next_step() {
    let workshop = Workshop::new();
    let said = workshop.run("").good();
    assert!(said.contains(" min  not begun"), "{said}");
    assert!(said.contains("chapters/1-small/src/exercise.rs"), "{said}");

    workshop.run("hint 1").good();
    let said = workshop.run("").good();
    assert!(
        said.contains("exercise not changed yet, hints 1 of 2"),
        "{said}"
    );

    std::fs::write(workshop.exercise(), "//! Mine.\n").unwrap();
    let said = workshop.run("").good();
    assert!(said.contains("edited, not checked yet"), "{said}");
    assert!(said.ends_with("cargo workshop check 1\n"), "{said}");
}

#[test]
fn verdicts_show_in_the_overview_and_go_stale_with_an_edit() {
    let workshop = Workshop::new();
    workshop.write(
        ".workshop/progress.json",
        r#"{"chapters": {"1": {"hints": 2, "check": {"kind": "failed", "reason": "slow",
            "at": "2026-01-01T00:00:00Z", "exercise": "0"},
            "proof": {"kind": "proved", "reason": "seen", "at": "2026-01-01T00:00:00Z"}}}}"#,
    );
    let said = workshop.run("--format json").json();
    described(&said);
    let chapter = &said["chapters"][0];
    assert_eq!(chapter["check"], "failed");
    assert_eq!(chapter["proof"], "proved");
    assert_eq!(chapter["edited_since_check"], true);
    assert_eq!(chapter["hints_seen"], 2);
    let said = workshop.run("").good();
    assert!(said.contains("last check failed, edited since"), "{said}");
    assert!(said.contains("claim proved here"), "{said}");
}

#[test]
fn predictions_are_kept_and_shown() {
    let workshop = Workshop::new();
    let none = workshop.run("predict 1").good();
    assert!(none.contains("cargo workshop predict 1 --gain"), "{none}");
    let said = workshop
        .run("predict 1 --gain 100-5,000 --problem 1 --fix 600")
        .good();
    assert!(said.contains("by a factor of: 100 to 5,000"), "{said}");
    assert!(said.contains("problem: 1\n"), "{said}");
    // What else is remembered does not touch them.
    workshop.run("hint 1").good();
    workshop.run("predict 1 --gain 20").good();
    let said = workshop.run("predict 1 --format json").json();
    described(&said);
    let gains: Vec<_> = said["predictions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["gain"]["low"].as_f64())
        .collect();
    assert_eq!(gains, [Some(100.0), Some(20.0)]);
    assert!(workshop.run("").good().contains("predicted"));
    for _ in 0..25 {
        workshop.run("predict 1 --fix 3").good();
    }
    let said = workshop.run("predict 1 --format json").json();
    let kept = said["predictions"].as_array().unwrap();
    assert_eq!(kept.len(), 20);
    assert_eq!(kept[0]["gain"]["low"], 100.0);
}

#[test]
fn a_prediction_that_cannot_be_kept_is_an_error() {
    let workshop = Workshop::new();
    workshop.write(".workshop", "a file where the folder should be");
    workshop.run("predict 1 --gain 20").refused(1);
}

#[test]
fn a_chapter_without_hints_says_how_they_are_written() {
    let workshop = Workshop::new();
    workshop.write(&format!("{CHAPTER}/hints.md"), "nothing\n");
    let said = workshop.run("hint 1").refused(2);
    assert!(said.contains("`## title`"), "{said}");
    assert!(names(&workshop.path(".workshop")).is_empty());
}

/// Each reads what is remembered, changes its own part and writes all of it.
#[test]
fn two_commands_at_once_both_remember() {
    let workshop = Workshop::new();
    for file in [
        "hints.md",
        "chapter.toml",
        "exercise-intro.md",
        "src/problem.rs",
        "src/exercise.rs",
    ] {
        let text = workshop.read(&format!("{CHAPTER}/{file}"));
        workshop.write(&format!("chapters/2-small/{file}"), &text);
    }
    for _ in 0..20 {
        let both = ["hint 1 --upto 1", "hint 2 --upto 1"];
        let both = both.map(|words| {
            let mut hint = workshop.command(words);
            hint.stdout(std::process::Stdio::null()).spawn().unwrap()
        });
        for mut hint in both {
            assert!(hint.wait().unwrap().success());
        }
        let file = ".workshop/progress.json";
        let progress: serde_json::Value = serde_json::from_str(&workshop.read(file)).unwrap();
        for chapter in ["1", "2"] {
            assert_eq!(progress["chapters"][chapter]["hints"], 1, "{progress}");
        }
        std::fs::remove_file(workshop.path(file)).unwrap();
    }
}

/// The stand-in for cargo is an editor, too: nobody can tell which version was refused.
#[cfg(unix)]
#[test]
fn a_grade_of_an_exercise_that_was_edited_meanwhile_is_not_remembered() {
    let refusing = r#"echo '{"reason":"compiler-message","message":{"level":"error","rendered":"no"}}'; exit 101"#;
    let editing = format!("echo '// saved' >> {CHAPTER}/src/exercise.rs; {refusing}");
    for (script, is_remembered) in [(refusing, true), (&*editing, false)] {
        let workshop = Workshop::new();
        let cargo = workshop.stand_in("cargo", script);
        let said = Ran::of(workshop.command("check 1").env("CARGO", cargo));
        assert_eq!(said.code, Some(1), "{said:?}");
        let remembered = workshop.path(".workshop/progress.json").exists();
        assert_eq!(remembered, is_remembered, "{said:?}");
        assert_ne!(said.err.contains("check again"), is_remembered, "{said:?}");
    }
}
