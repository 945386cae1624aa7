//! One strategy with one kind of work, on a runtime of its own.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Seek, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chapter8::{BATCH, Pool, Summary};
use rand::seq::SliceRandom;
use rand_pcg::Pcg32;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, block_in_place, spawn_blocking, yield_now};
use vmap::{Advise, Map};

/// Which thread runs what blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// The reactor's thread, as if it did not block.
    Direct,
    /// The reactor's thread, after a permit; another thread is the reactor meanwhile.
    Permit,
    /// A thread of a pool of its own.
    Dispatch,
    /// A thread of tokio's own pool.
    SpawnBlocking,
}

/// What a batch consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    /// Does nothing: what is left is the strategy's own cost.
    Noop,
    /// Shuffles and sorts 300 numbers.
    Expensive,
    /// Sleeps for some microseconds, to which the kernel adds its timer's slack, about 50.
    Sleep,
    /// Keeps a body in a folder, and reads all of it.
    Body(Keep, PathBuf),
}

/// Where a body is until it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// In memory, in the chunks in which it came.
    Ram,
    /// In memory, in one piece.
    RamGather,
    /// In a file that is read back through a small buffer.
    Fs,
    /// In a file that is mapped.
    Mmap,
    /// In a file that is mapped and then copied.
    MmapCopy,
}

pub(crate) type Cell = (Work, Strategy);

/// What was measured of a cell over all rounds.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// How long each batch took, in nanoseconds.
    pub(crate) batches: Vec<f64>,
    /// How long each byte was away from the moment it was due, in ms.
    pub(crate) pings: Vec<f64>,
}

/// A body and the chunks that it comes in.
const BODY: usize = 8 * 1024 * 1024;
const CHUNK: usize = 64 * 1024;

impl Work {
    /// Operations in a batch, workers of the runtime, and threads or permits beside them: as
    /// published.
    fn sizes(&self) -> (usize, usize, usize) {
        match self {
            Self::Noop | Self::Expensive => (100, 4, 4),
            Self::Sleep => (200, 4, 40),
            Self::Body(..) => (16, 2, 2),
        }
    }

    /// The `number`-th operation of a batch.
    async fn run(self, number: usize, by: Blocking) -> io::Result<()> {
        // Microseconds of the published sleeps: short ones mostly, and a long one now and then.
        const SLEEPS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 49];
        match self {
            Self::Noop => by.run(move || _ = black_box(number)).await,
            Self::Expensive => {
                by.run(move || {
                    let mut numbers: [usize; 300] = std::array::from_fn(|i| i);
                    numbers.shuffle(&mut Pcg32::new(number as u64, 1));
                    black_box(&mut numbers).sort_unstable();
                    black_box(&numbers);
                })
                .await
            }
            Self::Sleep => {
                let sleep = Duration::from_micros(SLEEPS[number % SLEEPS.len()]);
                by.run(move || std::thread::sleep(sleep)).await
            }
            Self::Body(keep, folder) => {
                let summary = body(keep, &folder, by).await?;
                black_box(summary);
                Ok(())
            }
        }
    }
}

async fn body(keep: Keep, folder: &Path, by: Blocking) -> io::Result<Summary> {
    let incoming = vec![7; CHUNK];
    let mut chunks: Vec<Bytes> = Vec::new();
    let mut gathered = Vec::new();
    let mut file = match keep {
        Keep::Ram | Keep::RamGather => None,
        Keep::Fs | Keep::Mmap | Keep::MmapCopy => Some(tempfile::tempfile_in(folder)?),
    };
    for number in 1..=BODY / CHUNK {
        yield_now().await;
        if keep == Keep::RamGather {
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
    match file {
        None => {
            let of_chunks = chunks
                .iter()
                .fold(Summary::default(), |sum, chunk| sum.with(chunk));
            Ok(of_chunks.with(&gathered))
        }
        Some(file) => by.run(move || summary(keep, file)).await?,
    }
}

/// Reads a file back.
fn summary(keep: Keep, mut file: File) -> io::Result<Summary> {
    if keep == Keep::Fs {
        file.rewind()?;
        let mut summary = Summary::default();
        let mut buffer = vec![0; CHUNK];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(summary),
                length => summary = summary.with(&buffer[..length]),
            }
        }
    }
    // It has no name, so no other process can change it.
    let map = Map::with_options().map(&file).map_err(io::Error::other)?;
    // If the system ignores the advice, reading takes longer.
    let _ = map.advise(Advise::Sequential);
    let copy = if keep == Keep::MmapCopy {
        map.to_vec()
    } else {
        Vec::new()
    };
    Ok(Summary::default().with(if copy.is_empty() { &map } else { &copy }))
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
            Strategy::Dispatch => {
                let done = self.pool.run(work).await;
                done.ok_or_else(|| io::Error::other("the work panicked"))
            }
            Strategy::SpawnBlocking => Ok(spawn_blocking(work).await?),
        }
    }
    // ANCHOR_END: run
}

/// Runs batch after batch for `duration`, with a bystander beside them.
pub(crate) fn run(
    (work, strategy): &Cell,
    duration: Duration,
    measured: &mut Measured,
) -> Result<(), Box<dyn Error>> {
    let (size, core, extra) = work.sizes();
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
        strategy: *strategy,
        permits: Arc::new(Semaphore::new(extra)),
        pool: Pool::new(own),
    };
    let done = Arc::new(AtomicBool::new(false));
    let pings = runtime.block_on(bystander(Arc::clone(&done)))?;
    let batches = runtime.block_on(async {
        let began = Instant::now();
        let mut taken = Vec::new();
        while began.elapsed() < duration {
            let batch_began = Instant::now();
            let mut batch = JoinSet::new();
            for number in 0..size {
                batch.spawn(work.clone().run(number, by.clone()));
            }
            while let Some(ended) = batch.join_next().await {
                ended??;
            }
            taken.push(batch_began.elapsed().as_secs_f64() * 1e9);
        }
        Ok::<_, Box<dyn Error>>(taken)
    });
    done.store(true, Ordering::Relaxed);
    let pings = pings.join().map_err(|_| "the bystander panicked")?;
    measured.pings.extend(pings?);
    measured.batches.extend(batches?);
    runtime.shutdown_timeout(Duration::from_secs(5));
    Ok(())
}

/// A task that sends back each byte, and a thread that sends one every 5 ms until it is `done`.
async fn bystander(done: Arc<AtomicBool>) -> io::Result<JoinHandle<io::Result<Vec<f64>>>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        loop {
            let byte = stream.read_u8().await?;
            stream.write_u8(byte).await?;
        }
        #[allow(unreachable_code)] // It says of what kind the errors are.
        Ok::<(), io::Error>(())
    });
    Ok(std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut taken = Vec::new();
        let mut due = Instant::now();
        while !done.load(Ordering::Relaxed) {
            // An open loop: what was due meanwhile is sent at once, and has waited since then.
            due += Duration::from_millis(5);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            stream.write_all(&[1])?;
            stream.read_exact(&mut [0])?;
            taken.push(due.elapsed().as_secs_f64() * 1e3);
        }
        Ok(taken)
    }))
}
