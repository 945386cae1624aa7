//! Every task of a running tokio process, by its debug information: where it waits, what it holds, and who waits for whom.
//!
//! The process needs no change, and tokio no unstable features. Its program needs full debug information, which a default
//! development build has; a release build needs `debug = true` in its profile.
//!
//! ```no_run
//! use task_reader::{Binary, Index, Reader};
//!
//! # fn main() -> Result<(), task_reader::Error> {
//! let binary = Binary::of_process(4711)?;
//! let index = Index::new(&binary)?;
//! println!("{}", Reader::new(&index).snapshot(4711)?);
//! # Ok(())
//! # }
//! ```
//!
//! The compiler describes each `async fn` and block as a type with a variant for each `.await`. The variant has the line of
//! the await, the awaited future, and the locals that live across it. No offset of tokio is written down here: fields are
//! found by their names, and the tables of [`ecosystem::kinds`] say what types mean.
//!
//! A **holder** is named only if the state of the lock or channel agrees: it has as many holders as such values were found.
//! The compiler keeps the places of some values that were dropped, so a value alone proves nothing.
//!
//! Names and types are read, and values of variables are not.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("task-reader reads processes of 64-bit Linux");

mod binary;
mod blocked;
mod calls;
mod contained;
mod drops;
mod error;
mod graph;
mod index;
mod libraries;
mod locals;
mod machine;
mod mapped;
mod memory;
mod model;
mod names;
mod pass;
mod process;
mod reader;
mod receivers;
mod report;
mod runtime;
mod shadowed;
mod sockets;
mod sums;
mod svg;
mod task_type;
mod tell;
mod text;
mod types;
mod value;
mod walk;
mod watch;

pub use binary::Binary;
pub use error::Error;
pub use index::Index;
pub use model::{
    Certainty, Circle, Frame, Hold, Resource, Snapshot, Stage, Standstill, State, Task, Wait,
};
pub use reader::Reader;
pub use report::{
    Deadlock, Group, Holder, Holds, Level, Link, Report, TaskRef, VERSION, WaitsFor, Wanted,
};
pub use runtime::Flavor;
pub use text::shortened;
pub use types::Line;
pub use watch::SNAPSHOTS;
