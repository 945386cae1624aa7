//! Checks of the code as code: format, lints, documentation, tests, builds.

use super::check::{Check, Failure, failed};
use super::context::Context;

pub(super) const FORMAT: Check = Check {
    name: "format",
    about: "rustfmt would change nothing",
    needs: &[],
    stands_alone: false,
    run: |context| context.run(&mut context.cargo(&["fmt", "--all", "--check"])),
};

pub(super) const LINTS: Check = Check {
    name: "lints",
    about: "clippy, pedantic, has nothing to say about any target",
    needs: &[],
    stands_alone: false,
    run: |context| {
        context.run(&mut context.cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ]))
    },
};

pub(super) const DOCUMENTATION: Check = Check {
    name: "documentation",
    about: "rustdoc finds no broken link, private items included",
    needs: &[],
    stands_alone: false,
    run: |context| {
        context.run(
            context
                .cargo(&[
                    "doc",
                    "--workspace",
                    "--no-deps",
                    "--document-private-items",
                ])
                .env("RUSTDOCFLAGS", "--deny warnings"),
        )
    },
};

pub(super) const TESTS: Check = Check {
    name: "tests",
    about: "unit, integration and documentation tests of every crate",
    needs: &[],
    // Some tests wait for answers with the clock in hand.
    stands_alone: true,
    run: tests,
};

/// The chapter whose upstream speaks TLS, for which the lab is built with more than other chapters
/// need.
const WITH_TLS: &str = "chapter4";

/// Tested apart from the rest, so that what is compiled for the other chapters' tests is what a reader's
/// `cargo run` and `cargo workshop prove` take. Examples are left to the lints: they have no tests.
fn tests(context: &Context<'_>) -> Result<(), Failure> {
    let run = |arguments: &[&str]| {
        let test = ["test", "--no-fail-fast"];
        context.run(&mut context.cargo(&[&test[..], arguments].concat()))
    };
    // All of them, so that one look at the log finds whatever fails.
    let ended = [
        run(&["--workspace", "--exclude", WITH_TLS, "--tests"]),
        run(&["--package", WITH_TLS, "--tests"]),
        // Asked for by `--doc`, the opening comments of exercises would be compiled, too.
        run(&["--workspace", "--exclude", "chapter*", "--doc"]),
    ];
    ended.into_iter().collect()
}

pub(super) const UNOPTIMISED: Check = Check {
    name: "unoptimised",
    about: "a server that was built without optimisation says so first",
    needs: &[],
    stands_alone: false,
    run: unoptimised,
};

/// Only the lab is built without, which is what says so: the rest would take a minute. The server
/// listens until its standard input closes, which it has none of.
fn unoptimised(context: &Context<'_>) -> Result<(), Failure> {
    let arguments = ["run", "--quiet", "--package", "chapter1", "--config"];
    let mut server = context.cargo(&arguments);
    server
        .arg("profile.dev.package.lab.opt-level=0")
        .args(["--", "solution", "--port", "0", "--admin-port", "0"])
        .arg("--stop-with-stdin");
    let said = context.output_of(&mut server)?;
    match said.lines().next() {
        Some(first) if first.contains("UNOPTIMISED") => Ok(()),
        first => failed(format!("its first line was {first:?}")),
    }
}
