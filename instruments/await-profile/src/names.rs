//! Makes function names readable.
//!
//! The compiler calls the body of `async fn read` in `service::routes`
//! `service::routes::read::{{closure}}` (or `{closure#0}`). It calls a method of a generic type by
//! its type with all arguments. Readers know them as `service::routes::read` and `Type::method`.

use std::path::Path;

use crate::symbols::Symbol;

/// Returns the path that a reader would write: no generic arguments, no closures, no
/// `<Type as Trait>`.
pub(crate) fn clean(name: &str) -> String {
    let path = without_generics(name);
    let mut parts: Vec<&str> = path
        .split("::")
        // A reference to a type shows as the type.
        .map(|part| part.trim_start_matches('&'))
        .filter(|part| !part.is_empty() && !is_noise(part))
        .collect();
    // A closure's closure, or an async block in it, has the same name as the closure.
    parts.dedup();
    if parts.is_empty() {
        name.to_owned()
    } else {
        parts.join("::")
    }
}

/// Returns the path of a symbol. If debug information is limited to line tables, inlined
/// functions have no path, so it is pieced together from the file.
pub(crate) fn path_of(symbol: &Symbol) -> String {
    match &symbol.file {
        Some(file) if is_rust(file) && !head(&symbol.name).contains("::") => {
            path_in(file, &symbol.name)
        }
        _ => clean(&symbol.name),
    }
}

/// Returns whether the file is Rust source.
pub(crate) fn is_rust(file: &str) -> bool {
    Path::new(file).extension() == Some("rs".as_ref())
}

/// Returns a name up to its generic arguments.
fn head(name: &str) -> &str {
    // A `<` at the beginning belongs to the path.
    let begin = usize::from(name.starts_with('<'));
    match name[begin..].find('<') {
        Some(at) => &name[..begin + at],
        None => name,
    }
}

