//! The published service with a shared map, all four routes: `shared-map.md`.
//!
//! `/read` holds the mutex of a map for a call of 50 ms, `/fast` drops the guard of a read-write lock before the call.
//! `/cpualloc` clones three ids a million times, and `/cpu` borrows them. Chapters 1 to 3 take these faults one by one;
//! here they are as published, in one service (`chapter3::published`). Service and generator are threads of this process and
//! share all CPUs.
//!
//! `cargo run -p studies --bin shared_map`: one minute.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use chapter3::published;
use children::Interrupt;
use course::measurement::load::Exchange;
use cpu_time::ThreadTime;
use engine::load::Settings;
use engine::outcome::Outcome;
use engine::traffic::Traffic;
use statistics::figures;
use studies::{Failed, quantile};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Rounds of measuring, in which the routes take turns, and the seconds of each.
const TURNS: usize = 3;
const SECONDS: u64 = 3;

/// The numbers of the published clients.
const IDS: [&str; 3] = ["1", "2", "3"];

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
    let theirs = studies::published("web_profiling_intro")?;
    let ids = IDS.map(str::to_owned);
    for (route, rates) in ROUTES.iter().zip(&rates) {
        let cpu = match route.path {
            "/cpualloc" => cpu_of(|| published::cloning(&ids)),
            "/cpu" => cpu_of(|| published::borrowing(&ids)),
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
    runtime.spawn(warp::serve(published::routes()).incoming(listener).run());
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
        let ids = IDS.map(str::to_owned);
        assert_eq!(published::cloning(&ids), published::borrowing(&ids));
        assert_eq!(published::cloning(&ids).to_string(), ROUTES[2].answer);
    }
}
