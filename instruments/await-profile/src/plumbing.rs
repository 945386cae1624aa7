//! The crates that carry requests between an executor and a service's own code.
//!
//! Their frames are in every stack of every service, and so say nothing about one. Await profiles
//! leave them out; a drawer of CPU profiles can make one box of them.

/// The crates, each with what it is a part of: `mio` belongs to `tokio`, and `std` is the language. Those
/// that are a part of nothing do small work for the others. In the order from the executor to the handler.
pub const PLUMBING: &[(&str, &str)] = &[
    ("tokio", "tokio"),
    ("tokio_stream", "tokio"),
    ("tokio_util", "tokio"),
    ("mio", "tokio"),
    ("hyper", "hyper"),
    ("hyper_rustls", "hyper"),
    ("hyper_util", "hyper"),
    ("http", "hyper"),
    ("http_body", "hyper"),
    ("http_body_util", "hyper"),
    ("httparse", "hyper"),
    ("tonic", "tonic"),
    ("warp", "warp"),
    ("axum", "axum"),
    ("axum_core", "axum"),
    ("tower", "axum"),
    ("tower_http", "axum"),
    ("tower_layer", "axum"),
    ("tower_service", "axum"),
    ("futures", "futures"),
    ("futures_channel", "futures"),
    ("futures_core", "futures"),
    ("futures_executor", "futures"),
    ("futures_task", "futures"),
    ("futures_util", "futures"),
    ("__rust_try", LANGUAGE),
    ("__rustc", LANGUAGE),
    ("alloc", LANGUAGE),
    ("await_profile", LANGUAGE),
    ("core", LANGUAGE),
    ("scoped_tls", LANGUAGE),
    ("std", LANGUAGE),
    ("async_stream", ""),
    ("async_trait", ""),
    ("backtrace", ""),
    ("bytes", ""),
    ("hashbrown", ""),
    ("pin_project_lite", ""),
    ("socket2", ""),
    ("sync_wrapper", ""),
    ("tracing", ""),
    ("tracing_futures", ""),
];

/// What lies between frames of frameworks: the language, and what await profiles add.
pub const LANGUAGE: &str = "std";

/// Where a crate stands in [`PLUMBING`], if it does.
pub fn place_of(krate: &str) -> Option<usize> {
    PLUMBING.iter().position(|(name, _)| *name == krate)
}

/// The crate of a frame as the compiler names it; the whole name where it has none. Of an
/// implementation it is the type's crate, or the trait's if the type is a parameter.
pub fn crate_of(frame: &str) -> &str {
    let first = |path: &str| {
        path.find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(path.len())
    };
    let mut path = frame;
    loop {
        let before = path;
        for mark in ["<", "&", "(", "[", "*", "mut ", "const ", "dyn ", "impl "] {
            path = path.strip_prefix(mark).unwrap_or(path);
        }
        if path == before {
            break;
        }
    }
    let (name, rest) = path.split_at(first(path));
    match path.split_once(" as ") {
        Some((_, of_trait)) if !rest.starts_with("::") => &of_trait[..first(of_trait)],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_belongs_to_the_crate_of_its_type() {
        for (frame, krate) in [
            ("<alloc::boxed::Box<dyn A> as B>::call", "alloc"),
            (
                "<T as futures_util::fns::FnMut1<A>>::call_mut",
                "futures_util",
            ),
            ("<&mut hyper::Body as http_body::Body>::poll", "hyper"),
            ("epoll_wait", "epoll_wait"),
            ("std::thread::start", LANGUAGE),
        ] {
            assert_eq!(crate_of(frame), krate, "{frame}");
        }
    }
}
