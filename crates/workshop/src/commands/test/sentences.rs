//! What the book says of its figures: conditions beside sentences hold, and sentences that compare
//! without a condition become fewer.
//!
//! `<!-- holds: chapter4.in_tls < chapter4.effect -->` follows a sentence, in its paragraph. Nobody
//! sees it in the book, and a new record that makes the sentence wrong fails the check.

mod condition;
mod figures;
mod prose;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use self::condition::Conditions;
use self::figures::Figures;
use self::prose::{Paragraph, Sentence, paragraphs};
use super::context::Context;
use crate::exit::CliError;

/// How many sentences of each page compare without a condition.
const ALLOWED: &str = "tests/sentences.toml";

const HEAD: &str = "\
# Sentences that compare (\"more\", \"nearly\", \"same\", …) and carry no condition, by page. A number here
# only falls: `cargo workshop test sentences` says which sentences, and how a condition is written.
";

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    sentences: BTreeMap<String, usize>,
}

/// What a look at every page found.
#[derive(Debug, Default)]
struct Found {
    /// A line each, page and line first.
    wrong: Vec<String>,
    holding: usize,
    /// Sentences that compare without a condition, by page.
    bare: BTreeMap<String, Vec<Sentence>>,
}

pub(super) fn hold(context: &Context<'_>) -> Result<(), CliError> {
    let root = context.workshop.root();
    let found = look(root)?;
    let list = context.folder.join("sentences.txt");
    crate::files::replace(&list, found.list(|_| true))?;
    let numbers = context.folder.join("sentences.toml");
    crate::files::replace(&numbers, found.as_allowed())?;
    let wrong = found.wrong(&allowed(root)?);
    let (list, numbers) = (
        context.workshop.shown(&list),
        context.workshop.shown(&numbers),
    );
    if wrong.is_empty() {
        let bare: usize = found.bare.values().map(Vec::len).sum();
        return context.note(&format!(
            "{} conditions hold, {bare} sentences have none: {list}",
            found.holding
        ));
    }
    Err(CliError::bad(format!(
        "{}\nPut `<!-- holds: chapter1.effect > 300 -->` behind a sentence that compares figures, and \
         `<!-- no figure -->` into a paragraph that speaks of none. All sentences without a condition \
         stand in {list}, the numbers as they are now in {numbers}.",
        wrong.join("\n"),
    )))
}

/// Every page of the book, and the README.
fn look(root: &Path) -> Result<Found, CliError> {
    let figures = Arc::new(Figures::read(&root.join("flamegraphs"))?);
    let conditions = Conditions::new(Arc::clone(&figures));
    // The method is a page of the book as well.
    let others = ["README.md", "METHODOLOGY.md"].map(|name| root.join(name));
    let mut pages: Vec<PathBuf> = others.into_iter().filter(|page| page.is_file()).collect();
    find(&root.join("src"), &mut pages)?;
    pages.sort_unstable();
    let mut found = Found::default();
    for page in pages {
        let text = fs::read_to_string(&page).map_err(CliError::because(format!(
            "{} cannot be read",
            page.display()
        )))?;
        let name = page.strip_prefix(root).unwrap_or(&page);
        let name = name.display().to_string().replace('\\', "/");
        let shown = |include: &str| {
            let (path, anchor) = include.split_once(':').unwrap_or((include, ""));
            figures.included(path, anchor).unwrap_or("…").to_owned()
        };
        let has_figures = has_figures(&text);
        for paragraph in paragraphs(&text, shown) {
            found.take(&name, paragraph, has_figures, &conditions);
        }
    }
    Ok(found)
}

/// Whether a page shows something that was measured.
fn has_figures(page: &str) -> bool {
    let paths = page.split("flamegraphs/").skip(1);
    let mut ends = paths.filter_map(|path| path.split(['"', '}', ')', ':']).next());
    ends.any(|path| {
        let kind = Path::new(path).extension();
        kind.is_some_and(|kind| kind == "md" || kind == "svg")
    })
}

impl Found {
    fn take(&mut self, page: &str, paragraph: Paragraph, has_figures: bool, by: &Conditions) {
        if let Some((line, what)) = paragraph.trouble {
            self.wrong.push(format!("{page}:{line}: {what}"));
        }
        for condition in &paragraph.conditions {
            match by.check(&condition.expression) {
                Ok(()) => self.holding += 1,
                Err(why) => self.wrong.push(format!(
                    "{page}:{}: `{}` {why}, where the page says: {}",
                    condition.line, condition.expression, condition.sentence
                )),
            }
        }
        if has_figures && paragraph.conditions.is_empty() && !paragraph.is_exempt {
            let bare = paragraph.sentences.into_iter().filter(Sentence::compares);
            let mut bare = bare.peekable();
            if bare.peek().is_some() {
                self.bare.entry(page.to_owned()).or_default().extend(bare);
            }
        }
    }

