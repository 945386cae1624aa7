//! Number of free pieces in the heaps of glibc's allocator, without asking it: it would hold its locks meanwhile.
//!
//! It reads a sample of the heaps as bytes. Glibc has marked free pieces in the same way since its first release: the last word
//! of a free piece repeats its size, and a bit in the head of the next one says that the piece before is free. Pieces that
//! threads keep for themselves, and small ones that glibc has not sorted yet (fast bins), have no such marks.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use diagnosis::Process;
use diagnosis::maps::{self, Part};

/// Alignment and largest size of the heaps that glibc makes for threads.
const HEAP: u64 = 64 << 20;

/// Bytes that are read at a place.
const WINDOW: usize = 4096;

/// Most places that are read, evenly spread over all heaps.
const MOST_WINDOWS: u64 = 256;

/// Words of a piece's head: the size of the piece before it, if that is free, and its own size with three bits.
const HEAD: usize = 2;

/// Bits next to a piece's size; the lowest says that the piece before it is in use.
const BITS: u64 = 0b111;
const IS_BEFORE_IN_USE: u64 = 0b1;

/// Smallest piece, and the unit of all sizes, in bytes.
const SMALLEST: u64 = 32;
const UNIT: u64 = 16;

/// Returns about how many free pieces there are, or 0 if the memory cannot be read.
pub(in crate::allocator) fn about() -> u64 {
    if usize::BITS != 64 {
        return 0;
    }
    let Ok(memory) = File::open("/proc/self/mem") else {
        return 0;
    };
    let heaps = heaps(&maps::read(Process::this()));
    let size: u64 = heaps.iter().map(|heap| heap.end - heap.start).sum();
    let window = WINDOW as u64;
    let step = (size / MOST_WINDOWS).next_multiple_of(window).max(window);
    let (mut windows, mut pieces) = (0, 0);
    let mut bytes = [0; WINDOW];
    // Distance from the beginning of a heap to its first place.
    let mut skipped = 0;
    for heap in heaps {
        let mut at = heap.start + skipped;
        while at + window <= heap.end {
            // Another thread may have given the heap back.
            if memory.read_exact_at(&mut bytes, at).is_ok() {
                windows += 1;
                pieces += free_in(&bytes);
            }
            at += step;
        }
        skipped = at.saturating_sub(heap.end);
    }
    pieces * (size / window) / windows.max(1)
}

/// Returns the parts of memory that may be heaps: the first one, which has a name, and those of threads.
fn heaps(maps: &str) -> Vec<Range<u64>> {
    let mut heaps = Vec::new();
    for part in maps.lines().filter_map(Part::parse) {
        if !part.permissions.starts_with("rw") {
            continue;
        }
        let start = match part.name {
            "[heap]" => part.start,
            // The kernel joins neighbours, so other memory may lie before a heap.
            "" => part.start.next_multiple_of(HEAP),
            _ => continue,
        };
        if start < part.end {
            heaps.push(start..part.end);
        }
    }
    heaps
}

/// Returns the number of free pieces that lie within these bytes of a heap.
fn free_in(bytes: &[u8]) -> u64 {
    let mut words = Vec::with_capacity(bytes.len() / 8);
    for word in bytes.chunks_exact(8) {
        words.push(word.try_into().map_or(0, u64::from_ne_bytes));
    }
    let (mut pieces, mut at) = (0, 0);
    while at + 2 * HEAD <= words.len() {
        let size = words[at + 1] & !BITS;
        match free_until(&words, at, size) {
            Some(next) => {
                pieces += 1;
                at = next;
            }
            None => at += HEAD,
        }
    }
    pieces
}

/// Returns the place of the next piece, if a free one of `size` bytes begins at the word `at`.
fn free_until(words: &[u64], at: usize, size: u64) -> Option<usize> {
    if size < SMALLEST || !size.is_multiple_of(UNIT) {
        return None;
    }
    let next = at + usize::try_from(size / 8).ok()?;
    let (before, bits) = (*words.get(next)?, *words.get(next + 1)?);
    // Its first words lead to other free pieces.
    let is_place = |word: u64| word >= HEAP && word.is_multiple_of(UNIT);
    let is_free = before == size && bits & IS_BEFORE_IN_USE == 0;
    let leads_on = is_place(words[at + HEAD]) && is_place(words[at + HEAD + 1]);
    (is_free && leads_on).then_some(next)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn heaps_are_told_from_other_memory() {
        let maps = "\
            55d0c0000000-55d0c0100000 rw-p 00000000 00:00 0                          [heap]\n\
            7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n\
            7f0000021000-7f0004000000 ---p 00000000 00:00 0 \n\
            7f0013ff0000-7f0014021000 rw-p 00000000 00:00 0 \n\
            7f0020000000-7f0020001000 rw-p 00000000 fe:00 42                         /lib/libc.so.6\n\
            7f0030010000-7f0030020000 rw-p 00000000 00:00 0 \n";
        let expected = [
            0x55d0_c000_0000..0x55d0_c010_0000,
            0x7f00_0000_0000..0x7f00_0002_1000,
            0x7f00_1400_0000..0x7f00_1402_1000,
        ];
        assert_eq!(heaps(maps), expected);
    }

    #[test]
    fn a_free_piece_is_known_by_its_marks() {
        let lead = 0x7f00_1234_5680;
        // A free piece of 48 bytes, one in use of 32, and two whose marks disagree.
        let words: [u64; 28] = [
            0, 49, lead, lead, 0, 0, 48, 32, 7, 7, 0, 49, lead, lead, 0, 0, 48, 33, 7, 7, 0, 49, 5,
            5, 0, 0, 48, 32,
        ];
        let mut bytes = Vec::new();
        for word in words {
            bytes.extend(word.to_ne_bytes());
        }
        assert_eq!(free_in(&bytes), 1);
        assert_eq!(free_in(&[32; WINDOW]), 0);
        let same: Vec<u8> = std::iter::repeat_n(64_u64.to_ne_bytes(), 512)
            .flatten()
            .collect();
        assert_eq!(free_in(&same), 0);
    }

    #[test]
    fn free_pieces_are_counted_by_a_sample() {
        if cfg!(feature = "heap") {
            return;
        }
        let mut pieces = Vec::new();
        for _ in 0..400_000_u32 {
            pieces.push(black_box(vec![1_u8; 200]));
        }
        let before = about();
        let kept: Vec<Vec<u8>> = pieces.into_iter().step_by(2).collect();
        let after = about();
        drop(black_box(kept));
        // Tests that run at the same time have some, too.
        let more = after.saturating_sub(before);
        assert!((100_000..400_000).contains(&more), "{before}, then {after}");
    }
}
