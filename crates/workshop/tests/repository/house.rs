//! The structure of the code: no circles, the picture in ARCHITECTURE.md, and one word for each concept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{cargo, root};

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

/// All Rust files below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The module that a file below `src` is: `["load", "user"]` for `load/user.rs`.
fn module_of(file: &Path) -> Vec<String> {
    let mut module = Vec::new();
    for part in file.with_extension("").components() {
        module.push(part.as_os_str().to_string_lossy().into_owned());
    }
    if matches!(
        module.last().map(String::as_str),
        Some("lib" | "main" | "mod")
    ) {
        module.pop();
    }
    module
}

/// The code of a file without comments, strings and the tests at its end.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let mut code = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap();
        let mut is_string = false;
        for part in line.split('"') {
            if !is_string {
                code.push_str(part);
            }
            is_string = !is_string;
        }
        code.push('\n');
    }
    code
}

/// The paths that code names from `crate`, `self` or `super` on, with every branch of `{…}` written out.
fn paths_of(code: &str) -> BTreeSet<Vec<String>> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for letter in code.chars() {
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        if !letter.is_whitespace() {
            tokens.push(letter.to_string());
        }
    }
    let mut paths = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let begins = matches!(token.as_str(), "crate" | "self" | "super");
        let goes_on = at > 0 && tokens[at - 1] == ":";
        if begins && !goes_on {
            branches(&tokens, at, &mut Vec::new(), &mut paths);
        }
    }
    paths
}

/// Follows the path at `at` and returns the place behind it.
fn branches(
    tokens: &[String],
    mut at: usize,
    before: &mut Vec<String>,
    paths: &mut BTreeSet<Vec<String>>,
) -> usize {
    let depth = before.len();
    let is = |at: usize, token: &str| tokens.get(at).is_some_and(|one| one == token);
    loop {
        if is(at, "{") {
            at += 1;
            while at < tokens.len() && !is(at, "}") {
                let next = branches(tokens, at, before, paths);
                at = if next == at || is(next, ",") {
                    next + 1
                } else {
                    next
                };
            }
            at += 1;
            break;
        }
        let is_word = tokens.get(at).is_some_and(|one| {
            one.starts_with(|first: char| first.is_alphabetic() || first == '_')
        });
        if !is_word {
            break;
        }
        before.push(tokens[at].clone());
        at += 1;
        if is(at, ":") && is(at + 1, ":") {
            at += 2;
        } else {
            break;
        }
    }
    if before.len() > depth {
        paths.insert(before.clone());
    }
    before.truncate(depth);
    at
}

/// Returns the files that each file of a package imports, by their places below `src`.
fn imports(package: &Path) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let source = package.join("src");
    let mut files = BTreeMap::new();
    for file in rust_files(&source) {
        let within = file.strip_prefix(&source).unwrap().to_owned();
        // A binary of its own imports the library as any other crate does.
        if !within.starts_with("bin") && within != Path::new("main.rs") {
            files.insert(module_of(&within), within);
        }
    }
    let mut imports = BTreeMap::new();
    for (module, file) in &files {
        let text = fs::read_to_string(source.join(file)).unwrap();
        let mut imported = BTreeSet::new();
        for path in paths_of(&code_of(&text)) {
            let mut place = match path[0].as_str() {
                "crate" => Vec::new(),
                _ => module.clone(),
            };
            for part in &path {
                match part.as_str() {
                    "crate" | "self" => {}
                    "super" => {
                        place.pop();
                    }
                    name => place.push(name.to_owned()),
                }
            }
            // The item's own name is no module; what is left is the file that has it.
            while !place.is_empty() && !files.contains_key(&place) {
                place.pop();
            }
            if let Some(other) = files.get(&place)
                && other != file
            {
                imported.insert(other.clone());
            }
        }
        imports.insert(file.clone(), imported);
    }
    imports
}

/// Pairs of files that import each other, as sentences. A parent and its children are one module in several files, and may.
fn circles(package: &Path) -> Vec<String> {
    let imports = imports(package);
    let mut circles = Vec::new();
    for (file, imported) in &imports {
        for other in imported {
            let (one, another) = (module_of(file), module_of(other));
            let is_family = one.starts_with(&another) || another.starts_with(&one);
            if file < other && !is_family && imports[other].contains(file) {
                let package = package.strip_prefix(root()).unwrap_or(package);
                circles.push(format!(
                    "{}: {} and {} import each other",
                    package.display(),
                    file.display(),
                    other.display()
                ));
            }
        }
    }
    circles
}

#[test]
fn a_planted_circle_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = folder.path().join("src").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\n");
    write("a.rs", "use crate::{b::c::{D, E}, b::F};\n");
    write("b/c.rs", "// use crate::a::G;\npub struct D;\n");
    write("b.rs", "mod c;\n");
    assert_eq!(circles(folder.path()), Vec::<String>::new());
    write("b/c.rs", "use super::super::a::G;\npub struct D;\n");
    let found = circles(folder.path());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("a.rs and b/c.rs import each other"));
}