    /// All that is wrong, the pages included that have more or fewer sentences than is `allowed`.
    fn wrong(&self, allowed: &Allowed) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        let pages = self.bare.keys().chain(allowed.sentences.keys());
        let mut pages: Vec<&String> = pages.collect();
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            let bare = self.bare.get(page).map_or(0, Vec::len);
            let allowed = allowed.sentences.get(page).copied().unwrap_or(0);
            if bare > allowed {
                wrong.push(format!(
                    "{page}: {bare} sentences compare and carry no condition, where {ALLOWED} allows \
                     {allowed}:\n{}",
                    self.list(|of| of == page).trim_end()
                ));
            } else if bare < allowed {
                wrong.push(format!(
                    "{page}: {bare} sentences compare and carry no condition; lower its {allowed} in \
                     {ALLOWED}"
                ));
            }
        }
        wrong
    }

    /// Sentences that compare without a condition, a line each.
    fn list(&self, is_chosen: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        for (page, sentences) in self.bare.iter().filter(|(page, _)| is_chosen(page)) {
            for sentence in sentences {
                let _ = writeln!(text, "  {page}:{}: {}", sentence.line, sentence.text);
            }
        }
        text
    }

    fn as_allowed(&self) -> String {
        let mut text = format!("{HEAD}\n[sentences]\n");
        for (page, sentences) in &self.bare {
            let _ = writeln!(text, "\"{page}\" = {}", sentences.len());
        }
        text
    }
}

fn allowed(root: &Path) -> Result<Allowed, CliError> {
    let file = root.join(ALLOWED);
    // Without the file nothing is allowed.
    let text = fs::read_to_string(&file).unwrap_or("[sentences]\n".to_owned());
    toml::from_str(&text).map_err(CliError::because(format!("{ALLOWED} cannot be read")))
}

/// Pages, but not the captures, which are a link.
fn find(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let cannot = || CliError::because(format!("{} cannot be read", folder.display()));
    for entry in fs::read_dir(folder).map_err(cannot())? {
        let entry = entry.map_err(cannot())?;
        let (kind, path) = (entry.file_type().map_err(cannot())?, entry.path());
        if kind.is_dir() {
            find(&path, pages)?;
        } else if kind.is_file() && path.extension() == Some("md".as_ref()) {
            pages.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_says_what_its_records_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let wrong = look(&root).unwrap().wrong(&allowed(&root).unwrap());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_false_condition_and_one_sentence_too_many_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let anchor = |name, value| {
            format!("<!-- ANCHOR: {name} -->\n{value}\n<!-- ANCHOR_END: {name} -->\n")
        };
        let values = anchor("tls", "68.7") + &anchor("effect", "71.0");
        write("flamegraphs/chapter4/values.md", &values);
        write("README.md", "It is faster, and nobody counted.\n");
        let page = "With TLS it is {{#include ../flamegraphs/chapter4/values.md:tls}} times, \
                    and the gain\ngrows. <!-- holds: chapter4.tls > chapter4.effect -->\n\nIt is \
                    more.\n\nMore words. <!-- no figure -->\n";
        write("src/chapter4/tls.md", page);
        let found = look(folder.path()).unwrap();
        let [condition, sentences] = &found.wrong(&Allowed::default())[..] else {
            panic!("{found:?}");
        };
        assert_eq!(
            condition,
            "src/chapter4/tls.md:2: `chapter4.tls > chapter4.effect` is false: \
             chapter4.effect = 71.0, chapter4.tls = 68.7, where the page says: With TLS it is 68.7 \
             times, and the gain grows."
        );
        assert!(sentences.contains("1 sentences"), "{sentences}");
        let lowered: Allowed = toml::from_str(&found.as_allowed()).unwrap();
        assert_eq!(found.wrong(&lowered).len(), 1);
        let higher = "[sentences]\n\"src/chapter4/tls.md\" = 2\n\"src/gone.md\" = 1\n";
        let wrong = found.wrong(&toml::from_str(higher).unwrap());
        assert_eq!(
            wrong
                .iter()
                .filter(|line| line.contains("lower its"))
                .count(),
            2
        );
    }
}
