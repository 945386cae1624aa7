//! Every chapter has the parts that the commands and the book rely on.

use super::Broken;
use crate::chapters::Workshop;
use crate::exit::CliError;
use crate::hints;

/// What is in a chapter's own folder.
const IN_FOLDER: [&str; 8] = [
    "chapter.toml",
    "cheats.toml",
    "exercise-intro.md",
    "hints.md",
    "src/main.rs",
    "src/problem.rs",
    "src/exercise.rs",
    "src/solution.rs",
];

pub(in crate::commands::test) fn broken(
    tracked: &[&str],
    workshop: &Workshop,
) -> Result<Vec<Broken>, CliError> {
    let mut broken = Vec::new();
    let mut want = |folder: &str, part: &str, there: bool| {
        if !there {
            broken.push(Broken::in_file(folder, format!("{part} is missing")));
        }
    };
    // A folder that has lost its chapter.toml is a chapter all the same.
    let mut folders: Vec<&str> = tracked
        .iter()
        .filter_map(|path| path.strip_prefix("chapters/")?.split_once('/'))
        .map(|(name, _)| name)
        .collect();
    folders.dedup();
    for name in folders {
        let folder = format!("chapters/{name}");
        for part in IN_FOLDER {
            want(
                &folder,
                part,
                tracked.contains(&&*format!("{folder}/{part}")),
            );
        }
        let tests = format!("{folder}/tests/");
        let tested = tracked.iter().any(|path| path.starts_with(&tests));
        want(&folder, "a test under tests/", tested);
        let number = name.split('-').next().unwrap_or_default();
        for part in [
            format!("k6/chapter{number}.js"),
            format!("locust/chapter{number}.py"),
            format!("flamegraphs/chapter{number}/capture.json"),
        ] {
            want(&folder, &part, tracked.contains(&&*part));
        }
        let pages = format!("src/chapter{number}");
        let page = tracked.iter().any(|path| path.starts_with(&pages));
        want(&folder, &format!("a page {pages}"), page);
    }
    for chapter in workshop.chapters()? {
        let folder = workshop.shown(&chapter.folder);
        want(
            &folder,
            "`[[steps]]` in chapter.toml",
            !chapter.file()?.steps.is_empty(),
        );
        hints::read(&chapter)?;
    }
    Ok(broken)
}
