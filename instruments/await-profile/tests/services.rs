//! Requests of real HTTP services, over sockets.
#![allow(missing_docs)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use await_profile::{AwaitProfiler, Frames, GrpcMethod, Profile, ProfileOptions};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tower::ServiceExt;

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

async fn axum_service(profiler: &AwaitProfiler) -> SocketAddr {
    let db = Db::default();
    let app = axum::Router::new()
        .route("/read", axum::routing::get(move || read(db.clone())))
        .layer(profiler.layer());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, app).await });
    address
}

async fn warp_service(profiler: &AwaitProfiler) -> SocketAddr {
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

/// Takes up to three profiles until one is right, and returns it. A machine that stands still may leave one without samples,
/// or make requests slow where they do not wait.
async fn profile_once(
    profiler: &AwaitProfiler,
    millis: u64,
    is_right: impl Fn(&Profile) -> bool,
) -> Profile {
    let mut wrong = Vec::new();
    while wrong.len() < 3 {
        let options = ProfileOptions::lasting(Duration::from_millis(millis));
        let profile = profiler.profile(options.captures_per_second(1000)).await;
        let profile = profile.unwrap();
        if is_right(&profile) {
            return profile;
        }
        wrong.push(profile.folded(Frames::All));
    }
    panic!("{wrong:#?}");
}

async fn assert_held_lock(profiler: &AwaitProfiler) {
    while profiler.in_flight() < 90 {
        sleep(Duration::from_millis(10)).await;
    }
    profile_once(profiler, 2000, is_held_lock).await;
}

fn is_held_lock(profile: &Profile) -> bool {
    let shares = profile.shares(Frames::Own);
    let lock: f64 = shares
        .iter()
        .filter(|share| {
            matches!(share.frames.as_slice(), [handler, lock] if share.route == "GET /read"
                && handler.function() == Some("services::read")
                && handler.line().is_some()
                && *lock == "tokio::sync::Mutex::lock")
        })
        .map(|share| share.share)
        .sum();
    let routes = profile.routes();
    assert_eq!(routes[0].name, "GET /read");
    // By Little's law: 100 connections wait for 20 requests a second.
    let latency = routes[0].latency_ms;
    lock > 0.95 && latency.is_some_and(|latency| latency > 2500.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_lock_in_an_axum_service() {
    let profiler = AwaitProfiler::new().armed();
    let address = axum_service(&profiler).await;
    tokio::spawn(load::get(address, "/read", 100));
    assert_held_lock(&profiler).await;
}

#[tokio::test]
async fn a_held_lock_in_a_warp_service_on_one_thread() {
    let profiler = AwaitProfiler::new().armed();
    let address = warp_service(&profiler).await;
    tokio::spawn(load::get(address, "/read", 100));
    assert_held_lock(&profiler).await;
}

/// Calls a service that takes one request at a time.
#[tokio::test]
async fn callers_that_wait_for_the_service_are_seen_and_counted() {
    let profiler = AwaitProfiler::new().armed();
    let service = tower::ServiceBuilder::new()
        .layer(profiler.layer_named(GrpcMethod))
        .concurrency_limit(1)
        .service_fn(async |_: http::Request<()>| {
            sleep(Duration::from_secs(3600)).await;
            Ok::<_, std::convert::Infallible>(http::Response::new(()))
        });
    for caller in 0..10 {
        let path = if caller == 0 {
            "/shop.Cart/Add"
        } else {
            "/.git/HEAD"
        };
        let request = http::Request::post(path).body(()).unwrap();
        tokio::spawn(service.clone().oneshot(request));
    }
    while profiler.in_flight() < 10 {
        tokio::task::yield_now().await;
    }
    let queueing = "(queueing: the service is not ready)";
    let limit = "(waiting for a permit of the concurrency limit)";
    let profile = profile_once(&profiler, 200, |profile| {
        let shares = profile.shares(Frames::Own);
        let mut queue = shares.iter().filter(|share| share.route == queueing);
        let is_at_limit = queue.next().is_some_and(|queue| {
            let is_limit = queue.frames.last().is_some_and(|last| *last == limit);
            let kind = queue.wait.as_ref().map(|wait| wait.kind);
            is_limit && kind == Some(await_profile::WaitKind::Limit)
        });
        is_at_limit && profile.routes().len() > 1
    });
    let profile = profile.await;
    let routes = profile.routes();
    let in_flight = routes
        .iter()
        .map(|route| (route.name.as_str(), route.in_flight.round()));
    let mut in_flight: Vec<_> = in_flight.collect();
    in_flight.sort_by(|a, b| a.1.total_cmp(&b.1));
    assert_eq!(in_flight[1].0, queueing, "{in_flight:?}");
    assert_eq!(in_flight[0].0, "shop.Cart/Add", "{in_flight:?}");
    drop(service);
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn routes_are_named_as_axum_matched_them() {
    use await_profile::MatchedRoute;
    use axum::body::Body;
    let profiler = AwaitProfiler::new().armed();
    let users = async || sleep(Duration::from_secs(3600)).await;
    let missing = async || sleep(Duration::from_secs(3600)).await;
    let app = axum::Router::new()
        .route("/users/{id}", axum::routing::get(users))
        .fallback(missing)
        .layer(profiler.layer_named(MatchedRoute));
    for path in ["/users/1", "/users/2", "/wp-login.php"] {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        tokio::spawn(app.clone().oneshot(request));
    }
    while profiler.in_flight() < 3 {
        tokio::task::yield_now().await;
    }
    let profile = profile_once(&profiler, 100, |profile| profile.routes().len() > 1).await;
    let mut routes: Vec<_> = profile
        .routes()
        .into_iter()
        .map(|route| route.name)
        .collect();
    routes.sort();
    assert_eq!(routes, ["GET (no route)", "GET /users/{id}"]);
}

/// Asks for the body of a stream that hangs, with and without tracking of bodies.
#[cfg(feature = "axum")]
#[tokio::test]
async fn a_streamed_body_is_seen_unless_bodies_are_left_alone() {
    use axum::body::{Body, Bytes, to_bytes};
    use axum::routing::get;
    let hangs = async || {
        let never = futures_util::stream::once(async {
            sleep(Duration::from_secs(3600)).await;
            Ok::<_, std::convert::Infallible>(Bytes::new())
        });
        Body::from_stream(never)
    };
    let app = axum::Router::new().route("/events", get(hangs));
    for (without, bodies) in [(false, 1), (true, 0)] {
        let profiler = AwaitProfiler::new().armed();
        let layer = profiler.layer();
        let app = if without {
            app.clone().layer(layer.without_bodies())
        } else {
            app.clone().layer(layer)
        };
        let request = http::Request::get("/events").body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        tokio::spawn(to_bytes(response.into_body(), usize::MAX));
        sleep(Duration::from_millis(20)).await;
        assert_eq!(profiler.in_flight(), bodies);
        if bodies == 1 {
            profile_once(&profiler, 100, |profile| {
                let shares = profile.shares(Frames::Own);
                let Some(place) = shares.first() else {
                    return false;
                };
                assert_eq!(place.route, "body of GET /events", "{place:?}");
                *place.frames.last().unwrap() == "tokio::time::Sleep"
            })
            .await;
        }
    }
}
