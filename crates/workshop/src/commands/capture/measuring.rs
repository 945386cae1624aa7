//! What the book says of the instruments themselves, recorded by the examples
//! of `crates/evidence` that anybody can run.

use std::process::{Command, Stdio};

use crate::chapters::Workshop;
use crate::compile;
use crate::ctrl_c;
use crate::exit::{Exit, Problem};
use crate::files;
use crate::tools::Tools;

/// File in `flamegraphs/measuring`, and the example's arguments.
const RECORDED: &[(&str, &[&str])] = &[
    (
        "coordinated-omission.md",
        &["coordinated_omission", "--", "30"],
    ),
    (
        "generator-bound.md",
        &["generator_comparison", "--", "published", "3", "10"],
    ),
    (
        "generator-peak.md",
        &["generator_comparison", "--", "peak", "5", "4"],
    ),
];

/// Runs each example and keeps what it printed.
pub(super) fn record(workshop: &Workshop) -> Result<Exit, Problem> {
    let folder = workshop.root().join("flamegraphs/measuring");
    files::writable(&folder)?;
    let interrupt = ctrl_c::watch();
    compile::chapter(workshop, &workshop.chapter(1)?, &[], &interrupt)?;
    let tools = Tools::of(workshop);
    for (name, arguments) in RECORDED {
        let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(workshop.root())
            .args(["run", "--quiet", "--package", "evidence", "--example"])
            .args(*arguments)
            .env("K6", tools.k6())
            .env("LOCUST", tools.in_venv("locust"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| Problem::bad(format!("cargo cannot be run: {e}")))?;
        if interrupt.is_set() {
            return Err(Problem::new(
                Exit::Interrupted,
                "interrupted; what was recorded stays",
            ));
        }
        if !output.status.success() {
            return Err(Problem::bad(format!(
                "the example `{}` failed; its words are above",
                arguments.first().copied().unwrap_or_default()
            )));
        }
        files::replace(&folder.join(name), &output.stdout)?;
        println!("flamegraphs/measuring/{name}: recorded");
    }
    Ok(Exit::Good)
}
