//! Requests of real HTTP services, over sockets.
#![allow(missing_docs)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use await_profile::{AwaitProfiler, Frames, Profile, ProfileOptions};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::sleep;

#[path = "../examples/load/mod.rs"]
mod load;

type Db = Arc<Mutex<HashMap<u32, u32>>>;

/// Holds the lock while it waits for the "database".
async fn read(db: Db) -> String {
    let mut rows = db.lock().await;
    sleep(Duration::from_millis(50)).await;
    *rows.entry(1).or_default() += 1;
    "row".to_owned()
}

async fn axum_service(profiler: AwaitProfiler) -> SocketAddr {
    let db = Db::default();
    let app = axum::Router::new()
        .route("/read", axum::routing::get(move || read(db.clone())))
        .layer(profiler.layer());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, app).await });
    address
}

async fn warp_service(profiler: AwaitProfiler) -> SocketAddr {
    use warp::Filter;
    let db = Db::default();
    let filter = warp::path!("read").then(move || read(db.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = tower::ServiceBuilder::new()
        .layer(profiler.layer())
        .service(warp::service(filter));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = hyper_util::service::TowerToHyperService::new(service.clone());
            tokio::spawn(async move {
                let io = hyper_util::rt::TokioIo::new(stream);
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(io, service)
                    .await
                    .ok();
            });
        }
    });
    address
}

async fn profile(profiler: AwaitProfiler) -> Profile {
    while profiler.in_flight() < 90 {
        sleep(Duration::from_millis(10)).await;
    }
    let options = ProfileOptions::lasting(Duration::from_millis(400)).captures_per_second(500);
    profiler.profile(options).await.unwrap()
}

#[track_caller]
fn assert_held_lock(profile: &Profile) {
    let folded = profile.folded(Frames::Own);
    let shares = profile.shares(Frames::Own);
    let lock: f64 = shares
        .iter()
        .filter(|share| {
            matches!(share.frames.as_slice(), [route, handler, lock] if route == "GET /read"
                && handler.starts_with("services::read (tests/services.rs:")
                && lock == "tokio::sync::Mutex::lock")
        })
        .map(|share| share.share)
        .sum();
    assert!(
        lock > 0.95,
        "{lock}:\n{folded}\n{}",
        profile.folded(Frames::All)
    );
    let routes = profile.routes();
    assert_eq!(routes[0].route, "GET /read");
    // By Little's law: 100 connections wait for 20 requests a second.
    let latency = routes[0].latency_ms.unwrap();
    assert!(latency > 2500.0, "{latency}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_lock_in_an_axum_service() {
    let profiler = AwaitProfiler::new().armed();
    let address = axum_service(profiler).await;
    tokio::spawn(load::get(address, "/read", 100));
    assert_held_lock(&profile(profiler).await);
}

#[tokio::test]
async fn a_held_lock_in_a_warp_service_on_one_thread() {
    let profiler = AwaitProfiler::new().armed();
    let address = warp_service(profiler).await;
    tokio::spawn(load::get(address, "/read", 100));
    assert_held_lock(&profile(profiler).await);
}
