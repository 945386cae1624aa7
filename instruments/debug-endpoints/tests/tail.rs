//! Services with a high 99th percentile: the tail names the place, and the mean of the same profile does not.
//!
//! Every request takes about 5 ms, and one to two in a hundred take more than ten times as long.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use common::{Answer, ask, once_in_three};
use debug_endpoints::DebugEndpoints;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::time::sleep;
use tower::ServiceExt;

/// There is one profile at a time in a process, and these tests share one.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Time that every request takes.
const WORK: Duration = Duration::from_millis(4);
/// Time that the rare event takes.
const EVENT: Duration = Duration::from_millis(80);
/// Time between two such events.
const BETWEEN: Duration = Duration::from_millis(320);
/// Number of clients that ask one request after the other.
const CLIENTS: usize = 8;

/// Sends requests for `path` to the service, one after the other, and one each [`BETWEEN`] for `rare`.
fn load(app: &Router, path: &'static str, rare: Option<&'static str>) {
    let client = |path: &'static str, pause: Duration| {
        let app = app.clone();
        tokio::spawn(async move {
            loop {
                let request = Request::get(path).body(Body::empty()).expect("a request");
                let answer = app.clone().oneshot(request).await.expect("an answer");
                assert_eq!(answer.status(), StatusCode::OK, "{path}");
                sleep(pause).await;
            }
        });
    };
    for _ in 0..CLIENTS {
        client(path, Duration::ZERO);
    }
    if let Some(rare) = rare {
        client(rare, BETWEEN);
    }
}

/// Starts a service on this many worker threads, and returns its runtime and the address of its endpoints.
fn started(
    workers: usize,
    routes: impl FnOnce() -> Router,
    rare: Option<&'static str>,
) -> (Runtime, SocketAddr) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(workers).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let admin = runtime.block_on(async {
        let debug = DebugEndpoints::new();
        let app = routes().layer(debug.layer());
        load(&app, "/item", rare);
        debug.listen("127.0.0.1:0").expect("a free port")
    });
    (runtime, admin)
}

/// Asserts that the tail of `GET /item` is at a place with `name`, which the rest and the mean of all requests lack, and
/// that `is_right` for it. A machine that stands still makes requests slow at any place, and may leave too few of them.
fn assert_tail(admin: SocketAddr, name: &str, is_right: impl Fn(&Value) -> bool) {
    once_in_three(|| {
        let answer = ask(
            admin,
            "/debug/look?seconds=4&tail=99&captures=500&format=json",
        );
        let tail: Value = serde_json::from_str(&answer.text()).unwrap_or_default();
        (is_tail(admin, &tail, name, &is_right), answer)
    });
}

fn is_tail(
    admin: SocketAddr,
    tail: &Value,
    name: &str,
    is_right: &impl Fn(&Value) -> bool,
) -> bool {
    let mut routes = tail["routes"].as_array().into_iter().flatten();
    let Some(item) = routes.find(|route| route["route"] == "GET /item") else {
        return false;
    };
    let first = &item["places"][0];
    let place = first["place"].as_str().unwrap_or_default();
    if item["finding"] != "tail" || !place.contains(name) || !is_right(item) {
        return false;
    }
    let text = tail["text"].as_str().expect("text");
    assert!(
        text.contains("GET /item: p99 ") && text.contains(place),
        "{text}"
    );
    assert!(
        text.contains("of the time of the slowest 1 % is "),
        "{text}"
    );

    // The same profile, all requests together: most of the time goes elsewhere.
    let summary = ask(admin, "/debug/await/last?format=json").text();
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let places = summary["places"].as_array().expect("places");
    let most = places.iter().find(|place| place["route"] == "GET /item");
    let most = &most.expect("the route was seen")["frames"];
    let share = |key: &str| first[key].as_f64().expect("a share");
    share("slowest_share") > 0.5 && share("rest_share") < 0.3 && *most != first["frames"]
}

async fn work() -> &'static str {
    sleep(WORK).await;
    "done"
}

#[test]
fn a_lock_that_a_rare_writer_holds() {
    async fn read_catalogue(State(catalogue): State<Arc<Mutex<u64>>>) -> &'static str {
        drop(catalogue.lock().await);
        work().await
    }
    async fn write_catalogue(State(catalogue): State<Arc<Mutex<u64>>>) -> &'static str {
        let mut catalogue = catalogue.lock().await;
        sleep(EVENT).await;
        *catalogue += 1;
        "written"
    }
    let _alone = ALONE.lock();
    let routes = || {
        let routes = Router::new().route("/item", get(read_catalogue));
        let routes = routes.route("/update", get(write_catalogue));
        routes.with_state(Arc::default())
    };
    let (_runtime, admin) = started(2, routes, Some("/update"));
    assert_tail(admin, "read_catalogue", |item| {
        let let_go_by = item["places"][0]["let_go_by"].to_string();
        let_go_by.contains("write_catalogue")
    });
}

