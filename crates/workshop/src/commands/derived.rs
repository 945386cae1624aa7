//! Files that are derived from a record.

use std::path::Path;

use terminal::exit::CliError;
use terminal::files;

/// Puts what is derived into its file, or compares it with what is there.
pub(super) fn put(file: &Path, text: &str, verify: bool) -> Result<(), CliError> {
    if !verify {
        return files::replace(file, text);
    }
    if std::fs::read_to_string(file).ok().as_deref() == Some(text) {
        return Ok(());
    }
    Err(CliError::bad(format!(
        "{} is not what its record gives; run `cargo workshop capture --derive`",
        file.display()
    )))
}
