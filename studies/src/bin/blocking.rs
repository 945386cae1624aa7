//! The two published benchmarks of blocking strategies, with what they left out, a bystander on the same
//! runtime: `blocking-strategies.md` and `blocking-keeping.md`.
//!
//! A batch of operations runs at once, by one strategy, again and again for some seconds. The
//! published figure is the time of a batch. Meanwhile a thread sends a byte to a task of the runtime
//! every 5 ms and waits for it to come back. Cells of the table take turns, there and back, so that a
//! machine that slowly changes favours none of them.
//!
//! `cargo run -p studies --bin blocking -- strategies` (or `keeping`)

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Seek, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chapter8::Pool;
use duel::figures;
use rand::seq::SliceRandom;
use rand_pcg::Pcg32;
use studies::Failed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, block_in_place, spawn_blocking, yield_now};
use vmap::{Advise, Map};

/// How long each cell runs in a round, and how many rounds there are.
const SPAN: Duration = Duration::from_secs(1);
const ROUNDS: u32 = 6;
/// A body, the chunks that it comes in, and how much of it is written at once.
const BODY: usize = 8 * 1024 * 1024;
const CHUNK: usize = 64 * 1024;
const BATCH: usize = 256 * 1024;

const PUBLISHED: &str = include_str!("../../../reference/seed-figures.toml");

/// Which thread runs what blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// The reactor's thread, as if it did not block.
    Direct,
    /// The reactor's thread, after a permit; another thread is the reactor meanwhile.
    Permit,
    /// A thread of a pool of its own.
    Dispatch,
    /// A thread of tokio's own pool.
    SpawnBlocking,
}

const STRATEGIES: [(Strategy, &str); 4] = [
    (Strategy::Direct, "direct"),
    (Strategy::Permit, "permit"),
    (Strategy::Dispatch, "dispatch"),
    (Strategy::SpawnBlocking, "spawn_blocking"),
];

/// A row's work by one strategy, in a folder if it needs one, and what was measured of it.
struct Cell {
    work: &'static str,
    strategy: (Strategy, &'static str),
    folder: PathBuf,
    /// How long each batch took, in ms.
    batches: Vec<f64>,
    /// How long each byte was away from the moment it was due, in ms.
    pings: Vec<f64>,
}

impl Cell {
    fn new(work: &'static str, strategy: (Strategy, &'static str), folder: &Path) -> Self {
        Self {
            work,
            strategy,
            folder: folder.to_owned(),
            batches: Vec::new(),
            pings: Vec::new(),
        }
    }

    /// Median time of a batch in ms.
    fn batch(&self) -> f64 {
        quantile(&self.batches, 0.5)
    }

    fn ping(&self) -> String {
        figures::milliseconds(quantile(&self.pings, 0.99))
    }
}

fn main() -> Result<(), Failed> {
    match studies::argument(1, String::new())?.as_str() {
        "strategies" => strategies()?,
        "keeping" => keeping()?,
        _ => return Err("say `strategies` or `keeping`".into()),
    }
    studies::print_provenance(&format!("{ROUNDS} rounds of {} s", SPAN.as_secs()));
    Ok(())
}

/// Operations of some microseconds, by each strategy.
fn strategies() -> Result<(), Failed> {
    let cells = ["noop", "expensive", "sleep"]
        .map(|work| STRATEGIES.map(|strategy| Cell::new(work, strategy, Path::new(""))));
    let cells = measured(cells.into_iter().flatten().collect())?;
    let all: toml::Table = PUBLISHED.parse()?;
    let published = |work: &str, strategy: &str| {
        let rows = all["blocking_strategies"]["ns_per_iter"].as_array()?;
        let row = rows
            .iter()
            .find(|row| row[0].as_str() == Some(work))?
            .as_array()?;
        let at = row
            .iter()
            .position(|cell| cell.as_str() == Some(strategy))?;
        Some(row.get(at + 1)?.as_integer()? as f64)
    };
    println!("| workload | strategy | a batch | times `direct` | published | ping, p99 |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for of_work in cells.chunks(STRATEGIES.len()) {
        for cell in of_work {
            let name = cell.strategy.1;
            let theirs = match name {
                "dispatch" => published(cell.work, "dispatch_rx"),
                _ => published(cell.work, name),
            };
            let theirs = theirs.zip(published(cell.work, "direct"));
            println!(
                "| {} | `{name}` | {} µs | {:.2} | {:.2} | {} |",
                cell.work,
                figures::count((cell.batch() * 1e3).round()),
                cell.batch() / of_work[0].batch(),
                theirs.map_or(f64::NAN, |(this, direct)| this / direct),
                cell.ping(),
            );
        }
    }
    Ok(())
}

