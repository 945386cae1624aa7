//! What the commands record and write, as others read it.

use std::path::Path;

use crate::{command, root, succeed, turn, workshop};

#[test]
fn captures_are_what_their_records_give() {
    let _turn = turn();
    succeed(&mut workshop("capture --verify"));
}

/// Of chapter 3, whose fault is one of computing: there are as many samples as one could want.
#[test]
#[ignore = "needs Go: https://go.dev/dl"]
fn go_tool_pprof_reads_a_profile() {
    let _turn = turn();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pprof");
    let mut profile = workshop("profile 3 --kind cpu --variant problem --seconds 2 --into");
    succeed(profile.arg(&folder));
    let mut go = command("go", "tool pprof -top -cum");
    let top = succeed(go.arg(folder.join("problem.cpu.pb.gz")));
    for name in ["chapter3::problem::", "tokio::runtime::"] {
        assert!(
            top.contains(name),
            "pprof names no function of `{name}`: {top}"
        );
    }
}

/// Of every chapter's real steps. What `steps` leaves alone is tried in a small workshop.
#[test]
#[ignore = "needs the repository's history"]
fn steps_are_the_same_from_a_full_and_a_shallow_clone() {
    let folder = tempfile::tempdir().unwrap();
    let branches = |name: &str, depth: &str| {
        let clone = folder.path().join(name);
        // For a plain path git ignores the depth, unless it is told that the path is not local.
        let mut git = command("git", &format!("clone --quiet --no-local {depth}"));
        succeed(git.arg(root()).arg(&clone));
        succeed(workshop("steps").current_dir(&clone));
        let refs = "for-each-ref --format=%(refname)=%(objectname) refs/heads/steps";
        succeed(command("git", refs).current_dir(&clone))
    };
    let full = branches("full", "");
    assert!(full.contains("chapter1="), "{full}");
    assert_eq!(branches("shallow", "--depth 1"), full);
}
