//! Workers that wait for rayon's threads: a handler calls a parallel iterator, and its worker sleeps until it is done.
//!
//! Reports: vercel/turborepo#12253, seanmonstar/reqwest#926.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use rayon::prelude::*;
use tokio::sync::oneshot;

fn score() -> usize {
    let scores = (0..20_u32).into_par_iter();
    scores
        .map(|_| field::compute(Duration::from_micros(500)))
        .count()
}

async fn rank(State(is_fixed): State<bool>) -> Result<String, StatusCode> {
    let scores = if is_fixed {
        let (answer, scores) = oneshot::channel();
        rayon::spawn(|| {
            // Whoever asked may be gone.
            let _ = answer.send(score());
        });
        scores
            .await
            .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?
    } else {
        // The fault: this thread answers nobody else meanwhile.
        score()
    };
    Ok(format!("{scores} scores"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new().route("/rank", get(rank));
    field::serve(&arguments, routes.with_state(arguments.fixed)).await
}
