//! Proofs of the chapters at different times, beside each other: `flamegraphs/measuring/series.json`
//! and the table of it.

use std::path::PathBuf;

use course::report::series::{Proof, table};

use crate::chapters::{Chapter, Workshop};
use crate::measured::{Measured, Order, measure};
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files};

/// Proves each chapter and keeps what came out, whatever it is.
pub(super) fn record(workshop: &Workshop, chapters: &[Chapter]) -> Result<Exit, CliError> {
    let interrupt = ctrl_c::watch();
    for chapter in chapters {
        let order = Order::of_solution("cargo workshop capture --series".to_owned());
        let measured = measure(workshop, chapter, &order, &interrupt)?;
        // After each chapter, so that an interruption loses one at most.
        keep(workshop, &measured)?;
        let verdict = measured.capture.analysis().verdict;
        println!(
            "chapter {}: {}. {}",
            chapter.number, verdict.kind, verdict.reason
        );
    }
    Ok(Exit::Good)
}

/// Keeps a proof beside those that there are.
pub(super) fn keep(workshop: &Workshop, measured: &Measured) -> Result<(), CliError> {
    let mut proofs = read(workshop)?;
    let (record, analysis) = (&measured.capture.record, measured.capture.analysis());
    proofs.push(Proof::of(record, &analysis, measured.decided_s));
    let text = serde_json::to_string_pretty(&proofs)
        .map_err(CliError::because("the proofs cannot be written down"))?;
    files::replace(&file(workshop, "series.json"), text + "\n")?;
    derive(workshop, false)
}

/// Writes the table again, or compares it with the one that is there.
pub(super) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let text = table(&read(workshop)?);
    crate::commands::derived::put(&file(workshop, "series.md"), &text, verify)
}

fn read(workshop: &Workshop) -> Result<Vec<Proof>, CliError> {
    let file = file(workshop, "series.json");
    let text = std::fs::read(&file).map_err(CliError::because(file.display()))?;
    serde_json::from_slice(&text).map_err(CliError::because(format!(
        "{} is damaged; restore it with git",
        file.display()
    )))
}

fn file(workshop: &Workshop, name: &str) -> PathBuf {
    workshop.root().join("flamegraphs/measuring").join(name)
}
