//! k6 and mdBook, built from their published sources.

use std::process::Command;

use loadgen::interrupt::Interrupt;

use super::install::{Done, call, partial, put};
use crate::compile;
use crate::exit::CliError;
use crate::tools::{self, Tools};

pub(super) fn k6(tools: &Tools, interrupt: &Interrupt) -> Result<Done, CliError> {
    if tools.k6_version().as_deref() == Some(tools::K6) {
        return Ok(Done::There);
    }
    let Some((go, _)) = tools::go() else {
        return Err(CliError::bad(
            "k6 is built with Go, and there is none: install Go from https://go.dev/dl (1.25 or \
             newer), then run `cargo workshop setup k6`",
        ));
    };
    let folder = partial(tools)?;
    call(
        Command::new(go)
            .args(["install", &format!("go.k6.io/k6@v{}", tools::K6)])
            // Outside any Go module, and for this machine whatever the reader cross-compiles for.
            .current_dir(folder.path())
            .env("GOBIN", folder.path())
            .env("CGO_ENABLED", "0")
            .env_remove("GOOS")
            .env_remove("GOARCH"),
        &format!("building k6 {}, a minute or three", tools::K6),
        "is the network there? Then run `cargo workshop setup k6` again",
        interrupt,
    )?;
    let built = tools.k6();
    let name = built.file_name().unwrap_or_default();
    put(&folder.path().join(name), &built)?;
    Ok(Done::Installed)
}

pub(super) fn mdbook(tools: &Tools, interrupt: &Interrupt) -> Result<Done, CliError> {
    if tools.mdbook_version().as_deref() == Some(tools::MDBOOK) {
        return Ok(Done::There);
    }
    let folder = partial(tools)?;
    call(
        Command::new(compile::program())
            .args(["install", "--locked", "--quiet", "mdbook"])
            .args(["--version", tools::MDBOOK, "--profile", "dev"])
            .arg("--root")
            .arg(folder.path())
            // Outside the workspace and its scenarios.
            .current_dir(folder.path())
            // A book of some dozen pages needs no optimised mdBook: a quarter of the time to build.
            .envs([
                ("CARGO_PROFILE_DEV_OPT_LEVEL", "0"),
                ("CARGO_PROFILE_DEV_DEBUG", "0"),
                ("CARGO_PROFILE_DEV_DEBUG_ASSERTIONS", "false"),
            ])
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS"),
        &format!("building mdbook {}, a minute or three", tools::MDBOOK),
        "is the network there? Then run `cargo workshop setup mdbook` again",
        interrupt,
    )?;
    let built = tools.mdbook();
    let name = built.file_name().unwrap_or_default();
    put(&folder.path().join("bin").join(name), &built)?;
    Ok(Done::Installed)
}
