//! Profiles as other people's tools read them.

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

fn run(context: &Context<'_>) -> Result<(), Failure> {
    let program = context.server("chapter1")?;
    let server = start(&program, "solution", context.interrupt)?;
    let host = format!("http://{}", server.service());
    let mut load = context.own(&["load", "1", "--users", "1000", "--think", "0"]);
    let _load = context.start(load.args(["--seconds", "10", "--host", &host]))?;
    let profile = format!("http://{}/debug/pprof/profile?seconds=5", server.admin());
    let mut pprof = context.command("go", &["tool", "pprof", "-top", "-cum", &profile]);
    // Its copy of the profile belongs with the logs, not into the reader's home.
    let top = context.output_of(pprof.env("PPROF_TMPDIR", context.folder.join("pprof")))?;
    // The chapter's own functions take so little that a busy machine may sample none of them.
    let missing = ["tokio::runtime::", "hyper::", "warp::"]
        .into_iter()
        .find(|name| !top.contains(name));
    match missing {
        Some(name) => failed(format!("no function of `{name}` is in the profile")),
        None => Ok(()),
    }
}
