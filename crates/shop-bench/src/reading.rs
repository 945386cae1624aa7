//! Files that may not be there.

use std::io::Read;
use std::path::Path;

/// Reads a file that may not be there.
///
/// # Errors
///
/// Returns an error if it is there but cannot be read.
pub(crate) fn read_if_there(file: &Path) -> std::io::Result<Option<String>> {
    let mut text = String::new();
    match std::fs::File::open(file) {
        Ok(mut file) => file.read_to_string(&mut text).map(|_| Some(text)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}
