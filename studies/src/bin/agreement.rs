//! Comparison of three generators at one service: `flamegraphs/chapterN/agreement.md`.
//!
//! The embedded one, k6 and Locust put a third of the chapter's load each on its solution, all at the same
//! time. One after the other, they would also measure changes of the machine. On a machine with neighbors
//! these are larger than the differences between the generators.
//!
//! `cargo run -p studies --bin agreement -- 1` (chapter), after `cargo workshop setup k6 locust`

use std::thread;
use std::time::Duration;

use course::bench::server::Server;
use engine::outcome::GeneratorKind;
use engine::placement::Placement;
use engine::traffic::Traffic;
use statistics::figures::{count, percent};
use studies::{Failed, Target, milliseconds};

/// Python starts, and then the users in batches of a second. The others wait for that, so that all
/// record the same time: where the CPU is full, what one of them leaves the others take.
const LOCUST_IS_LATER: Duration = Duration::from_secs(2);

fn main() -> Result<(), Failed> {
    let number = studies::argument(1, 1)?;
    studies::compile(&[number])?;
    let file = studies::chapter_file(number)?;
    let placement = course::bench::rounds::placement_of(&file);
    let server = studies::start(number, "solution", &placement.server, &file.load.arguments)?;
    let whole = file.load_of(&file.load);
    let mut load = Traffic {
        users: (whole.users / 3).max(1),
        ..whole.clone()
    };
    if let Some(bystander) = &mut load.bystander {
        // k6 takes whole numbers.
        bystander.per_second = (bystander.per_second / 3.0).floor().max(1.0);
    }
    let alone = match file.times_alone {
        Some(_) => alone(&server, &whole, &placement)?,
        None => None,
    };
    let target = Target {
        chapter: number,
        server: &server,
        cpus: &placement.generator,
        alone,
    };
    let outcomes = thread::scope(|scope| {
        let locust = scope.spawn(|| target.load_by(GeneratorKind::Locust, &load));
        thread::sleep(LOCUST_IS_LATER);
        let k6 = scope.spawn(|| target.load_by(GeneratorKind::K6, &load));
        let own = target.load_by(GeneratorKind::Embedded, &load)?;
        let k6 = k6.join().map_err(|_| "k6's thread panicked")?;
        let locust = locust.join().map_err(|_| "Locust's thread panicked")?;
        Ok::<_, Failed>([own, k6?, locust?])
    })?;

    println!(
        "| generator | users | requests per second | against embedded | median | against embedded | its CPU time |"
    );
    println!("| --- |{}", " ---: |".repeat(6));
    let own = &outcomes[0];
    for outcome in &outcomes {
        let generator = &outcome.generator;
        let median = outcome.latency.at(0.5);
        let median_off = match (median, own.latency.at(0.5)) {
            (Some(theirs), Some(own)) => off(theirs, own),
            _ => String::new(),
        };
        let cpu_share = match generator.cpu_share {
            Some(share) => percent(share),
            None => String::new(),
        };
        println!(
            "| {} {} | {} | {} | {} | {} | {median_off} | {cpu_share} |",
            generator.name,
            generator.version,
            count(generator.users.into()),
            count(outcome.requests_per_second),
            off(outcome.requests_per_second, own.requests_per_second),
            milliseconds(median),
        );
    }
    studies::print_provenance("A third of the chapter's load each, at the same time");
    Ok(())
}

/// Formats the distance of a generator's figure from the embedded one's.
fn off(theirs: f64, own: f64) -> String {
    format!("{:+.1} %", (theirs / own - 1.0) * 100.0)
}

/// Returns the lower quartile of latency for one user, for scripts that compare with it. If each script measured it
/// itself, they would disturb each other.
fn alone(
    server: &Server,
    load: &Traffic,
    placement: &Placement,
) -> Result<Option<Duration>, Failed> {
    let load = Traffic {
        users: 1,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(2),
        ..load.clone()
    };
    let quartile = studies::load(server, &load, &placement.generator)?
        .latency
        .at(0.25);
    Ok(quartile.map(|ms| Duration::from_secs_f64(ms / 1000.0)))
}
