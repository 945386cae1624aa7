//! The command line of the profiling workshop.
fn main() {}
