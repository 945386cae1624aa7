//! Costs of the layer, of recorded incidents and of counted waits, and of a tail profile beyond an ordinary one. The figure
//! is the CPU time per request of three servers in one run. One of them does the work in question; the other two do not, and
//! show the noise.
//!
//! ```sh
//! cargo run --release -p debug-endpoints --example cost -- armed 2000    # the layer, against an empty one: in turns
//! cargo run --release -p debug-endpoints --example cost -- waiting 200   # the same, while 512 requests wait
//! cargo run --release -p debug-endpoints --example cost -- counts 60     # rounds of five seconds
//! cargo run --release -p debug-endpoints --example cost -- incidents 60
//! cargo run --release -p debug-endpoints --example cost -- tail 60
//! ```
//!
//! Without `--release` this package is not optimised, nor is what the compiler writes into it of axum, hyper and the layer.
//!
//! In rounds of five seconds, each server is under 1,000 requests per second that arrive at random. A request is expensive
//! then, since most of them wake a thread, and the figure is a share of it. In turns, a server gets a request on all
//! connections at once, then another server does, in random order. A request is cheap then, so a microsecond shows.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use cpu_time::ProcessTime;
use debug_endpoints::{DebugEndpoints, Incidents};
use fastrand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};
use tower::layer::util::Identity;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Connections to each server, and mean time between two requests of one: 1,000 requests per second together.
const CONNECTIONS: u32 = 32;
const MEAN_PAUSE: f64 = 0.032;

const ROUND: Duration = Duration::from_secs(5);

/// Load of a turn: requests one after the other on each of so many connections.
struct Turn {
    path: &'static str,
    connections: usize,
    requests: usize,
}

/// Load of few requests at once.
const FEW: Turn = Turn {
    path: "/item",
    connections: 32,
    requests: 8,
};

/// Load of hundreds that wait at the same time.
const HUNDREDS: Turn = Turn {
    path: "/wait",
    connections: 512,
    requests: 1,
};

/// Extras of a server beside answering. All but the first have the layer.
const NO_LAYER: &str = "serve-without-layer";
const NOTHING: &str = "serve-without";
const COUNTS: &str = "serve-with-counts";
const INCIDENTS: &str = "serve-with-incidents";
const PROFILE: &str = "serve-with-profiles";
const TAIL_PROFILE: &str = "serve-with-tail-profiles";

/// A server in a process of its own.
struct Server {
    process: Child,
    address: String,
    /// CPU time, in seconds, and requests of each round.
    rounds: Vec<(f64, f64)>,
}

impl Server {
    fn start(kind: &str) -> Result<Self, Error> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(kind)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let output = process.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut address)?;
        let address = address.trim().to_owned();
        let rounds = Vec::new();
        Ok(Self {
            process,
            address,
            rounds,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn item() -> &'static str {
    tokio::time::sleep(Duration::from_millis(5)).await;
    "tea\n"
}

/// A request that waits until hundreds have begun.
async fn wait() -> &'static str {
    tokio::time::sleep(Duration::from_millis(100)).await;
    "tea\n"
}

/// Takes await profiles of ten seconds, one after the other.
async fn take_profiles(admin: SocketAddr, parameter: &str) -> Result<(), Error> {
    let request = format!(
        "GET /debug/await?seconds=10{parameter} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    );
    loop {
        let mut stream = TcpStream::connect(admin).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        // The first has no requests: the load begins after it.
        if !answer.starts_with("HTTP/1.1 200 ") && !answer.starts_with("HTTP/1.1 404 ") {
            eprintln!("{answer}");
        }
    }
}

/// Serves until somebody kills it.
async fn serve(kind: &str) -> Result<(), Error> {
    let mut debug = DebugEndpoints::new();
    if kind == INCIDENTS {
        let limit = Duration::from_secs(1);
        debug = debug.record_incidents(Incidents::new().p99_limit(limit));
    }
    if kind == COUNTS {
        debug = debug.count_waits();
    }
    let admin = debug.listen("127.0.0.1:0")?;
    if kind == PROFILE || kind == TAIL_PROFILE {
        let parameter = if kind == TAIL_PROFILE { "&tail=99" } else { "" };
        tokio::spawn(take_profiles(admin, parameter));
    }
    let app = Router::new()
        .route("/item", get(item))
        .route("/wait", get(wait));
    // axum boxes any layer, which is no cost of this one.
    let app = if kind == NO_LAYER {
        app.layer(Identity::new())
    } else {
        app.layer(debug.layer())
    };
    let app = app
        .route(
            "/cpu",
            get(async || format!("{}\n", ProcessTime::now().as_duration().as_secs_f64())),
        )
        .route("/admin", get(async move || format!("{admin}\n")));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

/// Sends a request, and returns the body of its answer, which is one line.
async fn ask(stream: &mut TcpStream, path: &str) -> Result<String, Error> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err("the server is gone".into());
        }
        let text = String::from_utf8_lossy(&answer);
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && body.ends_with('\n')
        {
            return Ok(body.trim().to_owned());
        }
    }
}

