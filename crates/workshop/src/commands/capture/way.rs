//! The ticket shop's scores along the reference way, as a table and a curve.

use terminal::exit::CliError;

use crate::chapters::{CAPTURES, Workshop};
use crate::commands::derived::put;
use crate::steps::way;

/// Writes both, or compares them with what is there.
pub(super) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let Some(scores) = way::recorded(workshop.root())? else {
        return Ok(());
    };
    let folder = workshop.root().join(CAPTURES).join("capstone");
    put(&folder.join("table.md"), &scores.table(), verify)?;
    let curve = scores.curve().unwrap_or_default();
    put(&folder.join("curve.svg"), &curve, verify)
}
