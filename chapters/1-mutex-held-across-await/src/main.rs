//! Chapter 1.
fn main() {}
