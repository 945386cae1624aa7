//! Large bodies of an HTTP client, kept in five places by three blocking strategies: `bodies.md`.
//!
//! 16 requests at once each fetch a chunked body of 8 MiB, keep it, and then read every byte of it. The result is
//! checked. A body is kept as its chunks, in one buffer, in a file, in a file that is mapped, or in one that is mapped
//! and copied. A second table keeps small and large bodies in memory, in files, and by their size.
//!
//! Each cell of the table runs in a process of its own, so that its memory is its own. The server of the bodies is in the
//! process that prints the table. Cells take turns, there and back, so that a machine that slowly changes favours none.
//!
//! A third folder is a tmpfs with huge pages, as published. Each of its cells mounts one for itself in a user namespace
//! of its own, which needs no root. A system that refuses that leaves these rows out.
//!
//! `cargo run -p studies --bin bodies [-- FOLDER]`: the folder of a tmpfs, `/dev/shm` unless given. Three minutes, 128 MiB
//! in each folder.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use statistics::figures;
use studies::strategies::{Blocking, Strategy, Timer};
use studies::{Failed, published, quantile};
use tokio::task::JoinSet;
use vmap::{Advise, Map};

/// Length of each cell in a round, and number of rounds.
const SPAN: Duration = Duration::from_millis(800);
const ROUNDS: usize = 5;
/// Requests at once, as published.
const BODIES: u64 = 16;
/// Length of a large body, as published, and of a small one.
const LARGE: u64 = 8 * 1024 * 1024;
const SMALL: u64 = 64 * 1024;
/// Length of the chunks that the server sends, and of the pieces that are read back.
const CHUNK: usize = 64 * 1024;
/// Number of bytes that are written to a file at once. A policy by size keeps shorter bodies in memory.
const PART: usize = 256 * 1024;

/// Bytes that this process copied from one place of its memory to another, or to or from a file.
static COPIED: AtomicU64 = AtomicU64::new(0);
/// Bytes in files now, and at most.
static IN_FILES: AtomicU64 = AtomicU64::new(0);
static MOST_IN_FILES: AtomicU64 = AtomicU64::new(0);

/// Place of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// In memory, as the chunks that came.
    Ram,
    /// In memory, in one buffer.
    RamGather,
    /// In a file, read back with a buffer.
    File,
    /// In a file that is mapped into memory.
    Mapped,
    /// In a file that is mapped, and copied from there.
    MappedCopy,
    /// In memory, and in a file as soon as it is longer than [`PART`].
    BySize,
}

impl Keep {
    fn name(self) -> &'static str {
        match self {
            Self::Ram => "ram",
            Self::RamGather => "ram_gather",
            Self::File => "fs",
            Self::Mapped => "mmap",
            Self::MappedCopy => "mmap_copy",
            Self::BySize => "by size",
        }
    }
}

/// A folder for files, as the table names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    name: &'static str,
    path: PathBuf,
}

impl Folder {
    const DISK: &str = "disk";
    const HUGE: &str = "tmpfs with huge pages";

    /// Prepares `program`, as whose process a cell runs. The one with huge pages gets its tmpfs first, which is gone
    /// with the process.
    fn command(&self, program: &Path) -> Command {
        if self.name != Self::HUGE {
            return Command::new(program);
        }
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
            .arg("mount -t tmpfs -o huge=always,size=1g none \"$0\" && exec \"$@\"")
            .args([&*self.path, program]);
        command
    }
}

/// One cell of a table.
struct Cell {
    keep: Keep,
    strategy: Strategy,
    folder: Folder,
    /// The bodies that a batch fetches: their lengths.
    lengths: Vec<u64>,
}

/// The folders of the files: the disk, a tmpfs, and where one with huge pages is mounted.
fn folders(tmpfs: &Path, huge: &Path) -> Result<Vec<Folder>, Failed> {
    let disk = std::env::current_exe()?.with_file_name("");
    let mut folders = Vec::new();
    for (name, path) in [
        (Folder::DISK, &*disk),
        ("tmpfs", tmpfs),
        (Folder::HUGE, huge),
    ] {
        if path.is_dir() {
            let path = path.to_owned();
            folders.push(Folder { name, path });
        }
    }
    Ok(folders)
}

