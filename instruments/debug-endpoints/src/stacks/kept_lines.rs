//! Memory that stays, by the lines of the service that allocated it.

use std::collections::{BTreeMap, HashMap};

use diagnosis::evidence::Kept;
use diagnosis::threads::roles::Whose;

use crate::stacks::cpu_names::{Functions, functions};
use crate::stacks::kept::{Stayed, Watch};

/// Most stacks whose names are looked up, the largest first.
const MOST_STACKS: usize = 200;

/// Most lines that are told.
const MOST_LINES: usize = 10;

/// Begins to sample what is allocated, if the service has the allocator for it.
pub(crate) fn begin() -> Option<Watch> {
    Watch::begin()
}

/// Returns what stayed of it, by line, the largest first.
pub(crate) fn of(watch: Option<Watch>) -> Vec<Kept> {
    let mut stayed = watch.map(Watch::stayed).unwrap_or_default();
    stayed.sort_by_key(|one| std::cmp::Reverse(one.bytes));
    stayed.truncate(MOST_STACKS);
    let mut known: HashMap<usize, Functions> = HashMap::new();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for one in &stayed {
        if let Some(line) = line_of(one, &mut known) {
            *lines.entry(line).or_default() += one.bytes;
        }
    }
    await_profile::symbols::forget();
    let mut kept: Vec<Kept> = lines
        .into_iter()
        .map(|(at, bytes)| Kept { at, bytes })
        .collect();
    kept.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    kept.truncate(MOST_LINES);
    kept
}

/// Returns the innermost line of the service's own code, or the outermost function of a library; `None` for the instruments' own.
fn line_of(stayed: &Stayed, known: &mut HashMap<usize, Functions>) -> Option<String> {
    let mut library = None;
    for address in &stayed.stack {
        let functions = known.entry(*address).or_insert_with(|| functions(*address));
        for (function, line) in functions.iter() {
            let name = function.name.replace("::{{closure}}", "");
            match Whose::of(&function.name, &function.file, function.is_foreign) {
                Whose::Own => return Some(format!("{name} ({}:{line})", function.file)),
                Whose::Library => library = Some(name),
                Whose::Plumbing | Whose::Nameless => {
                    if name.starts_with("debug_endpoints::") {
                        return None;
                    }
                }
            }
        }
    }
    library
}
