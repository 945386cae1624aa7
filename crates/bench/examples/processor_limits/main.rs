//! What each counter of CPUs says under each limit that a system can set, and what too many
//! workers cost. Prints Markdown for the book, whose recorded runs are
//! `flamegraphs/measuring/limits.md` and `throttling.md`:
//!
//! ```text
//! cargo run -p bench --example processor_limits -- counters
//! cargo run -p bench --example processor_limits -- throttling
//! ```
//!
//! Sets every limit itself, on a process of its own that it starts for it: affinity always, control
//! groups of both versions where it may (as root, mostly). What it could not set, it says.

mod cgroup;
mod probe;
mod throttling;

use std::error::Error;

use bench::counters::{Judged, Usable};
use loadgen::cpus;

use crate::cgroup::Version;
use crate::probe::{ASK, ASK_THEN_PIN, PIN_THEN_ASK, Said, Under};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some(probe::COUNT), Some(order)) => probe::count(&order),
        (Some(throttling::WORK), Some(workers)) => throttling::work(workers.parse()?),
        (Some("throttling"), None) => throttling::table(),
        (None | Some("counters"), None) => {
            counters();
            Ok(())
        }
        _ => Err("say `counters` or `throttling`".into()),
    }
}

/// A limit and what was counted under it, or why it could not be set.
type Row = (String, Result<Said, String>);

fn counters() {
    let first: Vec<usize> = cpus::available().into_iter().take(1).collect();
    let processes = [
        ("none", ASK, Under::Nothing),
        (
            "the process is started on one CPU",
            ASK,
            Under::Affinity(&first),
        ),
        (
            "a thread pins itself to one, then it counts",
            PIN_THEN_ASK,
            Under::Nothing,
        ),
        (
            "it counts, pins itself to one, and counts again",
            ASK_THEN_PIN,
            Under::Nothing,
        ),
    ];
    let run = |(words, order, under): (&str, _, _)| (words.to_owned(), probe::run(order, under));
    let mut rows: Vec<Row> = processes.map(run).into();
    for version in [Version::One, Version::Two] {
        for (words, limit) in cgroup::LIMITS {
            let said = cgroup::Group::limited(version, *limit)
                .and_then(|group| probe::run(ASK, Under::Group(&group)));
            rows.push((format!("{words}, cgroup {version}"), said));
        }
    }
    println!("| limit | the process may use | std | num_cpus | tokio | many_cpus |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (limit, said) in &rows {
        if let Ok(said) = said {
            println!("{}", line(limit, said));
        }
    }
    println!(
        "\nA count in **bold** is wrong: ↓ too few workers for the CPUs, ↑ too many for the time."
    );
    let missing: Vec<String> = rows
        .iter()
        .filter_map(|(limit, said)| Some(format!("- {limit}: {}", said.as_ref().err()?)))
        .collect();
    if !missing.is_empty() {
        println!("\nNot set on this machine:\n\n{}", missing.join("\n"));
    }
}

fn line(limit: &str, said: &Said) -> String {
    let counts = said
        .counts
        .named()
        .map(|(_, count)| match said.usable.judge(count) {
            Judged::Right => count.to_string(),
            Judged::TooFew => format!("**{count}** ↓"),
            Judged::TooMany => format!("**{count}** ↑"),
        });
    format!(
        "| {limit} | {} | {} |",
        may_use(said.usable),
        counts.join(" | ")
    )
}

fn may_use(usable: Usable) -> String {
    match usable.quota {
        Some(quota) if quota < usable.cpus as f64 => {
            format!("{}, for the time of {quota}", usable.cpus)
        }
        _ => usable.cpus.to_string(),
    }
}
