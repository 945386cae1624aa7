//! What is known of crates that services are made with.

use crate::names::crate_of;

/// Crates that come between an executor and the reader's code.
pub(crate) const FRAMEWORK: &[&str] = &[
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
pub(crate) const PRIMITIVE: &[&str] = &[
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
pub(crate) const INTERNAL: &[&str] = &[
    "tokio::sync::batch_semaphore",
    "tokio::sync::mpsc::chan",
    "tokio::sync::mpsc::list",
    "tokio::sync::task",
    "tokio::sync::watch::big_notify",
    "event_listener::sys",
];

/// Libraries inside framework crates: clients that the reader's code calls.
pub(crate) const LIBRARY: &[&str] = &[
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

pub(crate) fn within(path: &str, modules: &[&str]) -> bool {
    modules.iter().any(|module| {
        path.strip_prefix(module)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

/// A primitive by the name under which the reader knows it: `Sleep`, not the `poll`
/// that implements it.
pub(crate) fn primitive_name(path: &str) -> &str {
    let path = path.strip_suffix("_priv").unwrap_or(path);
    match path.strip_suffix("::poll") {
        Some(future) if crate_of(future) != future => future,
        _ => path,
    }
}

pub(crate) fn public_path(path: String) -> String {
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