/// Returns the folder of the package that a file is in, without its version: `tokio` for
/// `…/tokio-1.47.1/src/sync/mutex.rs`.
pub(crate) fn package_of(file: &str) -> Option<&str> {
    let (folder, _) = match file.rsplit_once("/src/") {
        Some(parts) => parts,
        None => file.rsplit_once("\\src\\")?,
    };
    let package = folder.rsplit(['/', '\\']).next()?;
    match package.rsplit_once('-') {
        Some((name, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => Some(name),
        _ => Some(package),
    }
}

fn path_in(file: &str, name: &str) -> String {
    let file = file.replace('\\', "/");
    let (folder, modules) = file
        .rsplit_once("/src/")
        .unwrap_or(("", file.strip_prefix("src/").unwrap_or(&file)));
    // Outside of the registry, a package's folder may have any name.
    let is_named = folder.contains("/registry/src/") || folder.contains("/library/");
    let krate = match package_of(&file) {
        Some(package) if is_named => package.replace('-', "_"),
        _ => String::new(),
    };
    let function = match head(name) {
        name if name.starts_with("{async_fn") => "async fn",
        name if name.starts_with("{async_block") => "async block",
        name if is_noise(name) => "",
        name => name,
    };
    let mut parts = vec![krate.as_str()];
    for module in modules.trim_end_matches(".rs").split('/') {
        if !matches!(module, "mod" | "lib" | "main") {
            parts.push(module);
        }
    }
    parts.push(function);
    parts.retain(|part| !part.is_empty());
    parts.join("::")
}

/// Returns the crate that the cleaned path belongs to.
pub(crate) fn crate_of(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// Returns whether a part is `{{closure}}`, `{closure#0}`, `{impl#3}`, `{shim:vtable#0}` and so on.
fn is_noise(part: &str) -> bool {
    part.starts_with('{')
}

/// Most levels of types within types. Deeper ones are left out: they tell a reader nothing, and each costs stack.
const NESTED: usize = 64;

/// Replaces `<Type as Trait>` and `<impl Trait for Type>` by the type, and leaves out every other
/// list of arguments.
fn without_generics(name: &str) -> String {
    without_nested(name, NESTED)
}

fn without_nested(name: &str, levels: usize) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('<') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let Some(close) = matching(from) else {
            return out + &from.replace('<', "");
        };
        // A `<` at the beginning of a path, or after a `::{impl`, begins a type. After an
        // identifier, or its `::`, it begins a list of arguments.
        let begins_path = before.trim_end_matches(['&', '(', '*']).is_empty()
            && out.trim_end_matches(['&', '(', '*']).is_empty();
        let inside = &from[1..close];
        let mut of_type = None;
        if begins_path {
            of_type = Some(inside);
        } else if let Some(implemented) = inside.strip_prefix("impl ")
            && let Some((_, target)) = implemented.split_once(" for ")
        {
            // In `module::<impl Trait for Type>::method` the type says more than the module.
            out.clear();
            of_type = Some(target);
        }
        if let (Some(of_type), Some(levels)) = (of_type, levels.checked_sub(1)) {
            out.push_str(&without_nested(self_type(of_type), levels));
        }
        rest = &from[close + 1..];
    }
    out.push_str(rest);
    out
}

/// Returns the type in `Type as Trait`, and the type itself for references and trait objects.
fn self_type(inside: &str) -> &str {
    let mut depth = 0usize;
    let mut end = inside.len();
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if at > 0 && inside.as_bytes()[at - 1] == b'-' => {}
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && inside[at..].starts_with(" as ") => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    inside[..end]
        .trim_start_matches('&')
        .trim_start_matches("mut ")
        .trim_start_matches("dyn ")
}

/// Returns the position of the bracket that closes the one that `text` begins with.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            // The arrow of a function type closes nothing.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns a primitive's own name: `Sleep`, not the `poll` that implements it.
pub(crate) fn primitive_name(path: &str) -> &str {
    let path = path.strip_suffix("_priv").unwrap_or(path);
    match path.strip_suffix("::poll") {
        Some(future) if crate_of(future) != future => future,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ecosystem::public_path;

    #[test]
    fn names_read_as_the_source_does() {
        for (compiler, reader) in [
            (
                "chapter1::problem::read::{{closure}}",
                "chapter1::problem::read",
            ),
            (
                "chapter1::problem::read::{closure#0}",
                "chapter1::problem::read",
            ),
            (
                "tokio::sync::mutex::Mutex<T>::lock::{{closure}}",
                "tokio::sync::mutex::Mutex::lock",
            ),
            (
                "<tokio::sync::mutex::Mutex<std::collections::hash::map::HashMap<u32, u64>>>::lock::{closure#0}",
                "tokio::sync::mutex::Mutex::lock",
            ),
            (
                "<tokio::time::sleep::Sleep as core::future::future::Future>::poll",
                "tokio::time::sleep::Sleep::poll",
            ),
            (
                "<chapter1::Db as chapter1::Store>::get::{{closure}}",
                "chapter1::Db::get",
            ),
            (
                "<F as axum::handler::Handler<(M, T1), S>>::call::{{closure}}",
                "F::call",
            ),
            (
                "shop::cart::add::<shop::Item, fn() -> u8>::{closure#1}::{closure#0}",
                "shop::cart::add",
            ),
            (
                "core::ops::function::impls::<impl core::ops::FnMut<A> for shop::Cart<F>>::call_mut",
                "shop::Cart::call_mut",
            ),
            (
                "shop::db::<impl shop::Run for &mut shop::Connection>::fetch",
                "shop::Connection::fetch",
            ),
            (
                "<&mut shop::Reader as shop::Read>::next",
                "shop::Reader::next",
            ),
            ("&shop::Pool<D>::fetch", "shop::Pool::fetch"),
            ("main", "main"),
            ("0x5566", "0x5566"),
            ("broken<name", "brokenname"),
        ] {
            assert_eq!(clean(compiler), reader, "{compiler}");
        }
    }

    #[test]
    fn short_names_are_completed_from_the_file() {
        for (name, file, path) in [
            (
                "lock<alloc::string::String>",
                "/c/registry/src/index-1/tokio-1.47.1/src/sync/mutex.rs",
                "tokio::sync::mutex::lock",
            ),
            (
                "{async_fn#0}",
                "/c/registry/src/index-1/http-body-util-0.1.3/src/combinators/mod.rs",
                "http_body_util::combinators::async fn",
            ),
            (
                "{closure#0}<u8>",
                "/rustc/0a1b/library/core/src/future/poll_fn.rs",
                "core::future::poll_fn",
            ),
            (
                "{async_fn#0}",
                "/home/me/shop/src/cart.rs",
                "cart::async fn",
            ),
            ("{async_block#0}", "src/main.rs", "async block"),
            (
                "shop::cart::add::{closure#0}",
                "/home/me/shop/src/cart.rs",
                "shop::cart::add",
            ),
        ] {
            let symbol = Symbol {
                name: name.into(),
                file: Some(file.into()),
                line: None,
            };
            assert_eq!(path_of(&symbol), path, "{name}");
        }
    }

    /// Names come from debug information, which any language may have written.
    #[test]
    #[cfg_attr(miri, ignore = "long")]
    fn names_of_any_form_are_cleaned_once_and_for_all() {
        const PARTS: [&str; 36] = [
            "<",
            "<",
            ">",
            ">",
            "::",
            "::",
            ":",
            "{",
            "}",
            "(",
            ")",
            "[",
            "&",
            "mut ",
            "dyn ",
            " as ",
            "impl ",
            " for ",
            "->",
            "é",
            "0x1",
            " ",
            "#",
            "$",
            "/",
            "\\",
            "-1.0",
            ".rs",
            "/src/",
            "_priv",
            "::poll",
            "shop",
            "Cart",
            "tokio",
            "sync",
            "{closure#0}",
        ];
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut draw = || -> String {
                let parts = random.usize(..12);
                (0..parts)
                    .map(|_| PARTS[random.usize(..PARTS.len())])
                    .collect()
            };
            let (file, name) = (draw(), draw());
            let cleaned = clean(&name);
            assert!(cleaned.len() <= name.len(), "{name}: {cleaned}");
            assert_eq!(clean(&cleaned), cleaned, "{name}");
            let given = 2 * (file.len() + name.len());
            let path = path_of(&Symbol {
                name,
                file: Some(file).filter(|file| !file.is_empty()),
                line: None,
            });
            // A `/` of the file becomes `::`.
            assert!(path.len() <= given + "::async block".len(), "{path}");
            let shown = public_path(path.clone());
            assert!(primitive_name(&shown).len() <= path.len() + "Unbounded".len());
        }
    }

    /// A million brackets take a moment, and no more stack than a few.
    #[test]
    #[cfg_attr(miri, ignore = "long")]
    fn a_name_of_types_within_types_is_no_danger() {
        for (open, close) in [("<", ">"), ("<impl A for ", ">"), ("<&", " as B>")] {
            for times in [200, 20_000] {
                let name = open.repeat(times) + "shop::Cart" + &close.repeat(times) + "::add";
                let cleaned = clean(&name);
                assert!(
                    cleaned.ends_with("add"),
                    "{}",
                    &cleaned[..cleaned.len().min(100)]
                );
            }
        }
    }
}
