//! A call stack as it was captured.

/// Addresses, innermost first.
pub(crate) type RawStack = Box<[usize]>;
