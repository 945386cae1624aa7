//! A source file holds one idea, and one idea is not so long.

use super::Broken;
use crate::commands::test::repository::Text;

/// Lines that a source file may have.
const LINES: usize = 400;
const SOURCES: [&str; 5] = [".rs", ".py", ".js", ".css", ".sh"];

pub(in crate::commands::test) fn broken(texts: &[Text]) -> Vec<Broken> {
    texts
        .iter()
        .filter(|text| SOURCES.iter().any(|end| text.path.ends_with(end)))
        .filter_map(|Text { path, text }| {
            let lines = text.lines().count();
            (lines > LINES).then(|| {
                let what = format!("{lines} lines, more than {LINES}: split it by ideas");
                Broken::in_file(path, what)
            })
        })
        .collect()
}
