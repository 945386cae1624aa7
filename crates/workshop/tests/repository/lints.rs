//! Formatting, lints and documentation.

use crate::{cargo, succeed, turn};

#[test]
#[ignore = "needs rustfmt: rustup component add rustfmt"]
fn rustfmt_would_change_nothing() {
    let _turn = turn();
    succeed(&mut cargo("fmt --all --check"));
}

#[test]
#[ignore = "needs clippy (rustup component add clippy) and minutes"]
fn clippy_has_nothing_to_say() {
    let _turn = turn();
    succeed(&mut cargo(
        "clippy --workspace --all-targets -- --deny warnings",
    ));
}

#[test]
#[ignore = "takes a minute"]
fn rustdoc_finds_no_broken_link() {
    let _turn = turn();
    let mut doc = cargo("doc --workspace --no-deps --document-private-items");
    succeed(doc.env("RUSTDOCFLAGS", "--deny warnings"));
}

/// As on systems that have neither CPU profiles nor stacks of threads.
#[test]
#[ignore = "takes a minute"]
fn debug_endpoints_need_none_of_their_features() {
    let _turn = turn();
    succeed(&mut cargo(
        "check --package debug-endpoints --no-default-features",
    ));
}
