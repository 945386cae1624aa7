//! Whose code a frame is, and which frames a reader wants to see.

use crate::names::{clean, crate_of};
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

/// Crates that come between an executor and the reader's code.
const FRAMEWORK: &[&str] = &[
    "alloc",
    "async_stream",
    "async_trait",
    "await_profile",
    "axum",
    "axum_core",
    "backtrace",
    "core",
    "futures",
    "futures_core",
    "futures_util",
    "http_body",
    "http_body_util",
    "hyper",
    "hyper_util",
    "pin_project_lite",
    "std",
    "sync_wrapper",
    "tonic",
    "tower",
    "tower_http",
    "tower_layer",
    "tower_service",
    "tracing",
    "tracing_futures",
    "tokio",
    "tokio_stream",
    "tokio_util",
    "warp",
];

/// Modules of framework crates whose functions and types are what is waited for.
const PRIMITIVE: &[&str] = &[
    "async_channel",
    "async_lock",
    "event_listener",
    "flume",
    "futures_channel",
    "futures_timer",
    "futures_util::lock",
    "futures_util::stream::futures_unordered",
    "hyper::body",
    "hyper::upgrade",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "tokio::runtime::task::join",
    "tokio::signal",
    "tokio::sync",
    "tokio::task::join_set",
    "tokio::task::yield_now",
    "tokio::time::interval",
    "tokio::time::sleep",
    "tokio_util::sync",
];

/// What primitives are made of; names no reader has called.
const INTERNAL: &[&str] = &[
    "tokio::sync::batch_semaphore",
    "tokio::sync::mpsc::chan",
    "tokio::sync::mpsc::list",
    "tokio::sync::task",
    "tokio::sync::watch::big_notify",
    "event_listener::sys",
];

/// Libraries inside framework crates: clients that the reader's code calls.
const LIBRARY: &[&str] = &[
    "hyper_util::client",
    "hyper::client",
    "tonic::client",
    "tonic::transport",
];

/// Paths as their modules' authors arranged them, and as users import them.
const PUBLIC_PATHS: &[(&str, &str)] = &[
    ("tokio::sync::mutex::", "tokio::sync::"),
    ("tokio::sync::rwlock::", "tokio::sync::"),
    ("tokio::sync::semaphore::", "tokio::sync::"),
    ("tokio::sync::notify::", "tokio::sync::"),
    ("tokio::sync::barrier::", "tokio::sync::"),
    ("tokio::sync::once_cell::", "tokio::sync::"),
    ("tokio::sync::mpsc::bounded::", "tokio::sync::mpsc::"),
    (
        "tokio::sync::mpsc::unbounded::",
        "tokio::sync::mpsc::Unbounded",
    ),
    ("tokio::time::sleep::", "tokio::time::"),
    ("tokio::time::interval::", "tokio::time::"),
    ("tokio::time::timeout::", "tokio::time::"),
    ("tokio::net::tcp::stream::", "tokio::net::"),
    ("tokio::net::tcp::listener::", "tokio::net::"),
    ("tokio::net::udp::", "tokio::net::"),
    ("tokio::net::unix::stream::", "tokio::net::"),
    ("tokio::runtime::task::join::", "tokio::task::"),
    ("tokio::task::join_set::", "tokio::task::"),
    ("tokio::task::yield_now::", "tokio::task::"),
    ("hyper::body::incoming::", "hyper::body::"),
    (
        "futures_util::stream::futures_unordered::",
        "futures_util::stream::",
    ),
];

