//! Kinds of frames: whose code it is, or no code at all.

use ecosystem::{PathMeaning, place_of};

use crate::names::{crate_of, is_rust, package_of};

/// Kind of a frame, which sets its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FrameKind {
    /// Not a function: the route that the request belongs to.
    Route,
    /// The reader's own code.
    Own,
    /// A library that the reader's code calls.
    Library,
    /// Something to wait for: a lock, a timer, a channel, a socket.
    Primitive,
    /// Code that calls the reader's code on behalf of the executor: not shown.
    Framework,
    /// Not a function: a remark on the request, such as `(running)`.
    Remark,
}

impl FrameKind {
    /// Returns the kind of a function, by its path and the file it was compiled from.
    pub(crate) fn of_path(path: &str, file: Option<&str>, own_crates: Option<&[String]>) -> Self {
        let mut krate = crate_of(path);
        // In `F::call` the first part is a type parameter of a generic function. No crate has such a
        // name, so the crate comes from the file.
        if let (true, Some(file)) = (krate.starts_with(char::is_uppercase), file) {
            krate = package_of(file).unwrap_or(krate);
        }
        let krate = krate.replace('-', "_");
        if own_crates.unwrap_or_default().contains(&krate) {
            FrameKind::Own
        } else if PathMeaning::Primitive.fits(path) {
            FrameKind::Primitive
        } else if PathMeaning::Client.fits(path) {
            FrameKind::Library
        } else if place_of(&krate).is_some() {
            FrameKind::Framework
        } else {
            let is_foreign = match file {
                Some(file) => is_foreign(file),
                // A name without a crate and a file, such as `__rust_try`, is nobody's code.
                None => !path.contains("::"),
            };
            if own_crates.is_none() && !is_foreign {
                FrameKind::Own
            } else if !path.contains("::") {
                FrameKind::Framework
            } else {
                FrameKind::Library
            }
        }
    }
}

/// Returns whether a file is of cargo's registry, a git dependency, the toolchain, or another language.
pub fn is_foreign(file: &str) -> bool {
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
        || !is_rust(&file)
}
