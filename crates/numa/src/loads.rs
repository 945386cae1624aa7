//! The counts of QEMU's plugin (`loads.c`), reduced to the data set's.

use crate::record::Copy;

const PAGE: u64 = 4096;

/// Loads from these copies, by the node of the CPU and then by the node of the memory; `None` if the
/// plugin's file is cut off.
pub(crate) fn from_copies<'a>(
    counted: &str,
    copies: impl Iterator<Item = &'a Copy>,
    nodes: u32,
) -> Option<Vec<Vec<u64>>> {
    let mut lines = Vec::new();
    for line in counted.strip_suffix("end\n")?.lines() {
        // `PAGE CHUNK LOADS…`
        let mut numbers: Vec<u64> = Vec::new();
        for word in line.split(' ') {
            numbers.push(word.parse().ok()?);
        }
        lines.push(numbers);
    }
    let nodes = nodes as usize;
    // QEMU adds up the offset of a block of memory in the machine and the offset among its own
    // blocks. For blocks that follow one another those are the same, so that every node but the first
    // appears twice as far away as it is.
    let mut farthest = None;
    for line in &lines {
        farthest = farthest.max(chunk(line));
    }
    let stretch = if farthest >= Some(nodes) { 2 } else { 1 };
    // Pages at the ends may hold something else as well.
    let mut own = Vec::new();
    for copy in copies {
        own.push(copy.address / PAGE + 1..(copy.address + copy.bytes) / PAGE);
    }
    let mut loads = vec![vec![0; nodes]; nodes];
    for line in lines {
        if own.iter().any(|pages| pages.contains(&line[0])) {
            let memory = (chunk(&line)? / stretch).min(nodes - 1);
            for (loads, count) in loads.iter_mut().zip(&line[2..]) {
                loads[memory] += count;
            }
        }
    }
    Some(loads)
}

/// Returns the chunk of memory that a line is about.
fn chunk(line: &[u64]) -> Option<usize> {
    usize::try_from(*line.get(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_from_the_copy_are_added_up_and_a_cut_file_says_nothing() {
        // Of its four pages, the two in the middle are certainly its own.
        let copy = Copy {
            number: 0,
            address: 10 * PAGE,
            bytes: 3 * PAGE,
            built_in_node: 0,
            built_by_pinned: false,
            pages: None,
        };
        let loads = |counted| from_copies(counted, std::iter::once(&copy), 2);
        let near = "9 0 7 7\n10 0 7 7\n11 0 5 1\n12 1 2 3\n13 1 7 7\nend\n";
        let twice_as_far = "11 0 5 1\n12 2 2 3\nend\n";
        for counted in [near, twice_as_far] {
            assert_eq!(loads(counted), Some(vec![vec![5, 2], vec![1, 3]]));
        }
        for counted in ["", "11 0 5 1\n", "11 0 5 x\nend\n"] {
            assert_eq!(loads(counted), None, "{counted:?}");
        }
    }
}
