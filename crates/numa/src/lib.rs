//! A chapter's service in a small machine that has several NUMA nodes, under QEMU.
//!
//! Most computers have one node, so code for several nodes has no effect on them. An emulated machine
//! has as many nodes as you like. Its speed means nothing. But its kernel places pages as any kernel
//! does, and the emulator sees every load.
//!
//! - [`Parts`] finds the parts of a machine, and [`observe`] runs each variant in a machine of its own.
//!   Its first program is `numa-guest`, in this crate's folder.
//! - [`record::Record`] holds the counts.
//! - [`verdict::judge`] and [`table()`] are pure functions of that record:
//!
//! ```
//! let recorded = include_str!("../../../flamegraphs/chapter7/regions/4x2.json");
//! let record: numa::record::Record = serde_json::from_str(recorded)?;
//! let verdict = numa::verdict::judge(&record, "solution");
//! assert!(verdict.reason.starts_with("loads from the reader's own region: 25.0 %"));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod initramfs;
mod loads;
mod machine;
mod parts;
pub mod record;
mod table;
pub mod verdict;

use std::path::Path;
use std::thread;

use children::Interrupt;
use serde::Deserialize;

use self::machine::Machine;
pub use self::machine::Shape;
pub use self::parts::Parts;
use self::record::{Load, Placement, Variant};
pub use self::table::{table, values};

/// Size of the data set, and the load on the service. Both are small, for a scan is slow in an emulator. The texts
/// take 19 MiB.
pub const LOAD: Load = Load {
    texts: 30_000,
    connections: 1,
    requests: 5,
};

/// The reason why nothing was observed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reader pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The machine could not be put together or switched on.
    #[error("{0}")]
    Parts(String),
    /// The machine ran, but gave no result for the service.
    #[error("{0}")]
    Run(String),
}

impl Error {
    /// Creates the error of a variant's machine: what it did, and the last 12 lines of its output.
    fn run(variant: &str, what: &str, said: &str) -> Self {
        let lines: Vec<&str> = said.lines().collect();
        let end = lines[lines.len().saturating_sub(12)..].join("\n");
        Self::Run(format!(
            "the machine with the {variant} {what}; the end of its stderr:\n\n{end}"
        ))
    }
}

/// The programs of a machine, linked statically to fixed addresses.
#[derive(Debug, Clone, Copy)]
pub struct Programs<'a> {
    /// The first program: `numa-guest`.
    pub guest: &'a Path,
    /// A chapter's server.
    pub service: &'a Path,
}

/// The counts of the machines.
#[derive(Debug)]
pub struct Observed {
    /// The version of their kernel.
    pub kernel: String,
    /// The variants, in the order in which they were asked for.
    pub variants: Vec<Variant>,
}

/// Runs each of the variants in a machine of its own, which leaves its files in `folder`.
///
/// # Errors
///
/// Returns an error if a machine cannot be started, does not come to its end, or has not counted everything.
pub fn observe(
    parts: &Parts,
    shape: Shape,
    programs: Programs<'_>,
    variants: &[&str],
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<Observed, Error> {
    let initrd = &folder.join("initramfs");
    let files = [("init", programs.guest), ("service", programs.service)];
    initramfs::write(initrd, &files)
        .map_err(|e| Error::Parts(format!("the machine's files cannot be written: {e}")))?;
    let machine = &Machine {
        plugin: &parts.plugin(folder)?,
        parts,
        initrd,
        shape,
        folder,
        interrupt,
    };
    let mut observed = Observed {
        kernel: String::new(),
        variants: Vec::new(),
    };
    // Each is emulated by one thread, and two CPUs are needed for a proof anyway.
    for pair in variants.chunks(2) {
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
            return Err(Error::Interrupted);
        }
        for ended in ended {
            let Ok(ended) = ended else {
                return Err(Error::Parts("a thread panicked".to_owned()));
            };
            let (kernel, variant) = ended?;
            observed.kernel = kernel;
            observed.variants.push(variant);
        }
    }
    Ok(observed)
}

/// Runs a machine with one variant. Returns the variant's counts and the kernel's version.
fn run(machine: &Machine<'_>, name: &str) -> Result<(String, Variant), Error> {
    let said = machine.run(name)?;
    let failed = |what: &str| Error::run(name, what, &said);
    let Report {
        kernel,
        answers,
        resident_kib,
        placement,
    } = report(&said).map_err(|what| failed(&what))?;
    let mut variant = Variant {
        name: name.to_owned(),
        answers,
        resident_kib,
        placement,
        loads: Vec::new(),
    };
    let counted = std::fs::read_to_string(machine.loads(name)).unwrap_or_default();
    match loads::from_copies(&counted, variant.copies_read(), machine.shape.nodes) {
        Some(loads) => variant.loads = loads,
        None => return Err(failed("left no counts of QEMU's plugin, or a part of them")),
    }
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
            Error::run("x", "stopped", "a\nb")
                .to_string()
                .ends_with("\n\na\nb")
        );
    }
}
