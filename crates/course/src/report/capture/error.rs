//! Errors of a capture, each in one sentence.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::RECORD;
use drawing::flamegraph::FlamegraphError;
use drawing::profile::Profile;

/// A capture that cannot be written, read, derived or trusted.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file system reports an error.
    #[error(
        "{path}: {error}; check that the folder exists, that you may write there, and that there is space."
    )]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The file is not a record of this version.
    #[error("{path}: not a record of this version ({what}); record the capture again.")]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// Cause.
        what: String,
    },
    /// A profile is in the record, but its stacks are missing.
    #[error(
        "{path}: missing, although {RECORD} speaks of it; restore it with `git checkout`, or record the capture again."
    )]
    NoStacks {
        /// The file that is missing.
        path: PathBuf,
    },
    /// The stacks cannot be drawn.
    #[error("{file}: {error}")]
    Stacks {
        /// The file of the stacks.
        file: String,
        /// Cause.
        error: FlamegraphError,
    },
    /// A derived file does not agree with the record.
    #[error(
        "{path}: {difference} what {RECORD} and the folded stacks give; derive the capture again and commit the result."
    )]
    Stale {
        /// The file that differs.
        path: PathBuf,
        /// Kind of disagreement: `missing from`, `differs from`, or `left over, no part of`.
        difference: &'static str,
    },
}

pub(super) fn io_error(path: &Path, error: io::Error) -> CaptureError {
    CaptureError::Io {
        path: path.to_owned(),
        error,
    }
}

pub(super) fn not_a_record(path: &Path, error: &serde_json::Error) -> CaptureError {
    CaptureError::NotARecord {
        path: path.to_owned(),
        what: error.to_string(),
    }
}

pub(crate) fn stacks_error(profile: &Profile, error: FlamegraphError) -> CaptureError {
    CaptureError::Stacks {
        file: profile.folded_name(),
        error,
    }
}
