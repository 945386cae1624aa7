//! The published service that accepts all it can, in three parts: `accept-threads.md`, `accept-backlog.md` and
//! `accept-ramp.md`.
//!
//! - `threads`: 1, 2 and 4 threads, each with a listener of its own on one port (`SO_REUSEPORT`). Services and generator
//!   are threads of this process and share all CPUs, as on the author's machine.
//! - `backlog`: connections that are open at once, by the length of the listener's queue.
//! - `ramp`: 22 rates from 20 to 350 a second, one after the other on one server. A step takes 2 s where the published
//!   one took 20; a further argument is another number of seconds.
//!
//! The second and third part load chapter 5's problem, whose work is inline, and its solution, which off-loads it. Every
//! request opens a connection and closes it.
//!
//! `cargo run -p studies --bin accept_all [-- threads|backlog|ramp [SECONDS]]`: all parts without an argument, in four
//! minutes.

use std::convert::Infallible;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use children::Interrupt;
use course::bench::server::Server;
use course::measurement::load::Exchange;
use engine::load::{Settings, ramp};
use engine::outcome::Outcome;
use engine::placement::Placement;
use engine::traffic::{Arrivals, Phase, Spacing, Traffic};
use http_body_util::Full;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use statistics::figures;
use studies::{Failed, published, quantile};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};

/// Threads of a service, as published.
const THREADS: [usize; 3] = [1, 2, 4];
/// Rounds of each number of threads, a second each.
const ROUNDS: usize = 5;
/// Users who ask the threads.
const USERS: u32 = 64;

/// Backlogs of the published services, and more users than any of them holds.
const BACKLOGS: [u32; 2] = [4, 128];
const CROWD: u32 = 400;

/// Published steps of the ramp: their number, and their rates a second.
const STEPS: u32 = 22;
const RATES: (f64, f64) = (20.0, 350.0);
/// Generator's connections for each second of a step. Over the ramp, fewer requests than that exceed the capacity.
const CONNECTIONS: u32 = 750;

/// Chapter 5's variants, and their names in tables.
const VARIANTS: [(&str, &str); 2] = [("problem", "inline"), ("solution", "off-loaded")];
/// Services of the ramp: name, variant and backlog. The first and the last are the published two, which differ in both.
const CLIMBERS: [(&str, &str, u32); 3] = [
    ("inline, 128", "problem", 128),
    ("inline, 4", "problem", 4),
    ("off-loaded, 4", "solution", 4),
];

fn main() -> Result<(), Failed> {
    let part: String = studies::argument(1, String::new())?;
    let seconds = studies::argument(2, 2)?;
    match part.as_str() {
        "threads" => threads(),
        "backlog" => backlog(),
        "ramp" => climb(seconds),
        "" => {
            threads()?;
            println!();
            backlog()?;
            println!();
            climb(seconds)
        }
        other => Err(format!("a part is `threads`, `backlog` or `ramp`, not `{other}`").into()),
    }
}

/// A service of several threads. Each has a runtime and a listener of its own, and ends with the process.
struct Service {
    address: SocketAddr,
    /// Connections that each thread accepted.
    accepted: Vec<Arc<AtomicU64>>,
    per_second: Vec<f64>,
    generator: Vec<f64>,
}

impl Service {
    fn start(threads: usize) -> Result<Self, Failed> {
        let mut service = Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            accepted: Vec::new(),
            per_second: Vec::new(),
            generator: Vec::new(),
        };
        for _ in 0..threads {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let listener = runtime.block_on(async { listen(service.address) })?;
            service.address = listener.local_addr()?;
            let accepted = Arc::new(AtomicU64::new(0));
            service.accepted.push(Arc::clone(&accepted));
            thread::spawn(move || serve(&runtime, &listener, &accepted));
        }
        Ok(service)
    }

    /// Loads the service for a second.
    fn load(&mut self) -> Result<(), Failed> {
        let load = Traffic {
            keep_alive: false,
            ..Exchange::get("/", "ok").by(USERS)
        };
        let interrupt = Interrupt::new();
        let outcome = engine::load::run(self.address, &load, &Settings::of(&interrupt))?;
        let outcome = Outcome::from(outcome);
        if outcome.error_count() + outcome.wrong_answers > 0 {
            return Err(format!("requests failed: {:?}", outcome.errors).into());
        }
        self.per_second.push(outcome.requests_per_second);
        self.generator.extend(outcome.generator.cpu_share);
        Ok(())
    }

    /// Share of all connections that the busiest thread accepted.
    fn busiest(&self) -> f64 {
        let counts: Vec<u64> = self
            .accepted
            .iter()
            .map(|count| count.load(Relaxed))
            .collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        most as f64 / counts.iter().sum::<u64>() as f64
    }
}

