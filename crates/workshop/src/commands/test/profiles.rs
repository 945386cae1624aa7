//! Profiles as other people's tools read them.

use std::path::Path;

use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use super::generators::start;

pub(super) const PPROF: Check = Check {
    name: "pprof",
    about: "`go tool pprof -top` reads a running server's profile, with function names",
    needs: &[Need::Go],
    stands_alone: true,
    run,
};

/// Samples fall on the kernel's ticks, and the service's timers may keep step with them so that it
/// always runs in between. A fresh server starts at another phase.
const SERVERS: u32 = 8;

fn run(context: &Context<'_>) -> Result<(), Failure> {
    let program = context.server("chapter1")?;
    let mut missing = None;
    for _ in 0..SERVERS {
        let top = top(context, &program)?;
        // The chapter's own functions take so little that a busy machine may sample none of them.
        missing = ["tokio::runtime::", "hyper::", "warp::"]
            .into_iter()
            .find(|name| !top.contains(name));
        if missing.is_none() {
            return Ok(());
        }
    }
    failed(format!(
        "no function of `{}` is in the profiles of {SERVERS} servers",
        missing.unwrap_or_default()
    ))
}

/// What pprof prints of a fresh server's profile.
fn top(context: &Context<'_>, program: &Path) -> Result<String, Failure> {
    let server = start(program, "solution", &[], &[], context.interrupt)?;
    let host = format!("http://{}", server.service());
    let mut load = context.own(&["load", "1", "--users", "1000", "--think", "0"]);
    let _load = context.start(load.args(["--seconds", "10", "--host", &host]))?;
    let profile = format!("http://{}/debug/pprof/profile?seconds=4", server.admin());
    let mut pprof = context.command("go", &["tool", "pprof", "-top", "-cum", &profile]);
    // Its copy of the profile belongs with the logs, not into the reader's home.
    context.output_of(pprof.env("PPROF_TMPDIR", context.folder.join("pprof")))
}
