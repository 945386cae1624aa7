//! The counts of QEMU's plugin (`accesses.c`), reduced to the data set's.

use measurement::regions::Copy;

use crate::exit::{CliError, Exit};

const PAGE: u64 = 4096;

/// Loads from these copies, by the region of the CPU and then by the region of the memory.
pub(super) fn of_copies<'a>(
    counted: &str,
    copies: impl Iterator<Item = &'a Copy>,
    regions: u32,
) -> Result<Vec<Vec<u64>>, CliError> {
    let damaged = || CliError::new(Exit::Invalid, "the counts of QEMU's plugin are cut off");
    let regions = regions as usize;
    let lines = counted.strip_suffix("end\n").ok_or_else(damaged)?;
    let parsed: Option<Vec<Line>> = lines.lines().map(Line::parse).collect();
    let parsed = parsed.ok_or_else(damaged)?;
    // QEMU adds up the offset of a block of memory in the machine and the offset among its own
    // blocks. For blocks that follow one another those are the same, so that every region but the
    // first appears twice as far away as it is.
    let farthest = parsed.iter().map(|line| line.chunk).max().unwrap_or(0);
    let stretch = if farthest >= regions { 2 } else { 1 };
    let copies: Vec<_> = copies
        .map(|copy| copy.address / PAGE + 1..(copy.address + copy.bytes) / PAGE)
        .collect();
    let mut loads = vec![vec![0; regions]; regions];
    for line in parsed {
        // Pages at the ends may hold something else as well.
        if copies.iter().any(|pages| pages.contains(&line.page)) {
            let memory = (line.chunk / stretch).min(regions - 1);
            for (cpu, count) in line.loads.iter().take(regions).enumerate() {
                loads[cpu][memory] += count;
            }
        }
    }
    Ok(loads)
}

/// `PAGE CHUNK LOADS…`.
struct Line {
    page: u64,
    chunk: usize,
    loads: Vec<u64>,
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        Some(Self {
            page: words.next()?.parse().ok()?,
            chunk: words.next()?.parse().ok()?,
            loads: words.map(|word| word.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a copy of four pages, of which the two in the middle are certainly its own.
    fn loads(counted: &str) -> Result<Vec<Vec<u64>>, CliError> {
        let copy = Copy {
            number: 0,
            address: 10 * PAGE,
            bytes: 3 * PAGE,
            built_in_region: 0,
            built_by_pinned: false,
            pages: None,
        };
        of_copies(counted, std::iter::once(&copy), 2)
    }

    #[test]
    fn loads_from_other_memory_are_left_out() {
        let counted = "9 0 7 7\n10 0 7 7\n11 0 5 1\n12 1 2 3\n13 1 7 7\nend\n";
        assert_eq!(loads(counted).unwrap(), [[5, 2], [1, 3]]);
    }

    #[test]
    fn regions_that_appear_twice_as_far_away_are_brought_back() {
        let counted = "11 0 5 1\n12 2 2 3\nend\n";
        assert_eq!(loads(counted).unwrap(), [[5, 2], [1, 3]]);
    }

    #[test]
    fn counts_that_are_cut_off_say_nothing() {
        for counted in ["", "11 0 5 1\n", "11 0 5 x\nend\n"] {
            assert!(loads(counted).is_err(), "{counted:?}");
        }
    }
}
