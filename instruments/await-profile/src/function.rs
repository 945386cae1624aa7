//! A function with its place, as debug information names it.

use std::borrow::Cow;

/// A function at an address.
#[derive(Debug)]
pub struct Function<'a> {
    /// Demangled name, without its hash; the address if it has none.
    pub name: String,
    /// Name as the linker has it; empty if it has none.
    pub raw: Cow<'a, str>,
    /// Its file, if that is known.
    pub file: Option<Cow<'a, str>>,
    /// Its line, if that is known.
    pub line: Option<u32>,
}
