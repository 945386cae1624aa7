//! The wrong folder, a damaged file, and what the machine lacks.

use crate::workshop::{CHAPTER, Workshop};
use terminal::testing::Ran;

#[test]
fn outside_the_workshop_one_is_told_to_go_inside() {
    let workshop = Workshop::new();
    let elsewhere = tempfile::tempdir().unwrap();
    for words in ["", "hint 1", "reset 1", "steps", "setup", "doctor"] {
        let said = Ran::of(workshop.command(words).current_dir(&elsewhere)).refused(2);
        assert!(said.contains("not inside the workshop"), "{said}");
    }
}

#[test]
fn a_folder_below_the_root_will_do() {
    let workshop = Workshop::new();
    let below = workshop.path(CHAPTER).join("src");
    Ran::of(workshop.command("reset 1").current_dir(below)).good();
}

#[test]
fn a_chapter_file_that_is_damaged_is_named() {
    let workshop = Workshop::new();
    workshop.write(
        &format!("{CHAPTER}/chapter.toml"),
        "chapter = 1\nminutes =\n",
    );
    let said = workshop.run("").refused(2);
    assert!(said.contains("chapters/1-small/chapter.toml"), "{said}");
}

/// Cargo's and the compiler's words for it come from a stand-in.
#[cfg(unix)]
#[test]
fn what_the_machine_lacks_is_told_in_a_sentence_and_blames_no_code() {
    let full = r#"echo '{"reason":"compiler-message","message":{"level":"error","rendered":"error: failed to write: No space left on device (os error 28)"}}'"#;
    let network = "echo 'warning: spurious network error (3 tries remaining): [6] Could not resolve host' >&2";
    let read_only =
        "echo 'error: failed to open: target/.cargo-lock: Read-only file system (os error 30)' >&2";
    for (script, words) in [
        (full, "the disk is full"),
        (network, "go online once"),
        (read_only, "CARGO_TARGET_DIR"),
    ] {
        for command in ["check 1", "prove 1 --no-profiles"] {
            let workshop = Workshop::new();
            workshop.write(
                "reference/seed-figures.toml",
                include_str!("../../../../reference/seed-figures.toml"),
            );
            let cargo = workshop.stand_in("cargo", &format!("{script}; exit 101"));
            let said = Ran::of(workshop.command(command).env("CARGO", cargo));
            assert_eq!(said.code, Some(1), "{command}: {said:?}");
            let last = said.err.lines().last().unwrap_or_default();
            assert!(
                last.starts_with("error: chapter1 cannot be compiled"),
                "{said:?}"
            );
            assert!(last.contains(words), "{said:?}");
            assert!(said.out.is_empty(), "{said:?}");
        }
    }
}

/// Without git nobody can say what else was changed, and the grade does not need it.
#[cfg(unix)]
#[test]
fn a_check_needs_no_git() {
    let workshop = Workshop::new();
    let refusing = r#"echo '{"reason":"compiler-message","message":{"level":"error","rendered":"no"}}'; exit 101"#;
    let cargo = workshop.stand_in("cargo", refusing);
    let empty = workshop.path("nothing");
    std::fs::create_dir_all(&empty).unwrap();
    let said = Ran::of(
        workshop
            .command("check 1")
            .env("CARGO", cargo)
            .env("PATH", empty),
    );
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("chapter 1: FAILED"), "{said:?}");
}
