//! What a generator leaves out when it waits with the service. Prints Markdown for the book, whose
//! recorded run is `flamegraphs/measuring/coordinated-omission.md`:
//!
//! ```text
//! cargo build -p chapter1
//! cargo run -p bench --example coordinated_omission -- [SECONDS]
//! ```
//!
//! Chapter 1's problem answers 20 requests per second. One connection is to send 25 a second. Every
//! answer is timed twice: from the moment at which its request was sent, and from the moment at
//! which it was due.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

use bench::environment;
use bench::provenance;
use bench::server::{Launch, Server};
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::figures;
use measurement::load::{Arrivals, Exchange, Load};

const DUE_PER_SECOND: f64 = 25.0;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(Ok(30), |text| text.parse())?;
    let interrupt = Interrupt::new();
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(Path::parent).ok_or("no folder")?;
    let server = Server::start(
        &Launch::of(
            &folder.join(format!("chapter1{}", std::env::consts::EXE_SUFFIX)),
            "problem",
        ),
        &interrupt,
    )?;
    let settings = Settings::of(&interrupt);
    let outcome = loadgen::run(server.service(), &load(seconds), &settings)?;
    let sent = outcome
        .service_latency
        .as_ref()
        .ok_or("the generator did not time answers from sending")?;

    println!("| latency | counted from sending | counted from the due moment |");
    println!("| --- | ---: | ---: |");
    for (name, quantile) in [
        ("median", 0.5),
        ("90th percentile", 0.9),
        ("99th percentile", 0.99),
    ] {
        row(name, sent.at(quantile), outcome.latency.at(quantile));
    }
    row("largest", Some(sent.max_ms), Some(outcome.latency.max_ms));
    let machine = environment::observe(server.is_optimised(), "dev", BTreeMap::new());
    println!(
        "\n*{DUE_PER_SECOND} requests per second due for {seconds} s, {} a second answered, {} errors. \
         Measured by `cargo run -p bench --example coordinated_omission -- {seconds}` at commit \
         `{}` on {} (UTC): {}.*",
        figures::count((outcome.requests_per_second * 10.0).round() / 10.0),
        outcome.error_count() + outcome.wrong_answers,
        provenance::checked_out(Path::new(".")).in_short(),
        &provenance::now()[..10],
        machine.in_a_line(),
    );
    Ok(())
}

/// One connection, so that a request waits for the answer before it.
fn load(seconds: u64) -> Load {
    Load {
        arrivals: Arrivals::Open {
            per_second: DUE_PER_SECOND,
        },
        duration: Duration::from_secs(seconds),
        ..Load::closed(Exchange::get("/read", "6"), 1)
    }
}

fn row(name: &str, sent: Option<f64>, due: Option<f64>) {
    let text = |ms: Option<f64>| ms.map_or_else(|| "unknown".to_owned(), figures::milliseconds);
    println!("| {name} | {} | {} |", text(sent), text(due));
}
