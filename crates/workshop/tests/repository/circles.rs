//! No two modules of a package import each other, not even by way of a third.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

use crate::root;

/// A module's path from the root of its package on: `["load", "user"]`.
type Module = Vec<String>;

/// Imports between siblings. What a module's children import, or others import from them, counts as the module's.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_module_imports_one_that_imports_it() {
    let mut found = Vec::new();
    for package in packages() {
        for circle in circles(&imports(&package.join("src"))) {
            let package = package.strip_prefix(root()).unwrap().display();
            found.push(format!("{package}: {circle}"));
        }
    }
    assert!(
        found.is_empty(),
        "these modules import each other, some by way of others: move what several need into a module that imports none \
         of them\n{}",
        found.join("\n")
    );
}

#[test]
fn a_planted_circle_of_three_files_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n");
    write("a.rs", "use crate::{b::B, b::d::{self, D}};\n");
    // A module and its child may import each other.
    write("b.rs", "mod d;\nuse self::d::D;\n");
    write(
        "b/d.rs",
        "use super::B;\nfn f() { let it = vec![crate::c::g()]; }\n",
    );
    write(
        "c.rs",
        "// use crate::a::A;\nconst TEXT: &str = \"crate::a::A\";\nmod tests { use crate::a::A; }\n",
    );
    assert_eq!(circles(&imports(folder.path())), [""; 0]);
    write("c.rs", "mod inner { use super::super::a::A; }\n");
    assert_eq!(circles(&imports(folder.path())), ["a, b, c"]);
}

/// Folders with a `Cargo.toml` each, whose code is looked at.
fn packages() -> Vec<PathBuf> {
    let mut packages = vec![root().join("studies"), root().join("capstone")];
    for within in ["crates", "instruments", "chapters"] {
        for entry in fs::read_dir(root().join(within)).unwrap() {
            packages.push(entry.unwrap().path());
        }
    }
    packages.retain(|folder| folder.join("Cargo.toml").is_file());
    packages.sort();
    packages
}

/// Reads the imports of all files below a folder `src`.
fn imports(source: &Path) -> Imports {
    let mut files = BTreeMap::new();
    modules(source, &[], &mut files);
    let mut imports = Imports::new();
    for (module, file) in &files {
        let text = fs::read_to_string(file).unwrap();
        let tokens: TokenStream = text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut named = Vec::new();
        paths(tokens, module, &mut named);
        for mut other in named {
            // The item's own name is no module; what is left is the file that has it.
            while !other.is_empty() && !files.contains_key(&other) {
                other.pop();
            }
            let common = module
                .iter()
                .zip(&other)
                .take_while(|(one, another)| one == another);
            let sibling = common.count() + 1;
            if let (Some(one), Some(another)) = (module.get(..sibling), other.get(..sibling)) {
                imports
                    .entry(one.to_vec())
                    .or_default()
                    .insert(another.to_vec());
            }
        }
    }
    imports
}

/// Collects the files below a folder with their modules. Leaves out binaries, which import the library as any other crate
/// does.
fn modules(folder: &Path, parent: &[String], files: &mut BTreeMap<Module, PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let module = match name.as_str() {
            "main" | "bin" => continue,
            "lib" | "mod" => parent.to_vec(),
            _ => [parent, &[name]].concat(),
        };
        if path.is_dir() {
            modules(&path, &module, files);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.insert(module, path);
        }
    }
}

/// Collects the paths that code names from `crate`, `self` or `super` on. Leaves out its tests.
fn paths(code: TokenStream, module: &[String], found: &mut Vec<Module>) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let mut rest = tokens.as_slice();
    loop {
        rest = match rest {
            [] => return,
            [
                TokenTree::Ident(keyword),
                TokenTree::Ident(name),
                TokenTree::Group(body),
                after @ ..,
            ] if keyword == "mod" => {
                if name != "tests" {
                    let inner = [module, &[name.to_string()]].concat();
                    paths(body.stream(), &inner, found);
                }
                after
            }
            [TokenTree::Ident(word), ..]
                if word == "crate" || word == "self" || word == "super" =>
            {
                branches(rest, module.to_vec(), found)
            }
            [TokenTree::Group(group), after @ ..] => {
                paths(group.stream(), module, found);
                after
            }
            [_, after @ ..] => after,
        };
    }
}

/// Follows the path at the beginning of `tokens`, and each branch of its `{…}`. Returns what comes after it.
fn branches<'a>(
    tokens: &'a [TokenTree],
    mut place: Module,
    found: &mut Vec<Module>,
) -> &'a [TokenTree] {
    let mut rest = tokens;
    while let [TokenTree::Ident(name), after @ ..] = rest {
        match name.to_string().as_str() {
            "crate" => place.clear(),
            "self" => {}
            "super" => drop(place.pop()),
            name => place.push(name.to_owned()),
        }
        rest = after;
        let [one, another, next @ ..] = rest else {
            break;
        };
        if !is_mark(one, ':') || !is_mark(another, ':') {
            break;
        }
        if let [TokenTree::Group(group), after @ ..] = next {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            for branch in inner.split(|token| is_mark(token, ',')) {
                branches(branch, place.clone(), found);
            }
            return after;
        }
        rest = next;
    }
    found.push(place);
    rest
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// Returns the modules of each circle, as text.
fn circles(imports: &Imports) -> Vec<String> {
    let mut circles = BTreeSet::new();
    for module in imports.keys() {
        let mut circle = reachable(module, imports);
        if circle.contains(module) {
            circle.retain(|other| reachable(other, imports).contains(module));
            let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
            circles.insert(names.join(", "));
        }
    }
    circles.into_iter().collect()
}

/// Returns the modules that one imports, itself or by way of others.
fn reachable(module: &Module, imports: &Imports) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![module];
    while let Some(module) = next.pop() {
        for imported in imports.get(module).into_iter().flatten() {
            if reached.insert(imported.clone()) {
                next.push(imported);
            }
        }
    }
    reached
}
