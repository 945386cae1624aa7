//! A warp service with the lines that the endpoints need.

use std::io::Error;
use std::net::TcpListener;
use std::time::Duration;

use debug_endpoints::DebugEndpoints;
use tokio::task::spawn_blocking;
use tower::{ServiceBuilder, ServiceExt};
use warp::Filter;

mod common;

#[tokio::test]
async fn requests_of_a_warp_service_are_told_apart_by_method_and_path() -> Result<(), Error> {
    let routes = warp::path!("read").then(async || {
        tokio::time::sleep(Duration::from_secs(600)).await;
        "row"
    });
    let admin = TcpListener::bind("127.0.0.1:0")?;
    let debug = DebugEndpoints::new();
    let address = debug.serve(admin).map_err(Error::other)?;
    let service = ServiceBuilder::new()
        .layer(debug.profiler().layer())
        .service(warp::service(routes));
    let request = axum::http::Request::get("/read").body(String::new());
    let waiting = tokio::spawn(service.oneshot(request.map_err(Error::other)?));
    let asked = spawn_blocking(move || {
        common::ask_until(address, "/debug/await?seconds=0.3", |folded| {
            folded.text().starts_with("GET /read;")
        })
    });
    asked.await?;
    waiting.abort();
    Ok(())
}
