//! Chapter 3: a clone in a hot loop.
//! `cargo run -p chapter3 [-- VARIANT]`; the book says what each variant is for.

use chapter3::{clients, exercise, fewer_clones, parse_once, problem, solution};
use clap::ValueEnum;
use lab::Lab;
use warp::Filter;

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    FewerClones,
    ParseOnce,
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
        Variant::ParseOnce => parse_once::routes(clients).boxed(),
    };
    lab.serve(warp::service(routes)).await
}
