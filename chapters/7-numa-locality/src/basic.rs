//! The first of the five stages, from chapter 6: one runtime for all CPUs, and one web server.

use std::sync::LazyLock;

use lab::{Lab, Options};
use tokio::runtime::Builder;

use crate::once::{TEXTS, routes};

/// What `#[tokio::main]` and `axum::serve` make.
///
/// # Errors
///
/// When no runtime can be had, or the address is taken.
pub fn serve(options: Options) -> Result<(), lab::Error> {
    LazyLock::force(&TEXTS);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        lab.serve(routes()).await
    })
}
