//! A chapter's service in a small machine that has several NUMA nodes, under QEMU.
//!
//! Most computers have one node, so code for several nodes has no effect on them. An emulated machine
//! has as many nodes as you like. Its speed means nothing. But its kernel places pages as any kernel
//! does, and the emulator sees every load.
//!
//! - [`commands`] are those of the program `numa`, which `cargo workshop prove 7 --numa-nodes 4` starts. It runs each
//!   variant in a machine of its own. The machine's first program is `numa-guest`, in this crate's folder.
//! - [`record::Record`] holds the counts.
//! - [`verdict::judge`] and [`table()`] are pure functions of that record:
//!
//! ```
//! let recorded = include_str!("../../../flamegraphs/chapter7/regions/4x2.json");
//! let record: numa::record::Record = serde_json::from_str(recorded)?;
//! let verdict = numa::verdict::judge(&record, "solution");
//! assert!(verdict.reason.starts_with("loads from the reader's own region: 25.0 %"));
//! # Ok::<(), serde_json::Error>(())
//! ```

#[macro_use]
extern crate terminal;

pub mod cli;
pub mod commands;
mod initramfs;
mod loads;
mod machine;
mod machines;
mod plugin;
pub mod record;
mod table;
pub mod verdict;

pub use self::table::{table, values};
