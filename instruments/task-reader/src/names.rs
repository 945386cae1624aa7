//! Names of types and files, as people read them.

use std::borrow::Cow;

/// Longest arguments of a type that are shown, in letters.
const LONGEST_ARGUMENTS: usize = 60;

/// Longest name that is kept, in bytes.
const LONGEST: usize = 2048;

/// Returns text from outside without control characters and cut to a bound.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let visible = |letter: char| {
        if letter.is_control() {
            '\u{fffd}'
        } else {
            letter
        }
    };
    text.chars().map(visible).collect()
}

/// Returns a type's path without arguments and without the compiler's parts, such as `tokio::sync::mutex::lock` of
/// `tokio::sync::mutex::{impl#10}::lock::{async_fn_env#0}<u64>`.
pub(crate) fn path(name: &str) -> String {
    let mut path = String::new();
    for part in parts(name) {
        let part = part.split('<').next().unwrap_or(part);
        if part.is_empty() || part.starts_with('{') {
            continue;
        }
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(part);
    }
    path
}

/// Returns the name of a future as its author would write it: `shop::orders::list` for an `async fn`, and
/// `shop::main::{async block}` for a block.
pub(crate) fn of_future(name: &str) -> String {
    let mut shown: Vec<Cow<'_, str>> = Vec::new();
    for part in parts(name) {
        let arguments = part.find('<').filter(|at| *at > 0);
        let (plain, arguments) = part.split_at(arguments.unwrap_or(part.len()));
        if plain.starts_with("{async_fn") {
            // Its own name is the part before.
            continue;
        }
        let plain = match plain.split(['#', '_']).next() {
            _ if plain.starts_with("{async_block") => "{async block}",
            _ if plain.starts_with("{async_closure") => "{async closure}",
            _ if plain.starts_with("{closure") => "{closure}",
            Some("{impl") => continue,
            _ => plain,
        };
        // The compiler's own parts repeat the arguments of what they lie in.
        let arguments = if plain.starts_with('{') {
            ""
        } else {
            arguments
        };
        shown.push(if arguments.is_empty() {
            plain.into()
        } else {
            let arguments = short_arguments(arguments);
            let is_short = arguments.chars().count() <= LONGEST_ARGUMENTS;
            let arguments = if is_short { &arguments } else { "<…>" };
            format!("{plain}{arguments}").into()
        });
    }
    shown.join("::")
}

/// Returns the name of a function as its author would write it: the compiler runs the body of an `async fn` as a closure.
pub(crate) fn of_function(name: &str) -> String {
    printable(name.replace("::{{closure}}", "").as_bytes())
}

/// Returns the last name in a function's path, without arguments and without the compiler's parts.
pub(crate) fn last(name: &str) -> &str {
    let mut parts = parts(name).into_iter().rev();
    let last = parts.find(|part| !part.starts_with(['{', '<']));
    last.and_then(|last| last.split('<').next())
        .unwrap_or_default()
}

/// Shortens type arguments to the last part of each path: `<u64, alloc::string::String>` becomes `<u64, String>`.
fn short_arguments(arguments: &str) -> String {
    let mut short = String::new();
    let mut word = String::new();
    for letter in arguments.chars() {
        if letter.is_alphanumeric() || matches!(letter, '_' | ':' | '{' | '}' | '#') {
            word.push(letter);
            continue;
        }
        push_last(&mut short, &word);
        word.clear();
        short.push(letter);
    }
    push_last(&mut short, &word);
    short.replace(", Global", "")
}

/// Appends the last part of a path that is a name.
fn push_last(to: &mut String, path: &str) {
    if path
        .rsplit("::")
        .next()
        .is_some_and(|last| last.starts_with("{closure"))
    {
        to.push_str("{closure}");
        return;
    }
    let named = |part: &&str| !part.starts_with('{');
    let last = path.rsplit("::").find(named);
    to.push_str(last.unwrap_or(path));
}

/// Returns the type's name with short arguments and a short path, as `MutexGuard<Vec<u64>>`.
pub(crate) fn short(name: &str) -> String {
    short_arguments(name)
}

/// Splits a path at `::` outside of brackets.
fn parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            // The arrow of a function's type closes nothing.
            b'>' if at > 0 && bytes.get(at - 1) == Some(&b'-') => {}
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && at >= start && bytes.get(at + 1) == Some(&b':') => {
                parts.extend(name.get(start..at));
                start = at + 2;
            }
            _ => {}
        }
    }
    parts.extend(name.get(start..));
    parts
}

/// Shortens the path of a source file: from the crate's folder on for a dependency, and relative to the folder in which
/// the crate was compiled for its own files.
pub(crate) fn of_file(path: &str, compiled_in: &str) -> String {
    // A dependency was compiled in its own folder.
    if let Some((_, registry)) = path.split_once("/registry/src/")
        && let Some((_, file)) = registry.split_once('/')
    {
        return file.to_owned();
    }
    if let Some(own) = path.strip_prefix(compiled_in) {
        return own.trim_start_matches('/').to_owned();
    }
    match path.split_once("/rustc/") {
        Some((_, rest)) => rest
            .split_once('/')
            .map_or(rest, |(_, file)| file)
            .to_owned(),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_parts_are_left_out() {
        let lock = "tokio::sync::mutex::{impl#10}::lock::{async_fn_env#0}<alloc::vec::Vec<u64, alloc::alloc::Global>>";
        assert_eq!(path(lock), "tokio::sync::mutex::lock");
        assert_eq!(of_future(lock), "tokio::sync::mutex::lock");
        assert_eq!(
            of_future("shop::main::{async_fn#0}::{async_block_env#2}"),
            "shop::main::{async block}"
        );
        assert_eq!(
            short("tokio::sync::mutex::MutexGuard<alloc::vec::Vec<u64, alloc::alloc::Global>>"),
            "MutexGuard<Vec<u64>>"
        );
    }

    #[test]
    fn a_name_cannot_write_to_a_terminal() {
        assert_eq!(printable(b"a\x1b[2J\n"), "a\u{fffd}[2J\u{fffd}");
        assert_eq!(printable(&[b'a'; 5000]).len(), LONGEST);
    }

    #[test]
    fn odd_brackets_do_no_harm() {
        for name in [
            "",
            "::",
            "<<<",
            ">>>",
            "a::<",
            "a<b::c",
            "{impl#0}",
            "é::ü<ö",
        ] {
            let _ = (path(name), of_future(name), short(name));
        }
    }
}
