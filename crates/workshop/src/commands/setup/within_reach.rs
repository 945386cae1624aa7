//! Crates that a fix may want, fetched beforehand: `cargo add --offline` finds them without a network.

use std::path::Path;
use std::process::Command;

use bench::child::Starting;
use loadgen::interrupt::Interrupt;

use super::install::{Done, KEPT, TIMEOUT, call, not_written};
use crate::compile;
use crate::exit::CliError;
use crate::files;

/// Those that people reach for. Which version is the newest that cargo may take, so that what it adds
/// is what was fetched.
const CRATES: [&str; 6] = [
    "arc-swap",
    "crossbeam",
    "dashmap",
    "flume",
    "parking_lot",
    "rayon",
];

/// Fetches them with all that they need, by a package of its own that names them and holds to the
/// workshop's versions where those are compiled anyway.
pub(super) fn fetch(root: &Path, interrupt: &Interrupt) -> Result<Done, CliError> {
    let folder = files::temporary()?;
    let folder = folder.path();
    let dependencies: String = CRATES.map(|name| format!("{name} = \"*\"\n")).concat();
    let manifest = format!(
        "[package]\nname = \"within-reach\"\nedition = \"2024\"\nrust-version = \"{}\"\n\
         [workspace]\n[dependencies]\n{dependencies}",
        env!("CARGO_PKG_RUST_VERSION")
    );
    let sources = folder.join("src");
    std::fs::create_dir(&sources)
        .and_then(|()| std::fs::write(sources.join("lib.rs"), ""))
        .and_then(|()| std::fs::write(folder.join("Cargo.toml"), manifest))
        .and_then(|()| std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")))
        .map_err(not_written(folder))?;
    let fetch = |option: &str| {
        let mut command = Command::new(compile::program());
        command.arg("fetch").arg(option).current_dir(folder);
        command
    };
    let offline = fetch("--offline");
    let offline = Starting::of(&offline).output(interrupt, TIMEOUT, KEPT);
    if let Ok(Some(ended)) = offline
        && ended.status.success()
    {
        return Ok(Done::There);
    }
    call(
        &fetch("--quiet"),
        "fetching crates that a fix may want",
        "is the network there? Then run `cargo workshop setup crates` again",
        interrupt,
    )?;
    Ok(Done::Installed)
}
