//! The published scan with its texts in one memory region and its threads in the same or another: `region-scan.md`.
//!
//! One thread, pinned to a region, writes the texts, so they lie there. Then a thread on each CPU of a region compares a
//! body with all of them, again and again. Each region reads the texts of each.
//!
//! It takes a machine of at least two memory regions, such as a server with two sockets, to show what a read across
//! costs. On any other the table has one row, and the line below it says so.
//!
//! `cargo run -p studies --bin region_scan [-- TEXTS]`: 3 s for each pair of regions, 640 bytes for each text.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use many_cpus::{ProcessorSet, SystemHardware};
use statistics::figures;
use studies::Failed;

/// Length of each measurement.
const SPAN: Duration = Duration::from_secs(3);
/// Bytes of a text, as published.
const BYTES: usize = 640;
const BODY: &str = "None of the forbidden texts begins as this letter does.";

/// The texts, one after the other in one allocation.
struct Texts(Vec<u8>);

impl Texts {
    fn build(count: usize) -> Self {
        let texts = (0..count).map(|number| format!("{number:020}").repeat(BYTES / 20));
        Self(texts.collect::<String>().into_bytes())
    }

    fn any_begins(&self, body: &[u8]) -> bool {
        let mut texts = self.0.chunks_exact(BYTES);
        texts.any(|text| body.starts_with(text))
    }
}

fn main() -> Result<(), Failed> {
    // The published data set has four million texts. A quarter of it is more than a cache holds of their first lines.
    let count = studies::argument(1, 1_000_000)?;
    let regions = regions();
    println!("| texts in region | read from region | CPUs | a text | times nearby |");
    println!("| ---: | ---: | ---: | ---: | ---: |");
    for (home, at_home) in regions.iter().enumerate() {
        let build = at_home.spawn_thread(move |_| Texts::build(count));
        let texts = Arc::new(build.join().map_err(|_| "the texts were not built")?);
        let nearby = scan(at_home, &texts, count)?;
        for (place, cpus) in regions.iter().enumerate() {
            let ns = if place == home {
                nearby
            } else {
                scan(cpus, &texts, count)?
            };
            println!(
                "| {home} | {place} | {} | {ns:.2} ns | {} |",
                cpus.len(),
                figures::ratio(ns / nearby)
            );
        }
    }
    let across = match regions.len() {
        1 => {
            "This machine has one memory region, so no read can go across: the cost of that needs a machine with two. "
        }
        _ => "",
    };
    studies::print_provenance(&format!(
        "{across}{} texts of {BYTES} bytes, {} s of scans by a thread on each CPU of the region that reads",
        figures::count(count as f64),
        SPAN.as_secs()
    ));
    Ok(())
}

/// Returns the CPUs of each memory region that this process may use.
fn regions() -> Vec<ProcessorSet> {
    let cpus = SystemHardware::current().processors();
    let mut numbers = BTreeSet::new();
    for cpu in &cpus {
        numbers.insert(cpu.memory_region_id());
    }
    let mut regions = Vec::new();
    for number in numbers {
        if let Some(region) = cpus.filter(|cpu| cpu.memory_region_id() == number) {
            regions.push(region);
        }
    }
    regions
}

/// Scans the texts on each of the CPUs, and returns the nanoseconds that a thread took for a text.
fn scan(cpus: &ProcessorSet, texts: &Arc<Texts>, count: usize) -> Result<f64, Failed> {
    let texts = Arc::clone(texts);
    let threads = cpus.spawn_threads(move |_| {
        let body = BODY.repeat(12).into_bytes();
        let began = Instant::now();
        let mut scans = 0_u32;
        while began.elapsed() < SPAN {
            assert!(!texts.any_begins(&body), "no text matches");
            scans += 1;
        }
        began.elapsed().as_secs_f64() / f64::from(scans)
    });
    let readers = threads.len() as f64;
    let mut seconds = 0.0;
    for thread in threads {
        seconds += thread.join().map_err(|_| "a scan panicked")?;
    }
    Ok(seconds / readers / count as f64 * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_finds_a_text_that_a_body_begins_with_and_no_other() {
        let texts = Texts::build(3);
        let body = "00000000000000000002".repeat(BYTES / 20) + " and more";
        assert!(texts.any_begins(body.as_bytes()));
        assert!(!texts.any_begins(&body.as_bytes()[..BYTES - 1]));
        assert!(!texts.any_begins(BODY.repeat(12).as_bytes()));
    }

    #[test]
    fn each_cpu_is_in_one_region() {
        let counted: usize = regions().iter().map(ProcessorSet::len).sum();
        assert_eq!(counted, SystemHardware::current().processors().len());
    }
}
