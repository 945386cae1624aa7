//! `cargo workshop capture [N…]`: the evidence that the book shows.

mod all;
mod difference;
mod gallery;
mod look;
mod measuring;
mod quiet;

use course::bench::neighbours::Neighbours;
use course::report::capture;

use self::quiet::Machine;
use super::numa;
use crate::chapters::{Chapter, Workshop};
use crate::cli::Capture;
use crate::measured::{Order, measure, published};
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files};

pub(crate) fn run(options: &Capture) -> Result<Exit, CliError> {
    if let Some(nodes) = options.regions {
        return numa::capture(options, nodes);
    }
    let workshop = Workshop::find()?;
    let chapters = workshop.chosen(&options.chapters)?;
    if options.look {
        return look::record(&workshop, &chapters);
    }
    let machine = Machine {
        may_be_busy: options.even_if_busy,
        interrupt: ctrl_c::watch(),
    };
    if options.all {
        return all::record(&workshop, &machine);
    }
    for chapter in &chapters {
        let folder = workshop.captures(chapter.number);
        if options.verify || options.derive {
            let published = published(&workshop, &chapter.file()?)?;
            if options.verify {
                capture::verify(&folder, published).map_err(CliError::bad)?;
            } else {
                capture::derive(&folder, published).map_err(CliError::bad)?;
            }
            difference::derive(&workshop, chapter, options.verify)?;
            numa::derive(&workshop, &folder, options.verify)?;
            println!(
                "chapter {}: all that is derived is up to date",
                chapter.number
            );
        } else {
            record(&workshop, chapter, options.seed, &machine)?;
        }
    }
    if options.chapters.is_empty() && (options.verify || options.derive) {
        measuring::derive(&workshop, options.verify)?;
        gallery::derive(&workshop, options.verify)?;
    }
    Ok(Exit::Good)
}

/// Measures a chapter and puts the record in place of the old one.
fn record(
    workshop: &Workshop,
    chapter: &Chapter,
    seed: Option<u32>,
    machine: &Machine,
) -> Result<(), CliError> {
    let folder = workshop.captures(chapter.number);
    files::writable(&folder)?;
    machine.is_quiet()?;
    let neighbours = Neighbours::watch();
    let order = Order {
        seed,
        profiles: true,
        matrix: true,
        counts: true,
        ..Order::of_solution(format!("cargo workshop capture {}", chapter.number))
    };
    let measured = measure(workshop, chapter, &order, &machine.interrupt)?;
    machine.was_quiet(&neighbours)?;
    measured.capture.write(&folder).map_err(CliError::bad)?;
    for (name, bytes) in &measured.files {
        files::replace(&folder.join(name), bytes)?;
    }
    difference::derive(workshop, chapter, false)?;
    let verdict = measured.capture.analysis().verdict;
    println!(
        "chapter {}: {}. {}",
        chapter.number, verdict.kind, verdict.reason
    );
    Ok(())
}
