//! Pages as paragraphs and sentences, each with the line it begins in.

/// What a condition's comment begins with.
const HOLDS: &str = "holds:";

/// Exempts a paragraph that compares and speaks of no data.
const NO_FIGURE: &str = "no figure";

/// Words that compare. What they say of a figure can be checked, and often is wrong.
const COMPARATIVE: &[&str] = &[
    "almost",
    "barely",
    "best",
    "better",
    "bigger",
    "cheaper",
    "constant",
    "double",
    "doubled",
    "doubles",
    "equal",
    "equally",
    "fall",
    "falls",
    "faster",
    "fastest",
    "fell",
    "fewer",
    "fewest",
    "grew",
    "grow",
    "grows",
    "half",
    "halved",
    "halves",
    "hardly",
    "higher",
    "highest",
    "identical",
    "larger",
    "largest",
    "least",
    "less",
    "longer",
    "longest",
    "lower",
    "lowest",
    "more",
    "most",
    "nearly",
    "quicker",
    "rise",
    "rises",
    "rose",
    "same",
    "shorter",
    "shortest",
    "shrank",
    "shrinks",
    "slower",
    "slowest",
    "smaller",
    "smallest",
    "twice",
    "worse",
    "worst",
];

/// A run of prose that a page shows as one block.
#[derive(Debug, PartialEq)]
pub(super) struct Paragraph {
    pub(super) sentences: Vec<Sentence>,
    pub(super) conditions: Vec<Condition>,
    pub(super) is_exempt: bool,
    /// What is wrong with a comment, and its line.
    pub(super) trouble: Option<(usize, &'static str)>,
}

/// Markdown ends a paragraph where a line begins with a comment.
const SPLITS: &str = "a comment at the beginning of a line ends the paragraph; put it behind the \
                      sentence, on the same line";

const OPEN: &str = "a comment does not end in its paragraph; write `-->` behind it";

const MISSPELT: &str = "a comment is neither `holds: …` nor `no figure`; correct its first word";

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sentence {
    pub(super) line: usize,
    /// Its words between single spaces, without comments and tags.
    pub(super) text: String,
}

#[derive(Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) line: usize,
    pub(super) expression: String,
    /// What it follows.
    pub(super) sentence: String,
}

impl Sentence {
    pub(super) fn compares(&self) -> bool {
        // A length of time, and no comparison.
        let text = self.text.replace("half a second", "");
        let words = text.split(|c: char| !c.is_alphabetic());
        words
            .map(str::to_lowercase)
            .any(|word| COMPARATIVE.contains(&&*word))
    }
}

/// The prose of a page: neither code, headings, tables nor lines of tags alone. `shown` gives what is
/// in place of an include.
pub(super) fn paragraphs(page: &str, shown: impl Fn(&str) -> String) -> Vec<Paragraph> {
    let mut paragraphs = Vec::new();
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut apart = Vec::new();
    let mut fence = None;
    let mut end = |block: &mut Vec<(usize, &str)>| {
        if !block.is_empty() {
            paragraphs.push(paragraph(block, &shown));
            block.clear();
        }
    };
    for (number, line) in (1..).zip(page.lines()) {
        let text = line.trim_start_matches(['>', ' ']).trim_end();
        if let Some(mark) = fence {
            fence = (!text.starts_with(mark)).then_some(mark);
            continue;
        }
        if let Some(mark) = ["```", "~~~"]
            .into_iter()
            .find(|mark| text.starts_with(mark))
        {
            end(&mut block);
            fence = Some(mark);
        } else if text.is_empty() {
            end(&mut block);
        } else if text.starts_with(['#', '|']) {
            end(&mut block);
            // Neither has sentences, but a condition may stand there.
            let mut found = paragraph(&[(number, text)], &shown);
            found.sentences.clear();
            apart.push(found);
        } else {
            if is_item(text) {
                end(&mut block);
            }
            block.push((number, text));
        }
    }
    end(&mut block);
    paragraphs.extend(apart);
    paragraphs
}

/// Whether a list's item begins.
fn is_item(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", ". ", ") "]
        .iter()
        .any(|mark| text.starts_with(mark))
}

