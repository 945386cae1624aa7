//! The size of a data set: chosen for the machine, printed, and checked against the free memory.

use std::io::Write;

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::{Error, Options};

/// Texts for each CPU unless the command line names a size. The data set grows with the CPUs that scan
/// it, so any machine answers about as many requests per second, and no generator is too slow for it.
const PER_CPU: u64 = 150_000;
/// A data set takes at most this fraction of the machine's memory, unless `--texts` says otherwise.
const SHARE: u64 = 64;
/// The published size, and the largest unless `--texts` says otherwise.
const MOST: u64 = 4_000_000;
/// Bytes that each text takes in addition to its own: its `String`.
const HEADER: u64 = size_of::<String>() as u64;
const MIB: u64 = 1024 * 1024;

/// Bytes of memory, within what a control group allows.
#[derive(Debug, Clone, Copy)]
struct Memory {
    total: u64,
    free: u64,
}

impl Options {
    /// Returns how many texts of `bytes` bytes the data set has: as many as `--texts` says, else 150,000 for
    /// each CPU, limited to a 64th of the machine's memory and to 4,000,000. Prints the number and its memory.
    /// `copies` is the largest number of copies that the chapter keeps at once.
    ///
    /// # Errors
    ///
    /// Returns an error if all copies together take more memory than is free, or if standard output is closed.
    pub fn texts(&self, bytes: usize, copies: usize) -> Result<usize, Error> {
        let memory = Memory::here();
        let each = bytes as u64 + HEADER;
        let cpus = self.scans.usable();
        let texts = self
            .data_set
            .texts
            .unwrap_or_else(|| memory.holds(each, cpus));
        let copy = texts.saturating_mul(each);
        let needed = copy.saturating_mul(copies as u64);
        if needed > memory.free {
            return Err(Error::Memory {
                texts,
                needed_mib: needed.div_ceil(MIB),
                free_mib: memory.free / MIB,
            });
        }
        let why = match self.data_set.texts {
            Some(_) => "as --texts says".to_owned(),
            None => format!(
                "sized to the machine's {cpus} CPUs and {} GiB; --texts {MOST} is the \
                 published size",
                gib(memory.total)
            ),
        };
        let in_copies = match copies {
            1 => String::new(),
            copies => format!(", and up to {copies} copies,"),
        };
        writeln!(
            std::io::stdout(),
            "{} keeps {texts} texts of {bytes} bytes: {} MiB{in_copies} of {} MiB that are free ({why})",
            self.chapter,
            copy.div_ceil(MIB),
            memory.free / MIB,
        )
        .map_err(Error::Announce)?;
        Ok(usize::try_from(texts).unwrap_or(usize::MAX))
    }
}

impl Memory {
    fn here() -> Self {
        let ram = MemoryRefreshKind::nothing().with_ram();
        let system = System::new_with_specifics(RefreshKind::nothing().with_memory(ram));
        // Where the system does not tell.
        if system.total_memory() == 0 {
            return Self::ASSUMED;
        }
        let whole = Self {
            total: system.total_memory(),
            free: system.available_memory(),
        };
        system.cgroup_limits().map_or(whole, |group| Self {
            total: whole.total.min(group.total_memory),
            // Its own free memory leaves out what caches files, which the kernel gives to whoever needs it.
            free: whole.free.min(group.total_memory.saturating_sub(group.rss)),
        })
    }

    /// Memory to assume if the system does not tell.
    const ASSUMED: Self = Self {
        total: 8 * 1024 * MIB,
        free: 4 * 1024 * MIB,
    };

    /// Returns the number of texts for so many CPUs, as far as they fit into the data set's share. It is in
    /// thousands, which are easy to compare.
    fn holds(self, each: u64, cpus: usize) -> u64 {
        let thousands = self.total / SHARE / each / 1000;
        (thousands * 1000)
            .min(PER_CPU * cpus as u64)
            .clamp(1000, MOST)
    }
}

fn gib(bytes: u64) -> u64 {
    (bytes + 512 * MIB) / (1024 * MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_holds_what_its_cpus_and_memory_allow_up_to_the_published_size() {
        let holds = |gib: u64, cpus| {
            let memory = Memory {
                total: gib * 1024 * MIB,
                free: 0,
            };
            memory.holds(664, cpus)
        };
        assert_eq!(holds(16, 2), 300_000);
        assert_eq!(holds(16, 8), 404_000);
        assert_eq!(holds(8, 8), 202_000);
        assert_eq!(holds(1024, 176), MOST);
        assert_eq!(holds(0, 2), 1000);
    }
}
