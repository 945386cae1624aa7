//! `cargo workshop doctor`: what this machine has, and what is missing for what.

mod counters;
mod finding;
mod machine;
mod programs;

use std::io::Write;

use self::finding::{Finding, State};
use crate::chapters::Workshop;
use crate::cli::Format;
use crate::exit::{CliError, Exit};
use crate::json;
use crate::tools::Tools;

pub(crate) fn run(format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let tools = Tools::of(&workshop);
    let users = most_users(&workshop);
    let findings: Vec<Finding> = [
        programs::rust(workshop.root()).into(),
        machine::look(),
        counters::look(),
        machine::limits(users),
        programs::optional(&tools),
    ]
    .into_iter()
    .flatten()
    .collect();
    match format {
        Format::Json => json::print(&findings)?,
        Format::Human => print(&findings),
    }
    let required = findings.iter().any(|f| f.state == State::Required);
    Ok(if required { Exit::Bad } else { Exit::Good })
}

/// The largest load of any chapter; one that cannot be read has its own command to say so.
fn most_users(workshop: &Workshop) -> u32 {
    let chapters = workshop.chapters().unwrap_or_default();
    let files = chapters.iter().filter_map(|chapter| chapter.file().ok());
    files
        .flat_map(|file| file.scenarios.into_values().map(|scenario| scenario.users))
        .max()
        .unwrap_or(0)
}

fn print(findings: &[Finding]) {
    use anstyle::{AnsiColor, Style};

    let mut out = anstream::stdout().lock();
    for finding in findings {
        let (word, colour) = match finding.state {
            State::Ok => ("ok", AnsiColor::Green),
            State::Note => ("note", AnsiColor::Yellow),
            State::Missing => ("missing", AnsiColor::Yellow),
            State::Required => ("WRONG", AnsiColor::Red),
        };
        let style = Style::new().fg_color(Some(colour.into()));
        // A reader that has seen enough (`| head`) is no failure.
        let _ = writeln!(
            out,
            "{style}{word:<8}{style:#}{:<20} {}",
            finding.name, finding.found
        );
        if !finding.remedy.is_empty() {
            let _ = writeln!(out, "{:29}{}", "", finding.remedy);
        }
    }
    let open = findings.iter().filter(|f| f.state != State::Ok).count();
    let _ = match open {
        0 => writeln!(out, "\nnothing is missing"),
        _ => writeln!(
            out,
            "\n`cargo workshop prove 1` needs Rust only; everything else is for what its line says"
        ),
    };
}
