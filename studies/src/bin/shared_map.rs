//! The published service with a shared map, all four routes: `shared-map.md`.
//!
//! `/read` holds the mutex of a map for a call of 50 ms, `/fast` drops the guard of a read-write lock before the call.
//! `/cpualloc` clones three ids a million times, and `/cpu` borrows them. Chapters 1 to 3 take these faults one by one;
//! here they are as published, in one service. Service and generator are threads of this process and share all CPUs.
//!
//! `cargo run -p studies --bin shared_map`: one minute.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use children::Interrupt;
use course::measurement::load::Exchange;
use cpu_time::ThreadTime;
use engine::load::Settings;
use engine::outcome::Outcome;
use engine::traffic::Traffic;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use statistics::figures;
use studies::{Failed, published, quantile};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, RwLock};

/// Length of the published call of a database.
const CALL: Duration = Duration::from_millis(50);
/// Published rounds of the hot loop.
const ROUNDS: usize = 1_000_000;
/// Rounds of measuring, in which the routes take turns, and the seconds of each.
const TURNS: usize = 3;
const SECONDS: u64 = 3;

/// A published route.
struct Route {
    path: &'static str,
    users: u32,
    answer: &'static str,
    /// Key of the published requests per second.
    published: Option<&'static str>,
}

const ROUTES: [Route; 4] = [
    Route {
        path: "/read",
        users: 100,
        answer: "6",
        published: Some("read_rps"),
    },
    Route {
        path: "/fast",
        users: 100,
        answer: "6",
        published: Some("fast_rps"),
    },
    Route {
        path: "/cpualloc",
        users: 8,
        answer: "500005500000",
        published: None,
    },
    Route {
        path: "/cpu",
        users: 8,
        answer: "500005500000",
        published: None,
    },
];

/// The three published clients: number and topics, by id.
type Map = HashMap<&'static str, (usize, Vec<&'static str>)>;

struct Service {
    held: Mutex<Map>,
    dropped: RwLock<Map>,
}

impl Service {
    fn new() -> Self {
        let clients = HashMap::from([
            ("87-89-34", (1, vec!["cats", "dogs"])),
            ("22-38-21", (2, vec!["cats", "reptiles"])),
            ("12-67-22", (3, vec!["mice", "birds", "snakes"])),
        ]);
        Self {
            held: Mutex::new(clients.clone()),
            dropped: RwLock::new(clients),
        }
    }

    async fn read(&self) -> usize {
        let clients = self.held.lock().await;
        let ids = ids(&clients);
        // The guard lives to the end of the function.
        tokio::time::sleep(CALL).await;
        ids.iter().map(|id| number(id)).sum()
    }

    async fn fast(&self) -> usize {
        let ids = ids(&*self.dropped.read().await);
        tokio::time::sleep(CALL).await;
        ids.iter().map(|id| number(id)).sum()
    }

    async fn answer(&self, path: &str) -> Option<usize> {
        Some(match path {
            "/read" => self.read().await,
            "/fast" => self.fast().await,
            "/cpualloc" => cloning(&ids(&*self.dropped.read().await)),
            "/cpu" => borrowing(&ids(&*self.dropped.read().await)),
            _ => return None,
        })
    }
}

fn ids(clients: &Map) -> Vec<String> {
    clients.values().map(|(id, _)| id.to_string()).collect()
}

fn number(id: &str) -> usize {
    id.parse().unwrap_or(0)
}

// ANCHOR: loops
#[allow(clippy::redundant_iter_cloned, reason = "it is the fault")]
fn cloning(ids: &[String]) -> usize {
    let mut result = 0;
    for round in 0..ROUNDS {
        let numbers = ids.iter().cloned().map(|id| number(&id));
        result += round + numbers.sum::<usize>();
    }
    result
}

fn borrowing(ids: &[String]) -> usize {
    let mut result = 0;
    for round in 0..ROUNDS {
        let numbers = ids.iter().map(|id| number(id));
        result += round + numbers.sum::<usize>();
    }
    result
}
// ANCHOR_END: loops

fn main() -> Result<(), Failed> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let address = serve(&runtime)?;
    let mut rates = [const { Vec::new() }; ROUTES.len()];
    for turn in 0..TURNS {
        let mut order: Vec<usize> = (0..ROUTES.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for index in order {
            rates[index].push(load(address, &ROUTES[index])?);
        }
    }
    println!(
        "| route | users | requests per second | CPU of a loop | published elsewhere, per second |"
    );
    println!("| --- | ---: | ---: | ---: | ---: |");
    let theirs = published("web_profiling_intro")?;
    let own_ids = ids(&Service::new().held.into_inner());
    for (route, rates) in ROUTES.iter().zip(&rates) {
        let cpu = match route.path {
            "/cpualloc" => cpu_of(|| cloning(&own_ids)),
            "/cpu" => cpu_of(|| borrowing(&own_ids)),
            _ => String::new(),
        };
        let mut published_rate = String::new();
        if let Some(key) = route.published
            && let Some(rate) = theirs.get(key)
        {
            published_rate = rate.to_string();
        }
        println!(
            "| `{}` | {} | {} | {cpu} | {published_rate} |",
            route.path,
            route.users,
            figures::count(quantile(rates, 0.5)),
        );
    }
    studies::print_provenance(&format!(
        "Medians of {TURNS} rounds of {SECONDS} s without a pause between requests; the published users paused for half a \
         second. A loop's CPU is its thread's, measured alone, the median of 9"
    ));
    Ok(())
}

/// Serves all routes on a port of its own, until the process ends.
fn serve(runtime: &Runtime) -> Result<SocketAddr, Failed> {
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    let service = Arc::new(Service::new());
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = Arc::clone(&service);
            let answer = service_fn(move |request: hyper::Request<_>| {
                let service = Arc::clone(&service);
                async move {
                    let answer = service.answer(request.uri().path()).await;
                    let text = answer.map(|sum| sum.to_string());
                    let mut response =
                        Response::new(Full::new(Bytes::from(text.unwrap_or_default())));
                    if answer.is_none() {
                        *response.status_mut() = StatusCode::NOT_FOUND;
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
        #[allow(unreachable_code, reason = "names the error of the loop")]
        Ok::<(), std::io::Error>(())
    });
    Ok(address)
}

/// Loads a route and returns its requests per second.
fn load(address: SocketAddr, route: &Route) -> Result<f64, Failed> {
    let load = Traffic {
        warm_up: Duration::from_millis(300),
        duration: Duration::from_secs(SECONDS),
        ..Exchange::get(route.path, route.answer).by(route.users)
    };
    let interrupt = Interrupt::new();
    let outcome = engine::load::run(address, &load, &Settings::of(&interrupt))?;
    let outcome = Outcome::from(outcome);
    if outcome.error_count() + outcome.wrong_answers > 0 {
        return Err(format!("{}: requests failed: {:?}", route.path, outcome.errors).into());
    }
    Ok(outcome.requests_per_second)
}

/// Measures the CPU time of a loop by itself.
fn cpu_of(run: impl Fn() -> usize) -> String {
    let mut times = Vec::new();
    for _ in 0..9 {
        let began = ThreadTime::now();
        std::hint::black_box(run());
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    figures::milliseconds(quantile(&times, 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_loops_give_the_published_sum() {
        let ids = ["1", "2", "3"].map(str::to_owned);
        assert_eq!(cloning(&ids), borrowing(&ids));
        assert_eq!(cloning(&ids).to_string(), ROUTES[2].answer);
    }
}
