//! `src/llms.txt` lists the book's pages for language models, as llmstxt.org describes.

use std::fmt::Write as _;
use std::fs;

use crate::root;

/// `UPDATE_EXPECT=1 cargo test -p workshop --test repository llms` writes it.
#[test]
fn llms_txt_lists_the_pages_of_the_summary() {
    let book = root().join("src");
    let summary = fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    let config = fs::read_to_string(root().join("book.toml")).unwrap();
    let right = llms(&config, &summary);
    let file = book.join("llms.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(file, right).unwrap();
        return;
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    assert_eq!(
        found, right,
        "the summary was changed: UPDATE_EXPECT=1 cargo test -p workshop --test repository llms"
    );
}

/// Returns the list: the book's title and description, and its parts with links to their pages as mdBook builds them.
fn llms(config: &str, summary: &str) -> String {
    let mut list = format!(
        "# {}\n\n> {}.\n",
        value(config, "title"),
        value(config, "description")
    );
    for line in summary.lines().skip(1) {
        if let Some(part) = line.strip_prefix("# ") {
            let _ = writeln!(list, "\n## {part}\n");
        }
        let Some((title, page)) = link(line) else {
            continue;
        };
        if !line.trim_start().starts_with('-') {
            list += "\n";
        }
        let _ = writeln!(list, "- [{title}]({})", page.replace(".md", ".html"));
    }
    list
}

/// Returns the title and the file of a line such as `- [Title](page.md)`.
fn link(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once('[')?;
    let (title, rest) = rest.split_once("](")?;
    Some((title, rest.strip_suffix(')')?))
}

/// Returns the text of a key of `book.toml`.
fn value<'a>(config: &'a str, key: &str) -> &'a str {
    let mut lines = config.lines();
    let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
    found.and_then(|text| text.strip_suffix('"')).unwrap()
}

#[test]
fn the_list_has_parts_and_pages() {
    let config = "title = \"A book\"\ndescription = \"On pages\"\n";
    let summary =
        "# Summary\n\n[Front](front.md)\n\n# Start\n\n- [One](a/one.md)\n  - [Two](a/two.md)\n";
    assert_eq!(
        llms(config, summary),
        "# A book\n\n> On pages.\n\n- [Front](front.html)\n\n## Start\n\n- [One](a/one.html)\n- [Two](a/two.html)\n"
    );
}