fn paragraph(block: &[(usize, &str)], shown: &impl Fn(&str) -> String) -> Paragraph {
    let mut found = Paragraph {
        sentences: Vec::new(),
        conditions: Vec::new(),
        is_exempt: false,
        trouble: None,
    };
    let text: Vec<&str> = block.iter().map(|(_, line)| *line).collect();
    let text = text.join("\n");
    let mut rest = text.as_str();
    let line_of = |rest: &str| block[text[..text.len() - rest.len()].matches('\n').count()].0;
    let mut line = line_of(rest);
    let mut sentence = String::new();
    let close = |sentence: &mut String, line: usize, found: &mut Paragraph| {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        if !words.is_empty() {
            let text = words.join(" ");
            found.sentences.push(Sentence { line, text });
        }
        sentence.clear();
    };
    while let Some(next) = rest.chars().next() {
        if sentence.trim().is_empty() {
            line = line_of(rest);
        }
        if let Some(comment) = rest.strip_prefix("<!--") {
            let parts = comment.split_once("-->");
            if parts.is_none() {
                found.trouble = Some((line_of(rest), OPEN));
            }
            let (inner, after) = parts.unwrap_or((comment, ""));
            let begins_line =
                rest.len() == text.len() || text[..text.len() - rest.len()].ends_with('\n');
            if begins_line && !after.trim().is_empty() {
                found.trouble = Some((line_of(rest), SPLITS));
            }
            let inner = inner.split_whitespace().collect::<Vec<_>>().join(" ");
            found.is_exempt |= inner == NO_FIGURE;
            let is_meant = inner.starts_with("hold") || inner.starts_with("no fig");
            if is_meant && !found.is_exempt && !inner.starts_with(HOLDS) {
                found.trouble = Some((line_of(rest), MISSPELT));
            }
            if let Some(expression) = inner.strip_prefix(HOLDS) {
                let unfinished = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
                let last = found.sentences.last().map(|last| last.text.clone());
                let sentence = if unfinished.is_empty() {
                    last
                } else {
                    Some(unfinished)
                };
                found.conditions.push(Condition {
                    line: line_of(rest),
                    expression: expression.trim().to_owned(),
                    sentence: sentence.unwrap_or_default(),
                });
            }
            rest = after;
        } else if let Some((include, after)) = rest
            .strip_prefix("{{#include ")
            .and_then(|include| include.split_once("}}"))
        {
            sentence.push_str(&shown(include.trim()));
            rest = after;
        } else if let Some((_, after)) = is_tag(rest).then(|| rest.split_once('>')).flatten() {
            rest = after;
        } else {
            sentence.push(next);
            rest = &rest[next.len_utf8()..];
            let ends = sentence
                .trim_end_matches(['*', '_', ')', '"', '\''])
                .ends_with(['.', '?', '!']);
            let is_over = rest.starts_with(char::is_whitespace) || rest.is_empty();
            if ends && is_over {
                close(&mut sentence, line, &mut found);
            }
        }
    }
    close(&mut sentence, line, &mut found);
    found
}

/// `<div …>` or `</div>`, but not `a < b`.
fn is_tag(text: &str) -> bool {
    let mut chars = text.strip_prefix('<').unwrap_or_default().chars();
    chars
        .next()
        .is_some_and(|c| c == '/' || c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(page: &str) -> Vec<Paragraph> {
        paragraphs(page, |include| format!("[{include}]"))
    }

    #[test]
    fn sentences_have_lines_and_no_markup() {
        let page = "# More\n\nOne is *faster*. Two\nis {{#include a.md:b}} <b>ms</b>.\n\n```\nmore\n```\n\
                    | more |\n- Three is the same\n- four";
        let found: Vec<_> = of(page)
            .into_iter()
            .flat_map(|found| found.sentences)
            .collect();
        let shown = found
            .iter()
            .map(|found| (found.line, &*found.text, found.compares()));
        let shown: Vec<_> = shown.collect();
        assert_eq!(
            shown,
            [
                (3, "One is *faster*.", true),
                (3, "Two is [a.md:b] ms.", false),
                (10, "- Three is the same", true),
                (11, "- four", false),
            ]
        );
    }

    #[test]
    fn a_condition_belongs_to_the_sentence_before_it() {
        let page =
            "It fell. It is less. <!-- holds: a < b -->\nMore\n(so <!-- holds:\n  c > d --> much).";
        let [found] = &of(page)[..] else { panic!() };
        let condition = |line, expression: &str, sentence: &str| Condition {
            line,
            expression: expression.to_owned(),
            sentence: sentence.to_owned(),
        };
        let expected = [
            condition(1, "a < b", "It is less."),
            condition(3, "c > d", "More (so"),
        ];
        assert_eq!(found.conditions, expected);
        assert_eq!(found.trouble, None);
        assert!(!found.is_exempt);
    }

    #[test]
    fn a_comment_that_splits_its_paragraph_is_found() {
        let trouble = |page: &str| of(page)[0].trouble;
        assert_eq!(
            trouble("It fell.\n<!-- holds: a -->\nMore."),
            Some((2, SPLITS))
        );
        assert_eq!(trouble("It fell.\n<!-- no figure -->"), None);
        assert_eq!(trouble("It fell. <!-- hold: a -->"), Some((1, MISSPELT)));
        assert_eq!(of("| 1 | <!-- holds: a < b --> |")[0].conditions.len(), 1);
        assert!(of("It fell.\n<!-- no figure -->")[0].is_exempt);
    }
}
