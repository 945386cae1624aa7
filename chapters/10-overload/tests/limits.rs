//! Counts requests at once behind tower's concurrency limits: the table of the book's page on queues.
//!
//! Each client has a connection of its own, since axum applies the layers of a router without state anew for each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tower::limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer};
use tower::{BoxError, ServiceBuilder};

/// The system limits open files, and each client takes two of them here.
const CLIENTS: usize = 100;
const LIMIT: usize = 8;

/// Makes a service with so many routes, whose requests wait at the gate.
type Service = fn(&Gate, usize) -> Router;

const PAGE: &str = include_str!("../../../src/further/queues.md");

#[tokio::test]
async fn the_page_has_the_requests_at_once_of_each_form() {
    let own = "`ConcurrencyLimitLayer`";
    let global = "`GlobalConcurrencyLimitLayer`";
    let forms: [(&str, &str, Service); 6] = [
        (own, "without state", |gate, routes| {
            own_limits(without_state(gate, routes))
        }),
        (
            own,
            "with state, `layer` before `with_state`",
            |gate, routes| own_limits(with_state(routes)).with_state(gate.clone()),
        ),
        (
            own,
            "with state, `layer` after `with_state`",
            |gate, routes| own_limits(with_state(routes).with_state(gate.clone())),
        ),
        (global, "any of these", |gate, routes| {
            one_limit(without_state(gate, routes))
        }),
        (global, "any of these", |gate, routes| {
            one_limit(with_state(routes)).with_state(gate.clone())
        }),
        (global, "any of these", |gate, routes| {
            one_limit(with_state(routes).with_state(gate.clone()))
        }),
    ];
    let mut rows = Vec::new();
    for (layer, router, service) in forms {
        let one = at_once(service, 1).await;
        let five = at_once(service, 5).await;
        rows.push(format!("| {layer} | {router} | {one} | {five} |"));
    }
    rows.dedup();
    let table = rows.join("\n");
    assert!(
        PAGE.contains(&table),
        "src/further/queues.md needs these rows:\n{table}"
    );
}

#[tokio::test]
async fn without_load_shed_outside_of_the_limit_nobody_is_refused() {
    let forms: [(&str, Service); 2] = [
        ("the limit alone", |gate, routes| {
            without_state(gate, routes).layer(GlobalConcurrencyLimitLayer::new(LIMIT))
        }),
        ("load_shed inside of the limit", |gate, routes| {
            let layers = ServiceBuilder::new()
                .layer(HandleErrorLayer::new(refuse))
                .layer(GlobalConcurrencyLimitLayer::new(LIMIT))
                .load_shed();
            without_state(gate, routes).layer(layers)
        }),
    ];
    for (form, service) in forms {
        let (gate, events) = Gate::closed();
        let crowd = crowd(service(&gate, 1), 1, gate, events, LIMIT).await;
        assert_eq!((crowd.served, crowd.refused), (CLIENTS, 0), "{form}");
        assert_eq!(crowd.most, LIMIT, "{form}: requests at once");
    }
}

/// Returns the most requests inside at once. The others must have got a 503 while these waited.
async fn at_once(service: Service, routes: usize) -> usize {
    let (gate, events) = Gate::closed();
    let crowd = crowd(service(&gate, routes), routes, gate, events, CLIENTS).await;
    assert_eq!(crowd.served, crowd.most, "{crowd:?}");
    assert_eq!(crowd.refused, CLIENTS - crowd.most, "{crowd:?}");
    crowd.most
}

/// Adds the layer that makes a semaphore for each service it wraps.
fn own_limits<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(refuse))
        .load_shed()
        .layer(ConcurrencyLimitLayer::new(LIMIT));
    router.layer(layers)
}

/// Adds the layer whose services share a semaphore.
fn one_limit<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(refuse))
        .load_shed()
        .layer(GlobalConcurrencyLimitLayer::new(LIMIT));
    router.layer(layers)
}

async fn refuse(_: BoxError) -> StatusCode {
    StatusCode::SERVICE_UNAVAILABLE
}

fn with_state(routes: usize) -> Router<Gate> {
    (0..routes).fold(Router::new(), |router, route| {
        let handler = async |State(gate): State<Gate>| gate.pass().await;
        router.route(&format!("/{route}"), get(handler))
    })
}

fn without_state(gate: &Gate, routes: usize) -> Router {
    (0..routes).fold(Router::new(), |router, route| {
        let gate = gate.clone();
        let handler = async move || gate.pass().await;
        router.route(&format!("/{route}"), get(handler))
    })
}

/// Holds requests until it is opened, and counts those inside.
#[derive(Debug, Clone)]
struct Gate {
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    opened: Arc<Semaphore>,
    /// A message for each request that came in or was refused.
    events: mpsc::UnboundedSender<()>,
}

impl Gate {
    fn closed() -> (Self, mpsc::UnboundedReceiver<()>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let gate = Self {
            inside: Arc::default(),
            most: Arc::default(),
            opened: Arc::new(Semaphore::new(0)),
            events: sender,
        };
        (gate, receiver)
    }

    async fn pass(self) {
        let inside = self.inside.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(inside, SeqCst);
        self.events.send(()).expect("the test counts events");
        // No permit is ever added: this returns when the semaphore is closed.
        let _ = self.opened.acquire().await;
        self.inside.fetch_sub(1, SeqCst);
    }
}

/// What became of all clients.
#[derive(Debug)]
struct Crowd {
    /// Most requests inside at once.
    most: usize,
    served: usize,
    refused: usize,
}

/// Lets all clients ask at once, and opens the gate after `until` of them came in or were refused.
async fn crowd(
    service: Router,
    routes: usize,
    gate: Gate,
    mut events: mpsc::UnboundedReceiver<()>,
    until: usize,
) -> Crowd {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound listener");
    let server = tokio::spawn(axum::serve(listener, service).into_future());
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let events = gate.events.clone();
        clients.spawn(async move {
            let status = ask(address, client % routes).await;
            if status == 503 {
                events.send(()).expect("the test counts events");
            }
            status
        });
    }
    let all = async {
        for _ in 0..until {
            events.recv().await;
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(60), all).await;
    seen.expect("each client comes in or is refused");
    gate.opened.close();
    let answers = clients.join_all().await;
    server.abort();
    Crowd {
        most: gate.most.load(SeqCst),
        served: answers.iter().filter(|status| **status == 200).count(),
        refused: answers.iter().filter(|status| **status == 503).count(),
    }
}

/// Asks on a connection of its own, and returns the status.
async fn ask(server: SocketAddr, route: usize) -> u16 {
    let mut stream = TcpStream::connect(server).await.expect("the server runs");
    let request = format!("GET /{route} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n");
    let written = stream.write_all(request.as_bytes()).await;
    written.expect("the server reads");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer).await;
    read.expect("the server answers");
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    status.expect("an answer begins with its status")
}