/// Removes the folder with huge pages if the system refuses one, and returns its reason.
fn refused_huge_pages(folders: &mut Vec<Folder>) -> Option<String> {
    let huge = folders
        .iter()
        .position(|folder| folder.name == Folder::HUGE)?;
    let why = match folders[huge].command(Path::new("true")).output() {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    folders.remove(huge);
    Some(why)
}

/// The published cells: memory needs no strategy, and each kind of file has three in each folder.
fn published_cells(folders: &[Folder]) -> Vec<Cell> {
    let disk = &folders[0];
    let mut cells = vec![
        large_cell(Keep::Ram, Strategy::Direct, disk),
        large_cell(Keep::RamGather, Strategy::Direct, disk),
    ];
    for keep in [Keep::File, Keep::Mapped, Keep::MappedCopy] {
        for strategy in [Strategy::Direct, Strategy::Permit, Strategy::Dispatch] {
            for folder in folders {
                cells.push(large_cell(keep, strategy, folder));
            }
        }
    }
    cells
}

/// A cell of large bodies only.
fn large_cell(keep: Keep, strategy: Strategy, folder: &Folder) -> Cell {
    Cell {
        keep,
        strategy,
        folder: folder.clone(),
        lengths: vec![LARGE; 16],
    }
}

/// Bodies of which one in eight is large, kept in three ways.
fn mixed_cells(folders: &[Folder]) -> Vec<Cell> {
    let disk = &folders[0];
    let mut lengths = Vec::new();
    for number in 0..BODIES {
        lengths.push(if number % 8 == 7 { LARGE } else { SMALL });
    }
    let mut cells = Vec::new();
    for keep in [Keep::Ram, Keep::File, Keep::BySize] {
        cells.push(Cell {
            keep,
            strategy: Strategy::Dispatch,
            folder: disk.clone(),
            lengths: lengths.clone(),
        });
    }
    cells
}

/// Measurements of the processes of a cell.
#[derive(Default)]
struct Measured {
    batches_ms: Vec<f64>,
    late_ms: Vec<f64>,
    /// Memory of each round, in bytes.
    memory: Vec<f64>,
    in_files: Vec<f64>,
    copies: f64,
}

impl Measured {
    /// Median time of a batch in ms.
    fn batch(&self) -> f64 {
        quantile(&self.batches_ms, 0.5)
    }

    fn add(&mut self, round: &Value) -> Option<()> {
        for batch in round["batches_ms"].as_array()? {
            self.batches_ms.extend(batch.as_f64());
        }
        for late in round["late_ms"].as_array()? {
            self.late_ms.extend(late.as_f64());
        }
        self.memory.extend(round["memory"].as_f64());
        self.in_files.push(round["in_files"].as_f64()?);
        self.copies = round["copies"].as_f64()?;
        Some(())
    }

    /// The columns of both tables: lateness, memory, files, copies.
    fn columns(&self) -> String {
        let memory = match &*self.memory {
            [] => "unknown".to_owned(),
            rounds => figures::bytes(quantile(rounds, 0.5)),
        };
        format!(
            "{} | {memory} | {} | {:.2}",
            figures::milliseconds(quantile(&self.late_ms, 0.99)),
            figures::bytes(quantile(&self.in_files, 0.5)),
            self.copies,
        )
    }
}

fn main() -> Result<(), Failed> {
    let tmpfs: PathBuf = studies::argument(1, PathBuf::from("/dev/shm"))?;
    if let Some(huge) = std::env::args().nth(2) {
        let (index, server) = (
            studies::argument::<usize>(3, 0)?,
            studies::argument(4, SocketAddr::from(([127, 0, 0, 1], 0)))?,
        );
        let folders = folders(&tmpfs, Path::new(&huge))?;
        let mut cells = published_cells(&folders);
        cells.extend(mixed_cells(&folders));
        println!("{}", run(&cells[index], server)?);
        return Ok(());
    }
    let huge = tempfile::tempdir()?;
    let mut folders = folders(&tmpfs, huge.path())?;
    let refused = refused_huge_pages(&mut folders);
    // A process without this folder has the same cells as this one without its rows.
    let huge_path = match refused {
        Some(_) => Path::new(""),
        None => huge.path(),
    };
    let mut cells = published_cells(&folders);
    let published_count = cells.len();
    cells.extend(mixed_cells(&folders));
    let measured = measure(&cells, &tmpfs, huge_path)?;
    let (published, mixed) = measured.split_at(published_count);
    print_published(&cells, published)?;
    print_mixed(&cells[published_count..], mixed);
    let mut systems = Vec::new();
    for folder in &folders {
        systems.push(match folder.name {
            Folder::HUGE => Folder::HUGE.to_owned(),
            _ => file_system(&folder.path),
        });
    }
    let left_out = match refused {
        Some(why) => format!(". This system mounts no tmpfs with huge pages for a user (`{why}`)"),
        None => String::new(),
    };
    studies::print_provenance(&format!(
        "Medians of {ROUNDS} rounds of {} ms, 16 bodies at once. Files on {}, never synced to the disk{left_out}",
        SPAN.as_millis(),
        systems.join(" and "),
    ));
    Ok(())
}

/// Runs each cell once a round, in a process of its own.
fn measure(cells: &[Cell], tmpfs: &Path, huge: &Path) -> Result<Vec<Measured>, Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = listener.local_addr()?.to_string();
    thread::spawn(move || serve(&listener));
    let mut measured: Vec<Measured> = cells.iter().map(|_| Measured::default()).collect();
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        for step in 0..cells.len() {
            let index = if round % 2 == 0 {
                step
            } else {
                cells.len() - 1 - step
            };
            let output = cells[index]
                .folder
                .command(&std::env::current_exe()?)
                .args([tmpfs, huge])
                .args([&index.to_string(), &server])
                .output()?;
            if !output.status.success() {
                let error = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{} failed: {error}", cells[index].keep.name()).into());
            }
            let round: Value = serde_json::from_slice(&output.stdout)?;
            measured[index].add(&round).ok_or("a figure is missing")?;
        }
    }
    Ok(measured)
}