/// Bodies, in memory and in two folders: on a disk, where this program is, and in Linux's shared memory.
fn keeping() -> Result<(), Failed> {
    let disk = std::env::current_exe()?.with_file_name("");
    let folders = [("ext4", disk.as_path()), ("tmpfs", Path::new("/dev/shm"))];
    let mut cells = vec![
        Cell::new("ram", STRATEGIES[0], &disk),
        Cell::new("ram_gather", STRATEGIES[0], &disk),
    ];
    for work in ["fs", "mmap", "mmap_copy"] {
        for strategy in STRATEGIES {
            cells.extend(folders.map(|(_, folder)| Cell::new(work, strategy, folder)));
        }
    }
    let cells = measured(cells)?;
    let all: toml::Table = PUBLISHED.parse()?;
    let heads = folders.map(|(name, _)| format!(" {name}: times `ram` | published | ping, p99 |"));
    println!("| kept as | strategy |{}", heads.concat());
    print!("| --- | --- |{}", " ---: |".repeat(6));
    for cell in &cells {
        let (work, strategy, is_disk) = (cell.work, cell.strategy.1, cell.folder == disk);
        if is_disk {
            print!("\n| {work} | `{strategy}` |");
        }
        let name = match work {
            "mmap_copy" => format!("mmap_{strategy}_copy"),
            "fs" | "mmap" => format!("{work}_{strategy}"),
            _ => work.to_owned(),
        };
        let table = if is_disk {
            "ns_per_iter_ebs_ext4"
        } else {
            "ns_per_iter_tmpfs_huge"
        };
        let published = all["body_streaming"][table]
            .as_table()
            .ok_or("no published figures")?;
        let published = |name: &str| Some(published.get(name)?.as_integer()? as f64);
        let theirs = published(&name).zip(published("ram"));
        print!(
            " {:.2} | {} | {} |",
            cell.batch() / cells[0].batch(),
            theirs.map_or_else(String::new, |(this, ram)| format!("{:.2}", this / ram)),
            cell.ping(),
        );
        if work.starts_with("ram") {
            print!(" | | |");
        }
    }
    println!(
        "\n\nWith `ram` a batch of 16 bodies takes {:.0} ms.",
        cells[0].batch()
    );
    Ok(())
}

/// The value that a share of all is not above.
fn quantile(all: &[f64], share: f64) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // The index of an existing value: small and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

fn measured(mut cells: Vec<Cell>) -> Result<Vec<Cell>, Failed> {
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        let mut order: Vec<_> = cells.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        order.into_iter().try_for_each(run)?;
    }
    Ok(cells)
}

/// Runs batch after batch, with a bystander beside them. Operations in a batch, workers of the runtime, and
/// threads or permits beside them are as published.
fn run(cell: &mut Cell) -> Result<(), Failed> {
    let (size, core, extra) = match cell.work {
        "noop" | "expensive" => (100, 4, 4),
        "sleep" => (200, 4, 40),
        _ => (16, 2, 2),
    };
    let strategy = cell.strategy.0;
    let (workers, blocking, own) = match strategy {
        Strategy::Direct | Strategy::Permit => (core + extra, core + extra, 0),
        Strategy::Dispatch => (core, 1, extra),
        Strategy::SpawnBlocking => (core, extra, 0),
    };
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .max_blocking_threads(blocking)
        .enable_all()
        .build()?;
    let by = Blocking {
        strategy,
        permits: Arc::new(Semaphore::new(extra)),
        pool: Pool::new(own),
    };
    let server = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = server.local_addr()?;
    runtime.spawn(send_back(server));
    let stream = TcpStream::connect(address)?;
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    let pings = std::thread::spawn(move || pings(stream, &is_done));
    let batches = runtime.block_on(async {
        let began = Instant::now();
        while began.elapsed() < SPAN {
            let batch_began = Instant::now();
            let mut batch = JoinSet::new();
            for number in 0..size {
                batch.spawn(operation(
                    cell.work,
                    number,
                    cell.folder.clone(),
                    by.clone(),
                ));
            }
            while let Some(ended) = batch.join_next().await {
                ended??;
            }
            cell.batches.push(batch_began.elapsed().as_secs_f64() * 1e3);
        }
        Ok::<_, Failed>(())
    });
    done.store(true, Ordering::Relaxed);
    cell.pings
        .extend(pings.join().map_err(|_| "the bystander panicked")??);
    runtime.shutdown_timeout(Duration::from_secs(5));
    batches
}

