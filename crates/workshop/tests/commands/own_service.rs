//! `compare` and `load --url`, which `duel` does: the commands of the book's page, through this door.
#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use terminal::testing::Ran;

/// The service that duel's own tests compare, compiled into `folder`; it needs nothing but the compiler.
fn service(folder: &std::path::Path) -> PathBuf {
    let program = folder.join("service");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../instruments/duel/tests/commands/own_service/service.rs"
    );
    let compiled = Command::new("rustc")
        .args(["--edition", "2024", "-C", "opt-level=1", "-o"])
        .args([program.as_os_str(), source.as_ref()])
        .status();
    assert!(compiled.unwrap().success());
    program
}

/// Runs the lines `$ cargo workshop …` of the page, with what they need in place of the shop.
#[test]
fn the_commands_of_the_books_page_run() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/own/compare.md");
    // A long command goes on behind a backslash.
    let page = fs::read_to_string(page).unwrap().replace("\\\n", "");
    let folder = tempfile::tempdir().unwrap();
    let git = |words: &[&str]| {
        let names = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut git = Command::new("git");
        git.args(names).args(words).current_dir(folder.path());
        assert!(git.status().unwrap().success());
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "a shop"]);
    fs::create_dir(folder.path().join("pids")).unwrap();
    let pids = folder.path().join("pids").display().to_string();
    let program = service(folder.path()).display().to_string();
    let mut ran = 0;
    for line in page.lines() {
        let Some(line) = line.strip_prefix("$ cargo workshop ") else {
            continue;
        };
        // A revision's has to be built in its checkout.
        let path = if line.contains("git:") {
            "./shop"
        } else {
            &program
        };
        let shop = format!("{path} --delay-ms 20 --pids {pids}");
        let line = line
            .replace("./target/release/shop", &shop)
            .replace("cargo build --release", &format!("cp {program} shop"));
        // As cargo calls it, when it is installed.
        let line = format!("exec \"$0\" workshop {line} --seconds 0.1 --warm-up 0 --at-most 1");
        let mut command = Command::new("sh");
        command
            .args(["-c", &line])
            .arg(env!("CARGO_BIN_EXE_cargo-workshop"))
            .current_dir(folder.path());
        let said = Ran::of(&mut command);
        // A comparison may come out as it likes on a busy machine, and is no wrong usage.
        assert!(matches!(said.code, Some(0 | 1 | 3)), "{said:?}");
        let gave_none =
            said.out.contains("gave no answer") || said.out.contains("answered nothing");
        assert!(gave_none || said.out.contains("report: "), "{said:?}");
        ran += 1;
    }
    assert!(ran >= 4, "{ran}");
}
