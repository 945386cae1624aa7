//! Profiles as other people's tools read them.

use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use super::generators::start;

pub(super) const PPROF: Check = Check {
    name: "pprof",
    about: "`go tool pprof -top` reads a running server's profile, with the chapter's function names",
    needs: &[Need::Go],
    stands_alone: true,
    run,
};

fn run(context: &Context<'_>) -> Result<(), Failure> {
    let program = context.server("chapter1")?;
    let server = start(&program, "solution", context.interrupt)?;
    let host = format!("http://{}", server.service());
    let mut load = context.own(&["load", "1", "--users", "500", "--think", "0"]);
    let _load = context.start(load.args(["--seconds", "8", "--host", &host]))?;
    let profile = format!("http://{}/debug/pprof/profile?seconds=4", server.admin());
    let mut pprof = context.command("go", &["tool", "pprof", "-top", "-cum", &profile]);
    // Its copy of the profile belongs with the logs, not into the reader's home.
    let top = context.output_of(pprof.env("PPROF_TMPDIR", context.folder.join("pprof")))?;
    if top.contains("chapter1::solution::") {
        Ok(())
    } else {
        failed("no function of chapter1::solution is in the profile")
    }
}
