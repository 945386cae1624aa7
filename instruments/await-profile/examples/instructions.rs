//! Counts the cost of the profiler without noise: instructions a request by valgrind's callgrind,
//! and misses of the first and the last cache by its model of caches.
//!
//! ```text
//! cargo run --example instructions
//! ```
//!
//! Each state is run in two lengths. The difference leaves out what both have in common: the start
//! of the program, the profiler and the connections. Profiles are taken at one capture a second,
//! so the cost is the part that *every* request pays.
//!
//! The service is axum behind hyper, with a thousand connections in memory. Each request waits for
//! a timer. Time is paused, and moves on when there is nothing else to do.

use std::process::Command;
use std::time::Duration;

use await_profile::{AwaitProfiler, ProfileOptions};
use axum::Router;
use axum::routing::get;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinSet;
use tower_layer::Identity;

type Error = Box<dyn std::error::Error + Send + Sync>;

const CONNECTIONS: u32 = 1000;
/// Numbers of requests on each connection, in the shorter run and in the longer.
const LENGTHS: [u32; 2] = [4, 24];
const STATES: [&str; 4] = ["without", "off", "armed", "profiling"];
/// Callgrind's events for each printed column. It counts misses of reads and writes apart.
const COLUMNS: [&[&str]; 3] = [&["Ir"], &["D1mr", "D1mw"], &["DLmr", "DLmw"]];

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [state, requests] = arguments.as_slice() {
        return serve(state, requests.parse()?).await;
    }
    let mut none = None;
    println!("| `/wait` in memory | instructions | data misses, first cache | last cache |");
    println!("| --- | ---: | ---: | ---: |");
    for state in STATES {
        let [shorter, longer] = LENGTHS.map(|requests| counts(state, requests));
        let (shorter, longer) = (shorter?, longer?);
        let requests = f64::from(CONNECTIONS * (LENGTHS[1] - LENGTHS[0]));
        let each: Vec<f64> = std::iter::zip(shorter, longer)
            .map(|(shorter, longer)| (longer - shorter) / requests)
            .collect();
        let none = none.get_or_insert_with(|| each.clone());
        let cells = std::iter::zip(&each, none).map(|(all, none)| match state {
            "without" => format!("{all:.1}"),
            _ => format!("{:+.1}", all - *none),
        });
        println!("| {state} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    Ok(())
}

/// Returns callgrind's counts for this program in one state.
fn counts(state: &str, requests: u32) -> Result<Vec<f64>, Error> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--cache-sim=yes"])
        .arg("--callgrind-out-file=/dev/null")
        .arg(std::env::current_exe()?)
        .args([state, &requests.to_string()])
        .output()
        .map_err(|error| format!("valgrind did not start ({error}): is it installed?"))?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = |name: &str| {
        let after = report
            .lines()
            .find_map(|line| Some(line.split_once(name)?.1.split_whitespace()));
        after.ok_or_else(|| format!("no \"{name}\" in what callgrind said:\n{report}"))
    };
    let names: Vec<&str> = line("Events    :")?.collect();
    let values: Vec<&str> = line("Collected :")?.collect();
    let value = |event: &&str| -> Option<f64> {
        let at = names.iter().position(|name| name == event)?;
        values.get(at)?.parse().ok()
    };
    let columns = COLUMNS.iter().map(|events| events.iter().map(value).sum());
    let columns: Option<Vec<f64>> = columns.collect();
    columns.ok_or_else(|| format!("an event is missing:\n{report}").into())
}

async fn serve(state: &str, requests: u32) -> Result<(), Error> {
    let profiler = AwaitProfiler::new();
    let service = Router::new().route("/wait", get(wait));
    let service = match state {
        // axum boxes every layer, and this is not a cost of the profiler: so this state has a layer, too.
        "without" => service.layer(Identity::new()),
        _ => service.layer(profiler.layer()),
    };
    if matches!(state, "armed" | "profiling") {
        profiler.arm();
    }
    if state == "profiling" {
        let options = ProfileOptions::lasting(Duration::from_secs(3600)).captures_per_second(1);
        let handle = profiler.clone();
        std::thread::spawn(move || handle.profile_blocking(&options));
        while !format!("{profiler:?}").contains("profiling") {
            std::thread::yield_now();
        }
    }
    let mut clients = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (client, server) = duplex(1024);
        let service = TowerToHyperService::new(service.clone());
        let http = hyper::server::conn::http1::Builder::new();
        tokio::spawn(http.serve_connection(TokioIo::new(server), service));
        clients.spawn(send(client, requests));
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    // Do not wait for the profile: nobody needs its names.
    Ok(())
}

async fn wait() -> &'static str {
    tokio::time::sleep(Duration::from_millis(20)).await;
    "a row"
}

async fn send(mut server: DuplexStream, requests: u32) -> std::io::Result<()> {
    let mut answer = [0; 512];
    for _ in 0..requests {
        server
            .write_all(b"GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await?;
        if server.read(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