/// Listens on an address that other listeners of this process may have, too. The kernel gives each new connection to one
/// of them, by a hash of its addresses.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(128)
}

fn serve(runtime: &Runtime, listener: &TcpListener, accepted: &AtomicU64) {
    let answer =
        service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("ok")))));
    let local = tokio::task::LocalSet::new();
    local.block_on(runtime, async {
        loop {
            // Out of file descriptors, most likely: the next connection may have one.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            accepted.fetch_add(1, Relaxed);
            tokio::task::spawn_local(
                http1::Builder::new().serve_connection(TokioIo::new(stream), answer),
            );
        }
    });
}

/// Measures services of 1, 2 and 4 threads, which take turns.
fn threads() -> Result<(), Failed> {
    let mut services = Vec::new();
    for threads in THREADS {
        services.push(Service::start(threads)?);
    }
    for round in 0..ROUNDS {
        let mut order: Vec<&mut Service> = services.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for service in order {
            service.load()?;
        }
    }
    println!(
        "| threads | requests per second | times 1 thread | the busiest thread's share | generator's CPU | published elsewhere, per second | times 1 thread |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let theirs = published("accept_all_we_can")?;
    let mut their_rates = Vec::new();
    for rate in theirs["reuse_port_rps"]
        .as_array()
        .ok_or("no published rates")?
    {
        their_rates.push(rate.as_integer().ok_or("a published rate is no number")? as f64);
    }
    let alone = quantile(&services[0].per_second, 0.5);
    for (place, service) in services.iter().enumerate() {
        let median = quantile(&service.per_second, 0.5);
        println!(
            "| {} | {} | {:.2} | {} | {} | {} | {:.2} |",
            THREADS[place],
            figures::count(median.round()),
            median / alone,
            figures::percent(service.busiest()),
            figures::percent(quantile(&service.generator, 0.5)),
            figures::count(their_rates[place]),
            their_rates[place] / their_rates[0],
        );
    }
    studies::print_provenance(&format!(
        "Medians of {ROUNDS} rounds of a second; {USERS} users, a connection a request, services and one thread of the \
         generator on the same CPUs. The generator's share is that of one CPU"
    ));
    Ok(())
}

/// Connections of a server at a moment.
#[derive(Clone, Copy)]
struct Connections {
    /// Counted by the service: those whose task has run, and those that have ended.
    accepted: u64,
    finished: u64,
    /// Listed by the kernel, where it does: all that are open, and those of them that the service has not accepted.
    open: Option<u64>,
    unaccepted: Option<u64>,
}

impl Connections {
    fn of(server: &Server) -> Result<Self, Failed> {
        let metrics = server.metrics()?;
        let count = |name| metrics.count(name).ok_or("a counter is missing");
        let (open, unaccepted) = listed(server.service().port()).unzip();
        Ok(Self {
            accepted: count("connections_total")?,
            finished: count("connections_finished_total")?,
            open,
            unaccepted,
        })
    }

    fn unfinished(self) -> u64 {
        self.accepted - self.finished
    }
}

/// Counts a port's open connections in the kernel's table, and those of them in the listener's queue.
fn listed(port: u16) -> Option<(u64, u64)> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let place = format!(":{port:04X}");
    let (mut open, mut unaccepted) = (0, 0);
    for line in table.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, queues, ..] = fields[..] else {
            continue;
        };
        if !local.ends_with(&place) {
            continue;
        }
        match state {
            // Established, and closed by the client.
            "01" | "08" => open += 1,
            // Listens: its queue of bytes that were received holds connections.
            "0A" => unaccepted = u64::from_str_radix(queues.rsplit(':').next()?, 16).ok()?,
            _ => {}
        }
    }
    Some((open, unaccepted))
}

/// Measures how many connections are open at once under more users than a backlog holds.
fn backlog() -> Result<(), Failed> {
    studies::compile(&[5])?;
    let placement = Placement::apart();
    println!(
        "| work | backlog | requests per second | accepted and not finished, at most | open, at most | not accepted, at most |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (variant, name) in VARIANTS {
        for backlog in BACKLOGS {
            let server = start(variant, backlog, &placement)?;
            let load = Traffic {
                keep_alive: false,
                warm_up: Duration::from_secs(1),
                duration: Duration::from_secs(5),
                ..Exchange::get("/data", "4").by(CROWD)
            };
            let (outcome, most) = watched(&server, &load, &placement)?;
            println!(
                "| {name} | {backlog} | {} | {} | {} | {} |",
                figures::count(outcome.requests_per_second.round()),
                figures::count(most.unfinished as f64),
                known(most.open),
                known(most.unaccepted),
            );
        }
    }
    studies::print_provenance(&format!(
        "{CROWD} users for 5 s, a connection a request, {}. *Open* and *not accepted* are the kernel's counts, at 50 \
         looks a second",
        placement.in_words()
    ));
    Ok(())
}

