//! The root cause as a count: the heap allocations of one `page`.
//!
//! Such a count needs no load and no quiet machine, and it is the same in every run. A service of your
//! own can have such a test beside its others.

// Only one of them can be the allocator.
#![cfg(not(feature = "heap"))]

use allocation_counter::measure;
use chapter3::clients::{self, Client};
use chapter3::{problem, solution};

/// Allocations of one page of the clients that the service starts with.
fn allocations(page: fn(&[Client], usize) -> String) -> u64 {
    let clients = clients::known(0);
    measure(|| assert!(!page(&clients, 0).is_empty())).count_total
}

// ANCHOR: solution
#[test]
fn the_solution_allocates_for_its_page_and_not_for_its_comparisons() {
    assert!(allocations(solution::page) < 30);
}
// ANCHOR_END: solution

#[test]
fn the_problem_clones_four_names_a_comparison() {
    // At the least, n values take log2(n!) comparisons to sort: here 257,000.
    assert!(allocations(problem::page) > 4 * 257_000);
}
