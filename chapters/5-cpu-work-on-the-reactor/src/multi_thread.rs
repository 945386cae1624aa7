//! A step on the way: the problem on as many threads as CPUs, and each of them still computes.

use tokio::runtime::{Builder, Runtime};

pub(crate) use crate::problem::routes;

/// Runtime as `#[tokio::main]` builds it: a worker thread for each CPU.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}