#[test]
fn a_pool_that_a_report_drains() {
    const CONNECTIONS: u32 = 8;
    async fn item(State(pool): State<Arc<Semaphore>>) -> &'static str {
        let _connection = take_connection(&pool, 1).await;
        work().await
    }
    async fn take_connection(pool: &Semaphore, count: u32) -> tokio::sync::SemaphorePermit<'_> {
        pool.acquire_many(count).await.expect("never closed")
    }
    async fn report(State(pool): State<Arc<Semaphore>>) -> &'static str {
        let _all = take_connection(&pool, CONNECTIONS).await;
        sleep(EVENT).await;
        "reported"
    }
    let _alone = ALONE.lock();
    let routes = || {
        let routes = Router::new()
            .route("/item", get(item))
            .route("/report", get(report));
        routes.with_state(Arc::new(Semaphore::new(CONNECTIONS as usize)))
    };
    let (_runtime, admin) = started(2, routes, Some("/report"));
    assert_tail(admin, "take_connection", |_| true);
}

#[test]
fn a_burst_of_cpu_time_on_a_worker_thread() {
    async fn report() -> &'static str {
        let began = Instant::now();
        while began.elapsed() < EVENT {
            std::hint::black_box(began);
        }
        "computed"
    }
    let _alone = ALONE.lock();
    let routes = || {
        Router::new()
            .route("/item", get(work))
            .route("/report", get(report))
    };
    let (_runtime, admin) = started(1, routes, Some("/report"));
    assert_tail(admin, "(ready", |item| {
        item["places"][0]["meanwhile"] == "GET /report"
    });
}

#[test]
fn a_retry() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    async fn item() -> &'static str {
        while !call_upstream().await {
            back_off().await;
        }
        "done"
    }
    async fn call_upstream() -> bool {
        sleep(WORK).await;
        !CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(64)
    }
    async fn back_off() {
        sleep(EVENT).await;
    }
    let _alone = ALONE.lock();
    let (_runtime, admin) = started(2, || Router::new().route("/item", get(item)), None);
    assert_tail(admin, "back_off", |_| true);
}

#[test]
fn a_periodic_flush() {
    async fn item(State(log): State<mpsc::Sender<u64>>) -> &'static str {
        write_log(&log).await;
        work().await
    }
    async fn write_log(log: &mpsc::Sender<u64>) {
        log.send(1).await.expect("it is read");
    }
    let _alone = ALONE.lock();
    let routes = || {
        let (log, mut lines) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut flushed = Instant::now();
            while lines.recv().await.is_some() {
                if flushed.elapsed() > BETWEEN {
                    sleep(EVENT).await;
                    flushed = Instant::now();
                }
            }
        });
        Router::new().route("/item", get(item)).with_state(log)
    };
    let (_runtime, admin) = started(2, routes, None);
    assert_tail(admin, "write_log", |_| true);
}

#[test]
fn a_tail_comes_as_stacks_and_as_a_picture_or_says_what_it_lacks() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    async fn item() -> &'static str {
        if CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
            sleep(EVENT).await;
        }
        work().await
    }
    let _alone = ALONE.lock();
    let routes = || {
        let routes = Router::new().route("/item", get(item));
        routes.route("/rare", get(|| async { "rare" }))
    };
    let (_runtime, admin) = started(2, routes, Some("/rare"));

    for nonsense in ["100", "0", "much", "-5", "NaN"] {
        let answer = ask(admin, &format!("/debug/await?seconds=1&tail={nonsense}"));
        assert_eq!(answer.status, 400, "{nonsense}");
        assert!(
            answer.text().contains("from 50 to 99.99"),
            "{}",
            answer.text()
        );
    }
    let pprof = ask(admin, "/debug/await?seconds=1&tail=99&format=pprof");
    assert_eq!(pprof.status, 400, "{}", pprof.text());

    let few = ask(admin, "/debug/await?seconds=0.2&tail=99.9");
    assert_eq!(few.status, 404, "{}", few.text());
    assert!(
        few.text().contains("too few requests for a tail"),
        "{}",
        few.text()
    );
    assert!(few.text().contains("10000 are needed"), "{}", few.text());

    // In three seconds a busy machine may have too few requests.
    let tail = |format: &str| -> Answer {
        once_in_three(|| {
            let path = format!("/debug/await?seconds=3&tail=99&captures=500{format}");
            let answer = ask(admin, &path);
            (answer.status != 404, answer)
        })
    };
    let folded = tail("");
    assert_eq!(folded.status, 200, "{}", folded.text());
    assert!(folded.text().contains("GET /item;"), "{}", folded.text());
    let note = folded.head.lines().find(|line| line.starts_with("x-note"));
    let note = note.unwrap_or_else(|| panic!("{}", folded.head));
    assert!(note.contains("that began before"), "{note}");
    assert!(note.contains("too few requests or samples: 1"), "{note}");

    let drawn = tail("&format=svg");
    if cfg!(feature = "flamegraph") {
        assert_eq!(drawn.status, 200, "{}", drawn.text());
        assert!(
            drawn
                .text()
                .contains("red: a larger share than of the rest")
        );
    } else {
        assert_eq!(drawn.status, 501, "{}", drawn.text());
    }
}
