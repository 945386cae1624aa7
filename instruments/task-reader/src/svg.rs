//! Who waits for whom, as a picture: waiters on the left, what they wait for in the middle, holders on the right.

use std::fmt::Write as _;

use diagnosis::escaped;

use crate::report::{Holder, Report, TaskRef, Wanted};
use crate::text::without_parameters;

/// Size of the picture and of its parts, in px.
const WIDTH: usize = 960;
const TOP: usize = 84;
const LINE: usize = 17;
const PAD: usize = 8;
const GAP: usize = 14;

/// Left edge and width of the columns, in px.
const WAITERS: (usize, usize) = (14, 270);
const WAITED: (usize, usize) = (344, 220);
const HOLDERS: (usize, usize) = (624, 322);

/// Width of a letter, in px: a little more than that of most.
const LETTER: usize = 8;

/// The colours of this project's pictures, on light paper and on dark.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#22262a}.head{font-size:17px}.quiet{fill:#55606e}\
.paper{fill:#fdfdfb}.box{fill:#f1f3f4;stroke:#b9bfc4}.middle{fill:#dcecf6;stroke:#0072b2}.bad{stroke:#d55e00;stroke-width:2.5}\
.edge{stroke:#55606e;stroke-width:1.5;fill:none}.may{stroke-dasharray:5 4}.tip{fill:#55606e}\
@media(prefers-color-scheme:dark){text{fill:#e3e6e8}.quiet{fill:#a9b3c0}.paper{fill:#1f2328}.box{fill:#2b3036;stroke:#5b636b}\
.middle{fill:#173a50;stroke:#63b8ec}.bad{stroke:#ff9a52}.edge{stroke:#a9b3c0}.tip{fill:#a9b3c0}}";

impl Report {
    /// Draws who waits for whom, as an SVG for light pages and dark ones.
    pub fn picture(&self) -> String {
        let mut drawn = Drawn {
            body: String::new(),
            y: TOP,
        };
        for resource in &self.resources {
            drawn.resource(self, resource);
        }
        if self.resources.is_empty() {
            drawn.say(
                WAITERS.0,
                TOP + LINE,
                "quiet",
                "No task waits for something whose holder is known.",
            );
            drawn.y += 2 * LINE;
        }
        let height = drawn.y + GAP;
        let (title, summary) = (escaped(&self.title()), escaped(&self.in_words()));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             role=\"img\" style=\"color-scheme:light dark\"><title>Who waits for whom</title><desc>{summary}</desc>\
             <style>{STYLE}</style><rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\
             <text class=\"head\" x=\"14\" y=\"26\">Who waits for whom</text>\
             <text class=\"quiet\" x=\"14\" y=\"46\">{title}</text>"
        );
        for (x, head) in [
            (WAITERS.0, "tasks that wait"),
            (WAITED.0, "what they wait for"),
            (HOLDERS.0, "who has it"),
        ] {
            let _ = write!(
                svg,
                "<text class=\"quiet\" x=\"{x}\" y=\"{}\">{head}</text>",
                TOP - 12
            );
        }
        svg.push_str(&drawn.body);
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns the same in sentences, for readers who cannot see the picture.
    fn in_words(&self) -> String {
        let mut words = String::new();
        for resource in &self.resources {
            let (waiting, who) = (
                resource.waiting(self.snapshots),
                resource.who(self.snapshots),
            );
            let _ = write!(words, "{waiting}: {}. ", who.join("; "));
        }
        for circle in &self.circles {
            let _ = write!(words, "{}. ", circle.title());
        }
        words
    }

    /// Returns whether a task is in a circle.
    fn is_stuck(&self, task: &TaskRef) -> bool {
        let mut links = self.circles.iter().flat_map(|circle| &circle.links);
        links.any(|link| link.task.number() == task.number())
    }
}

/// Parts of the picture that are drawn, and the place of the next.
struct Drawn {
    body: String,
    y: usize,
}

impl Drawn {
    fn resource(&mut self, report: &Report, resource: &Wanted) {
        let mut waiting = vec![tasks(resource.waiters)];
        if report.snapshots > 1 {
            let (stayed, snapshots) = (resource.stayed, report.snapshots);
            waiting.push(format!("{stayed} of them in all {snapshots} snapshots"));
        }
        waiting.extend(resource.lines.iter().map(|line| format!("at {line}")));
        let top = self.y;
        let mut holders: Vec<(Vec<String>, bool, bool)> = Vec::new();
        for holder in &resource.holders {
            let is_stuck = report.is_stuck(&holder.task);
            holders.push((held(holder), is_stuck, holder.value.is_certain));
        }
        if let Some(task) = &resource.task {
            let mut lines = vec![task.name()];
            lines.extend(then(task));
            holders.push((lines, report.is_stuck(task), true));
        }
        let mut places = Vec::new();
        for (lines, is_stuck, is_certain) in &holders {
            let class = if *is_stuck { "box bad" } else { "box" };
            let height = self.boxed(HOLDERS, self.y, class, lines);
            places.push((self.y + height / 2, *is_certain));
            self.y += height + GAP;
        }
        let bottom = self.y.saturating_sub(GAP);
        let middle = top.midpoint(bottom.max(top + height(2)));
        let size = |lines: usize| middle.saturating_sub(height(lines) / 2).max(top);
        let left = self.boxed(WAITERS, size(waiting.len()), "box", &waiting);
        let what = [resource.waits_for.clone()];
        self.boxed(WAITED, middle - height(1) / 2, "middle", &what);
        self.edge((WAITERS.0 + WAITERS.1, middle), (WAITED.0, middle), true);
        for (y, is_certain) in places {
            self.edge((WAITED.0 + WAITED.1, middle), (HOLDERS.0, y), is_certain);
        }
        self.y = self.y.max(size(waiting.len()) + left + GAP) + GAP;
    }

    /// Draws a box with lines of text, and returns its height.
    fn boxed(
        &mut self,
        (x, width): (usize, usize),
        y: usize,
        class: &str,
        lines: &[String],
    ) -> usize {
        let height = height(lines.len());
        let _ = write!(
            self.body,
            "<g><title>{}</title><rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"5\"/>",
            escaped(&lines.join("\n"))
        );
        for (number, line) in lines.iter().enumerate() {
            let class = if number == 0 { "first" } else { "quiet" };
            self.say(
                x + PAD,
                y + PAD + 13 + number * LINE,
                class,
                &cut(line, letters(width)),
            );
        }
        self.body.push_str("</g>");
        height
    }

    fn say(&mut self, x: usize, y: usize, class: &str, text: &str) {
        let text = escaped(text);
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        );
    }

    /// Draws an arrow; dashed, if it is not certain.
    fn edge(&mut self, from: (usize, usize), to: (usize, usize), is_certain: bool) {
        let may = if is_certain { "" } else { " may" };
        let ((x1, y1), (x2, y2)) = (from, to);
        let (end, half) = (x2 - 7, x1.midpoint(x2));
        let _ = write!(
            self.body,
            "<path class=\"edge{may}\" d=\"M{x1} {y1}C{half} {y1} {half} {y2} {end} {y2}\"/>\
             <path class=\"tip\" d=\"M{x2} {y2}l-8 -4v8z\"/>"
        );
    }
}

/// Returns how many letters a box of this width has room for.
fn letters(width: usize) -> usize {
    (width - 2 * PAD) / LETTER
}

fn height(lines: usize) -> usize {
    lines * LINE + 2 * PAD
}

fn tasks(number: usize) -> String {
    match number {
        1 => "1 task waits".to_owned(),
        several => format!("{several} tasks wait"),
    }
}

fn held(holder: &Holder) -> Vec<String> {
    let value = &holder.value;
    let verb = if value.is_certain {
        "holds"
    } else {
        "may hold"
    };
    let is_long = value.type_name.chars().count() + "a ".len() > letters(HOLDERS.1);
    let of = if is_long {
        &without_parameters(&value.type_name)
    } else {
        &value.type_name
    };
    let mut lines = vec![
        format!("{} {verb} `{}`", holder.task.number(), value.variable),
        format!("a {of}"),
    ];
    lines.extend(
        holder
            .line
            .as_ref()
            .map(|line| format!("suspended at {line}")),
    );
    lines.extend(then(&holder.task));
    lines
}

/// Returns what a task does itself, as a line.
fn then(task: &TaskRef) -> Option<String> {
    let then = task.then();
    let then = then.trim_start_matches([';', ' ']);
    (!then.is_empty()).then(|| then.to_owned())
}

/// Cuts the middle out of a text that is too long: of a file its first folders, and of a name what follows its beginning.
fn cut(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let folders = letters.iter().position(|letter| *letter == '/');
    let words = letters.iter().take(folders.unwrap_or_default());
    let file = words.rev().position(|letter| *letter == ' ');
    let head = match (folders, file) {
        (Some(folders), Some(file)) => folders - file,
        (Some(_), None) => 0,
        (None, _) => most / 3,
    };
    let head = head.min(most * 2 / 3);
    let tail = most - head - 1;
    let head: String = letters.iter().take(head).collect();
    let tail: String = letters.iter().skip(letters.len() - tail).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_keeps_its_beginning_and_its_end() {
        assert_eq!(
            cut("suspended at src/a/very/deep/folder/main.rs:11", 24),
            "suspended at …main.rs:11"
        );
        assert_eq!(
            cut("crates/lab/src/database.rs:35", 20),
            "…/src/database.rs:35"
        );
        assert_eq!(cut("one of Readers, Writers", 12), "one …Writers");
        assert_eq!(cut("short", 24), "short");
    }
}
