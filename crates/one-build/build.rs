//! Nothing to do: it is here for the build dependencies.

fn main() {}