/// Sends requests at random moments for a round, and returns their number.
async fn user(mut stream: TcpStream, mut random: Rng) -> Result<(TcpStream, Rng, u32), Error> {
    let (mut due, end) = (Instant::now(), Instant::now() + ROUND);
    let mut requests = 0;
    loop {
        due += Duration::from_secs_f64(-MEAN_PAUSE * (1.0 - random.f64()).ln());
        if due > end {
            sleep_until(end).await;
            return Ok((stream, random, requests));
        }
        sleep_until(due).await;
        ask(&mut stream, "/item").await?;
        requests += 1;
    }
}

/// Loads all servers at once for a number of rounds.
async fn load(servers: &mut [Server], rounds: usize) -> Result<(), Error> {
    let mut users = Vec::new();
    for (index, server) in servers.iter().enumerate() {
        for number in 0..CONNECTIONS {
            let stream = TcpStream::connect(&server.address).await?;
            stream.set_nodelay(true)?;
            let random = Rng::with_seed(u64::from(number) << 8 | index as u64);
            users.push((index, stream, random));
        }
    }
    for _ in 0..rounds {
        let before = cpu_times(servers).await?;
        let mut tasks = Vec::new();
        for (index, stream, random) in users.drain(..) {
            tasks.push((index, tokio::spawn(user(stream, random))));
        }
        let mut requests = vec![0.0; servers.len()];
        for (index, task) in tasks {
            let (stream, random, sent) = task.await??;
            requests[index] += f64::from(sent);
            users.push((index, stream, random));
        }
        let after = cpu_times(servers).await?;
        for (index, server) in servers.iter_mut().enumerate() {
            server
                .rounds
                .push((after[index] - before[index], requests[index]));
        }
    }
    Ok(())
}

/// Lets each server of a round answer a turn of its own, in random order, for a number of rounds.
async fn take_turns(servers: &mut [Server], turn: &Turn, rounds: usize) -> Result<(), Error> {
    let mut connections = Vec::new();
    for server in &*servers {
        let mut of_server = Vec::new();
        for _ in 0..turn.connections {
            let stream = TcpStream::connect(&server.address).await?;
            stream.set_nodelay(true)?;
            of_server.push(stream);
        }
        connections.push((of_server, TcpStream::connect(&server.address).await?));
    }
    let mut random = Rng::with_seed(1);
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..servers.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let (streams, cpu) = &mut connections[index];
            let before: f64 = ask(cpu, "/cpu").await?.parse()?;
            let mut tasks = Vec::new();
            for stream in streams.drain(..) {
                tasks.push(tokio::spawn(requests(stream, turn.path, turn.requests)));
            }
            for task in tasks {
                streams.push(task.await??);
            }
            let after: f64 = ask(cpu, "/cpu").await?.parse()?;
            let sent = (turn.connections * turn.requests) as f64;
            servers[index].rounds.push((after - before, sent));
        }
    }
    Ok(())
}

async fn requests(mut stream: TcpStream, path: &str, number: usize) -> Result<TcpStream, Error> {
    for _ in 0..number {
        ask(&mut stream, path).await?;
    }
    Ok(stream)
}

