//! `cargo workshop predict N`: the reader's expectation, written down before anything is measured.

use std::io::{BufRead, IsTerminal};
use std::str::FromStr;

use serde::Serialize;

use crate::chapters::{Chapter, Workshop};
use crate::cli::{Format, Predict};
use crate::prediction::{Prediction, Range};
use crate::progress_file::{self, Progress};
use terminal::exit::{CliError, Exit};
use terminal::json;

/// Object that `--format json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    chapter: u32,
    /// Name of the count in the problem and in a fix.
    root_cause: &'a str,
    /// Oldest first.
    predictions: &'a [Prediction],
}

pub(crate) fn run(options: &Predict) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(options.chapter)?;
    let typed = Prediction {
        made: course::bench::provenance::now(),
        gain: options.gain,
        problem: options.problem,
        fix: options.fix,
    };
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !is_empty(&typed) {
        progress_file::save(&workshop, chapter.number, |done| done.predict(typed))?;
    } else if is_terminal && options.output.format == Format::Human {
        ask(&workshop, &chapter)?;
    }
    show(&workshop, &chapter, options.output.format)?;
    Ok(Exit::Good)
}

/// Asks for a prediction on a terminal where none is remembered yet.
pub(super) fn ask_if_none(workshop: &Workshop, chapter: &Chapter) -> Result<(), CliError> {
    let done = Progress::read(workshop)?.chapter(chapter.number);
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if done.predictions.is_empty() && done.proof.is_none() && is_terminal {
        ask(workshop, chapter)?;
    }
    Ok(())
}

fn ask(workshop: &Workshop, chapter: &Chapter) -> Result<(), CliError> {
    let file = chapter.file()?;
    let (effect, cause) = (file.claims.effect(), file.claims.root_cause());
    println!(
        "Chapter {}: {}\nWhat do you expect of a fix? A number, a range such as 10-100, or Enter for no answer.\n",
        chapter.number, file.title
    );
    let load = file.effect_scenario().in_words();
    let gain = question(&format!(
        "{}, {load}: how many times better",
        effect.label()
    ))?;
    let problem = question(&format!("{}, in the problem", cause.label()))?;
    let fix = question("the same, in a fixed service")?;
    println!("");
    let prediction = Prediction {
        made: course::bench::provenance::now(),
        gain,
        problem,
        fix,
    };
    if is_empty(&prediction) {
        return Ok(());
    }
    progress_file::save(workshop, chapter.number, |done| done.predict(prediction))
}

fn is_empty(prediction: &Prediction) -> bool {
    prediction.gain.is_none() && prediction.problem.is_none() && prediction.fix.is_none()
}

/// Asks until the answer is a range, or none.
fn question(text: &str) -> Result<Option<Range>, CliError> {
    loop {
        print!("  {text}? ");
        let _ = std::io::Write::flush(&mut std::io::stdout());
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map_err(CliError::because("your answer cannot be read"))?;
        let answer = line.trim();
        if answer.is_empty() {
            return Ok(None);
        }
        match Range::from_str(answer) {
            Ok(range) => return Ok(Some(range)),
            Err(why) => println!("  {answer} is {why}"),
        }
    }
}

fn show(workshop: &Workshop, chapter: &Chapter, format: Format) -> Result<(), CliError> {
    let predictions = Progress::read(workshop)?
        .chapter(chapter.number)
        .predictions;
    let number = chapter.number;
    let file = chapter.file()?;
    let cause = file.claims.root_cause().label();
    if format == Format::Json {
        let report = Report {
            chapter: number,
            root_cause: cause,
            predictions: &predictions,
        };
        return json::print_as("prediction", &report);
    }
    let Some(last) = predictions.last() else {
        println!(
            "Nothing is predicted for chapter {number} yet: cargo workshop predict {number} --gain 10-100"
        );
        return Ok(());
    };
    let text =
        |range: Option<Range>| range.map_or("no answer".to_owned(), |range| range.to_string());
    println!("You predict for chapter {number}:");
    println!("  a fix is better by a factor of: {}", text(last.gain));
    println!("  {cause}, problem: {}", text(last.problem));
    println!("  {cause}, fix: {}", text(last.fix));
    println!("`cargo workshop prove {number}` sets this next to the law and the measurement.");
    Ok(())
}
