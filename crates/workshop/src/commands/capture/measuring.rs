//! What the book says of the instruments themselves, recorded by the examples
//! of `crates/evidence` that anybody can run.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use evidence::environment::Environment;
use evidence::provenance;
use evidence::record::Commit;

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
    ("hidden-stall.md", &["hidden_stall", "--", "20"]),
    ("profiling-cost.md", &["profiling_cost", "--", "16", "2"]),
    (
        "generator-bound.md",
        &["generator_comparison", "--", "published", "2", "8"],
    ),
    (
        "generator-peak.md",
        &["generator_comparison", "--", "peak", "3", "3"],
    ),
    ("limits.md", &["processor_limits", "--", "counters"]),
    ("throttling.md", &["processor_limits", "--", "throttling"]),
    ("noisy-neighbour.md", &["noisy_neighbour", "--", "8"]),
];

/// Runs each example, or the one that `file` is made by, and keeps what it printed.
pub(super) fn record(workshop: &Workshop, file: &str) -> Result<Exit, Problem> {
    let chosen: Vec<_> = RECORDED
        .iter()
        .filter(|(name, _)| name.starts_with(file))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = RECORDED.iter().map(|(name, _)| *name).collect();
        return Err(Problem::usage(format!(
            "nothing makes `{file}`; there is: {}",
            names.join(", ")
        )));
    }
    let folder = workshop.root().join("flamegraphs/measuring");
    files::writable(&folder)?;
    let interrupt = ctrl_c::watch();
    for chapter in [1, 5, 7] {
        compile::chapter(workshop, &workshop.chapter(chapter)?, &[], &interrupt)?;
    }
    let tools = Tools::of(workshop);
    // Before the first file changes what git sees.
    let commit = Commit::checked_out(workshop.root());
    for (name, arguments) in chosen {
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
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !text.contains("at commit") {
            text.push_str(&provenance(&commit, arguments));
        }
        files::replace(&folder.join(name), text)?;
        println!("flamegraphs/measuring/{name}: recorded");
    }
    Ok(Exit::Good)
}

/// What was run, on which code, when and where.
fn provenance(commit: &Commit, arguments: &[&str]) -> String {
    let date = provenance::now();
    format!(
        "\n*Measured by `cargo run -p evidence --example {}` at commit `{}` on {} (UTC): {}.*\n",
        arguments.join(" "),
        commit.in_short(),
        date.get(..10).unwrap_or(&date),
        Environment::observe(true, "dev", BTreeMap::new()).in_a_line(),
    )
}
