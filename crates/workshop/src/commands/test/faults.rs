//! What commands leave behind when they are stopped at any moment, and under conditions that nobody
//! asked for: no process, no temporary file, and all that the reader has as it was.

mod conditions;
mod place;
mod stops;

use self::place::Place;
use super::context::Context;
use crate::exit::CliError;
use crate::files;

/// A dozen stops, for each push.
pub(super) fn some(context: &Context<'_>) -> Result<(), CliError> {
    all(context, 12, false)
}

/// Enough for each command to be stopped at each of its moments.
pub(super) fn many(context: &Context<'_>) -> Result<(), CliError> {
    all(context, 200, true)
}

fn all(context: &Context<'_>, count: usize, at_length: bool) -> Result<(), CliError> {
    if !cfg!(target_os = "linux") {
        context.tell("left out: what a command leaves is found under /proc alone".to_owned());
        return Ok(());
    }
    let place = Place::make(context)?;
    let stopped = stops::all(&place, count)?;
    let conditions = conditions::all(&place, at_length)?;
    // What the book includes, as `flamegraphs/README.md` says.
    let part = |name: &str, table: &dyn std::fmt::Display| {
        format!("<!-- ANCHOR: {name} -->\n{table}<!-- ANCHOR_END: {name} -->\n")
    };
    let tables = part("stops", &stopped) + "\n" + &part("conditions", &conditions);
    files::replace(&context.folder.join("faults.md"), &tables)?;
    context.note(&tables)
}
