//! The book's tables, with the published figures beside ours.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use measurement::figures;

use crate::cell::{Cell, Keep, Measured, Strategy, Work};

const PUBLISHED: &str = include_str!("../../../../reference/seed-figures.toml");

/// Short operations.
pub(crate) fn of_strategies(measured: &[(Cell, Measured)]) -> Result<String, Box<dyn Error>> {
    let mut text = String::from(
        "| workload | strategy | a batch | times `direct` | published | ping, p99 |\n\
         | --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    let rows = figures_of("blocking_strategies", "ns_per_iter")?;
    let published = |work: &str, strategy: Strategy| {
        let rows = rows.as_array()?.iter().filter_map(toml::Value::as_array);
        let mut own = rows.filter(|row| row.first().and_then(toml::Value::as_str) == Some(work));
        let row = own.next()?;
        let name = if strategy == Strategy::Dispatch {
            "dispatch_rx"
        } else {
            key(strategy)
        };
        let at = row.iter().position(|cell| cell.as_str() == Some(name))?;
        Some(row.get(at + 1)?.as_integer()? as f64)
    };
    for ((work, strategy), own) in measured {
        let ping = figures::milliseconds(quantile(&own.pings, 0.99));
        let name = match work {
            Work::Noop => "noop",
            Work::Expensive => "expensive",
            Work::Sleep => "sleep",
            Work::Body(..) => continue,
        };
        let direct = median(measured, &(work.clone(), Strategy::Direct));
        let batch = quantile(&own.batches, 0.5);
        let theirs = published(name, *strategy)
            .zip(published(name, Strategy::Direct))
            .map_or(f64::NAN, |(this, direct)| this / direct);
        writeln!(
            text,
            "| {name} | `{}` | {} µs | {:.2} | {theirs:.2} | {ping} |",
            key(*strategy),
            figures::count((batch / 1e3).round()),
            batch / direct,
        )?;
    }
    Ok(text)
}

/// Bodies.
pub(crate) fn of_keeping(
    measured: &[(Cell, Measured)],
    folders: &[PathBuf],
) -> Result<String, Box<dyn Error>> {
    let kinds: Vec<String> = folders.iter().map(|folder| kind_of(folder)).collect();
    let mut text = String::from("| kept as | strategy |");
    for kind in &kinds {
        write!(text, " {kind}: times `ram` | published | ping, p99 |")?;
    }
    text.push_str("\n| --- | --- |");
    text.push_str(&" ---: | ---: | ---: |".repeat(kinds.len()));
    let ram = (Work::Body(Keep::Ram, PathBuf::new()), Strategy::Direct);
    let of_ram = median(measured, &ram);
    let mut before = None;
    for ((work, strategy), own) in measured {
        let Work::Body(keep, folder) = work else {
            continue;
        };
        let strategy = key(*strategy);
        let name = match keep {
            Keep::Ram => "ram",
            Keep::RamGather => "ram_gather",
            Keep::Fs => "fs",
            Keep::Mmap => "mmap",
            Keep::MmapCopy => "mmap_copy",
        };
        // A line has a cell for each folder.
        if before.replace((keep, strategy)) != Some((keep, strategy)) {
            write!(text, "\n| {name} | `{strategy}` |")?;
        }
        let figure = match keep {
            Keep::Ram | Keep::RamGather => name.to_owned(),
            Keep::Fs | Keep::Mmap => format!("{name}_{strategy}"),
            Keep::MmapCopy => format!("mmap_{strategy}_copy"),
        };
        let at = folders
            .iter()
            .position(|one| one == folder)
            .unwrap_or_default();
        let is_tmpfs = kinds.get(at).is_some_and(|kind| kind == "tmpfs");
        let theirs = figures_of(
            "body_streaming",
            if is_tmpfs {
                "ns_per_iter_tmpfs_huge"
            } else {
                "ns_per_iter_ebs_ext4"
            },
        )?;
        let theirs = |name: &str| Some(theirs.get(name)?.as_integer()? as f64);
        let theirs = theirs(&figure)
            .zip(theirs("ram"))
            .map(|(this, ram)| this / ram);
        write!(
            text,
            " {:.2} | {} | {} |",
            quantile(&own.batches, 0.5) / of_ram,
            theirs.map_or_else(String::new, |theirs| format!("{theirs:.2}")),
            figures::milliseconds(quantile(&own.pings, 0.99)),
        )?;
        if folder.as_os_str().is_empty() {
            text.push_str(&" | | |".repeat(kinds.len() - 1));
        }
    }
    let batch = figures::count((of_ram / 1e6).round());
    writeln!(
        text,
        "\n\nWith `ram` a batch of 16 bodies takes {batch} ms."
    )?;
    Ok(text)
}

/// As the book calls it.
fn key(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Direct => "direct",
        Strategy::Permit => "permit",
        Strategy::Dispatch => "dispatch",
        Strategy::SpawnBlocking => "spawn_blocking",
    }
}

/// The file system's kind, by the longest mount point above the folder, where the system tells.
fn kind_of(folder: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mount = |line: &str| {
        let mut fields = line.split(' ').skip(1).map(str::to_owned);
        Some((fields.next()?, fields.next()?))
    };
    mounts
        .lines()
        .filter_map(mount)
        .filter(|(point, _)| folder.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map_or_else(|| "disk".to_owned(), |(_, kind)| kind)
}

fn median(measured: &[(Cell, Measured)], cell: &Cell) -> f64 {
    let own = measured.iter().find(|(other, _)| other == cell);
    own.map_or(f64::NAN, |(_, own)| quantile(&own.batches, 0.5))
}

/// The value that a share of all is not above.
fn quantile(all: &[f64], share: f64) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // The index of an existing value: small and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = (share * sorted.len() as f64) as usize;
    let last = sorted.len().saturating_sub(1);
    sorted.get(index.min(last)).copied().unwrap_or(f64::NAN)
}

fn figures_of(table: &str, key: &str) -> Result<toml::Value, Box<dyn Error>> {
    let all: toml::Table = PUBLISHED.parse()?;
    let own = all.get(table).and_then(|table| table.get(key));
    Ok(own.ok_or("the published figures are gone")?.clone())
}
