//! Plots of the tables that studies printed: `flamegraphs/measuring/plots/`.

use course::report::measuring::{PLOTTED, plot};

use crate::chapters::Workshop;
use terminal::exit::CliError;

/// Draws the plots of the recorded tables again, or compares them with those that are there.
pub(super) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let folder = workshop.root().join("flamegraphs/measuring");
    for name in PLOTTED {
        let file = folder.join(format!("{name}.md"));
        let table = std::fs::read_to_string(&file).map_err(CliError::because(format!(
            "{} cannot be read",
            file.display()
        )))?;
        let svg = plot(name, &table).ok_or_else(|| {
            CliError::bad(format!(
                "{}: it lacks what its plot shows; run its study again.",
                file.display()
            ))
        })?;
        crate::commands::derived::put(&folder.join(format!("plots/{name}.svg")), &svg, verify)?;
    }
    Ok(())
}