/// Returns the CPU time per request, in microseconds, of the thread that does what is measured.
fn own_thread(server: &Server, name: &str) -> Option<f64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.process.id())).ok()?;
    for task in tasks.flatten() {
        let read = |file| std::fs::read_to_string(task.path().join(file)).ok();
        if read("comm")?.trim_end() == name {
            let nanos: f64 = read("schedstat")?.split(' ').next()?.parse().ok()?;
            let requests: f64 = server.rounds.iter().map(|(_, requests)| requests).sum();
            return Some(nanos / 1e3 / requests);
        }
    }
    None
}

async fn cpu_times(servers: &[Server]) -> Result<Vec<f64>, Error> {
    let mut times = Vec::new();
    for server in servers {
        let mut stream = TcpStream::connect(&server.address).await?;
        times.push(ask(&mut stream, "/cpu").await?.parse()?);
    }
    Ok(times)
}

/// Returns the CPU time per request in microseconds, over these rounds.
fn cost(server: &Server, rounds: &[usize]) -> f64 {
    let (mut cpu_time, mut requests) = (0.0, 0.0);
    for round in rounds {
        cpu_time += server.rounds[*round].0;
        requests += server.rounds[*round].1;
    }
    cpu_time / requests * 1e6
}

/// Prints the difference of two servers, with 95 % intervals by bootstrap over the rounds.
fn compare(what: &str, one: &Server, base: &Server) {
    let all: Vec<usize> = (0..base.rounds.len()).collect();
    let mut random = Rng::with_seed(1);
    let (mut ratios, mut differences) = (Vec::new(), Vec::new());
    for _ in 0..10_000 {
        let mut drawn = Vec::new();
        for _ in &all {
            drawn.push(random.usize(..all.len()));
        }
        let (one, base) = (cost(one, &drawn), cost(base, &drawn));
        ratios.push((one / base - 1.0) * 100.0);
        differences.push(one - base);
    }
    ratios.sort_by(f64::total_cmp);
    differences.sort_by(f64::total_cmp);
    let (one, base) = (cost(one, &all), cost(base, &all));
    println!(
        "{what}: {one:.2} µs against {base:.2} µs per request, {:+.2} µs [{:+.2}, {:+.2}], {:+.1} % [{:+.1}, {:+.1}]",
        one - base,
        differences[250],
        differences[9_750],
        (one / base - 1.0) * 100.0,
        ratios[250],
        ratios[9_750],
    );
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (measured, otherwise, turn, rounds) = match arguments[..] {
        [kind @ (NO_LAYER | NOTHING | COUNTS | INCIDENTS | PROFILE | TAIL_PROFILE)] => {
            return serve(kind).await;
        }
        ["armed", rounds] => (NOTHING, NO_LAYER, Some(FEW), rounds.parse()?),
        ["waiting", rounds] => (NOTHING, NO_LAYER, Some(HUNDREDS), rounds.parse()?),
        ["counts", rounds] => (COUNTS, NOTHING, None, rounds.parse()?),
        ["incidents", rounds] => (INCIDENTS, NOTHING, None, rounds.parse()?),
        ["tail", rounds] => (TAIL_PROFILE, PROFILE, None, rounds.parse()?),
        _ => {
            return Err(
                "say what to measure and for how many rounds: `armed 2000`, `waiting 200`, \
                        `counts 60`, `incidents 60` or `tail 60`"
                    .into(),
            );
        }
    };
    let mut servers = [
        Server::start(otherwise)?,
        Server::start(measured)?,
        Server::start(otherwise)?,
    ];
    match turn {
        Some(turn) => take_turns(&mut servers, &turn, rounds).await?,
        None => load(&mut servers, rounds).await?,
    }
    let [base, with, again] = &servers;
    compare(arguments[0], with, base);
    compare("without, again", again, base);
    for (kind, thread) in [(COUNTS, "await-counts"), (INCIDENTS, "incidents")] {
        let time = (measured == kind).then(|| own_thread(with, thread));
        if let Some(time) = time.flatten() {
            println!("of it, the thread {thread}: {time:.2} µs per request");
        }
    }
    if measured == INCIDENTS {
        let mut stream = TcpStream::connect(&with.address).await?;
        let admin = ask(&mut stream, "/admin").await?;
        let mut stream = TcpStream::connect(admin).await?;
        println!("{}", ask(&mut stream, "/debug/incidents").await?);
    }
    Ok(())
}
