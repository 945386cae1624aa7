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

mod shared;

use std::error::Error;
use std::time::Duration;

use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::figures;
use measurement::load::{Arrivals, Exchange, Load};

const DUE_PER_SECOND: f64 = 25.0;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = shared::argument(1, 30)?;
    let interrupt = Interrupt::new();
    let server = shared::start("chapter1", "problem", &[], &interrupt)?;
    let settings = Settings::of(&interrupt);
    let outcome = loadgen::run(server.service(), &load(seconds), &settings)?;
    let sent = outcome
        .service_latency
        .as_ref()
        .ok_or("the generator did not time answers from sending")?;

    println!("| latency | counted from sending | counted from the due moment |");
    println!("| --- | ---: | ---: |");
    shared::print_percentiles(sent, &outcome.latency);
    let answered = figures::count((outcome.requests_per_second * 10.0).round() / 10.0);
    let errors = shared::faults(&outcome);
    shared::print_provenance(
        &format!(
            "{DUE_PER_SECOND} requests per second due for {seconds} s, {answered} a second \
             answered, {errors} errors"
        ),
        &format!("coordinated_omission -- {seconds}"),
        server.is_optimised(),
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
