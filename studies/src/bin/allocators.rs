//! Whether a faster allocator is enough: `allocators.md`.
//!
//! Chapter 3's problem and solution under the load of its effect, each with the system's allocator and with
//! mimalloc. Each is measured twice, forwards and backwards, and the means are shown.
//!
//! `cargo run -p studies --bin allocators -- 4` (seconds)

use std::fs;
use std::time::Duration;

use duel::figures;
use duel::placement::Placement;
use duel::traffic::Traffic;
use measurement::claim::{PROBLEM, SOLUTION};
use studies::Failed;

/// What is built with these features of the chapter.
const ALLOCATORS: [(&str, &str); 2] = [("the system's", ""), ("mimalloc", "mimalloc")];

fn main() -> Result<(), Failed> {
    let seconds = studies::argument(1, 4)?;
    let chapter = studies::chapter_file(3)?;
    let load = Traffic {
        duration: Duration::from_secs(seconds),
        ..chapter.load_of(chapter.effect_scenario())
    };
    let folder = tempfile::tempdir()?;
    let mut programs = Vec::new();
    for (name, features) in ALLOCATORS {
        let built = studies::compile_with(3, features)?;
        // The next build puts another program in this one's place.
        let program = folder.path().join(name);
        fs::copy(built, &program)?;
        programs.push(program);
    }
    let mut rows = Vec::new();
    for variant in [PROBLEM, SOLUTION] {
        for allocator in 0..ALLOCATORS.len() {
            rows.push((variant, allocator, 0.0));
        }
    }
    let placement = Placement::apart();
    for index in (0..rows.len()).chain((0..rows.len()).rev()) {
        let (variant, allocator, sum) = &mut rows[index];
        let program = &programs[*allocator];
        let server = studies::start_program(program, variant, &placement.server, &[])?;
        let outcome = studies::load(&server, &load, &placement.generator)?;
        *sum += outcome.requests_per_second;
    }
    println!("| variant | allocator | requests per second | gain |");
    println!("| --- | --- | ---: | ---: |");
    let first = rows[0].2;
    for (variant, allocator, sum) in &rows {
        let name = ALLOCATORS[*allocator].0;
        let (mean, gain) = (
            figures::count((sum / 2.0).round()),
            figures::ratio(sum / first),
        );
        println!("| {variant} | {name} | {mean} | {gain} |");
    }
    studies::print_provenance(&format!(
        "{} users without pause, {seconds} s a run",
        load.users
    ));
    Ok(())
}
