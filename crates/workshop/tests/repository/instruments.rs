//! Files that the commands record and write, as other programs read them.

use std::path::Path;
#[cfg(unix)]
use std::{env, fs};

#[cfg(unix)]
use course::bench::testing::write_script;
use terminal::testing::once_in_three;

#[cfg(unix)]
use crate::own_service::commands_of;
use crate::{command, root, succeed, turn, workshop};

/// The records of chapter 7's emulated machine are verified by that machine's own tests, so it need not be compiled
/// here: a stand-in for cargo names a program that always succeeds.
#[test]
fn captures_are_what_their_records_give() {
    let _turn = turn();
    let mut capture = workshop("capture --verify");
    #[cfg(unix)]
    {
        let cargo = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-that-builds-nothing");
        let made = serde_json::json!({
            "reason": "compiler-artifact",
            "target": { "name": "numa" },
            "executable": "/bin/true",
        });
        write_script(&cargo, &format!("#!/bin/sh\necho '{made}'\n"));
        capture.env("CARGO", cargo);
    }
    succeed(&mut capture);
}

/// Profiles chapter 3, whose fault is one of computing: it gives as many samples as one could want.
#[test]
#[ignore = "needs Go: https://go.dev/dl"]
fn go_tool_pprof_reads_a_profile() {
    let _turn = turn();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pprof");
    // A service that gets no CPU for the two seconds has no samples.
    once_in_three(|| {
        let mut profile = workshop("profile 3 --kind cpu --variant problem --seconds 2 --into");
        succeed(profile.arg(&folder));
        let mut go = command("go", "tool pprof -top -cum");
        let top = succeed(go.arg(folder.join("problem.cpu.pb.gz")));
        let names = ["chapter3::problem::", "tokio::runtime::"];
        (names.iter().all(|name| top.contains(name)), top)
    });
}

/// The commands of the book's pages on CPU profiles, which find chapter 3's fault without the workshop's own profiler.
#[test]
#[cfg(unix)]
#[ignore = "needs perf and `cargo workshop setup flamegraph samply`"]
fn weekly_cargo_flamegraph_and_samply_see_the_hot_loop() {
    let _turn = turn();
    let pages = ["src/tools/cpu.md", "src/further/profilers.md"];
    let pages = pages.map(|page| fs::read_to_string(root().join(page)).unwrap());
    let commands = commands_of(&pages.concat());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = env::join_paths(
        [root().join(".tools/bin")]
            .into_iter()
            .chain(env::split_paths(&env::var_os("PATH").unwrap())),
    );
    for (begins, writes, names) in [
        (
            "cargo flamegraph --dev",
            "flamegraphs/measuring/cargo-flamegraph.svg",
            "cargo-flamegraph.svg",
        ),
        // Beside the profile it writes the names of its functions.
        (
            "samply record --save-only",
            "target/pages.json.gz",
            "pages.json.syms.json",
        ),
    ] {
        let mut commands = commands.iter();
        let shown = commands.find(|shown| shown.starts_with(begins)).unwrap();
        let names = folder.join(names);
        let _ = fs::remove_file(&names);
        let into = folder.join(Path::new(writes).file_name().unwrap());
        let script = shown.replace(writes, into.to_str().unwrap());
        succeed(
            command("sh", "-c")
                .arg(script)
                .env("PATH", path.as_ref().unwrap()),
        );
        let seen = fs::read_to_string(names).unwrap();
        for name in ["::page", "sort_by_key", "String as core::clone::Clone"] {
            assert!(seen.contains(name), "`{shown}` does not name {name}");
        }
    }
}

/// Compares the real steps of every chapter. Tests in a small workshop try what `steps` leaves alone.
#[test]
#[ignore = "needs the repository's history"]
fn steps_are_the_same_from_a_full_and_a_shallow_clone() {
    let folder = tempfile::tempdir().unwrap();
    let branches = |name: &str, depth: &str| {
        let clone = folder.path().join(name);
        // Without `--no-local`, git ignores the depth for a plain path.
        let mut git = command("git", &format!("clone --quiet --no-local {depth}"));
        succeed(git.arg(root()).arg(&clone));
        succeed(workshop("steps").current_dir(&clone));
        let refs = "for-each-ref --format=%(refname)=%(objectname) refs/heads/steps";
        succeed(command("git", refs).current_dir(&clone))
    };
    let full = branches("full", "");
    assert!(full.contains("chapter1="), "{full}");
    let clone = folder.path().join("full");
    let log = "log --format=%B --branches=steps/* --not HEAD";
    let said = succeed(command("git", log).current_dir(&clone));
    let mut named = 0;
    for file in said
        .split_whitespace()
        .map(|word| word.trim_end_matches(['.', ',']))
    {
        if file.starts_with("flamegraphs/") {
            assert!(clone.join(file).is_file(), "{file}");
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!said.contains("--variant problem"), "`prove` refuses that");
    assert_eq!(branches("shallow", "--depth 1"), full);
}
