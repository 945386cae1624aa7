//! Evidence of a look as a file: it is saved, and judged again.

use std::fs;
use std::path::Path;

#[cfg(all(
    feature = "pid",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
use diagnosis::Addresses;
use diagnosis::evidence::View;
use diagnosis::{Evidence, Report, printable};
use terminal::exit::{CliError, Exit};
use terminal::json;
use terminal::output::Format;

use crate::{Look, answer_of};

/// Most bytes of a file that is read as evidence.
const MOST_BYTES: u64 = 1 << 30;

/// Asks the debug endpoints at `url` for their evidence, writes it to `file`, and prints how it is judged here.
///
/// # Errors
///
/// Fails as [`ask()`](crate::ask) does, if the endpoints are of another version, or if the file cannot be written.
pub(crate) fn save(url: &str, file: &Path, options: &Look) -> Result<Evidence, CliError> {
    let mut path = format!("/debug/look?seconds={}&format=evidence", options.seconds);
    if options.addresses {
        path += "&addresses=true";
    }
    let text = answer_of(url, &path, options.seconds)?;
    let evidence = Evidence::from_file(&text).map_err(|why| {
        CliError::invalid(format!(
            "the evidence of {url} cannot be judged: {why}; or look without --save"
        ))
    })?;
    terminal::files::replace(file, &text)?;
    Ok(evidence)
}

/// Writes the evidence of a look from outside to the file of `options`, if they name one.
#[cfg(all(
    feature = "pid",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) fn keep(evidence: &Evidence, options: &Look) -> Result<(), CliError> {
    let Some(file) = &options.save else {
        return Ok(());
    };
    let addresses = if options.addresses {
        Addresses::Kept
    } else {
        Addresses::Numbered
    };
    terminal::files::replace(file, evidence.to_file(addresses))
}

/// Judges the evidence in `file`, and prints the report.
///
/// # Errors
///
/// Fails if the file cannot be read, or holds something else.
pub(crate) fn judge(file: &Path, format: Format) -> Result<Exit, CliError> {
    let refused = |why: String| CliError::usage(format!("look --from {}: {why}", file.display()));
    let length = fs::metadata(file)
        .map_err(|why| refused(why.to_string()))?
        .len();
    if length > MOST_BYTES {
        return Err(refused(format!("{length} bytes are too many for evidence")));
    }
    let text = fs::read_to_string(file).map_err(|why| refused(why.to_string()))?;
    let evidence = Evidence::from_file(&text).map_err(|why| refused(why.to_string()))?;
    print(&evidence, format)
}

/// Judges evidence, and prints the report.
///
/// # Errors
///
/// Fails if this program was built without looks from outside, and the evidence is of one.
pub(crate) fn print(evidence: &Evidence, format: Format) -> Result<Exit, CliError> {
    if evidence.view == View::Outside {
        return print_from_outside(evidence, format);
    }
    let report = Report::new(evidence);
    match format {
        Format::Json => json::print_as("look", &report.with_text())?,
        // A file must not control the reader's terminal.
        Format::Human => println!("{}", printable(report.to_string().trim_end())),
    }
    Ok(Exit::Good)
}

#[cfg(all(
    feature = "pid",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn print_from_outside(evidence: &Evidence, format: Format) -> Result<Exit, CliError> {
    crate::pid::print_saved(evidence, format)
}

#[cfg(not(all(
    feature = "pid",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
fn print_from_outside(_: &Evidence, _: Format) -> Result<Exit, CliError> {
    Err(CliError::usage(
        "this evidence was seen from outside, and this program was built without that: use a released program of duel on \
         Linux",
    ))
}
