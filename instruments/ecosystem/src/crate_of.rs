//! The crate of a frame.

/// Returns the crate of a frame as the compiler names it, or the whole name if it has no crate. For a trait's
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
            ("std::thread::start", "std"),
        ] {
            assert_eq!(crate_of(frame), krate, "{frame}");
        }
    }
}
