//! One machine for each variant of a service, and the counts of all of them.

use std::path::Path;
use std::thread;

use children::Interrupt;
use serde::Deserialize;
use terminal::exit::CliError;

use crate::cli::Observe;
use crate::machine::{Machine, failed};
use crate::record::{Placement, Variant};
use crate::{initramfs, loads, plugin};

/// The counts of the machines.
pub(crate) struct Observed {
    /// The version of their kernel.
    pub(crate) kernel: String,
    /// The variants, in the order in which they were asked for.
    pub(crate) variants: Vec<Variant>,
}

/// Runs each of the variants in a machine of its own, which leaves its files in `folder`.
///
/// # Errors
///
/// Returns an error if a machine cannot be started, does not come to its end, or has not counted everything.
pub(crate) fn observe(
    options: &Observe,
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<Observed, CliError> {
    let initrd = &folder.join("initramfs");
    let programs = [("init", &*options.guest), ("service", &*options.service)];
    initramfs::write(initrd, &programs)
        .map_err(CliError::because("the machine's files cannot be written"))?;
    let machine = &Machine {
        plugin: &plugin::compile(folder, &options.emulator.qemu_version)?,
        emulator: &options.emulator,
        initrd,
        shape: options.shape,
        folder,
        interrupt,
    };
    let mut observed = Observed {
        kernel: String::new(),
        variants: Vec::new(),
    };
    // Each is emulated by one thread, and two CPUs are needed for a proof anyway.
    for pair in options.variants.chunks(2) {
        let ended = thread::scope(|scope| {
            let mut threads = Vec::new();
            for name in pair {
                threads.push(scope.spawn(move || run(machine, name)));
            }
            let mut ended = Vec::new();
            for thread in threads {
                ended.push(thread.join());
            }
            ended
        });
        if interrupt.is_set() {
            return Err(CliError::interrupted());
        }
        for ended in ended {
            let Ok(ended) = ended else {
                return Err(CliError::bad("a thread panicked"));
            };
            let (kernel, variant) = ended?;
            observed.kernel = kernel;
            observed.variants.push(variant);
        }
    }
    Ok(observed)
}

/// Runs a machine with one variant. Returns the variant's counts and the kernel's version.
fn run(machine: &Machine<'_>, name: &str) -> Result<(String, Variant), CliError> {
    let said = machine.run(name)?;
    let Report {
        kernel,
        answers,
        resident_kib,
        placement,
    } = report(&said).map_err(|what| failed(name, &what, &said))?;
    let mut variant = Variant {
        name: name.to_owned(),
        answers,
        resident_kib,
        placement,
        loads: Vec::new(),
    };
    let counted = std::fs::read_to_string(machine.loads(name)).unwrap_or_default();
    let copies = variant.copies_read();
    let Some(loads) = loads::from_copies(&counted, copies, machine.shape.nodes) else {
        let what = "left no counts of QEMU's plugin, or a part of them";
        return Err(failed(name, what, &said));
    };
    variant.loads = loads;
    Ok((kernel, variant))
}

/// The report that `numa-guest` prints on the machine's serial line, as JSON behind an `@`.
#[derive(Debug, Deserialize)]
struct Report {
    kernel: String,
    answers: u64,
    resident_kib: u64,
    placement: Placement,
}

/// Returns the report from the serial output, which the kernel writes to as well; else the error.
fn report(said: &str) -> Result<Report, String> {
    let mut lines = said.lines();
    let Some(line) = lines.find_map(|line| line.trim().strip_prefix('@')) else {
        return Err("was switched off before it was done".to_owned());
    };
    serde_json::from_str(line).map_err(|_| format!("could not do its work ({line})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_found_among_the_kernels_words() {
        let placement = r#"{"regions":[0,1],"copies":[],"readers":[]}"#;
        let said = format!(
            "[    0.1] Linux\r\nchapter7 listens\r\n\
             @{{\"kernel\":\"6.1.0\",\"answers\":40,\"resident_kib\":4096,\"placement\":{placement}}}\r\n"
        );
        let report = report(&said).unwrap();
        assert_eq!((report.answers, report.resident_kib), (40, 4096));
        assert_eq!(report.placement.nodes, [0, 1]);
    }

    #[test]
    fn a_machine_that_failed_is_quoted() {
        for (said, words) in [
            ("[ 0.1] Linux\r\n@no such file\r\n", "(no such file)"),
            ("[ 1.0] Kernel panic\n", "before it was done"),
            ("@{\"answers\":1}\n", "could not do its work"),
        ] {
            let what = report(said).unwrap_err();
            assert!(what.contains(words), "{what}");
        }
        assert!(
            failed("x", "stopped", "a\nb")
                .to_string()
                .ends_with("\n\na\nb")
        );
    }
}