async fn send_back(server: TcpListener) -> io::Result<()> {
    let (mut stream, _) = server.accept().await?;
    stream.set_nodelay(true)?;
    loop {
        let byte = stream.read_u8().await?;
        stream.write_u8(byte).await?;
    }
}

/// Sends a byte every 5 ms. An open loop: what was due meanwhile is sent at once, and has waited since then.
fn pings(mut stream: TcpStream, is_done: &AtomicBool) -> io::Result<Vec<f64>> {
    stream.set_nodelay(true)?;
    let mut taken = Vec::new();
    let mut due = Instant::now();
    while !is_done.load(Ordering::Relaxed) {
        due += Duration::from_millis(5);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
        taken.push(due.elapsed().as_secs_f64() * 1e3);
    }
    Ok(taken)
}

/// A strategy with the permits or the pool that it needs. Clones share them.
#[derive(Clone)]
struct Blocking {
    strategy: Strategy,
    permits: Arc<Semaphore>,
    pool: Pool,
}

impl Blocking {
    // ANCHOR: run
    async fn run<T, F>(&self, work: F) -> io::Result<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match self.strategy {
            Strategy::Direct => Ok(work()),
            Strategy::Permit => {
                let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
                Ok(block_in_place(work))
            }
            Strategy::Dispatch => self.pool.run(work).await.map_err(io::Error::other),
            Strategy::SpawnBlocking => Ok(spawn_blocking(work).await?),
        }
    }
    // ANCHOR_END: run
}

/// The `number`-th operation of a batch.
async fn operation(
    work: &'static str,
    number: usize,
    folder: PathBuf,
    by: Blocking,
) -> io::Result<()> {
    // Microseconds of the published sleeps, to which the kernel adds its timer's slack, about 50.
    const SLEEPS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 49];
    match work {
        // What is left is the strategy's own cost.
        "noop" => by.run(move || _ = black_box(number)).await,
        "expensive" => {
            by.run(move || {
                let mut numbers: [usize; 300] = std::array::from_fn(|i| i);
                numbers.shuffle(&mut Pcg32::new(number as u64, 1));
                black_box(&mut numbers).sort_unstable();
                black_box(&numbers);
            })
            .await
        }
        "sleep" => {
            let sleep = Duration::from_micros(SLEEPS[number % SLEEPS.len()]);
            by.run(move || std::thread::sleep(sleep)).await
        }
        _ => body(work, &folder, &by).await,
    }
}

/// Takes a body in and finds its highest byte.
async fn body(keep: &'static str, folder: &Path, by: &Blocking) -> io::Result<()> {
    let incoming = vec![7; CHUNK];
    let mut chunks: Vec<Bytes> = Vec::new();
    let mut gathered = Vec::new();
    let mut file = match keep {
        "ram" | "ram_gather" => None,
        _ => Some(tempfile::tempfile_in(folder)?),
    };
    for number in 1..=BODY / CHUNK {
        yield_now().await;
        if keep == "ram_gather" {
            gathered.extend_from_slice(&incoming);
            continue;
        }
        chunks.push(Bytes::copy_from_slice(&incoming));
        if number % (BATCH / CHUNK) == 0
            && let Some(mut own) = file.take()
        {
            let batch = std::mem::take(&mut chunks);
            let write = move || {
                batch.iter().try_for_each(|chunk| own.write_all(chunk))?;
                Ok::<_, io::Error>(own)
            };
            file = Some(by.run(write).await??);
        }
    }
    if let Some(file) = file {
        return by.run(move || read_back(keep, file)).await?;
    }
    for chunk in &chunks {
        highest(chunk);
    }
    highest(&gathered);
    Ok(())
}

fn highest(bytes: &[u8]) -> Option<&u8> {
    black_box(bytes.iter().max())
}

fn read_back(keep: &str, mut file: File) -> io::Result<()> {
    if keep == "fs" {
        file.rewind()?;
        let mut buffer = vec![0; CHUNK];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                length => _ = highest(&buffer[..length]),
            }
        }
    }
    // It has no name, so no other process can change it.
    let map = Map::with_options().map(&file).map_err(io::Error::other)?;
    // If the system ignores the advice, reading takes longer.
    let _ = map.advise(Advise::Sequential);
    if keep == "mmap_copy" {
        let copy = map.to_vec();
        highest(&copy);
    } else {
        highest(&map);
    }
    Ok(())
}
