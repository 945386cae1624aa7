//! Gain of a faster allocator, compared with that of the fix: `allocators.md`.
//!
//! Chapter 3's problem and solution under the load of its effect, each with the system's allocator and with mimalloc
//! in turn.
//!
//! `cargo run -p studies --bin allocators -- 12 2` (pairs, seconds)

use std::fs;
use std::time::Duration;

use course::measurement::claim::{PROBLEM, SOLUTION};
use engine::placement::Placement;
use engine::traffic::Traffic;
use statistics::figures;
use studies::Failed;

fn main() -> Result<(), Failed> {
    let (pairs, seconds) = (studies::argument(1, 12)?, studies::argument(2, 2)?);
    let chapter = studies::chapter_file(3)?;
    let load = Traffic {
        duration: Duration::from_secs(seconds),
        ..chapter.load_of(chapter.effect_scenario())
    };
    let folder = tempfile::tempdir()?;
    let (mimalloc, system) = (folder.path().join("mimalloc"), folder.path().join("system"));
    // The second build puts another program in the first one's place.
    fs::copy(studies::compile_with(3, "mimalloc")?, &mimalloc)?;
    fs::copy(studies::compile_with(3, "")?, &system)?;
    let placement = Placement::apart();
    println!(
        "| variant | the system's: requests per second | mimalloc: requests per second | gain | 95 % interval |"
    );
    println!("| --- |{}", " ---: |".repeat(4));
    for variant in [PROBLEM, SOLUTION] {
        let compared = studies::compare(pairs, |is_mimalloc| {
            let program = if is_mimalloc { &mimalloc } else { &system };
            let server = studies::start_program(program, variant, &placement.server, &[])?;
            Ok(studies::load(&server, &load, &placement.generator)?.requests_per_second)
        })?;
        let [theirs, systems] = compared.means.map(figures::count);
        let (low, high) = compared.interval;
        let [gain, low, high] = [compared.ratio, low, high].map(figures::ratio);
        println!("| {variant} | {systems} | {theirs} | {gain} | {low} to {high} |");
    }
    studies::print_provenance(&format!(
        "{pairs} pairs of rounds of {seconds} s, {} users without pause",
        load.users
    ));
    Ok(())
}