fn print_published(cells: &[Cell], measured: &[Measured]) -> Result<(), Failed> {
    let theirs = published("body_streaming")?;
    println!(
        "| kept as, strategy, where | a batch | times `ram` | published elsewhere | timer late, p99 | memory | in files | copies of a byte |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (cell, figure) in cells.iter().zip(measured) {
        let table = match cell.folder.name {
            Folder::DISK => theirs.get("ns_per_iter_ebs_ext4"),
            Folder::HUGE => theirs.get("ns_per_iter_tmpfs_huge"),
            // Nobody published one without huge pages.
            _ => None,
        };
        let (keep, strategy) = (cell.keep.name(), cell.strategy.name());
        let place = match cell.keep {
            Keep::Ram | Keep::RamGather => "memory",
            _ => cell.folder.name,
        };
        let name = match cell.keep {
            Keep::Ram | Keep::RamGather => keep.to_owned(),
            Keep::MappedCopy => format!("mmap_{strategy}_copy"),
            _ => format!("{keep}_{strategy}"),
        };
        let of = |name| Some(table?.get(name)?.as_integer()? as f64);
        let published = match (of(&*name), of("ram")) {
            (Some(this), Some(ram)) => format!("{:.2}", this / ram),
            _ => String::new(),
        };
        println!(
            "| `{keep}`, {strategy}, {place} | {} | {:.2} | {published} | {} |",
            figures::milliseconds(figure.batch()),
            figure.batch() / measured[0].batch(),
            figure.columns(),
        );
    }
    Ok(())
}

fn print_mixed(cells: &[Cell], measured: &[Measured]) {
    println!("\nTwo of 16 bodies have 8 MiB, the others 64 KiB; dispatched, on the disk:\n");
    println!("| kept | a batch | timer late, p99 | memory | in files | copies of a byte |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (cell, figure) in cells.iter().zip(measured) {
        let kept = match cell.keep {
            Keep::Ram => "all in memory",
            Keep::BySize => "by size: a file from 256 KiB on",
            _ => "all in files",
        };
        let batch = figures::milliseconds(figure.batch());
        println!("| {kept} | {batch} | {} |", figure.columns());
    }
}

/// Returns the kind of file system that a folder is on, with the huge pages of a tmpfs.
fn file_system(folder: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut found = ("", "a file system".to_owned());
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, mount, kind, options, ..] = *fields else {
            continue;
        };
        if !folder.starts_with(mount) || mount.len() < found.0.len() {
            continue;
        }
        let huge = options
            .split(',')
            .find(|option| option.starts_with("huge="));
        let kind = match (kind, huge) {
            ("tmpfs", Some(huge)) => format!("tmpfs with {huge}"),
            ("tmpfs", None) => "tmpfs without huge pages".to_owned(),
            _ => kind.to_owned(),
        };
        found = (mount, kind);
    }
    found.1
}

/// Serves bodies of a length and a number, a thread a connection: `GET /LENGTH/NUMBER`.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        // A client that has ended its process closes the connection, which is the error.
        thread::spawn(move || answer(&stream));
    }
}

