//! One strategy with one workload, on a runtime of its own.

use std::error::Error;
use std::time::{Duration, Instant};

use chapter8::{Blocking, Strategy};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::bystanders::{Late, Pinger, tick};
use crate::workload::Workload;

/// A cell of the table; `None` is a runtime that has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell(pub(crate) Option<(Workload, Strategy)>);

/// What was measured of a cell over all rounds.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// How long each batch took, in nanoseconds.
    pub(crate) batches: Vec<f64>,
    /// How late each tick of a timer was, in ms.
    pub(crate) timer: Vec<f64>,
    /// How long each ping took from the moment it was due, in ms.
    pub(crate) ping: Vec<f64>,
}

impl Cell {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let busy = Workload::ALL
            .into_iter()
            .flat_map(|workload| Strategy::ALL.map(|strategy| Self(Some((workload, strategy)))));
        std::iter::once(Self(None)).chain(busy)
    }

    /// As published: eight workers where they block, four and extra threads where others do.
    fn runtime(self) -> std::io::Result<Runtime> {
        let (workers, extra) = match self.0 {
            None => (4, 4),
            Some((_, Strategy::Direct)) => (8, 1),
            Some((workload, Strategy::Permit)) => (8, workload.extra()),
            Some((_, Strategy::Dispatch)) => (4, 1),
            Some((workload, Strategy::SpawnBlocking)) => (4, workload.extra()),
        };
        Builder::new_multi_thread()
            .worker_threads(workers)
            .max_blocking_threads(extra)
            .enable_all()
            .build()
    }

    /// Runs batch after batch for `duration`, with a timer and pings beside them.
    pub(crate) fn run(
        self,
        duration: Duration,
        measured: &mut Measured,
    ) -> Result<(), Box<dyn Error>> {
        let runtime = self.runtime()?;
        let late = Late::default();
        runtime.spawn(tick(late.clone()));
        let pinger = runtime.block_on(Pinger::start())?;
        let batches = runtime.block_on(self.batches(duration));
        measured.ping.extend(pinger.stop()?);
        measured.timer.extend(late.taken());
        measured.batches.extend(batches?);
        runtime.shutdown_timeout(Duration::from_secs(5));
        Ok(())
    }

    async fn batches(self, duration: Duration) -> Result<Vec<f64>, Box<dyn Error>> {
        let Some((workload, strategy)) = self.0 else {
            tokio::time::sleep(duration).await;
            return Ok(Vec::new());
        };
        let blocking = Blocking::new(workload.extra());
        let began = Instant::now();
        let mut taken = Vec::new();
        while began.elapsed() < duration {
            let batch_began = Instant::now();
            let mut batch = JoinSet::new();
            for number in 0..workload.batch() {
                let blocking = blocking.clone();
                batch.spawn(async move {
                    let work = move || workload.run(number);
                    blocking.run(strategy, work).await
                });
            }
            while let Some(done) = batch.join_next().await {
                done??;
            }
            taken.push(batch_began.elapsed().as_secs_f64() * 1e9);
        }
        Ok(taken)
    }
}
