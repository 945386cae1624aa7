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

use std::thread::ScopedJoinHandle;

use bench::provenance;
use loadgen::interrupt::Interrupt;
use measurement::law::Law;
use measurement::regions::{Load, Record, Seen};

use self::machine::Machine;
pub(crate) use self::machine::Shape;
pub(crate) use self::parts::Parts;
use crate::chapters::{CAPTURES, Chapter, Workshop};
use crate::exit::{CliError, Exit};
use crate::tools::Tools;
use crate::{compile, files};

/// What the service keeps, and the load on it: a scan takes a good while in an emulator. The texts
/// take 19 MiB.
const LOAD: Load = Load {
    texts: 30_000,
    connections: 1,
    requests: 5,
};

/// Runs each of the variants in a machine of its own; `command` repeats it.
pub(crate) fn observe(
    workshop: &Workshop,
    chapter: &Chapter,
    variants: &[&str],
    shape: Shape,
    command: String,
    interrupt: &Interrupt,
) -> Result<Record, CliError> {
    if !matches!(chapter.file()?.law, Law::Locality(_)) {
        return Err(CliError::usage(format!(
            "chapter {} is not about NUMA nodes: leave out --numa-nodes",
            chapter.number
        )));
    }
    let parts = Parts::find(&Tools::of(workshop)).map_err(CliError::bad)?;
    let started = provenance::now();
    let (service, guest) = compile::for_a_machine(workshop, chapter, interrupt)?;
    let folder = files::temporary()?;
    let machine = Machine {
        initrd: &folder.path().join("initramfs"),
        plugin: &parts.plugin(folder.path())?,
        parts: &parts,
        folder: folder.path(),
        shape,
        interrupt,
    };
    initramfs::write(machine.initrd, &[("init", &guest), ("service", &service)])
        .map_err(CliError::because("the machine's files cannot be written"))?;
    eprintln!(
        "{} machines with {} CPUs in {} NUMA nodes, under QEMU {}",
        variants.len(),
        shape.cpus,
        shape.regions,
        parts.qemu_version
    );
    // Each is emulated by one thread, and two CPUs are needed for a proof anyway.
    let mut seen = Vec::new();
    for pair in variants.chunks(2) {
        let ended: Vec<_> = std::thread::scope(|scope| {
            let machines: Vec<_> = pair
                .iter()
                .map(|variant| scope.spawn(|| look(&machine, variant)))
                .collect();
            machines.into_iter().map(ScopedJoinHandle::join).collect()
        });
        if interrupt.is_set() {
            return Err(CliError::interrupted());
        }
        for ended in ended {
            seen.push(ended.unwrap_or_else(|_| Err(CliError::bad("a thread panicked")))?);
        }
    }
    Ok(Record {
        command,
        started,
        commit: provenance::checked_out(workshop.root(), CAPTURES),
        tools: parts.versions(workshop.root()),
        regions: shape.regions,
        cpus: shape.cpus,
        load: LOAD,
        variants: seen,
    })
}

/// One variant, from switching on to switching off.
fn look(machine: &Machine<'_>, variant: &str) -> Result<Seen, CliError> {
    let Load {
        texts,
        connections,
        requests,
    } = LOAD;
    let counted = machine.folder.join(format!("{variant}.loads"));
    let arguments = format!("{variant} {texts} {connections} {requests}");
    let said = machine.run(variant, &arguments, &counted)?;
    let mut seen = said::read(&said, variant)?;
    let counted = std::fs::read_to_string(&counted).map_err(|e| {
        CliError::new(
            Exit::Invalid,
            format!("QEMU's plugin has left no counts ({e}); its words are above"),
        )
    })?;
    seen.loads = accesses::of_copies(&counted, seen.copies_read(), machine.shape.regions)?;
    Ok(seen)
}
