//! Chapter 8: what all variants stand on, so that each of them shows only how it blocks.
//!
//! Read in this order: `summary` (what is computed), `kept` (where a body is stored until then),
//! `bodies` (where it comes from), `error` (what may go wrong), `strategy` and `pool` (which thread
//! runs what blocks), `service` (all of it, for a request), `by_query` (any combination, chosen in the
//! URL).

mod bodies;
pub mod by_query;
mod error;
mod kept;
mod pool;
mod service;
mod strategy;
mod summary;

pub use bodies::{Bodies, Body};
pub use error::Error;
pub use kept::{IN_MEMORY, Keep, Kept};
pub use pool::Pool;
pub use service::{Asked, Service};
pub use strategy::{Blocking, Strategy};
pub use summary::Summary;
