//! Answers are compressed by brotli at its slowest level, on the threads that run requests. With `--fixed` it is a fast one.
//!
//! Reports: poem-web/poem#388, tower-rs/tower-http#356, apollographql/router#6857.

use std::fmt::Write as _;

use axum::Router;
use axum::routing::get;
use field::Arguments;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

const ARTICLES: u64 = 400;

/// Returns articles that are not all alike.
fn articles() -> String {
    let mut text = String::from("[");
    let mut number = 3_u64;
    for article in 0..ARTICLES {
        let _ = write!(text, "{{\"id\":{article},\"words\":[");
        for _ in 0..30 {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let _ = write!(text, "\"word{}\",", number >> 54);
        }
        text += "0]},";
    }
    text + "0]"
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let level = if arguments.fixed {
        CompressionLevel::Fastest
    } else {
        // The fault.
        CompressionLevel::Best
    };
    let feed = articles();
    let routes = Router::new()
        .route("/feed", get(move || std::future::ready(feed.clone())))
        .layer(CompressionLayer::new().br(true).quality(level));
    field::serve(&arguments, routes).await
}
