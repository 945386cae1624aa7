//! When the pings beside a chapter's load were slow, and how slow each of them was. Prints Markdown for the
//! book, whose recorded runs are `flamegraphs/measuring/heat-map-5.md` and `heat-map-8.md`:
//!
//! ```text
//! cargo build -p chapter5 -p chapter8
//! cargo run -p bench --example heat_map -- CHAPTER [SECONDS]
//! ```
//!
//! Percentiles say how many pings were slow, and not whether all of them were so at the same time. Problem
//! and solution run one after the other, under the load of the chapter's effect.

mod shared;

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use bench::placement::Placement;
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::chapter_file::ChapterFile;
use measurement::load::Load;

const VARIANTS: [&str; 2] = ["problem", "solution"];
/// Pings begin when the load has run so long, and end so long before it does.
const MARGIN: Duration = Duration::from_secs(1);
/// So many pings are due in a second, whether others have come back or not.
const PER_SECOND: u32 = 200;
/// Connections that take turns: each has 640 ms until its next ping is due. One that takes longer delays
/// that one, which counts from when it was due.
const CONNECTIONS: u32 = 128;
/// Pings of a row.
const ROW: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let number = shared::argument(1, 5_u32)?;
    let seconds = shared::argument(2, 2_u32)?;
    let file = chapter_file(number)?;
    let scenario = file.effect_scenario();
    let load = Load {
        bystander: None,
        warm_up: MARGIN,
        duration: Duration::from_secs(seconds.into()) + MARGIN,
        ..file.load_of(scenario)
    };
    let interrupt = Interrupt::new();
    let placement = Placement::apart();
    let settings = Settings {
        cpus: &placement.generator,
        ..Settings::of(&interrupt)
    };
    let apart = 1.0 / f64::from(PER_SECOND);
    let (mut is_optimised, mut faults) = (true, 0);
    println!("| variant | due from, s | every, s | latencies of the pings, ms |");
    println!("| --- | ---: | ---: | --- |");
    for variant in VARIANTS {
        let package = format!("chapter{number}");
        let server = shared::start(&package, variant, &placement.server, &interrupt)?;
        is_optimised &= server.is_optimised();
        let address = server.service();
        let (outcome, pings) = thread::scope(|scope| {
            let pings = scope.spawn(|| pings(address, seconds * PER_SECOND));
            let outcome = loadgen::run(address, &load, &settings);
            (outcome, pings.join())
        });
        faults += shared::faults(&outcome?);
        let pings = pings.map_err(|_| "the thread that asked for pings panicked")??;
        for (row, pings) in pings.chunks(ROW).enumerate() {
            let due = (row * ROW) as f64 * apart;
            let pings = pings
                .iter()
                .map(|ping| format!("{:.1}", ping.as_secs_f64() * 1e3));
            let pings: Vec<String> = pings.collect();
            println!("| {variant} | {due:.1} | {apart} | {} |", pings.join(" "));
        }
    }
    shared::print_provenance(
        &format!(
            "Latencies from the due moment, of {PER_SECOND} pings a second beside {} users; {faults} errors",
            scenario.users
        ),
        &format!("heat_map -- {number} {seconds}"),
        is_optimised,
    );
    Ok(())
}

/// What the chapter's `chapter.toml` says, read from the repository's folder.
fn chapter_file(number: u32) -> Result<ChapterFile, Box<dyn Error>> {
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&format!("{number}-"))
    };
    let folders = Path::new("chapters").read_dir()?;
    let folder = folders.flatten().map(|entry| entry.path()).find(is_it);
    let file = folder.ok_or("no such chapter here")?.join("chapter.toml");
    let text = std::fs::read_to_string(&file)?;
    Ok(ChapterFile::parse(
        &text,
        &file.to_string_lossy(),
        loadgen::cpus::count(),
    )?)
}

/// So many pings on a schedule, in the order in which they were due.
fn pings(address: SocketAddr, count: u32) -> io::Result<Vec<Duration>> {
    let begin = Instant::now() + MARGIN;
    let of_connection = |first: u32| -> io::Result<Vec<(u32, Duration)>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        let turns = (first..count).step_by(CONNECTIONS as usize);
        let pings = turns.map(|number| {
            let due = begin + Duration::from_secs(1) * number / PER_SECOND;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            ping(&mut stream)?;
            Ok((number, due.elapsed()))
        });
        pings.collect()
    };
    let mut all: Vec<(u32, Duration)> = thread::scope(|scope| {
        let of_connection = &of_connection;
        let connections: Vec<_> = (0..CONNECTIONS)
            .map(|first| scope.spawn(move || of_connection(first)))
            .collect();
        let ended = connections.into_iter().map(|connection| {
            let panicked = |_| io::Error::other("a connection's thread panicked");
            connection.join().map_err(panicked)?
        });
        ended.collect::<io::Result<Vec<_>>>()
    })?
    .concat();
    all.sort_unstable();
    Ok(all.into_iter().map(|(_, latency)| latency).collect())
}

/// Asks once and reads the answer to its end.
fn ping(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"GET /ping HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut piece = [0; 1024];
    while !answer.ends_with(b"pong") {
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => answer.extend_from_slice(&piece[..count]),
        }
    }
    Ok(())
}
