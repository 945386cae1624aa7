//! Chapter 2: an `RwLock` whose guard lives too long.
//! `cargo run -p chapter2 [-- VARIANT]`; the book says what each variant is for.

mod clients;
mod exercise;
mod mutex;
mod problem;
mod service;
mod snapshot;
mod solution;

use std::time::Duration;

use clap::ValueEnum;
use lab::{Lab, Uses};

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    MutexHeld,
    MutexDropped,
    Snapshot,
}

#[tokio::main]
async fn main() -> Result<(), lab::Error> {
    let (variant, lab) = Lab::start("chapter2", &[Uses::Database])?;
    let clients = clients::known(lab.data_seed());
    let database = lab.database(Duration::from_millis(50));

    let routes = match variant {
        Variant::Problem => service::routes(problem::Directory::new(clients, database)),
        Variant::Exercise => service::routes(exercise::Directory::new(clients, database)),
        Variant::Solution => service::routes(solution::Directory::new(clients, database)),
        Variant::MutexHeld => service::routes(mutex::Directory::new(clients, database, true)),
        Variant::MutexDropped => service::routes(mutex::Directory::new(clients, database, false)),
        Variant::Snapshot => service::routes(snapshot::Directory::new(clients, database)),
    };
    lab.serve(warp::service(routes)).await
}