fn answer(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next() {
        let mut numbers: Vec<u64> = Vec::new();
        for part in request?.split(['/', ' ']) {
            if let Ok(number) = part.parse() {
                numbers.push(number);
            }
        }
        let [length, number] = *numbers else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        for line in lines.by_ref() {
            if line?.is_empty() {
                break;
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        for from in (0..length).step_by(CHUNK) {
            let chunk = chunk(length, number, from);
            stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
            stream.write_all(&chunk)?;
            stream.write_all(b"\r\n")?;
        }
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

/// Returns the bytes of a body from here to the end of a chunk. One byte of the body is 0xFF, the others are smaller.
fn chunk(length: u64, number: u64, from: u64) -> Vec<u8> {
    static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| (0..=250).cycle().take(CHUNK).collect());
    let mut chunk = PATTERN.clone();
    chunk.truncate(usize::try_from(length - from).unwrap_or(CHUNK));
    let highest = (number + 1) * 7_919_777 % length;
    if let Some(index) = highest.checked_sub(from)
        && let Ok(index) = usize::try_from(index)
        && let Some(byte) = chunk.get_mut(index)
    {
        *byte = 0xFF;
    }
    chunk
}

/// Summary of a body, of which every byte was read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Summary {
    length: u64,
    highest: u8,
    /// Position of the first highest byte.
    position: u64,
    sum: u64,
}

impl Summary {
    /// Reads the next bytes of the body.
    fn update(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(CHUNK) {
            // Folds over bytes become instructions for many bytes at once.
            let highest = piece.iter().fold(self.highest, |a, b| a.max(*b));
            if highest > self.highest {
                let here = piece.iter().position(|byte| *byte == highest);
                self.position = self.length + here.unwrap_or_default() as u64;
                self.highest = highest;
            }
            self.sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
            self.length += piece.len() as u64;
        }
    }

    /// Returns the summary of the body that the server sends.
    fn sent(length: u64, number: u64) -> Self {
        let mut sent = Self::default();
        for from in (0..length).step_by(CHUNK) {
            sent.update(&chunk(length, number, from));
        }
        sent
    }
}

/// Fetches batch after batch and returns what it measured. The first is not counted: it opens the connections.
fn run(cell: &Cell, server: SocketAddr) -> Result<Value, Failed> {
    let (runtime, by) = Blocking::start(cell.strategy, 2, 2)?;
    let mut sent = Vec::new();
    for (number, length) in cell.lengths.iter().enumerate() {
        sent.push(Summary::sent(*length, number as u64));
    }
    let sent: Arc<[Summary]> = sent.into();
    let at_rest = memory("VmRSS");
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let timer = Timer::start(&runtime);
    let mut batches_ms = Vec::new();
    let mut received = 0;
    let began = Instant::now();
    while began.elapsed() < SPAN || batches_ms.len() < 2 {
        let batch_began = Instant::now();
        let mut batch = JoinSet::new();
        for (number, length) in cell.lengths.iter().enumerate() {
            let fetch = Fetch {
                client: client.clone(),
                url: format!("http://{server}/{length}/{number}").parse()?,
                keep: cell.keep,
                folder: cell.folder.path.clone(),
                by: by.clone(),
            };
            let sent = Arc::clone(&sent);
            batch.spawn_on(
                async move { Ok::<_, Failed>(fetch.run().await? == sent[number]) },
                runtime.handle(),
            );
        }
        while let Some(ended) = runtime.block_on(batch.join_next()) {
            if !ended?? {
                return Err("a body that was kept is not the body that was sent".into());
            }
        }
        received += cell.lengths.iter().sum::<u64>();
        batches_ms.push(batch_began.elapsed().as_secs_f64() * 1e3);
    }
    let late_ms = timer.stop();
    let memory = match (memory("VmHWM"), at_rest) {
        (Some(peak), Some(rest)) => Some(peak - rest),
        _ => None,
    };
    Ok(json!({
        "batches_ms": batches_ms[1..],
        "late_ms": late_ms,
        "memory": memory,
        "in_files": MOST_IN_FILES.load(Ordering::Relaxed),
        "copies": COPIED.load(Ordering::Relaxed) as f64 / received as f64,
    }))
}

/// Reads a size of this process from Linux, in bytes: `VmRSS`, or `VmHWM` for the highest so far.
fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// One request and what becomes of its body.
struct Fetch {
    client: Client<HttpConnector, Empty<Bytes>>,
    url: Uri,
    keep: Keep,
    folder: PathBuf,
    by: Blocking,
}

impl Fetch {
    /// Fetches the body, keeps it, and reads it back.
    async fn run(self) -> Result<Summary, Failed> {
        let mut body = self.client.get(self.url.clone()).await?.into_body();
        let mut chunks = Vec::new();
        let mut in_chunks = 0;
        let mut gathered = Vec::new();
        let mut file = None;
        while let Some(frame) = body.frame().await {
            let Ok(chunk) = frame?.into_data() else {
                continue;
            };
            if self.keep == Keep::RamGather {
                count_copy(chunk.len());
                gathered.extend_from_slice(&chunk);
                continue;
            }
            in_chunks += chunk.len();
            chunks.push(chunk);
            if self.keep != Keep::Ram && in_chunks >= PART {
                in_chunks = 0;
                file = Some(self.write(file, std::mem::take(&mut chunks)).await?);
            }
        }
        // A body that is kept by size may end without a file.
        if !matches!(self.keep, Keep::Ram | Keep::RamGather | Keep::BySize) || file.is_some() {
            let file = self.write(file, chunks).await?;
            let keep = self.keep;
            return Ok(self.by.run(move || read_back(keep, file)).await??);
        }
        let mut summary = Summary::default();
        for chunk in &chunks {
            summary.update(chunk);
        }
        summary.update(&gathered);
        Ok(black_box(summary))
    }

    /// Writes chunks to the end of the file, which is created with the first.
    async fn write(&self, file: Option<File>, chunks: Vec<Bytes>) -> io::Result<File> {
        let folder = self.folder.clone();
        let write = move || {
            let mut file = match file {
                Some(file) => file,
                None => tempfile::tempfile_in(folder)?,
            };
            for chunk in &chunks {
                file.write_all(chunk)?;
                count_copy(chunk.len());
                let now = IN_FILES.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                MOST_IN_FILES.fetch_max(now + chunk.len() as u64, Ordering::Relaxed);
            }
            Ok(file)
        };
        self.by.run(write).await?
    }
}

fn count_copy(bytes: usize) {
    COPIED.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Reads every byte of a kept body.
fn read_back(keep: Keep, mut file: File) -> io::Result<Summary> {
    let mut summary = Summary::default();
    match keep {
        Keep::Mapped | Keep::MappedCopy => {
            // The file has no name, so no other process can change it while it is mapped.
            let map = Map::with_options().map(&file).map_err(io::Error::other)?;
            // A system that ignores the advice reads more slowly.
            let _ = map.advise(Advise::Sequential);
            if keep == Keep::MappedCopy {
                count_copy(map.len());
                let copy = map.to_vec();
                summary.update(&copy);
            } else {
                summary.update(&map);
            }
        }
        _ => {
            file.rewind()?;
            let mut buffer = vec![0; CHUNK];
            loop {
                let length = file.read(&mut buffer)?;
                if length == 0 {
                    break;
                }
                count_copy(length);
                summary.update(&buffer[..length]);
            }
        }
    }
    IN_FILES.fetch_sub(summary.length, Ordering::Relaxed);
    Ok(black_box(summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fetches one body from a server, kept like this, and returns its summary.
    fn fetched(keep: Keep, length: u64) -> Summary {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener));
        let (runtime, by) = Blocking::start(Strategy::Dispatch, 1, 1).unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let fetch = Fetch {
            client,
            url: format!("http://{server}/{length}/3").parse().unwrap(),
            keep,
            folder: std::env::temp_dir(),
            by,
        };
        runtime.block_on(fetch.run()).unwrap()
    }

    #[test]
    fn a_body_is_the_same_wherever_it_is_kept() {
        let places = [
            Keep::Ram,
            Keep::RamGather,
            Keep::File,
            Keep::Mapped,
            Keep::MappedCopy,
            Keep::BySize,
        ];
        for keep in places {
            for length in [SMALL - 1, 1024 * 1024 + 1] {
                let sent = Summary::sent(length, 3);
                assert_eq!(fetched(keep, length), sent, "{keep:?} of {length} bytes");
            }
        }
    }

    #[test]
    fn one_wrong_byte_anywhere_is_noticed() {
        let length = 3 * CHUNK as u64 + 5;
        let mut body: Vec<u8> = (0..length)
            .step_by(CHUNK)
            .flat_map(|from| chunk(length, 0, from))
            .collect();
        let summary = |body: &[u8]| {
            let mut summary = Summary::default();
            summary.update(body);
            summary
        };
        assert_eq!(summary(&body), Summary::sent(length, 0));
        for index in 0..body.len() {
            if index % 1_973 == 0 || index + 1 == body.len() {
                body[index] ^= 1;
                assert_ne!(summary(&body), Summary::sent(length, 0), "byte {index}");
                body[index] ^= 1;
            }
        }
        body.pop();
        assert_ne!(summary(&body), Summary::sent(length, 0));
    }
}
