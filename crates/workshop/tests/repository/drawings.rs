//! Pages say the same about a box as the drawings on them.

use std::fs;

use crate::figures::Figures;
use crate::{pages, root};

/// A still picture that a page shows.
struct Drawing {
    /// Its chapter, variant and kind, such as `chapter5.problem.cpu`.
    name: String,
    /// Texts in its boxes and of its call-outs.
    labels: Vec<String>,
}

#[test]
fn a_page_says_of_a_box_what_its_drawing_says() {
    let figures = Figures::read(&root().join("flamegraphs"));
    let mut wrong = Vec::new();
    for (page, text) in pages::all() {
        let drawings = drawings(&text);
        for drawing in &drawings {
            wrong.extend(figure_of_another_box(&text, drawing, &figures));
        }
        if drawings.is_empty() {
            continue;
        }
        for name in boxes_named(&text) {
            let is_labelled = |drawing: &Drawing| {
                let mut labels = drawing.labels.iter();
                labels.any(|label| is_name(label, name))
            };
            if !drawings.iter().any(is_labelled) {
                wrong.push(format!(
                    "{}: no drawing on this page labels a box `{name}`: say its label, or point at it in the \
                     chapter's [[stills]]",
                    page.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The still pictures of chapters on a page.
fn drawings(text: &str) -> Vec<Drawing> {
    let mut drawings = Vec::new();
    for rest in text.split("flamegraphs/gallery/chapter").skip(1) {
        let Some((name, _)) = rest.split_once(".svg\"") else {
            continue;
        };
        let file = format!("flamegraphs/gallery/chapter{name}.svg");
        let svg = fs::read_to_string(root().join(&file)).unwrap();
        drawings.push(Drawing {
            name: format!("chapter{name}"),
            labels: labels(&svg),
        });
    }
    drawings
}

/// The texts of a drawing, without the numbers of its call-outs.
fn labels(svg: &str) -> Vec<String> {
    let mut labels = Vec::new();
    for rest in svg.split("<text").skip(1) {
        let (_, rest) = rest.split_once('>').unwrap();
        let (label, _) = rest.split_once("</text>").unwrap();
        let label = label.trim_matches(['①', '②', '③', ' ']);
        labels.push(label.replace("&lt;", "<").replace("&gt;", ">"));
    }
    labels
}

/// Returns what is wrong if the page includes the name or the share of a picture's widest top box, and the picture has
/// no such label.
fn figure_of_another_box(text: &str, drawing: &Drawing, figures: &Figures) -> Option<String> {
    let (chapter, kind) = drawing.name.split_once('.').unwrap();
    let stem = format!("{}_top", kind.replace('.', "_"));
    let included = format!("values.md:{}", stem.replace('_', "-"));
    if !text.contains(&included) {
        return None;
    }
    let figure = |name: &str| figures.text(&format!("{chapter}.{name}")).unwrap();
    let name = figure(&stem).trim_matches('`');
    let label = format!("{name}  {}", figure(&format!("{stem}_share")));
    let is_there = drawing.labels.contains(&label);
    (!is_there).then(|| {
        let drawn = &drawing.name;
        format!("{drawn}.svg has no label `{label}`, which a page says: point at that box")
    })
}

/// Returns whether a label, which may be cut off, is of a box with this name.
fn is_name(label: &str, name: &str) -> bool {
    match label.strip_suffix("..") {
        Some(beginning) => beginning.len() > 8 && name.starts_with(beginning),
        None => label
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ','])),
    }
}

/// The boxes that a page names: in bold at the beginning of an item, or after the word.
fn boxes_named(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for start in ["- **`", "box `", "boxes `"] {
        for rest in text.split(start).skip(1) {
            names.extend(rest.split('`').next());
        }
    }
    names
}

#[test]
fn labels_are_compared_whole_or_as_far_as_they_are_drawn() {
    assert!(is_name("app::page  99 %", "app::page"));
    assert!(is_name("app::page, line 3  99 %", "app::page"));
    assert!(is_name("(waiting for the..", "(waiting for the pool)"));
    assert!(!is_name("app::pages", "app::page"));
    assert!(!is_name("app..", "app::page"));
}
