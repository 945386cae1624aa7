//! Parts of a process's memory, as the kernel lists them.

pub use ecosystem::maps::Part;

use crate::Process;

/// Returns the list; it is empty on systems other than Linux.
pub fn read(process: Process) -> String {
    process.text("maps").unwrap_or_default()
}
