//! The files (connections) that a process and its children may hold open.

use thiserror::Error;

/// Fewer files may be open than a load needs connections.
#[derive(Debug, Error)]
#[error(
    "{needed} files (one a connection) must be open at once, but this system allows the process \
     {allowed}; run `ulimit -n {needed}` in this terminal first (as root if it refuses), or ask for fewer users"
)]
pub struct FileLimit {
    /// Files needed.
    pub needed: u64,
    /// The hard limit.
    pub allowed: u64,
}

/// Makes sure that this process may hold `needed` files open, raising its own soft limit if it must.
///
/// # Errors
/// If the hard limit is lower: only the reader can raise that.
pub fn allow_open_files(needed: u64) -> Result<(), FileLimit> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let limit = getrlimit(Resource::Nofile);
        if let Some(current) = limit.current
            && current < needed
        {
            let allowed = limit.maximum.unwrap_or(needed).min(needed);
            let raised = Rlimit {
                current: Some(allowed),
                maximum: limit.maximum,
            };
            // macOS has a lower limit still, and gives no number: connections beyond it will fail.
            let _ = setrlimit(Resource::Nofile, raised);
            if allowed < needed {
                return Err(FileLimit { needed, allowed });
            }
        }
    }
    let _ = needed;
    Ok(())
}
