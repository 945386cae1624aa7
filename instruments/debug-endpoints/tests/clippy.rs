//! `clippy/clippy.toml` names each fault that it is about, and is quiet about a service that has none of its crates.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Runs Clippy on a crate of this code, and returns the lines that it names, and all that it said.
fn clippy(name: &str, code: &str, dependencies: &str) -> (BTreeSet<u64>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |file: &str, text: &str| {
        std::fs::write(folder.path().join(file), text).expect("written");
    };
    std::fs::create_dir(folder.path().join("src")).expect("a folder");
    write("src/lib.rs", code);
    write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\n{dependencies}[workspace]\n"
        ),
    );
    write("clippy.toml", include_str!("../clippy/clippy.toml"));
    let mut clippy = Command::new(env!("CARGO"));
    clippy.args(["clippy", "--quiet", "--message-format=json"]);
    clippy
        .arg("--target-dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("clippy"));
    let output = clippy.current_dir(folder.path()).output().expect("cargo");
    let mut lines = BTreeSet::new();
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let message = &message["message"];
        said += message["rendered"].as_str().unwrap_or_default();
        for span in message["spans"].as_array().into_iter().flatten() {
            if span["is_primary"] == true {
                lines.extend(span["line_start"].as_u64());
            }
        }
    }
    assert!(output.status.success(), "{said}");
    (lines, said)
}

#[test]
#[ignore = "needs Clippy, and tokio, parking_lot and dashmap from the registry"]
fn each_fault_is_named_and_nothing_else() {
    let code = include_str!("clippy/faults.rs");
    let mut expected = BTreeSet::new();
    for (number, line) in (1..).zip(code.lines()) {
        if line.ends_with("// !") {
            expected.insert(number);
        }
    }
    let crates = "tokio = { version = \"1\", features = [\"rt\", \"sync\"] }\nparking_lot = \"0.12\"\ndashmap = \"6\"\n";
    let (named, said) = clippy("faults", code, crates);
    assert_eq!(named, expected, "{said}");
    for reason in ["clone the value out before the await", "tokio::time::sleep"] {
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
#[ignore = "needs Clippy"]
fn a_service_without_these_crates_hears_nothing() {
    let (named, said) = clippy("without", "//! Nothing.\n", "");
    assert!(named.is_empty() && said.is_empty(), "{said}");
}
