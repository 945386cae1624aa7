//! Shared parts of the chapters' servers, so that a chapter contains only what it teaches.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use lab::{Lab, Uses};
//!
//! #[derive(Clone, Copy, clap::ValueEnum)]
//! enum Variant {
//!     Problem,
//!     Exercise,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), lab::Error> {
//!     let (variant, lab) = Lab::start("chapter0", &[Uses::Database])?;
//!     let database = lab.database(Duration::from_millis(50));
//!     let answer = match variant {
//!         Variant::Problem => "slow",
//!         Variant::Exercise => "fast",
//!     };
//!     let read = async move || {
//!         database.call().await;
//!         answer
//!     };
//!     lab.serve(axum::Router::new().route("/read", axum::routing::get(read))).await
//! }
//! ```
//!
//! [`Lab::start`] reads the command line, raises the limit on open files, and binds two listeners: the service's own,
//! and the admin listener. [`Lab::serve`] answers requests until Ctrl-C. A chapter asks the lab for the rest: stand-ins
//! for a [`Database`], an [`Upstream`] and an [archive](Lab::archive), CPU [`Work`], a [`DataSet`] or a [`Replica`] of
//! it. A chapter with a real database tells [`PoolUse`] of each connection that its pool lends. A chapter that answers
//! on threads of its own gets its [`Connection`]s from [`Lab::dispatch`].
//!
//! The admin listener of [`debug_endpoints`] serves profiles and counters. It has a thread of its own, so that a stalled
//! runtime cannot silence it. The lab adds two pages of JSON. `/debug/placement` lists the copies of the data and
//! their readers (chapters with a [`Replica`]); `/debug/records` lists the stand-in [`Database`]'s latest changes, in
//! order.
//!
//! Read the main source files in this order: `options`, `database`, `upstream`, `pool_use`, `work`, `scans`, `records`,
//! `counters`, `metrics`, `listener`, `connection`, `dispatcher`, `archive`.

#[cfg(feature = "allocations")]
mod allocations;
mod archive;
mod cleanup;
mod connection;
mod counters;
mod database;
mod dispatcher;
mod error;
mod heartbeat;
mod listener;
mod locality;
mod memory;
mod metric;
mod metrics;
mod options;
mod pool_use;
mod records;
mod scans;
mod stand_in;
mod upstream;
mod web_service;
mod work;

pub use archive::count_call;
pub use connection::Connection;
pub use database::Database;
pub use error::Error;
pub use listener::Lab;
pub use locality::Replica;
pub use options::{Options, Uses};
pub use pool_use::PoolUse;
pub use scans::DataSet;
pub use upstream::{Upstream, highest_at};
pub use web_service::WebService;
pub use work::Work;

/// Locks a mutex, poisoned or not. Its value is whole even then: no lock here is held over code that can panic.
fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
