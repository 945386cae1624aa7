//! `cargo workshop solution N`: from the learner's code to the solution's, as a diff.

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, TextDiff};

use crate::chapters::Workshop;
use crate::exercise::{self, Exercise};
use terminal::exit::{CliError, Exit};

pub(crate) fn run(number: u32) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(number)?;
    let exercise = Exercise::read(&chapter)?;
    let solution = exercise::read(&chapter.source("solution"))?;
    let file = workshop.shown(&exercise.file);
    let mine = exercise.text.unwrap_or(exercise.shipped);
    let target = with_comment_of(&mine, &solution);
    if mine == target {
        println!("the code in {file} is the solution's already");
    } else {
        print(&file, &mine, &target);
    }
    Ok(Exit::Good)
}

/// The solution under the learner's own opening comment: that is no part of the
/// diff, and the line numbers are those of the learner's file.
fn with_comment_of(mine: &str, solution: &str) -> String {
    exercise::split(mine).0.to_owned() + exercise::split(solution).1
}

fn print(file: &str, mine: &str, target: &str) {
    let bold = Style::new().bold();
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    let diff = TextDiff::from_lines(mine, target);
    println!("{bold}--- a/{file}{bold:#}");
    println!("{bold}+++ b/{file}{bold:#}");
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        let cyan = colour(AnsiColor::Cyan);
        println!("{cyan}{}{cyan:#}", hunk.header());
        for change in hunk.iter_changes() {
            let style = match change.tag() {
                ChangeTag::Delete => colour(AnsiColor::Red),
                ChangeTag::Insert => colour(AnsiColor::Green),
                ChangeTag::Equal => Style::new(),
            };
            let text = change.value().trim_end_matches('\n');
            println!("{style}{}{text}{style:#}", change.tag());
            if change.missing_newline() {
                println!("\\ No newline at end of file");
            }
        }
    }
}
