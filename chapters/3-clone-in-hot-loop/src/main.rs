//! Chapter 3: a clone in a hot loop.
//!
//! `cargo run -p chapter3 [-- problem|exercise|solution|parse-once]`; the book has the rest.

use chapter3::{clients, exercise, parse_once, problem, solution};
use lab::Lab;
use warp::Filter;

#[tokio::main]
async fn main() -> Result<(), lab::Error> {
    let variants = &["problem", "exercise", "solution", "parse-once"];
    let lab = Lab::start("chapter3", variants)?;
    let clients = clients::known(lab.data_seed());

    let routes = match lab.variant() {
        "problem" => problem::routes(clients).boxed(),
        "solution" => solution::routes(clients).boxed(),
        "parse-once" => parse_once::routes(clients).boxed(),
        _ => exercise::routes(clients).boxed(),
    };
    lab.serve(warp::service(routes)).await
}
