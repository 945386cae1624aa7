//! The page of `/debug/tasks?format=html`: a tree that folds, without a script.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use diagnosis::escaped;
use task_reader::{Group, Level, Report};

use crate::answer::Answer;
use crate::page;

const STYLE: &str = concat!(
    include_str!("../page/base.css"),
    include_str!("../page/tasks.css")
);

/// Content security policy: this style and the picture that is in the page. A test computes the hash.
const POLICY: &str = "default-src 'none'; style-src 'sha256-JqHB4hgiOfG1bzGY2WIKLA+7JgwpRUdO0Zu0KYdm+F4='; img-src data:; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'";

/// Groups that are open at first.
const OPEN: usize = 3;

/// Returns the page.
pub(crate) fn answer(report: &Report) -> Answer {
    page::guarded(written(report), POLICY)
}

fn written(report: &Report) -> String {
    let title = escaped(&report.title());
    let of = escaped(report.of.as_deref().unwrap_or_default());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Tasks</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>Tasks</h1>\n<p>{title}</p>\n\
         <form><input type=\"hidden\" name=\"format\" value=\"html\"><label for=\"of\">Only stacks with</label> \
         <input id=\"of\" name=\"of\" value=\"{of}\"> <button>Show</button></form>\n<main>\n<h2>Stacks</h2>\n"
    );
    for (number, group) in report.groups.iter().enumerate() {
        write_group(&mut page, report, group, number < OPEN);
    }
    if !report.resources.is_empty() {
        let picture = STANDARD.encode(report.picture());
        let _ = write!(
            page,
            "<h2>Who waits for whom</h2>\n<img alt=\"Waiters, what they wait for, and who holds it; the list below says the \
             same\" src=\"data:image/svg+xml;base64,{picture}\">\n<ul>\n"
        );
        for resource in &report.resources {
            let _ = write!(page, "<li>{}", escaped(&resource.waiting(report.snapshots)));
            write_list(&mut page, &resource.who(report.snapshots));
            page.push_str("</li>\n");
        }
        page.push_str("</ul>\n");
    }
    for circle in &report.circles {
        let _ = write!(
            page,
            "<h2 class=\"bad\">{}</h2>\n<ul>\n",
            escaped(&circle.title())
        );
        for link in &circle.links {
            let _ = write!(page, "<li>{}, held by", escaped(&link.to_string()));
            let held_by = link.held_by.iter();
            write_list(
                &mut page,
                &held_by
                    .map(|one| one.sentence(report.snapshots))
                    .collect::<Vec<_>>(),
            );
            page.push_str("</li>\n");
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<h2>Not seen</h2>");
    write_list(&mut page, &report.not_seen);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn write_list(page: &mut String, items: &[String]) {
    if !items.is_empty() {
        page.push_str("<ul>");
        for item in items {
            let _ = write!(page, "<li>{}</li>", escaped(item));
        }
        page.push_str("</ul>");
    }
}

fn write_group(page: &mut String, report: &Report, group: &Group, is_open: bool) {
    let open = if is_open { " open" } else { "" };
    let _ = write!(
        page,
        "<details{open}>\n<summary><strong>{}</strong>: {}",
        escaped(&group.title()),
        name(&group.future)
    );
    let mut waits: Vec<String> = Vec::new();
    for wait in group.stack.iter().flat_map(|level| &level.waits) {
        waits.push(wait.to_string());
    }
    if !waits.is_empty() {
        let _ = write!(
            page,
            " <em>waits for {}</em>",
            escaped(&waits.join(", and for "))
        );
    }
    page.push_str("</summary>\n");
    let _ = write!(page, "<p class=\"quiet\">{}", escaped(&group.numbers()));
    for note in group
        .stay(report.snapshots)
        .into_iter()
        .chain(group.notes())
    {
        let _ = write!(page, "; {}", escaped(&note));
    }
    page.push_str("</p>\n<ul>\n");
    if group.stack.is_empty()
        && let Some(begins) = &group.begins
    {
        let _ = write!(page, "<li>begins at {}</li>", escaped(&begins.to_string()));
    }
    write_futures(page, &group.stack);
    for not_seen in &group.not_seen {
        let _ = write!(
            page,
            "<li class=\"quiet\">not seen: {}</li>",
            escaped(not_seen)
        );
    }
    page.push_str("</ul>\n</details>\n");
}

/// Writes a future and those below it, as items of a list.
fn write_futures(page: &mut String, stack: &[Level]) {
    let Some((first, inner)) = stack.split_first() else {
        return;
    };
    page.push_str("<li>");
    write_future(page, first);
    let polled = polled(first, inner);
    if let [one] = polled.as_slice() {
        page.push_str("</li>\n");
        write_futures(page, one);
        return;
    }
    for one in polled {
        write_branch(page, one);
    }
    page.push_str("</li>\n");
}

/// Writes one of several futures that are polled together: it folds, with those below it.
fn write_branch(page: &mut String, stack: &[Level]) {
    let Some((first, inner)) = stack.split_first() else {
        return;
    };
    if inner.is_empty() {
        page.push_str("<div>");
        write_future(page, first);
        page.push_str("</div>\n");
        return;
    }
    page.push_str("<details open><summary>");
    write_future(page, first);
    page.push_str("</summary><ul>\n");
    let polled = polled(first, inner);
    if let [one] = polled.as_slice() {
        write_futures(page, one);
    } else {
        for one in polled {
            page.push_str("<li>");
            write_branch(page, one);
            page.push_str("</li>\n");
        }
    }
    page.push_str("</ul></details>\n");
}

/// Returns the futures that `first` polls, each with those below it.
fn polled<'l>(first: &Level, inner: &'l [Level]) -> Vec<&'l [Level]> {
    let mut polled = Vec::new();
    let mut rest = inner;
    while !rest.is_empty() {
        let after = rest
            .iter()
            .skip(1)
            .position(|level| level.frame.depth <= first.frame.depth + 1);
        let (one, others) = rest.split_at(after.map_or(rest.len(), |after| after + 1));
        polled.push(one);
        rest = others;
    }
    polled
}

/// Writes a future with its line, what it waits for and what it holds.
fn write_future(page: &mut String, level: &Level) {
    page.push_str(&escaped(&level.frame.to_string()));
    for wait in &level.waits {
        let _ = write!(
            page,
            "<br><em>waits for {}</em>",
            escaped(&wait.to_string())
        );
    }
    for holds in &level.holds {
        let _ = write!(page, "<br><strong>{}</strong>", escaped(&holds.to_string()));
    }
}

/// Returns the name of a future without its type parameters if it is long.
fn name(future: &str) -> String {
    escaped(&task_reader::shortened(future))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_has_the_hash_of_the_style() {
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        assert!(
            POLICY.contains(&format!("'sha256-{hash}'")),
            "a file of the style was changed: write 'sha256-{hash}' into POLICY"
        );
        assert!(!STYLE.contains("</style"));
    }
}