#[test]
fn no_file_imports_one_that_imports_it() {
    let mut found = Vec::new();
    for package in packages() {
        found.extend(circles(&package));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The arrows of the picture in ARCHITECTURE.md: `workshop --> course`.
fn drawn() -> BTreeSet<(String, String)> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let picture = page.split("```mermaid").nth(1).expect("a picture");
    let picture = picture.split("```").next().unwrap();
    let mut arrows = BTreeSet::new();
    for line in picture.lines() {
        let Some((from, to)) = line.trim().split_once(" --> ") else {
            continue;
        };
        for from in from.split(" & ") {
            for to in to.split(" & ") {
                arrows.insert((from.to_owned(), to.to_owned()));
            }
        }
    }
    arrows
}

/// A crate's name in the picture: the engine's package is `duel-engine`, and any chapter's `chapters`.
fn shown(package: &str) -> String {
    match package.strip_prefix("duel-").unwrap_or(package) {
        name if name.starts_with("chapter") => "chapters".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the dependencies between our crates, as cargo reports them, without those that only tests need.
fn real() -> BTreeSet<(String, String)> {
    let mut arrows = BTreeSet::new();
    for workspace in ["", "capstone"] {
        let mut metadata = cargo("metadata --format-version 1 --no-deps --locked");
        let said = metadata
            .current_dir(root().join(workspace))
            .output()
            .unwrap();
        let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        for package in said["packages"].as_array().unwrap() {
            let name = package["name"].as_str().unwrap();
            for dependency in package["dependencies"].as_array().unwrap() {
                let is_ours = dependency["path"].is_string();
                let other = dependency["name"].as_str().unwrap();
                // Unifies features, and has no code.
                if is_ours
                    && dependency["kind"].is_null()
                    && name != "one-build"
                    && other != "one-build"
                {
                    arrows.insert((shown(name), shown(other)));
                }
            }
        }
    }
    arrows.retain(|(from, _)| !ASIDE.contains(&from.as_str()));
    arrows
}

/// Packages that stand below the picture: nobody compiles them who does not ask.
const ASIDE: [&str; 3] = ["studies", "numa", "numa-guest"];

#[test]
fn the_picture_has_the_arrows_that_the_crates_have() {
    let (drawn, real) = (drawn(), real());
    let missing: Vec<_> = real.difference(&drawn).collect();
    let wrong: Vec<_> = drawn.difference(&real).collect();
    assert!(
        missing.is_empty() && wrong.is_empty(),
        "ARCHITECTURE.md lacks the arrows {missing:?}, and has {wrong:?} which no Cargo.toml has"
    );
}

/// Words of the column "not" that have their everyday sense in names, such as a copy of a file.
const EVERYDAY: [&str; 9] = [
    "beside",
    "copy",
    "exchange",
    "law",
    "places",
    "price",
    "processor",
    "refusal",
    "setting",
];

/// The single words of the column "not" of CONTRIBUTING.md's table.
fn words_to_avoid() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let table = page.split("\n## Words\n").nth(1).expect("a table of words");
    let table = table.split("\n## ").next().unwrap();
    let mut words = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let not = row.split('|').nth(2).unwrap();
        for word in not.split([',', ';']) {
            let word = word.trim();
            let is_one = !word.is_empty() && word.chars().all(char::is_alphabetic);
            if is_one && word != "not" && !EVERYDAY.contains(&word) {
                words.insert(word.to_owned());
            }
        }
    }
    words
}

/// The names that code gives to functions, types, constants and modules.
fn names_of(code: &str) -> Vec<String> {
    let words: Vec<&str> = code
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let mut names = Vec::new();
    for pair in words.windows(2) {
        let is_item = matches!(
            pair[0],
            "fn" | "struct" | "enum" | "trait" | "const" | "static" | "mod" | "type"
        );
        if is_item {
            names.push(pair[1].to_owned());
        }
    }
    names
}

/// The words of a name: `is_generator_bound` and `GeneratorBound` have `generator` and `bound`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let is_constant = name.chars().all(|letter| !letter.is_lowercase());
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && !is_constant) {
            words.push(String::new());
        }
        if letter != '_' {
            words.last_mut().unwrap().extend(letter.to_lowercase());
        }
    }
    words
}

#[test]
fn names_in_the_code_are_words_of_the_table() {
    let avoided = words_to_avoid();
    assert!(avoided.contains("cure") && avoided.contains("patience"));
    let mut found = Vec::new();
    for package in packages() {
        for file in rust_files(&package.join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            for name in names_of(&code_of(&text)) {
                for word in words_of(&name) {
                    if avoided.contains(&word) {
                        let file = file.strip_prefix(root()).unwrap().display();
                        found.push(format!("{file}: {name}"));
                    }
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "CONTRIBUTING.md has other words for these: {}",
        found.join("\n")
    );
}
