//! `shipped.txt` has the shop as it is committed: `UPDATE_EXPECT=1 cargo test -p shop-bench --test shipped` writes it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs git in the workshop's folder and returns what it printed.
fn git(words: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("git").args(words).current_dir(root).output();
    let output = output.unwrap();
    assert!(output.status.success(), "git {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_list_has_the_shop_as_it_lies_here() {
    let mut list = String::new();
    let files = git(&[
        "ls-files",
        "--stage",
        "--",
        "capstone",
        ":!capstone/reference",
    ]);
    // `100644 ID 0<tab>PATH`, of which the blob may not be staged yet.
    for line in files.lines() {
        let (about, path) = line.split_once('\t').unwrap();
        let mode = about.split(' ').next().unwrap();
        let blob = git(&["hash-object", "-w", "--", path]);
        let _ = writeln!(list, "{mode} blob {}\t{path}", blob.trim());
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("shipped.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&file, &list).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == list,
        "the shop was changed: UPDATE_EXPECT=1 cargo test -p shop-bench --test shipped"
    );
}
