//! Features of shared dependencies. All of a reader's commands ask for the same ones, so cargo compiles each
//! dependency once. Both tests are weekly: a new version of a library may move its features, and one that compiles and
//! passes must not fail a push.

use std::collections::{BTreeMap, BTreeSet};

use crate::{cargo, chapters, succeed};

/// The sets of features that each package is compiled with: several where procedural macros need it, too.
type Features = BTreeMap<String, BTreeSet<String>>;

fn features(package: &str, edges: &str) -> Features {
    let mut tree = cargo("tree --locked --prefix none --no-dedupe");
    tree.args([
        "--package",
        package,
        "--edges",
        edges,
        "--format",
        "{p}|{f}",
    ]);
    let mut all = Features::new();
    for line in succeed(&mut tree).lines() {
        let Some((package, features)) = line.split_once('|') else {
            continue;
        };
        // `lab v0.1.0 (/folder)`
        let package = package.split(" (").next().unwrap_or(package);
        let features = features.trim_end_matches(" (*)");
        let sets = all.entry(package.to_owned()).or_default();
        sets.insert(features.to_owned());
    }
    all
}

/// Names what is compiled with other features than in `before`, where it was there.
fn compiled_again(before: &Features, after: &Features) -> Vec<String> {
    let mut again = Vec::new();
    for (package, sets) in after {
        if let Some(known) = before.get(package)
            && !sets.is_subset(known)
        {
            again.push(format!("{package} ({known:?}, then {sets:?})"));
        }
    }
    again
}

/// A dependency that the contract tests ask for more features than the server does is compiled again with everything
/// that stands on it, while the reader waits for the first check.
#[test]
#[ignore = "a new version of a library may need a line in one-build"]
fn weekly_a_first_check_compiles_no_dependency_again() {
    let mut wrong = Vec::new();
    for (number, _) in chapters() {
        let package = format!("chapter{number}");
        let server = features(&package, "normal,build");
        let tests = features(&package, "normal,build,dev");
        for again in compiled_again(&server, &tests) {
            wrong.push(format!("the tests of {package}: {again}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "ask for these features in crates/one-build/Cargo.toml, or in the chapter's:\n{}",
        wrong.join("\n")
    );
}

/// The driver is compiled first. After it come a chapter's server, the ticket shop's bench, or the emulated machine.
#[test]
#[ignore = "a new version of a library may need a line in one-build"]
fn weekly_what_the_driver_builds_compiles_no_dependency_again() {
    let driver = features("workshop", "normal,build");
    let mut wrong = Vec::new();
    for package in ["chapter1", "shop-bench", "numa"] {
        let after = features(package, "normal,build");
        for again in compiled_again(&driver, &after) {
            wrong.push(format!("{package}: {again}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "ask for these features in crates/one-build/Cargo.toml:\n{}",
        wrong.join("\n")
    );
}
