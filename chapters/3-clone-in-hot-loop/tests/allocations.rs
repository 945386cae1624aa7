//! The root cause, counted: what one `checksum` asks of the heap.
//!
//! A count like this costs no load and no quiet machine, and it never wavers: a service of your
//! own can have such a test beside its others.

// Only one of them can be the allocator.
#![cfg(not(feature = "heap"))]

use allocation_counter::measure;
use chapter3::{clients, fewer_clones, parse_once, problem, solution};

const ROUNDS: u64 = 1_000_000;

/// Allocations of one checksum over the ids that the service starts with.
fn allocations(checksum: fn(&[String], u64) -> u64) -> u64 {
    let ids: Vec<String> = clients::known(0)
        .values()
        .map(|client| client.id.to_string())
        .collect();
    let counted = measure(|| {
        assert_eq!(checksum(&ids, ROUNDS), 2_172_347_200_543_715_621);
    });
    counted.count_total
}

// ANCHOR: solution
#[test]
fn the_solution_allocates_nothing() {
    assert_eq!(allocations(solution::checksum), 0);
}
// ANCHOR_END: solution

#[test]
fn the_problem_allocates_for_every_id_in_every_round_and_the_others_less() {
    assert_eq!(allocations(problem::checksum), 3 * ROUNDS);
    assert_eq!(allocations(fewer_clones::checksum), 3 * ROUNDS / 4);
    // The list of numbers.
    assert_eq!(allocations(parse_once::checksum), 1);
}
