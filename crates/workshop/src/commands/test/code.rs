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
    run: |context| context.run(&mut context.cargo(&["test", "--workspace", "--no-fail-fast"])),
};

pub(super) const UNOPTIMISED: Check = Check {
    name: "unoptimised",
    about: "a server that was built without optimisation says so first",
    needs: &[],
    stands_alone: false,
    run: unoptimised,
};

/// The server listens until its standard input closes, which it has none of.
fn unoptimised(context: &Context<'_>) -> Result<(), Failure> {
    let arguments = ["run", "--quiet", "--package", "chapter1", "--target-dir"];
    let mut server = context.cargo(&arguments);
    server
        .arg(context.folder.join("unoptimised"))
        .args(["--", "solution", "--port", "0", "--admin-port", "0"])
        .arg("--stop-with-stdin")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        // Quick to build, and little to keep.
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    let said = context.output_of(&mut server)?;
    match said.lines().next() {
        Some(first) if first.contains("UNOPTIMISED") => Ok(()),
        first => failed(format!("its first line was {first:?}")),
    }
}
