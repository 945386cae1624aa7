//! A warp service with the profiler. Warp's filters become a tower service, and the
//! layer goes around it.
//!
//! ```text
//! cargo run --example warp_service
//! ```
//!
//! It sends itself requests for three seconds and prints where they waited.

use std::sync::Arc;
use std::time::Duration;

use await_profile::{AwaitProfiler, Frames, ProfileOptions};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceBuilder;
use warp::Filter;

mod load;

async fn query(connections: Arc<Semaphore>) -> &'static str {
    let _connection = connections.acquire().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    "a row"
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let profiler = AwaitProfiler::new().armed();
    let pool = Arc::new(Semaphore::new(5));
    let routes = warp::path!("query").then(move || query(pool.clone()));
    let service = ServiceBuilder::new()
        .layer(profiler.layer())
        .service(warp::service(routes));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(service.clone());
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    tokio::spawn(load::get(address, "/query", 20));

    let profile = profiler
        .profile(ProfileOptions::lasting(Duration::from_secs(3)))
        .await?;
    print!("{}", profile.folded(Frames::Own));
    println!("{:#?}", profile.summary());
    Ok(())
}
