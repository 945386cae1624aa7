//! `cargo workshop setup [TOOL…]`: pinned k6, Locust and mdBook, and a kernel for an emulated
//! machine, in `.tools/`; crates that a fix may want, where cargo keeps its own.
//!
//! Each is built or installed beside its final place and put there last, so
//! that an interrupted call leaves nothing that looks whole.

mod from_source;
mod install;
mod kernel;
mod locust;
mod within_reach;

use std::fs::File;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use loadgen::interrupt::Interrupt;

use self::install::Done;
use crate::chapters::Workshop;
use crate::cli::Tool;
use crate::ctrl_c;
use crate::exit::{CliError, Exit};
use crate::tools::{self, Tools};

/// Installs what is not there yet, all tools or those named.
pub(crate) fn run(named: &[Tool]) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let tools = Tools::of(&workshop);
    let interrupt = ctrl_c::watch();
    let _lock = lock(&tools, &interrupt)?;
    let wanted = if named.is_empty() {
        Tool::value_variants()
    } else {
        named
    };
    let mut exit = Exit::Good;
    for &tool in wanted {
        let began = Instant::now();
        let name = name(&tools, tool);
        match install(&workshop, &tools, tool, &interrupt) {
            Ok(Done::There) => println!("{name:<15} there already"),
            Ok(Done::Installed) => {
                println!("{name:<15} installed in {} s", began.elapsed().as_secs());
            }
            Ok(Done::Skipped(why)) => println!("{name:<15} left out: {why}"),
            Err(error) if error.exit == Exit::Interrupted => return Err(error),
            Err(sentence) => {
                println!("{name:<15} MISSING: {sentence}");
                // Few need a kernel, which comes from the distribution.
                if tool != Tool::Kernel || !named.is_empty() {
                    exit = Exit::Bad;
                }
            }
        }
    }
    Ok(exit)
}

fn install(
    workshop: &Workshop,
    tools: &Tools,
    tool: Tool,
    interrupt: &Interrupt,
) -> Result<Done, CliError> {
    match tool {
        Tool::K6 => from_source::k6(tools, interrupt),
        Tool::Mdbook => from_source::mdbook(tools, interrupt),
        Tool::Locust => locust::install(tools, interrupt),
        Tool::Kernel => kernel::kernel(tools, interrupt),
        Tool::Crates => within_reach::fetch(workshop.root(), interrupt),
    }
}

fn name(tools: &Tools, tool: Tool) -> String {
    match tool {
        Tool::K6 => format!("k6 {}", tools::K6),
        Tool::Mdbook => format!("mdbook {}", tools::MDBOOK),
        Tool::Locust => format!("Locust {}", tools.locust_pin().unwrap_or_default()),
        Tool::Kernel => "kernel".to_owned(),
        Tool::Crates => "crates".to_owned(),
    }
}

/// One `setup` at a time; what an interrupted one left behind goes.
fn lock(tools: &Tools, interrupt: &Interrupt) -> Result<File, CliError> {
    let refused = |error: std::io::Error| {
        CliError::bad(format!(
            "tools cannot be installed into {} ({error}): free some space or mend the folder's \
             permissions",
            tools.folder.display()
        ))
    };
    std::fs::create_dir_all(&tools.folder).map_err(refused)?;
    let file = File::create(tools.folder.join("setup.lock")).map_err(refused)?;
    if file.try_lock().is_err() {
        eprintln!("another `cargo workshop setup` is at work; waiting for it");
        while file.try_lock().is_err() {
            if interrupt.is_set() {
                return Err(CliError::interrupted());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    let left = std::fs::read_dir(&tools.folder).map_err(refused)?;
    for entry in left.flatten() {
        let name = entry.file_name();
        let is_partial = name.to_string_lossy().starts_with(install::PARTIAL);
        if is_partial || entry.path() == tools.next_venv() {
            // Leftovers that cannot be removed are in nobody's way.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(file)
}
