//! Plots of the tables that studies printed: `flamegraphs/measuring/plots/`.

use report::measuring::{PLOTTED, plot};

use crate::chapters::Workshop;
use crate::exit::CliError;

/// Draws the plots of the recorded tables again, or compares them with those that are there.
pub(super) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let folder = workshop.root().join("flamegraphs/measuring");
    for name in PLOTTED {
        let file = folder.join(format!("{name}.md"));
        let table = std::fs::read_to_string(&file).map_err(CliError::because(format!(
            "{} cannot be read",
            file.display()
        )))?;
        let svg = plot(name, &table).map_err(CliError::bad)?;
        super::derived(&folder.join(format!("plots/{name}.svg")), &svg, verify)?;
    }
    Ok(())
}
