//! The book's table, with the published figures beside ours.

use std::error::Error;
use std::fmt::Write as _;

use analysis::statistics;
use chapter8::{Keep, Strategy};
use measurement::figures;

use crate::cell::{Cell, Measured};
use crate::folder::Folder;

const PUBLISHED: &str = include_str!("../../../../reference/seed-figures.toml");

/// Everything that was measured, in Markdown: a row each way to keep and strategy, three columns
/// each folder.
pub(crate) fn of(
    folders: &[Folder],
    measured: &[(Cell, Measured)],
) -> Result<String, Box<dyn Error>> {
    let mut text = String::from("| kept as | strategy |");
    let mut below = String::from("| --- | --- |");
    for Folder { kind, .. } in folders {
        write!(text, " {kind}: times `ram` | published | ping, p99 |")?;
        below.push_str(" ---: | ---: | ---: |");
    }
    writeln!(text, "\n{below}")?;
    let ram = Cell {
        keep: Keep::Ram,
        strategy: Strategy::Direct,
        folder: 0,
    };
    let of_ram = median(measured, ram, |one| one.bodies_per_second);
    let rows = Cell::all(folders.len()).filter(|cell| cell.folder == 0);
    for row in rows {
        write!(text, "| {} | `{}` |", row.keep_key(), row.strategy.key())?;
        for (folder, Folder { kind, .. }) in folders.iter().enumerate() {
            let cell = Cell { folder, ..row };
            let rate = median(measured, cell, |one| one.bodies_per_second);
            if rate.is_nan() {
                text.push_str(" | | |");
                continue;
            }
            let ping = median(measured, cell, |one| one.ping_ms);
            let theirs = published(kind, cell)?;
            let theirs = theirs.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            let ping = figures::milliseconds(ping);
            write!(text, " {:.2} | {theirs} | {ping} |", of_ram / rate)?;
        }
        text.push('\n');
    }
    writeln!(
        text,
        "\nWith `ram` {} bodies a second.",
        figures::count(of_ram.round())
    )?;
    Ok(text)
}

/// The median of a cell's rounds; not a number for a cell that was not measured.
fn median(measured: &[(Cell, Measured)], cell: Cell, of: fn(&Measured) -> f64) -> f64 {
    let rounds: Vec<f64> = measured
        .iter()
        .filter(|(other, _)| *other == cell)
        .map(|(_, one)| of(one))
        .collect();
    statistics::median_ratio(&rounds).unwrap_or(f64::NAN)
}

/// Published time of 16 bodies, as a multiple of `ram`'s; `None` for what was not published.
fn published(kind: &str, cell: Cell) -> Result<Option<f64>, Box<dyn Error>> {
    let all: toml::Table = PUBLISHED.parse()?;
    let table = match kind {
        "tmpfs" => "ns_per_iter_tmpfs_huge",
        _ => "ns_per_iter_ebs_ext4",
    };
    let strategy = cell.strategy.key();
    let name = match cell.keep {
        Keep::Ram | Keep::RamGather => cell.keep_key().to_owned(),
        Keep::Fs => format!("fs_{strategy}"),
        Keep::Mmap => format!("mmap_{strategy}"),
        Keep::MmapCopy => format!("mmap_{strategy}_copy"),
    };
    let of = |name: &str| {
        let figure = all.get("body_streaming")?.get(table)?.get(name)?;
        Some(figure.as_integer()? as f64)
    };
    Ok(of(&name).zip(of("ram")).map(|(this, ram)| this / ram))
}
