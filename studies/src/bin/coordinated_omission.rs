//! Waiting time that a generator leaves out when it waits with the service: `coordinated-omission.md`.
//!
//! Chapter 1's problem answers 20 requests per second. One connection is to send 25 a second. Every
//! answer is timed twice: from when its request was sent, and from when it was due.
//!
//! `cargo run -p studies --bin coordinated_omission -- 30` (seconds)

use std::time::Duration;

use course::measurement::load::Exchange;
use engine::traffic::{Arrivals, Spacing, Traffic};
use studies::Failed;

const DUE_PER_SECOND: f64 = 25.0;

fn main() -> Result<(), Failed> {
    let seconds = studies::argument(1, 30)?;
    studies::compile(&[1])?;
    let server = studies::start(1, "problem", &[], &[])?;
    let load = Traffic {
        arrivals: Arrivals::Open {
            per_second: DUE_PER_SECOND,
            spacing: Spacing::Even,
        },
        duration: Duration::from_secs(seconds),
        // One connection, so that a request waits for the answer before it.
        ..Exchange::get("/read", "6").by(1)
    };
    let outcome = studies::load(&server, &load, &[])?;
    let sent = outcome.service_latency.as_ref();
    let sent = sent.ok_or("the generator did not time answers from sending")?;

    println!("| latency | counted from sending | counted from the due moment |");
    println!("| --- | ---: | ---: |");
    studies::print_percentiles(sent, &outcome.latency);
    studies::print_provenance(&format!(
        "{DUE_PER_SECOND} requests per second due for {seconds} s, {:.1} a second answered",
        outcome.requests_per_second
    ));
    Ok(())
}
