//! Chapter 1: a mutex held across an await.
//!
//! `cargo run -p chapter1 [-- problem|exercise|solution]`; the book has the rest.

mod clients;
mod exercise;
mod problem;
mod solution;

use std::time::Duration;

use lab::Lab;

#[tokio::main]
async fn main() -> Result<(), lab::Error> {
    let lab = Lab::start("chapter1", &["problem", "exercise", "solution"])?;
    let clients = clients::known(lab.data_seed());
    let database = lab.database(Duration::from_millis(50));

    match lab.variant() {
        "problem" => {
            let routes = problem::routes(clients, database);
            lab.serve(warp::service(routes)).await
        }
        "solution" => {
            let routes = solution::routes(clients, database);
            lab.serve(warp::service(routes)).await
        }
        _ => {
            let routes = exercise::routes(clients, database);
            lab.serve(warp::service(routes)).await
        }
    }
}
