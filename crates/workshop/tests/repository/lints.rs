//! Formatting, lints and documentation.

use crate::{cargo, root, succeed, turn};

/// Folders of the workspaces that a push lints, below the root.
const WORKSPACES: [&str; 2] = ["", "instruments"];

/// Runs `cargo WORDS` in each workspace.
fn in_each_workspace(words: &str, variables: &[(&str, &str)]) {
    let _turn = turn();
    for folder in WORKSPACES {
        let mut command = cargo(words);
        command.current_dir(root().join(folder));
        succeed(command.envs(variables.iter().copied()));
    }
}

#[test]
#[ignore = "needs rustfmt: rustup component add rustfmt"]
fn rustfmt_would_change_nothing() {
    in_each_workspace("fmt --all --check", &[]);
}

#[test]
#[ignore = "needs clippy (rustup component add clippy) and minutes"]
fn clippy_has_nothing_to_say() {
    in_each_workspace("clippy --workspace --all-targets -- --deny warnings", &[]);
}

#[test]
#[ignore = "takes a minute"]
fn rustdoc_finds_no_broken_link() {
    in_each_workspace(
        "doc --workspace --no-deps --document-private-items",
        &[("RUSTDOCFLAGS", "--deny warnings")],
    );
}

/// Compiles them as on systems that have neither CPU profiles nor stacks of threads.
#[test]
#[ignore = "takes a minute"]
fn debug_endpoints_need_none_of_their_features() {
    let _turn = turn();
    let mut check = cargo("check --package debug-endpoints --no-default-features");
    succeed(check.current_dir(root().join("instruments")));
}
