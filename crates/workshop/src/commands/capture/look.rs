//! The recorded output of `cargo workshop look` for a chapter's problem, which the book shows:
//! `flamegraphs/chapterN/look.txt`.

use course::bench::rounds::Bench;
use course::measurement::claim::PROBLEM;

use crate::chapters::{Chapter, Workshop};
use crate::compile::Build;
use crate::exit;
use terminal::exit::{CliError, Exit};
use terminal::progress::Terminal;
use terminal::{ctrl_c, files};

/// Seconds of a look, as in the command itself.
const SECONDS: f64 = 10.0;
/// Letters of a line, as the book and the README print it.
const WIDTH: usize = 100;

/// Looks at each chapter's problem under its load, and saves the output.
pub(super) fn record(workshop: &Workshop, chapters: &[Chapter]) -> Result<Exit, CliError> {
    let interrupt = ctrl_c::watch();
    for chapter in chapters {
        let file = chapter.file()?;
        let build = Build {
            workshop,
            chapter,
            interrupt: &interrupt,
        };
        let program = build.server("")?;
        let terminal = Terminal::new();
        terminal.say(&format!(
            "chapter {}: {SECONDS} s under load",
            chapter.number
        ));
        let said = Bench::new(&program, &file, &interrupt, &|event| terminal.show(event))
            .look(PROBLEM, SECONDS)
            .map_err(|error| exit::of_run(&error, &interrupt))?;
        drop(terminal);
        let folder = workshop.captures(chapter.number);
        files::replace(&folder.join("look.txt"), wrapped(&said))?;
        print!("{said}");
    }
    Ok(Exit::Good)
}

/// Breaks long lines between words. The rest of a line is indented by three more letters than its beginning.
fn wrapped(text: &str) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        wrapped += &line[..indent];
        let mut column = indent;
        for word in line[indent..].split(' ') {
            let width = word.chars().count();
            if column > indent && column + 1 + width > WIDTH {
                wrapped.push('\n');
                column = indent + 3;
                wrapped += &" ".repeat(column);
            } else if column > indent {
                wrapped.push(' ');
                column += 1;
            }
            wrapped += word;
            column += width;
        }
        wrapped.push('\n');
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, wrapped};

    #[test]
    fn keeps_indentation_and_breaks_between_words() {
        let long = "word ".repeat(30);
        let text = format!("heading\n  {}\n", long.trim_end());
        let lines: Vec<_> = wrapped(&text).lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "heading");
        assert!(lines[1].starts_with("  word") && lines[2].starts_with("     word"));
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
        assert_eq!(lines[1..].join(" ").split_whitespace().count(), 30);
    }
}
