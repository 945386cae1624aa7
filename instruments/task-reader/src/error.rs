//! Errors, in one sentence each.

use std::path::PathBuf;

/// Reason for which the tasks of a process cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process is gone, or was never there.
    #[error("no process has the number {0}: check it with `ps`")]
    NoProcess(u32),
    /// The system does not allow it.
    #[error(
        "process {pid} may not be read ({reason}): run this as its user or as root, and in a container with the capability SYS_PTRACE"
    )]
    Denied {
        /// Number of the process.
        pid: u32,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// The system does not let the calling process be read by a child of its own.
    #[error("the tasks of this process cannot be read: {0}")]
    Refused(String),
    /// The program's file cannot be read.
    #[error("{path} cannot be read: {reason}")]
    Unreadable {
        /// File of the program.
        path: PathBuf,
        /// Fault that it has.
        reason: String,
    },
    /// The program has no description of types.
    #[error(
        "{path} has no debug information of types: add `debug = true` below `[profile.release]` in Cargo.toml, or below the profile that it is built with, and build and start it again{hint}"
    )]
    NoTypes {
        /// File of the program.
        path: PathBuf,
        /// Information that was found in place of the types, with a leading space.
        hint: &'static str,
    },
    /// The debug information does not know tokio's runtime.
    #[error(
        "the debug information does not describe {0}: the program does not use tokio's runtime, or tokio was built without `debug = true`"
    )]
    NoRuntime(&'static str),
    /// Tokio is in a library that the process has loaded.
    #[error(
        "tokio is in the shared library {0}: its tasks are only read if it is linked into the program itself"
    )]
    InLibrary(String),
    /// The program has copies of tokio whose tasks cannot be told apart.
    #[error(
        "the program has copies of tokio whose lists of tasks differ: build it with one version of tokio"
    )]
    Copies,
    /// A field by which tokio's tasks are found is missing.
    #[error(
        "type {type_name} has no field `{field}` on the way {path}: this version of tokio is not known here"
    )]
    NoField {
        /// Type in which the field was looked for.
        type_name: String,
        /// Missing field.
        field: String,
        /// The whole path of fields.
        path: String,
    },
}
