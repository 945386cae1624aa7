//! The published service with a shared map, under its published users, for readers who profile it.
//!
//! `cargo run -p studies --bin published -- /cpualloc` serves all four routes and loads the one that is named, for a minute
//! or for as many seconds as a second argument says. Service and generator have CPUs of their own if there are two.
//! `shared_map` measures the same service for the book.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use course::measurement::load::Exchange;
use engine::placement::Placement;
use engine::traffic::{Arrivals, Traffic};
use statistics::figures;
use studies::{Failed, milliseconds};

/// Published pause of a user between two requests.
const THINK: Duration = Duration::from_millis(500);

/// The routes, each with its answer and its users. `/read` and `/fast` have the published ones; the article does not say how
/// many asked for the loops.
const ROUTES: [(&str, &str, u32); 4] = [
    ("/read", "6", 3_000),
    ("/fast", "6", 3_000),
    ("/cpualloc", "500005500000", 8),
    ("/cpu", "500005500000", 8),
];

fn main() -> Result<(), Failed> {
    let asked = studies::argument(1, "/cpualloc".to_owned())?;
    let seconds = studies::argument(2, 60)?;
    let route = ROUTES.iter().find(|(path, ..)| *path == asked);
    let Some((path, answer, users)) = route else {
        let paths = ROUTES.map(|(path, ..)| path).join(", ");
        return Err(format!("there is no route {asked}: name one of {paths}").into());
    };
    let placement = Placement::apart();
    let program = compile()?;
    let server = studies::start_program(&program, "exercise", &placement.server, &[])?;
    println!(
        "{path} at http://{}: {users} users for {seconds} s. While they wait, take a flamegraph:\n  curl -o target{}.svg \
         'http://{}/debug/pprof/flamegraph?seconds=10'",
        server.service(),
        asked.replace('/', "/published-"),
        server.admin(),
    );
    let load = Traffic {
        arrivals: Arrivals::Closed { think: THINK },
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(seconds),
        // The last of 3,000 users waits for two and a half minutes.
        time_out: Duration::from_secs(300),
        ..Exchange::get(path, answer).by(*users)
    };
    let outcome = studies::load(&server, &load, &placement.generator)?;
    println!(
        "{} requests per second; latency: median {}, 99 % {}",
        figures::count(outcome.requests_per_second),
        milliseconds(outcome.latency.at(0.5)),
        milliseconds(outcome.latency.at(0.99)),
    );
    Ok(())
}

/// Compiles the example of chapter 3 that serves the routes, and returns its path.
fn compile() -> Result<PathBuf, Failed> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--package", "chapter3", "--example", "published"]);
    if !cargo.status()?.success() {
        return Err("the published service does not compile".into());
    }
    let name = format!("published{}", std::env::consts::EXE_SUFFIX);
    let folder = std::env::current_exe()?;
    let folder = folder.parent().unwrap_or(Path::new("."));
    Ok(folder.join("examples").join(name))
}
