//! `cargo workshop test`: everything that CI checks, a line a check.

mod book;
mod busy;
mod cheats;
mod check;
mod claims;
mod code;
mod context;
mod ended;
mod excerpt;
mod generators;
mod grading;
mod profiles;
mod regions;
mod repository;
mod rules;
mod running;
mod scratch;
mod steps;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use self::check::{Check, Failure, Need};
use self::context::Context;
use self::ended::{Counts, Ended};
use self::running::InBackground;
use crate::chapters::Workshop;
use crate::ctrl_c;
use crate::exit::{CliError, Exit};
use crate::tools::Tools;

/// Cheap checks first, measuring ones last: nothing else runs beside those. Those that clean up
/// chapters' servers come before the tests build these, or at the end.
const CHECKS: &[Check] = &[
    code::FORMAT,
    repository::RULES,
    code::LINTS,
    code::DOCUMENTATION,
    steps::STEPS,
    code::TESTS,
    claims::CAPTURES,
    book::BUILDS,
    code::UNOPTIMISED,
    profiles::PPROF,
    book::BROWSER_SELF_TEST,
    generators::SCRIPTS,
    generators::GENERATORS,
    claims::PROOF,
    regions::REGIONS,
    claims::UPSTREAM,
    book::BROWSER,
    grading::GRADING,
    cheats::CHEATS,
];

/// Runs the checks whose name contains `filter`, or lists them.
pub(crate) fn run(filter: Option<&str>, chapters: &[u32], list: bool) -> Result<Exit, CliError> {
    let chosen: Vec<&Check> = CHECKS
        .iter()
        .filter(|check| filter.is_none_or(|part| check.name.contains(part)))
        .collect();
    if chosen.is_empty() {
        return Err(CliError::usage(format!(
            "no check's name contains `{}`; `cargo workshop test --list` lists them",
            filter.unwrap_or_default()
        )));
    }
    if list {
        for check in chosen {
            println!("{:<20} {}", check.name, check.about);
        }
        return Ok(Exit::Good);
    }
    let workshop = Workshop::find()?;
    let interrupt = ctrl_c::watch();
    let chapters = workshop.chosen(chapters)?;
    let context = Context::new(&workshop, &interrupt, filter.is_some(), chapters)?;
    // Tools are built while nothing measures: from the start to the first check that needs one.
    let mut setup = chosen
        .iter()
        .any(|check| check.needs.iter().any(|need| need.is_set_up()))
        .then(|| context.setup())
        .transpose()?;
    let mut counts = Counts::default();
    for check in chosen {
        if check.stands_alone {
            finish(setup.take(), &context, &mut counts);
        }
        counts.add(check.name, report(check, &context));
        if interrupt.is_set() {
            drop(setup);
            return Err(CliError::new(
                Exit::Interrupted,
                format!("interrupted in `{}`; what ran is not counted", check.name),
            ));
        }
    }
    finish(setup, &context, &mut counts);
    println!("\n{counts}");
    Ok(if counts.are_good() {
        Exit::Good
    } else {
        Exit::Bad
    })
}

/// Waits for the tools. What is missing then is said by the checks that need it.
fn finish(setup: Option<InBackground>, context: &Context<'_>, counts: &mut Counts) {
    let Some(setup) = setup else { return };
    let began = Instant::now();
    let line = live("tools");
    let ended = setup.finish(context.interrupt);
    line.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    match ended {
        Ok(()) => {
            counts.add("tools", Ended::Passed);
            println!("ok    {:<20} {seconds:7.1} s", "tools");
        }
        Err(Failure::Interrupted) => {}
        Err(Failure::Because(words)) if context.in_ci => {
            println!("FAIL  {:<20} {seconds:7.1} s\n{words}", "tools");
            counts.add("tools", Ended::Failed(words));
        }
        // A reader may do without some: their checks are skipped.
        Err(Failure::Because(_)) => println!("note  {:<20} some are missing", "tools"),
    }
}

/// Runs one check and prints its line.
fn report(check: &Check, context: &Context<'_>) -> Ended {
    let began = Instant::now();
    let line = |word: &str, rest: &str| {
        let seconds = began.elapsed().as_secs_f64();
        println!("{word:<5} {:<20} {seconds:7.1} s{rest}", check.name);
        let _ = std::io::stdout().flush();
    };
    if let Some(missing) = missing(check, &context.tools) {
        if context.in_ci {
            line("FAIL", &format!("\n{missing}"));
            return Ended::Failed(missing);
        }
        line("skip", &format!("  {missing}"));
        return Ended::Skipped;
    }
    let spinner = live(check.name);
    let ended = context
        .begin(check.name)
        .and_then(|()| (check.run)(context));
    spinner.finish_and_clear();
    match ended {
        Ok(()) => {
            line("ok", "");
            Ended::Passed
        }
        Err(Failure::Interrupted) => Ended::Skipped,
        Err(Failure::Because(sentence)) => {
            line("FAIL", &format!("\n{sentence}\n{}", context.shown_log()));
            Ended::Failed(sentence)
        }
    }
}

fn missing(check: &Check, tools: &Tools) -> Option<String> {
    check
        .needs
        .iter()
        .find_map(|need: &Need| need.missing(tools))
}

/// A line that lives while a check runs, in a terminal.
fn live(name: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let line = ProgressBar::new_spinner().with_message(name);
    if let Ok(style) = ProgressStyle::with_template("{spinner}     {msg:<20} {elapsed:>9}") {
        line.set_style(style);
    }
    line.enable_steady_tick(Duration::from_millis(250));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_nothing_measures_beside_the_building_of_tools() {
        for (place, check) in CHECKS.iter().enumerate() {
            assert!(CHECKS[..place].iter().all(|other| other.name != check.name));
            assert!(
                check.stands_alone || !check.needs.iter().any(|need| need.is_set_up()),
                "{} needs a tool before it is there",
                check.name
            );
        }
    }
}
