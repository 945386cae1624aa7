//! What the book says of the instruments themselves, and tables of a chapter that no load makes:
//! recorded by examples that anybody can run.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::Duration;

use bench::child::Starting;
use bench::provenance;
use measurement::record::Commit;

use crate::chapters::{CAPTURES, Workshop};
use crate::compile;
use crate::ctrl_c;
use crate::exit::{CliError, Exit};
use crate::files;
use crate::tools::Tools;

/// A file in `flamegraphs/measuring`; the package, example and arguments that print it; and the chapters
/// whose servers the example starts.
type Recorded = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [u32],
);

#[rustfmt::skip]
const RECORDED: &[Recorded] = &[
    ("coordinated-omission.md", "bench", &["coordinated_omission", "--", "30"], &[1]),
    ("hidden-stall.md", "bench", &["hidden_stall", "--", "20"], &[5]),
    ("rate-sweep.md", "bench", &["rate_sweep", "--", "5"], &[5]),
    ("heat-map-5.md", "bench", &["heat_map", "--", "5", "2"], &[5]),
    ("heat-map-8.md", "bench", &["heat_map", "--", "8", "2"], &[8]),
    ("profiling-cost.md", "bench", &["profiling_cost", "--", "16", "2"], &[1]),
    ("limits.md", "bench", &["processor_limits", "--", "counters"], &[]),
    ("throttling.md", "bench", &["processor_limits", "--", "throttling"], &[]),
    ("orders.md", "bench", &["orders", "--", "6"], &[3, 4]),
    ("noisy-neighbour.md", "bench", &["noisy_neighbour", "--", "8"], &[7]),
    ("blocking-strategies.md", "chapter8", &["blocking", "--", "strategies"], &[]),
    ("blocking-keeping.md", "chapter8", &["blocking", "--", "keeping"], &[]),
];

/// How long one example may take; the longest take some minutes, and minutes more to compile.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// Bytes of what one prints.
const LONGEST: usize = 1 << 20;

/// Runs each example, or the one that `file` is made by, and keeps what it printed.
pub(super) fn record(workshop: &Workshop, file: &str) -> Result<Exit, CliError> {
    let chosen: Vec<_> = RECORDED
        .iter()
        .filter(|(name, ..)| name.starts_with(file))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = RECORDED.iter().map(|(name, ..)| *name).collect();
        return Err(CliError::usage(format!(
            "nothing makes `{file}`; there is: {}",
            names.join(", ")
        )));
    }
    let folder = workshop.root().join("flamegraphs/measuring");
    files::writable(&folder)?;
    let interrupt = ctrl_c::watch();
    let servers: BTreeSet<u32> = chosen
        .iter()
        .flat_map(|(.., servers)| *servers)
        .copied()
        .collect();
    for chapter in servers {
        compile::chapter(workshop, &workshop.chapter(chapter)?, "", &interrupt)?;
    }
    let tools = Tools::of(workshop);
    // Before the first file changes what git sees.
    let commit = bench::provenance::checked_out(workshop.root(), CAPTURES);
    for (name, package, arguments, _) in chosen {
        let mut example = Command::new(compile::program());
        example
            .current_dir(workshop.root())
            .args(["run", "--quiet", "--package", package, "--example"])
            .args(*arguments)
            .env("K6", tools.k6())
            .env("LOCUST", tools.in_venv("locust"));
        let said = Starting::of(&example)
            .stderr(Stdio::inherit())
            .output(&interrupt, TIMEOUT, LONGEST)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::Interrupted => {
                    CliError::new(Exit::Interrupted, "interrupted; what was recorded stays")
                }
                _ => CliError::because("cargo cannot be run")(error),
            })?;
        let output = said.ok_or_else(|| {
            CliError::bad(format!(
                "the example `{}` ran for over {} minutes",
                arguments.first().copied().unwrap_or_default(),
                TIMEOUT.as_secs() / 60
            ))
        })?;
        if !output.status.success() {
            return Err(CliError::bad(format!(
                "the example `{}` failed; what it printed is above",
                arguments.first().copied().unwrap_or_default()
            )));
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !text.contains("at commit") {
            text.push_str(&provenance(&commit, package, arguments));
        }
        files::replace(&folder.join(name), text)?;
        println!("flamegraphs/measuring/{name}: recorded");
    }
    derive(workshop, false)?;
    Ok(Exit::Good)
}

/// Draws the plots of the recorded tables again, or compares them with those that are there.
pub(super) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let folder = workshop.root().join("flamegraphs/measuring");
    for (table, ..) in RECORDED {
        let file = folder.join(table);
        let text = std::fs::read_to_string(&file).map_err(CliError::because(format!(
            "{} cannot be read",
            file.display()
        )))?;
        let name = table.trim_end_matches(".md");
        let Some(svg) = report::measuring::plot(name, &text) else {
            continue;
        };
        let svg = svg.map_err(CliError::bad)?;
        let plot = folder.join("plots").join(format!("{name}.svg"));
        if !verify {
            files::replace(&plot, svg)?;
        } else if std::fs::read_to_string(&plot).ok().as_deref() != Some(&*svg) {
            return Err(CliError::bad(format!(
                "{} is not what its table gives; run `cargo workshop capture --derive`",
                plot.display()
            )));
        }
    }
    Ok(())
}

/// What was run, on which code, when and where.
fn provenance(commit: &Commit, package: &str, arguments: &[&str]) -> String {
    let date = provenance::now();
    format!(
        "\n*Measured by `cargo run -p {package} --example {}` at commit `{}` on {} (UTC): {}.*\n",
        arguments.join(" "),
        commit.in_short(),
        date.get(..10).unwrap_or(&date),
        bench::environment::observe(true, "dev", BTreeMap::new()).in_a_line(),
    )
}
