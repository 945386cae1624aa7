//! Whose code a frame is, and which frames a reader wants to see.

use std::collections::HashSet;

use crate::known::{FRAMEWORK, LIBRARY, PRIMITIVE, primitive_name, public_path, within};
use crate::names::{crate_of, package_of, path_of};
use crate::symbols::{Symbol, Symbols};

/// Which frames of a stack to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Frames {
    /// The reader's own functions with file and line, the function by which a
    /// library was entered, and last the primitive that is waited for.
    #[default]
    Own,
    /// Every frame between the request's outermost future and the primitive, those
    /// of the framework and the standard library included.
    All,
}

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The reader's.
    Own,
    /// A library that the reader's code calls.
    Library,
    /// Something to wait for: a lock, a timer, a channel, a socket.
    Primitive,
    /// What carries the reader's code to the executor and back: folded away.
    Framework,
}

/// One frame, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) path: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) owner: Owner,
}

impl Frame {
    /// What the graph says: own code with its place.
    pub(crate) fn label(&self) -> String {
        match (self.owner, &self.file, self.line) {
            (Owner::Own, Some(file), Some(line)) => {
                format!("{} ({}:{line})", self.path, short(file))
            }
            _ => self.path.clone(),
        }
        .replace([';', '\n'], ",")
    }
}

/// The part of a path that is the same on every machine: the package's folder and what is in it.
pub(crate) fn portable(file: &str) -> String {
    let short = short(file);
    let folder = file
        .strip_suffix(&short)
        .and_then(|above| {
            above
                .trim_end_matches(['/', '\\'])
                .rsplit(['/', '\\'])
                .next()
        })
        .filter(|folder| !folder.is_empty());
    folder.map_or_else(|| short.clone(), |folder| format!("{folder}/{short}"))
}

/// The part of a path that says which file it is to someone who knows the project.
fn short(file: &str) -> String {
    let file = file.replace('\\', "/");
    for folder in ["/src/", "/examples/", "/tests/", "/benches/"] {
        if let Some(at) = file.rfind(folder) {
            return file[at + 1..].to_owned();
        }
    }
    let from_root = ["src/", "examples/", "tests/", "benches/"]
        .iter()
        .any(|folder| file.starts_with(folder));
    if from_root {
        file
    } else {
        file.rsplit('/').next().unwrap_or(&file).to_owned()
    }
}

/// Compiled from cargo's registry, a git dependency, or the toolchain.
fn is_foreign(file: &str) -> bool {
    let file = file.replace('\\', "/");
    [
        "/registry/src/",
        "/git/checkouts/",
        "/rustc/",
        "/rustlib/src/",
        "/.cargo/",
    ]
    .iter()
    .any(|part| file.contains(part))
        || file.starts_with("/rust/deps/")
}

fn owner(path: &str, file: Option<&str>, own_crates: Option<&[String]>) -> Owner {
    let mut krate = crate_of(path);
    // `F::call`: a type parameter of some crate's generic function. No crate is
    // called so, and the file tells which it is.
    if krate.starts_with(char::is_uppercase) {
        krate = file.and_then(package_of).unwrap_or(krate);
    }
    let krate = &*krate.replace('-', "_");
    let own = own_crates.is_some_and(|own| own.iter().any(|own| own == krate));
    if own {
        Owner::Own
    } else if within(path, PRIMITIVE) {
        Owner::Primitive
    } else if within(path, LIBRARY) {
        Owner::Library
    } else if FRAMEWORK.contains(&krate) {
        Owner::Framework
    } else if own_crates.is_none() && !file.is_some_and(is_foreign) {
        Owner::Own
    } else if !path.contains("::") {
        Owner::Framework
    } else {
        Owner::Library
    }
}

/// A whole stack, outermost frame first, without our own frames at either end.
pub(crate) fn resolve_stack(
    innermost_first: &[Symbols],
    own_crates: Option<&[String]>,
) -> Vec<Frame> {
    let symbols: Vec<&Symbol> = innermost_first
        .iter()
        .flat_map(|symbols| symbols.iter())
        .collect();
    let is_named =
        |symbol: &Symbol, names: &[&str]| names.iter().any(|name| path_of(symbol).ends_with(name));
    // Inner end: the capture, down to the clone (or the wake) of the waker. Which of
    // our functions have frames of their own is the optimiser's choice.
    let hook = [
        "clone_waker",
        "Recorder::wake",
        "clone_hook::clone",
        "clone_hook::wake_by_ref",
    ];
    let hook = symbols
        .iter()
        .take(24)
        .rposition(|symbol| is_named(symbol, &hook));
    let inner = hook.map_or(0, |at| at + 1);
    let of_task = |symbol: &&&Symbol| path_of(symbol).starts_with("core::task::");
    let inner = inner + symbols[inner..].iter().take_while(of_task).count();
    // Outer end: the poll that recorded.
    let outer = symbols[inner..]
        .iter()
        .position(|symbol| is_named(symbol, &["poll_hooked", "poll_recorded"]))
        .map_or(symbols.len(), |at| inner + at);
    let mut frames: Vec<Frame> = symbols[inner..outer]
        .iter()
        .rev()
        .map(|symbol| {
            let path = path_of(symbol);
            let owner = owner(&path, symbol.file.as_deref(), own_crates);
            let path = public_path(path);
            let path = match owner {
                Owner::Primitive => primitive_name(&path).to_owned(),
                _ => path,
            };
            Frame {
                path,
                file: symbol.file.clone(),
                line: symbol.line,
                owner,
            }
        })
        // The closures by which the wrapper calls the future.
        .skip_while(|frame| crate_of(&frame.path) == "await_profile")
        .collect();
    claim_macros(&mut frames);
    if frames.is_empty() {
        frames.push(Frame {
            path: "(no symbols)".into(),
            file: None,
            line: None,
            owner: Owner::Framework,
        });
    }
    frames
}

/// A closure that a library's macro wrote into the reader's function has the
/// macro's place and the function's name: it is the reader's.
fn claim_macros(frames: &mut [Frame]) {
    let own: HashSet<String> = frames
        .iter()
        .filter(|frame| frame.owner == Owner::Own)
        .map(|frame| crate_of(&frame.path).to_owned())
        .collect();
    for frame in frames {
        if frame.owner == Owner::Library && own.contains(crate_of(&frame.path)) {
            *frame = Frame {
                owner: Owner::Own,
                file: None,
                line: None,
                path: std::mem::take(&mut frame.path),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::portable;

    #[test]
    fn a_portable_path_does_not_tell_whose_machine_it_is() {
        for (file, expected) in [
            ("/home/me/shop/src/cart.rs", "shop/src/cart.rs"),
            (
                "/home/me/.cargo/registry/src/index-1/tokio-1.0.0/src/sync/mutex.rs",
                "tokio-1.0.0/src/sync/mutex.rs",
            ),
            ("src/main.rs", "src/main.rs"),
        ] {
            assert_eq!(portable(file), expected);
        }
    }
}
