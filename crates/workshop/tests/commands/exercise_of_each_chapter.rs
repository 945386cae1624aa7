//! The chapters of this repository keep what the commands rely on.

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `reset` on the real chapters would say otherwise; a copy of their files is
/// enough to ask, and safe when a reader runs the tests on an edited exercise.
#[test]
fn the_committed_exercise_is_the_generated_one() {
    let copy = tempfile::tempdir().unwrap();
    std::fs::write(copy.path().join("Cargo.toml"), "[workspace]\n").unwrap();
    let mut chapters = Vec::new();
    for entry in std::fs::read_dir(repository().join("chapters")).unwrap() {
        let from = entry.unwrap().path();
        if !from.join("chapter.toml").exists() {
            continue;
        }
        let name = from.file_name().unwrap().to_str().unwrap().to_owned();
        let to = copy.path().join("chapters").join(&name);
        std::fs::create_dir_all(to.join("src")).unwrap();
        for file in ["chapter.toml", "exercise-intro.md", "src/problem.rs"] {
            std::fs::copy(from.join(file), to.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        }
        std::fs::write(to.join("src/exercise.rs"), committed(&name)).unwrap();
        chapters.push(name);
    }
    assert!(!chapters.is_empty());
    for name in chapters {
        let number = name.split('-').next().unwrap();
        let said = Command::new(env!("CARGO_BIN_EXE_workshop"))
            .args(["reset", number])
            .current_dir(copy.path())
            .output()
            .unwrap();
        let out = String::from_utf8(said.stdout).unwrap();
        assert!(
            out.contains("is as it was shipped; nothing to do"),
            "chapters/{name}/src/exercise.rs differs from problem.rs under exercise-intro.md: \
             run `cargo workshop reset {number}` and commit it ({out})"
        );
    }
}

/// The exercise as committed, or as it lies there where git cannot tell.
fn committed(chapter: &str) -> Vec<u8> {
    let file = format!("chapters/{chapter}/src/exercise.rs");
    Command::new("git")
        .args(["show", &format!("HEAD:{file}")])
        .current_dir(repository())
        .output()
        .ok()
        .filter(|shown| shown.status.success())
        .map_or_else(
            || std::fs::read(repository().join(&file)).unwrap(),
            |shown| shown.stdout,
        )
}
