//! A chapter's service in a small machine that has several NUMA nodes, under QEMU.
//!
//! Most machines have one region, so nothing that one does about regions shows on them. A machine
//! that is emulated has as many as one likes. Its speed means nothing. But where its kernel puts
//! pages is where a kernel puts them, and the emulator sees every load.

mod accesses;
mod initramfs;
mod machine;
mod parts;
mod said;

use std::path::Path;
use std::thread::ScopedJoinHandle;

use bench::provenance;
use loadgen::interrupt::Interrupt;
use measurement::law::Law;
use measurement::regions::{Load, Record, Seen};

use self::machine::{Machine, Shape};
pub(crate) use self::parts::{Parts, missing};
use crate::chapters::{Chapter, Workshop};
use crate::compile;
use crate::exit::{CliError, Exit};
use crate::tools::Tools;

/// The machine that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) regions: u32,
    /// Two for each region unless it is said.
    pub(crate) cpus: Option<u32>,
    /// The command that repeats the run.
    pub(crate) command: String,
}

/// What the service keeps, and the load on it: a scan takes a good while in an emulator. The texts
/// take 19 MiB.
const LOAD: Load = Load {
    texts: 30_000,
    connections: 1,
    requests: 5,
};

/// Runs each of the variants in a machine of its own.
pub(crate) fn observe(
    workshop: &Workshop,
    chapter: &Chapter,
    variants: &[&str],
    wanted: &Wanted,
    interrupt: &Interrupt,
) -> Result<Record, CliError> {
    let shape = shape(wanted)?;
    if !matches!(chapter.file()?.law, Law::Locality(_)) {
        return Err(CliError::usage(format!(
            "chapter {} is not about NUMA nodes: leave out --numa-nodes",
            chapter.number
        )));
    }
    let parts = Parts::find(&Tools::of(workshop))?;
    let started = provenance::now();
    let programs = compile::for_a_machine(workshop, chapter)?;
    if interrupt.is_set() {
        return Err(interrupted());
    }
    let folder = tempfile::tempdir()
        .map_err(|e| CliError::bad(format!("no folder can be made for the machine: {e}")))?;
    let initrd = folder.path().join("initramfs");
    let files = [
        ("init", programs.guest.as_path()),
        ("service", programs.served.as_path()),
    ];
    initramfs::write(&initrd, &files)?;
    let plugin = parts.plugin(folder.path())?;
    eprintln!(
        "{} machines with {} CPUs in {} NUMA nodes, under {}",
        variants.len(),
        shape.cpus,
        shape.regions,
        parts.qemu_version
    );
    let run = |variant: &str| {
        let machine = Machine {
            parts: &parts,
            plugin: &plugin,
            initrd: &initrd,
            folder: folder.path(),
            shape,
            interrupt,
        };
        look(&machine, variant)
    };
    // Each is emulated by one thread, and two CPUs are needed for a proof anyway.
    let mut seen = Vec::new();
    for pair in variants.chunks(2) {
        let ended: Vec<_> = std::thread::scope(|scope| {
            let machines: Vec<_> = pair
                .iter()
                .map(|variant| scope.spawn(|| run(variant)))
                .collect();
            machines.into_iter().map(ScopedJoinHandle::join).collect()
        });
        if interrupt.is_set() {
            return Err(interrupted());
        }
        for ended in ended {
            seen.push(ended.unwrap_or_else(|_| Err(CliError::bad("a thread panicked")))?);
        }
    }
    Ok(Record {
        command: wanted.command.clone(),
        started,
        commit: provenance::checked_out(workshop.root()),
        tools: parts.versions(workshop.root()),
        regions: shape.regions,
        cpus: shape.cpus,
        load: LOAD,
        variants: seen,
    })
}

/// One variant, from switching on to switching off.
fn look(machine: &Machine<'_>, variant: &str) -> Result<Seen, CliError> {
    let arguments = [
        variant.to_owned(),
        LOAD.texts.to_string(),
        LOAD.connections.to_string(),
        LOAD.requests.to_string(),
    ];
    let run = machine.run(variant, &arguments)?;
    let said = said::read(&run.said, variant)?;
    let mut seen = Seen {
        variant: variant.to_owned(),
        answers: said.answers,
        resident_kib: said.resident_kib,
        placement: said.placement,
        loads: Vec::new(),
    };
    let counted = read(&run.counted)?;
    seen.loads = accesses::of_copies(&counted, &seen, machine.shape.regions)?;
    Ok(seen)
}

fn read(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file).map_err(|e| {
        CliError::new(
            Exit::Invalid,
            format!("QEMU's plugin has left no counts ({e}); its words are above"),
        )
    })
}

fn shape(wanted: &Wanted) -> Result<Shape, CliError> {
    let regions = wanted.regions;
    let cpus = wanted.cpus.unwrap_or(2 * regions);
    if !(2..=8).contains(&regions) {
        return Err(CliError::usage(format!(
            "--numa-nodes {regions} makes no sense here: two to eight can be emulated"
        )));
    }
    if cpus == 0 || !cpus.is_multiple_of(regions) || cpus > 240 {
        return Err(CliError::usage(format!(
            "--cpus {cpus} makes no sense here: a multiple of the {regions} regions up to \
             240, as each region gets as many"
        )));
    }
    Ok(Shape { regions, cpus })
}

fn interrupted() -> CliError {
    CliError::new(Exit::Interrupted, "interrupted; nothing was kept")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_as_many_cpus_in_each_region() {
        let wanted = |regions, cpus| Wanted {
            regions,
            cpus,
            command: String::new(),
        };
        assert_eq!(shape(&wanted(4, None)).map(|s| s.cpus).ok(), Some(8));
        assert_eq!(shape(&wanted(4, Some(176))).map(|s| s.cpus).ok(), Some(176));
        for (regions, cpus) in [
            (1, None),
            (9, None),
            (4, Some(6)),
            (4, Some(0)),
            (2, Some(300)),
        ] {
            let refused = shape(&wanted(regions, cpus)).expect_err("no such machine");
            assert_eq!(refused.exit, Exit::Usage);
        }
    }
}
