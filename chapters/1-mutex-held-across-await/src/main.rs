//! Chapter 1: a mutex held across an await.
//! `cargo run -p chapter1 [-- VARIANT]`; the book says what each variant is for.

mod clients;
mod exercise;
mod problem;
mod solution;

use std::time::Duration;

use clap::ValueEnum;
use lab::{Lab, Uses};

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
}

#[tokio::main]
async fn main() -> Result<(), lab::Error> {
    let (variant, lab) = Lab::start("chapter1", &[Uses::Database])?;
    let clients = clients::known(lab.data_seed());
    let database = lab.database(Duration::from_millis(50));

    match variant {
        Variant::Problem => {
            let routes = problem::routes(clients, database);
            lab.serve(warp::service(routes)).await
        }
        Variant::Exercise => {
            let routes = exercise::routes(clients, database);
            lab.serve(warp::service(routes)).await
        }
        Variant::Solution => {
            let routes = solution::routes(clients, database);
            lab.serve(warp::service(routes)).await
        }
    }
}