fn known(count: Option<u64>) -> String {
    match count {
        Some(count) => figures::count(count as f64),
        None => "unknown".to_owned(),
    }
}

fn start(variant: &str, backlog: u32, placement: &Placement) -> Result<Server, Failed> {
    let backlog = ["--backlog".to_owned(), backlog.to_string()];
    studies::start(5, variant, &placement.server, &backlog)
}

/// Most connections that were there at once.
#[derive(Default)]
struct Most {
    unfinished: u64,
    open: Option<u64>,
    unaccepted: Option<u64>,
}

/// Loads a server and watches its connections.
fn watched(
    server: &Server,
    load: &Traffic,
    placement: &Placement,
) -> Result<(Outcome, Most), Failed> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = Most::default();
            while !is_over.load(Relaxed) {
                let now = Connections::of(server)?;
                most.unfinished = most.unfinished.max(now.unfinished());
                most.open = most.open.max(now.open);
                most.unaccepted = most.unaccepted.max(now.unaccepted);
                thread::sleep(Duration::from_millis(20));
            }
            Ok::<_, Failed>(most)
        });
        let outcome = studies::load(server, load, &placement.generator);
        is_over.store(true, Relaxed);
        let most = watcher.join().map_err(|_| "the watcher panicked")??;
        Ok((outcome?, most))
    })
}

/// Measures three services under rates that rise, and prints a row a rate.
fn climb(seconds: u32) -> Result<(), Failed> {
    studies::compile(&[5])?;
    let placement = Placement::apart();
    let seed = fastrand::u32(..).into();
    let mut rates = Vec::new();
    for step in 0..STEPS {
        rates.push(RATES.0 + (RATES.1 - RATES.0) * f64::from(step) / f64::from(STEPS - 1));
    }
    let mut sides = Vec::new();
    for (_, variant, backlog) in CLIMBERS {
        let server = start(variant, backlog, &placement)?;
        sides.push(up(&server, &rates, seconds, seed, &placement)?);
    }
    let heads = CLIMBERS.map(|(name, ..)| {
        format!(
            " {name}: accepted per second | {name}: finished per second | {name}: accepted and not finished |"
        )
    });
    println!("| requests due per second |{}", heads.concat());
    println!("| ---: |{}", " ---: |".repeat(3 * CLIMBERS.len()));
    for (step, rate) in rates.iter().enumerate() {
        print!("| {} |", figures::count(rate.round()));
        for side in &sides {
            let (before, after) = (side[step], side[step + 1]);
            let span = (after.at - before.at).as_secs_f64();
            let accepted = after.connections.accepted - before.connections.accepted;
            let finished = after.connections.finished - before.connections.finished;
            print!(
                " {} | {} | {} |",
                figures::count((accepted as f64 / span).round()),
                figures::count((finished as f64 / span).round()),
                figures::count(after.connections.unfinished() as f64),
            );
        }
        println!();
    }
    studies::print_provenance(&format!(
        "{STEPS} steps of {seconds} s (published: 20 s) on one server each, at random with seed {seed}, a connection a \
         request, {}",
        placement.in_words()
    ));
    Ok(())
}

/// Connections at a known moment.
#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    connections: Connections,
}

/// Puts all rates on a server, one after the other. Returns its connections at the begin and at the end of each.
fn up(
    server: &Server,
    rates: &[f64],
    seconds: u32,
    seed: u64,
    placement: &Placement,
) -> Result<Vec<Seen>, Failed> {
    let mut phases = Vec::new();
    for rate in rates {
        phases.push(Phase {
            share: rate / RATES.0,
            seconds: seconds.into(),
        });
    }
    let step = Duration::from_secs(seconds.into());
    let load = Traffic {
        arrivals: Arrivals::Open {
            per_second: RATES.0,
            spacing: Spacing::Poisson,
        },
        phases: phases.into(),
        keep_alive: false,
        duration: step * STEPS,
        // A client of a full backlog tries again for minutes.
        time_out: step * STEPS + Duration::from_secs(60),
        seed,
        ..Exchange::get("/data", "4").by(CONNECTIONS * seconds)
    };
    thread::scope(|scope| {
        let begin = Instant::now() + ramp(&load);
        let loading = scope.spawn(|| studies::load(server, &load, &placement.generator));
        let mut moments = Vec::new();
        for end in 0..=STEPS {
            thread::sleep((begin + step * end).saturating_duration_since(Instant::now()));
            let connections = Connections::of(server)?;
            moments.push(Seen {
                at: Instant::now(),
                connections,
            });
        }
        loading.join().map_err(|_| "the generator panicked")??;
        Ok(moments)
    })
}
