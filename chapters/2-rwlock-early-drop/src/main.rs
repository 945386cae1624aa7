//! Chapter 2: an `RwLock` whose guard lives too long.
//! `cargo run -p chapter2 [-- VARIANT]`; the book says what each variant is for.

mod clients;
mod exercise;
mod mutex_dropped;
mod mutex_held;
mod problem;
mod service;
mod snapshot;
mod solution;

use lab::Lab;

const VARIANTS: &[&str] = &[
    "problem",
    "exercise",
    "solution",
    "mutex-held",
    "mutex-dropped",
    "snapshot",
];

#[tokio::main]
async fn main() -> Result<(), lab::Error> {
    let lab = Lab::start("chapter2", VARIANTS)?;
    let clients = clients::known(lab.data_seed());
    let database = lab.database(std::time::Duration::from_millis(50));

    let routes = match lab.variant() {
        "problem" => service::routes(problem::Directory::new(clients, database)),
        "solution" => service::routes(solution::Directory::new(clients, database)),
        "mutex-held" => service::routes(mutex_held::Directory::new(clients, database)),
        "mutex-dropped" => service::routes(mutex_dropped::Directory::new(clients, database)),
        "snapshot" => service::routes(snapshot::Directory::new(clients, database)),
        _ => service::routes(exercise::Directory::new(clients, database)),
    };
    lab.serve(warp::service(routes)).await
}
