//! The step-by-step branches: the same from a full and a shallow clone, and every step compiles.

use std::path::Path;

use super::answers;
use super::context::Context;
use crate::exit::CliError;

pub(super) fn same_twice(context: &Context<'_>) -> Result<(), CliError> {
    let folder = folder(context)?;
    let full = branches(context, &folder.path().join("full"), "")?;
    let shallow = branches(context, &folder.path().join("shallow"), "--depth 1")?;
    if full.is_empty() {
        return Err(CliError::bad("no chapter has steps"));
    }
    if shallow != full {
        return Err(CliError::bad("a shallow clone gives other commits"));
    }
    Ok(())
}

pub(super) fn compile(context: &Context<'_>) -> Result<(), CliError> {
    let folder = folder(context)?;
    let clone = folder.path().join("full");
    // Not the reader's, for which cargo would take what is compiled here.
    let target = context.folder.join("steps-target");
    for (chapter, commits) in branches(context, &clone, "")? {
        for commit in commits {
            let checkout = format!("checkout --quiet --detach {commit}");
            context.run(context.command("git", &checkout).current_dir(&clone))?;
            let check = format!("check --package chapter{chapter} --all-targets");
            let mut check = context.cargo(&check);
            context.run(check.current_dir(&clone).env("CARGO_TARGET_DIR", &target))?;
        }
    }
    Ok(())
}

fn folder(context: &Context<'_>) -> Result<tempfile::TempDir, CliError> {
    tempfile::tempdir_in(&context.folder).map_err(CliError::because("no folder can be made"))
}

/// Clones what is committed, and writes the branches there.
fn branches(
    context: &Context<'_>,
    clone: &Path,
    options: &str,
) -> Result<Vec<(u32, Vec<String>)>, CliError> {
    // For a plain path git ignores `--depth` otherwise.
    let mut git = context.command("git", &format!("clone --quiet --no-local {options}"));
    context.run(git.arg(context.workshop.root()).arg(clone))?;
    let (_, said) = context.json(context.own("steps").current_dir(clone))?;
    answers::steps(&said)
}
