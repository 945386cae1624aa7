//! What a server says of itself to other people's tools, and to people.

use super::context::Context;
use crate::exit::CliError;

/// Chapter 3's fault is one of computing: its profile has as many samples as one could want.
const PROFILE: &str = "profile 3 --kind cpu --variant problem --seconds 4 --into";

pub(super) fn pprof(context: &Context<'_>) -> Result<(), CliError> {
    let folder = context.folder.join("pprof");
    context.run(context.own(PROFILE).arg(&folder))?;
    let mut go = context.command("go", "tool pprof -top -cum");
    let (_, top) = context.output(go.arg(folder.join("problem.cpu.pb.gz")))?;
    for name in ["chapter3::problem::", "tokio::runtime::"] {
        if !top.contains(name) {
            return Err(CliError::bad(format!(
                "pprof names no function of `{name}`"
            )));
        }
    }
    Ok(())
}

/// Only the lab is built without, which is what says so: the rest would take a minute. The server
/// listens until its standard input closes, which it has none of.
pub(super) fn unoptimised(context: &Context<'_>) -> Result<(), CliError> {
    let mut server = context.cargo("run --quiet --package chapter1 --config");
    server.arg("profile.dev.package.lab.opt-level=0");
    server.args("-- solution --port 0 --admin-port 0 --stop-with-stdin".split(' '));
    let (_, said) = context.output(&mut server)?;
    match said.lines().next() {
        Some(first) if first.contains("UNOPTIMISED") => Ok(()),
        first => Err(CliError::bad(format!("its first line was {first:?}"))),
    }
}
