//! Resolves addresses to functions, files and lines.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::function::Function;
#[cfg(target_os = "linux")]
use crate::libraries;
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
    functions(address, &mut |function| {
        symbols.push(Symbol {
            name: function.name,
            file: function.file.map(Cow::into_owned),
            line: function.line,
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

/// Calls `each` with the functions at an address, the innermost inlined one first. What is read for it stays in memory until
/// [`forget`] is called.
pub fn functions(address: usize, each: &mut dyn FnMut(Function<'_>)) {
    #[cfg(target_os = "linux")]
    if libraries::functions(address as u64, each) {
        return;
    }
    // `resolve` looks at the byte before.
    let after = std::ptr::without_provenance_mut(address.wrapping_add(1));
    backtrace::resolve(after, |symbol| {
        let (name, raw) = match symbol.name() {
            Some(name) => (
                format!("{name:#}"),
                String::from_utf8_lossy(name.as_bytes()).into_owned(),
            ),
            None => (format!("{address:#x}"), String::new()),
        };
        let file = symbol.filename();
        each(Function {
            name,
            raw: raw.into(),
            file: file.map(|file| file.to_string_lossy().into_owned().into()),
            line: symbol.lineno(),
        });
    });
}

/// Gives back what was read for names: tens of megabytes.
pub fn forget() {
    #[cfg(target_os = "linux")]
    libraries::forget();
    backtrace::clear_symbol_cache();
}