fn within(path: &str, modules: &[&str]) -> bool {
    modules.iter().any(|module| {
        path.strip_prefix(module)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

/// A primitive by the name under which the reader knows it: `Sleep`, not the `poll`
/// that implements it.
fn primitive_name(path: &str) -> &str {
    let path = path.strip_suffix("_priv").unwrap_or(path);
    match path.strip_suffix("::poll") {
        Some(future) if crate_of(future) != future => future,
        _ => path,
    }
}

fn public_path(path: String) -> String {
    for (inner, outer) in PUBLIC_PATHS {
        if let Some(rest) = path.strip_prefix(inner) {
            let rest = rest
                .strip_prefix("Unbounded")
                .filter(|_| outer.ends_with("Unbounded"))
                .unwrap_or(rest);
            return format!("{outer}{rest}");
        }
    }
    path
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
    let krate = crate_of(path);
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
    } else if krate.len() <= 2 || !path.contains("::") {
        // `F::call`: a parameter of some framework's generic function.
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
    // Inner end: the capture, down to the clone (or the wake) of the waker.
    let hook = symbols
        .iter()
        .position(|symbol| symbol.name.starts_with("await_profile::clone_hook::"));
    let inner = hook.map_or(0, |at| at + 1);
    let inner = inner
        + symbols[inner..]
            .iter()
            .take_while(|symbol| clean(&symbol.name).starts_with("core::task::"))
            .count();
    // Outer end: the poll that recorded.
    let recorder = [
        "await_profile::clone_hook::poll_hooked",
        "await_profile::stack::poll_recorded",
    ];
    let outer = symbols[inner..]
        .iter()
        .position(|symbol| {
            recorder
                .iter()
                .any(|recorder| symbol.name.starts_with(recorder))
        })
        .map_or(symbols.len(), |at| inner + at);
    let mut frames: Vec<Frame> = symbols[inner..outer]
        .iter()
        .rev()
        .map(|symbol| {
            let path = clean(&symbol.name);
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

/// The frames that a reader wants to see of a whole stack.
pub(crate) fn own_view(stack: &[Frame]) -> Vec<Frame> {
    let last_user = stack
        .iter()
        .rposition(|frame| matches!(frame.owner, Owner::Own | Owner::Library));
    let (carried, tail) = stack.split_at(last_user.map_or(0, |at| at + 1));
    // A library outside of all the reader's code has called it: a middleware.
    let first_own = carried
        .iter()
        .position(|frame| frame.owner == Owner::Own)
        .unwrap_or_default();
    let mut shown: Vec<Frame> = Vec::new();
    let mut entered: Option<&str> = None;
    for frame in &carried[first_own..] {
        match frame.owner {
            Owner::Own => {
                entered = None;
                // An async block inside its function: keep the innermost line.
                if shown.last().is_some_and(|last| last.path == frame.path) {
                    shown.pop();
                }
                shown.push(frame.clone());
            }
            // Of a library only the function by which it was entered.
            Owner::Library if entered != Some(crate_of(&frame.path)) => {
                entered = Some(crate_of(&frame.path));
                shown.push(frame.clone());
            }
            // A primitive that polls the reader's code, such as `OnceCell`.
            Owner::Library | Owner::Primitive | Owner::Framework => {}
        }
    }
    shown.extend(primitive(tail).cloned());
    shown
}

/// Of the frames inside the reader's last one, what is waited for.
fn primitive(tail: &[Frame]) -> Option<&Frame> {
    let is_public =
        |frame: &&Frame| frame.owner == Owner::Primitive && !within(&frame.path, INTERNAL);
    let not_std = |frame: &&Frame| {
        !matches!(
            crate_of(&frame.path),
            "core" | "std" | "alloc" | "await_profile"
        )
    };
    tail.iter()
        .find(is_public)
        .or_else(|| tail.iter().find(|frame| frame.owner == Owner::Primitive))
        .or_else(|| tail.iter().rfind(not_std))
        .or_else(|| tail.last())
}

/// Whether the stack is a timer that only bounds how long something else may take.
pub(crate) fn is_deadline(stack: &[Frame]) -> bool {
    let sleeps = stack
        .iter()
        .rposition(|frame| frame.path == "tokio::time::Sleep");
    sleeps.is_some_and(|at| {
        stack[..at]
            .iter()
            .rev()
            .find(|frame| !matches!(crate_of(&frame.path), "core" | "std"))
            .is_some_and(|outer| {
                outer.path.starts_with("tokio::time::Timeout::")
                    || outer.path.starts_with("tower::timeout::")
                    || outer.path.starts_with("tower_http::timeout::")
            })
    })
}
