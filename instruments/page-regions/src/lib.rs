//! Finds the NUMA nodes in which the pages of some bytes lie, and the CPU on which a thread runs. A NUMA node is a part
//! of a machine's memory that some CPUs reach faster than others.
//!
//! The kernel chooses a page's node when the page is first written: usually the node of the CPU that
//! writes. So a program has to ask the kernel where its data is. [`regions`] does that by `move_pages(2)`, which moves
//! nothing if it gets no node to move to. [`processor`] returns the CPU of the calling thread. Both work on Linux only,
//! and return `None` elsewhere.
//!
//! The names say *region* for a node and *processor* for a CPU, as the crates `region_cached` and `many_cpus` do.

use std::collections::BTreeMap;

/// Smallest page size of all CPUs that Linux runs on, in bytes. Larger pages are counted several
/// times each, which changes no share.
const PAGE: usize = 4096;

/// Looks at up to `sample` pages of `bytes`, evenly spread, and returns how many lie in each node, by the node's
/// number. Pages that were never written have no node and are left out.
///
/// Returns `None` if the system does not say, for example in a container that forbids the call.
///
/// ```
/// let bytes = vec![1_u8; 1 << 20];
/// if let Some(pages) = page_regions::regions(&bytes, 64) {
///     println!("{pages:?}");
/// }
/// ```
pub fn regions(bytes: &[u8], sample: usize) -> Option<BTreeMap<u32, usize>> {
    let range = bytes.as_ptr_range();
    regions_at(range.start as usize, bytes.len(), sample)
}

/// Returns the same as [`regions`] for `length` bytes at an address. The memory may have been freed: it is not read, and
/// pages that no longer exist are left out.
pub fn regions_at(address: usize, length: usize, sample: usize) -> Option<BTreeMap<u32, usize>> {
    let pages = length / PAGE;
    let step = pages.div_ceil(sample.max(1)).max(1);
    let pages: Vec<usize> = (0..pages.max(1))
        .step_by(step)
        .map(|page| address + page * PAGE)
        .collect();
    let mut counted = BTreeMap::new();
    for region in ask(&pages)?.into_iter().flatten() {
        *counted.entry(region).or_default() += 1;
    }
    Some(counted)
}

/// Returns the number of the CPU on which the calling thread runs at this moment, or `None` if the system does not say.
pub fn processor() -> Option<usize> {
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    {
        // The C library works under valgrind too, which has no vDSO.
        // SAFETY: it takes nothing and writes nothing; a negative number is an error.
        unsafe { libc::sched_getcpu() }.try_into().ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn ask(pages: &[usize]) -> Option<Vec<Option<u32>>> {
    let mut status = vec![-1_i32; pages.len()];
    // SAFETY: `pages` and `status` have as many elements as the call is told, of the size of a
    // pointer and of an `int`. With no nodes to move to the kernel moves nothing: it looks each
    // address up, whatever it is, and writes `status`.
    let refused = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0, // this process
            pages.len(),
            pages.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            status.as_mut_ptr(),
            0,
        )
    };
    // A negative status is an error of that page; most often, the page was never written.
    if refused != 0 {
        return None;
    }
    let nodes = status.into_iter();
    Some(nodes.map(|node| node.try_into().ok()).collect())
}

#[cfg(not(target_os = "linux"))]
fn ask(_pages: &[usize]) -> Option<Vec<Option<u32>>> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn written_pages_lie_somewhere() {
        let bytes = vec![1_u8; 64 * PAGE];
        // A container may forbid the call.
        let Some(found) = regions(&bytes, usize::MAX) else {
            return;
        };
        assert_eq!(found.values().sum::<usize>(), 64);
        let sampled = regions(&bytes, 8).expect("as just now");
        assert_eq!(sampled.values().sum::<usize>(), 8);
    }

    #[test]
    fn a_thread_runs_on_a_processor_that_there_is() {
        let there = processor().expect("Linux tells");
        let folder = format!("/sys/devices/system/cpu/cpu{there}");
        assert!(std::path::Path::new(&folder).exists(), "{folder}");
    }

    #[test]
    fn what_is_no_memory_lies_nowhere() {
        assert!(regions_at(PAGE, 4 * PAGE, 4).is_none_or(|found| found.is_empty()));
        assert!(regions(&[], 4).is_none_or(|found| found.values().sum::<usize>() <= 1));
    }
}
