//! Chapter 3: a clone in a hot loop.
//! `cargo run -p chapter3 [-- VARIANT]`; the book says what each variant is for.

use chapter3::{clients, exercise, fewer_clones, problem, solution, sort_once};
use clap::ValueEnum;
use lab::Lab;
use warp::Filter;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    FewerClones,
    SortOnce,
}

#[tokio::main]
async fn main() -> Result<(), lab::Error> {
    let (variant, lab) = Lab::start("chapter3", &[])?;
    let clients = clients::known(lab.data_seed());
    let routes = match variant {
        Variant::Problem => problem::routes(clients).boxed(),
        Variant::Exercise => exercise::routes(clients).boxed(),
        Variant::Solution => solution::routes(clients).boxed(),
        Variant::FewerClones => fewer_clones::routes(clients).boxed(),
        Variant::SortOnce => sort_once::routes(clients).boxed(),
    };
    lab.serve(warp::service(routes)).await
}
