//! One way to keep a body by one strategy in one folder.

use std::error::Error;
use std::time::Duration;

use bench::placement::Placement;
use bench::server::Server;
use chapter8::{Keep, Strategy};
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::load::{Bystander, Exchange, Load};

/// Simultaneous users, as published.
const USERS: u32 = 16;

/// A cell of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) keep: Keep,
    pub(crate) strategy: Strategy,
    /// The number of the folder.
    pub(crate) folder: usize,
}

/// What one round gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) bodies_per_second: f64,
    /// 99th percentile, from the moment it was due.
    pub(crate) ping_ms: f64,
}

impl Cell {
    /// What is kept in memory needs no strategy and no folder.
    pub(crate) fn all(folders: usize) -> impl Iterator<Item = Self> {
        let in_memory = [Keep::Ram, Keep::RamGather].map(|keep| (keep, Strategy::Direct, 0));
        let in_files = [Keep::Fs, Keep::Mmap, Keep::MmapCopy]
            .into_iter()
            .flat_map(|keep| Strategy::ALL.map(|strategy| (keep, strategy)))
            .flat_map(move |(keep, strategy)| {
                (0..folders).map(move |folder| (keep, strategy, folder))
            });
        let cells = in_memory.into_iter().chain(in_files);
        cells.map(|(keep, strategy, folder)| Self {
            keep,
            strategy,
            folder,
        })
    }

    /// As it stands in a URL.
    pub(crate) fn keep_key(self) -> &'static str {
        match self.keep {
            Keep::Ram => "ram",
            Keep::RamGather => "ram_gather",
            Keep::Fs => "fs",
            Keep::Mmap => "mmap",
            Keep::MmapCopy => "mmap_copy",
        }
    }

    /// Loads the server for `duration`, after a third of that.
    pub(crate) fn run(
        self,
        server: &Server,
        duration: Duration,
        placement: &Placement,
        interrupt: &Interrupt,
    ) -> Result<Measured, Box<dyn Error>> {
        let (keep, strategy) = (self.keep_key(), self.strategy.key());
        let path = format!("/summarize?keep={keep}&strategy={strategy}");
        let answer = "255 is the highest of 8388608 bytes";
        let load = Load {
            bystander: Some(Bystander {
                exchange: Exchange::get("/ping", "pong"),
                per_second: 100.0,
            }),
            warm_up: duration / 3,
            duration,
            ..Load::closed(Exchange::get(&path, answer), USERS)
        };
        let settings = Settings {
            cpus: &placement.generator,
            interrupt,
            progress: None,
        };
        let outcome = loadgen::run(server.service(), &load, &settings)?;
        if outcome.wrong_answers + outcome.error_count() > 0 {
            return Err(format!("{path}: {:?}", outcome.errors).into());
        }
        let ping = outcome
            .bystander
            .and_then(|bystander| bystander.latency.at(0.99));
        Ok(Measured {
            bodies_per_second: outcome.requests_per_second,
            ping_ms: ping.ok_or("no ping was answered")?,
        })
    }
}
