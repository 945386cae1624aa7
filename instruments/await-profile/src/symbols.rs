//! Resolves addresses to functions, files and lines.

use std::collections::HashMap;
use std::sync::Arc;

use crate::raw_stack::RawStack;

/// A function at an address, or one that was inlined there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// Demangled name, without its hash.
    pub(crate) name: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
}

/// Functions at an address, the innermost inlined function first.
pub(crate) type Symbols = Arc<[Symbol]>;

/// Resolved addresses, kept from one profile to the next.
#[derive(Default)]
pub(crate) struct SymbolCache {
    resolved: HashMap<usize, Symbols>,
}

impl SymbolCache {
    /// Returns the functions at an address from the program's debug information. The first call reads
    /// that information, which can take a second. On Windows it blocks captures for that time. So call
    /// it after sampling, on a thread that serves no requests.
    pub(crate) fn resolve(&mut self, address: usize) -> Symbols {
        self.resolved
            .entry(address)
            .or_insert_with(|| resolve(address))
            .clone()
    }

    /// Returns the functions at each address of a stack.
    pub(crate) fn resolve_all(&mut self, stack: &RawStack) -> Vec<Symbols> {
        let mut symbols = Vec::new();
        for address in stack {
            symbols.push(self.resolve(*address));
        }
        symbols
    }
}

fn resolve(address: usize) -> Symbols {
    let mut symbols = Vec::new();
    backtrace::resolve(std::ptr::without_provenance_mut(address), |symbol| {
        let file = symbol.filename();
        symbols.push(Symbol {
            name: match symbol.name() {
                Some(name) => format!("{name:#}"),
                None => format!("{address:#x}"),
            },
            file: file.map(|file| file.to_string_lossy().into_owned()),
            line: symbol.lineno(),
        });
    });
    if symbols.is_empty() {
        symbols.push(Symbol {
            name: format!("{address:#x}"),
            file: None,
            line: None,
        });
    }
    symbols.into()
}
