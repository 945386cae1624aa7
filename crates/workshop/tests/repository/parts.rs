//! Every chapter has the parts that the commands and the book rely on.

use std::fs;

use crate::{chapters, root};

#[test]
fn no_chapter_lacks_a_part() {
    let root = root();
    let mut missing = Vec::new();
    for (number, folder) in chapters() {
        let folder = folder.strip_prefix(&root).unwrap().display();
        for part in [
            format!("{folder}/chapter.toml"),
            format!("{folder}/edits.md"),
            format!("{folder}/exercise-intro.md"),
            format!("{folder}/hints.md"),
            format!("{folder}/src/problem.rs"),
            format!("{folder}/src/exercise.rs"),
            format!("{folder}/src/solution.rs"),
            format!("{folder}/tests/contract.rs"),
            format!("k6/chapter{number}.js"),
            format!("locust/chapter{number}.py"),
            format!("flamegraphs/chapter{number}/capture.json"),
            format!("src/chapter{number}/predict.md"),
        ] {
            if !root.join(&part).exists() {
                missing.push(part);
            }
        }
        let chapter = fs::read_to_string(root.join(format!("{folder}/chapter.toml")));
        if !chapter.unwrap_or_default().contains("[[steps]]") {
            missing.push(format!("[[steps]] in {folder}/chapter.toml"));
        }
    }
    assert!(missing.is_empty(), "missing: {}", missing.join(", "));
}
