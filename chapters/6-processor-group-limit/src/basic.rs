//! The first stage: one runtime with a thread for each CPU, and one web server on it.

use lab::{Lab, Options};
use tokio::runtime::Builder;

use crate::service::routes;
use crate::texts::Texts;

/// Runtime and server as `#[tokio::main]` and `axum::serve` make them.
pub(crate) fn serve(options: Options, texts: Texts) -> Result<(), lab::Error> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        lab.serve(routes(texts)).await
    })
}
