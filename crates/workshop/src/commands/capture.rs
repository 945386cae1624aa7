//! `cargo workshop capture [N…]`: the evidence that the book shows.

mod difference;
mod gallery;
mod measuring;
mod series;

use measurement::claim::SOLUTION;
use report::capture;

use super::regions;
use crate::chapters::{Chapter, Workshop};
use crate::cli::{Capture, UpstreamOf};
use crate::exit::{CliError, Exit};
use crate::measured::{Also, Order, measure};
use crate::{ctrl_c, files};

pub(crate) fn run(options: &Capture) -> Result<Exit, CliError> {
    if let Some(regions) = options.regions {
        return regions::capture(options, regions);
    }
    let workshop = Workshop::find()?;
    if let Some(file) = &options.measuring {
        return measuring::record(&workshop, file);
    }
    let chapters = workshop.chosen(&options.chapters)?;
    if options.series {
        return series::record(&workshop, &chapters);
    }
    for chapter in &chapters {
        let folder = workshop.captures(chapter.number);
        if options.verify {
            capture::verify(&folder).map_err(CliError::bad)?;
            difference::verify(&workshop, chapter)?;
            regions::derive(&folder, true)?;
            println!(
                "chapter {}: all that is derived is up to date",
                chapter.number
            );
        } else if options.derive {
            capture::derive(&folder).map_err(CliError::bad)?;
            difference::write(&workshop, chapter)?;
            regions::derive(&folder, false)?;
            println!("chapter {}: derived again", chapter.number);
        } else {
            record(&workshop, chapter)?;
        }
    }
    if options.chapters.is_empty() && (options.verify || options.derive) {
        measuring::derive(&workshop, options.verify)?;
        series::derive(&workshop, options.verify)?;
        gallery::derive(&workshop, options.verify)?;
    }
    Ok(Exit::Good)
}

/// Measures a chapter by all three generators and puts the record in place of the old one.
fn record(workshop: &Workshop, chapter: &Chapter) -> Result<(), CliError> {
    let folder = workshop.captures(chapter.number);
    files::writable(&folder)?;
    let interrupt = ctrl_c::watch();
    let order = Order {
        variant: SOLUTION.to_owned(),
        pairs: None,
        command: format!("cargo workshop capture {}", chapter.number),
        also: vec![Also::Profiles, Also::Generators, Also::Matrix, Also::Counts],
        upstream: UpstreamOf::Embedded,
        database: None,
    };
    let measured = measure(workshop, chapter, &order, &interrupt)?;
    measured.capture.write(&folder).map_err(CliError::bad)?;
    for (name, bytes) in &measured.files {
        files::replace(&folder.join(name), bytes)?;
    }
    difference::write(workshop, chapter)?;
    series::keep(workshop, &measured)?;
    let verdict = measured.capture.analysis().verdict;
    println!(
        "chapter {}: {}. {}",
        chapter.number, verdict.kind, verdict.reason
    );
    Ok(())
}
