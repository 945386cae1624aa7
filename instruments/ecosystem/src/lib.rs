//! Meanings of the function names that are found in the stacks of async services.
//!
//! The names are data: [`ecosystem.md`](https://docs.rs/crate/ecosystem/latest/source/src/ecosystem.md) lists crates,
//! modules, functions and types with their meanings. This crate reads that file once and answers questions about a name.
//!
//! ```
//! use ecosystem::{PathMeaning, place_of};
//!
//! // Is the crate a layer between executor and handler, so that its frames are in every stack?
//! assert!(place_of("hyper").is_some());
//! // Does a task in this function wait for a lock, timer, channel or socket?
//! assert!(PathMeaning::Primitive.fits("tokio::sync::Mutex::lock"));
//! ```
//!
//! [`Requests`] is what an await profile observed of requests, with typed [`Frame`]s: instruments fill it, rules read it.
//!
//! Names of threads and routes may come from clients or other programs, and contain anything: [`printable()`] makes them
//! safe to print, and [`escaped()`] safe in a page. Numbers for people are written by [`figures`].

mod crate_of;
pub mod figures;
mod frame;
pub mod kinds;
pub mod maps;
mod names;
mod printable;
mod requests;
mod role;
mod tables;
pub mod thresholds;
mod waits;
mod work;

pub use crate_of::crate_of;
pub use frame::{Frame, Line, innermost_line, path};
pub use names::{
    Carrier, LANGUAGE, PartMeaning, PathMeaning, carriers, carries_requests, is_awaited,
    is_framework_crate, is_of_runtime, is_within, makes_client, place_of, public_path,
    starts_thread, waits_for_disk, waits_for_others,
};
pub use printable::{escaped, printable};
pub use requests::{Answers, Interval, Place, Release, Requests, Route, Sequence, Unpolled};
pub use role::Role;
pub use waits::{BODY_OF, Wait, WaitKind, WaitRow, wait_in, wait_named, waits};
pub use work::{Work, work_of};
