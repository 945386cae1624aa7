//! Prints all tasks of a process: `cargo run --example tasks -- --pid PID [--json]`.

use std::time::Instant;

use task_reader::{Binary, Index, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let pid = arguments
        .iter()
        .skip_while(|argument| *argument != "--pid")
        .nth(1);
    let pid: u32 = pid.ok_or("name the process: --pid PID")?.parse()?;
    let began = Instant::now();
    let binary = Binary::of_process(pid)?;
    let index = Index::new(&binary)?;
    let indexed = began.elapsed();
    let snapshot = Reader::new(&index).snapshot(pid)?;
    if arguments.iter().any(|argument| argument == "--json") {
        println!("{}", serde_json::to_string_pretty(&snapshot)?);
    } else {
        println!("{snapshot}");
    }
    let still = snapshot.standstill;
    eprintln!(
        "indexed in {indexed:.2?}; all in {:.2?}; the process stood still {} times, at most {:.2?}, for {} KiB",
        began.elapsed(),
        still.stops,
        still.longest,
        still.bytes >> 10,
    );
    Ok(())
}
