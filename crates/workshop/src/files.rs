//! Files written whole or not at all.

use std::io::Write;
use std::path::Path;

use crate::exit::CliError;

/// Makes sure that files can be written into `folder`, before anything is measured for it.
pub(crate) fn writable(folder: &Path) -> Result<(), CliError> {
    let refused = |error: std::io::Error| {
        CliError::usage(format!(
            "{} cannot be written to ({error}); mend its permissions or free some space, or name \
             another folder",
            folder.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(refused)?;
    tempfile::tempfile_in(folder).map(drop).map_err(refused)
}

/// A folder that goes with the value.
pub(crate) fn temporary() -> Result<tempfile::TempDir, CliError> {
    tempfile::tempdir().map_err(CliError::because("a temporary folder cannot be made"))
}

/// Puts `bytes` in place of what `file` held; a failure leaves that as it was.
pub(crate) fn replace(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
    let refused = |error: std::io::Error| {
        CliError::bad(format!(
            "{} cannot be written ({error}); what was there is unchanged: free some space or mend \
             the folder's permissions",
            file.display()
        ))
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(refused)?;
    let mut beside = tempfile::NamedTempFile::new_in(folder).map_err(refused)?;
    beside.write_all(bytes.as_ref()).map_err(refused)?;
    // Temporary files are private; these are for everybody who may read the folder.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let readable = std::fs::Permissions::from_mode(0o644);
        beside
            .as_file()
            .set_permissions(readable)
            .map_err(refused)?;
    }
    beside.persist(file).map_err(|e| refused(e.error))?;
    Ok(())
}
