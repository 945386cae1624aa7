//! Effect of the layout of code alone: `layout.md`.
//!
//! Builds the shop of `examples/shop` many times from one source. The linker puts its functions in another order each time
//! (`--shuffle-sections` of LLD), and nothing else differs. In each round all builds are started anew, and loaded in turns for
//! a tenth of a second, over and over: a machine that becomes slower for a second does so to all of them. The spread of the
//! builds is that of a one-way layout with random effects: the variance between builds, less what the variance within them
//! explains. What noise alone can seem to be is found by dealing each round's figures to the builds at random.
//!
//! `cargo run -p studies --bin layout -- 20 12` (builds, rounds). It needs Linux on x86-64, and some 20 minutes of a quiet
//! machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use children::{Interrupt, processes};
use engine::load::{Protocol, Settings};
use engine::placement::Placement;
use engine::service::{CommandServer, Launch, Start};
use engine::traffic::{Request, Route, Traffic};
use statistics::figures;
use studies::Failed;

/// The shop's endpoints that compute and do not wait.
const PATHS: [&str; 2] = ["/health", "/search?q=tea"];
const SHOP: &str = "examples/shop";
/// Slices of one build in a round.
const SLICES: usize = 10;
/// Length of a slice.
const SLICE: Duration = Duration::from_millis(100);
/// Times that each round's figures are dealt to the builds at random.
const DEALS: usize = 1000;

fn main() -> Result<(), Failed> {
    let builds = studies::argument(1, 20)?;
    let rounds = studies::argument(2, 12)?;
    let folder = tempfile::tempdir()?;
    let mut programs = Vec::new();
    for build in 0..builds {
        programs.push(compile(folder.path(), build)?);
    }
    println!(
        "| endpoint | figure | spread of layouts | that noise alone may seem | noise of one round |"
    );
    println!("| --- | --- | ---: | ---: | ---: |");
    for path in PATHS {
        // For each build and round: requests per second, and CPU seconds per request.
        let mut seen = vec![Vec::new(); builds];
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..builds).collect();
            order.rotate_left(round / 2 % builds);
            if round % 2 == 1 {
                order.reverse();
            }
            for (build, figures) in in_turns(&programs, &order, path)? {
                seen[build].push(figures);
            }
        }
        for (figure, name) in ["requests per second", "CPU time per request"]
            .iter()
            .enumerate()
        {
            let of = |all: &Vec<[f64; 2]>| all.iter().map(|both| both[figure]).collect();
            let seen: Vec<Vec<f64>> = seen.iter().map(of).collect();
            let Spread { between, within } = Spread::of(&seen);
            println!(
                "| `{path}` | {name} | {} | {} | {} |",
                figures::percent(between),
                figures::percent(by_chance(seen)),
                figures::percent(within)
            );
        }
    }
    studies::print_provenance(&format!(
        "{builds} builds of `{SHOP}` with shuffled functions, {rounds} rounds with {SLICES} slices of 0.1 s of each; spreads are \
         standard deviations, and noise alone seems more than the one given in one of twenty such tables"
    ));
    Ok(())
}

/// Links the shop with its functions in the order of this number, and returns the program.
fn compile(folder: &Path, build: usize) -> Result<PathBuf, Failed> {
    let target = folder.join("target");
    let shuffled = format!("-Clink-arg=-Wl,--shuffle-sections=.text*={}", build + 1);
    let mut cargo = Command::new("cargo");
    cargo
        .args([
            "rustc",
            "--quiet",
            "--release",
            "--locked",
            "--bin",
            "shop",
            "--",
        ])
        .arg(shuffled)
        .arg("-Clink-arg=-fuse-ld=lld")
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(SHOP);
    if !cargo.status()?.success() {
        return Err("the shop does not link: does `cc` find the linker LLD?".into());
    }
    let program = folder.join(format!("shop-{build}"));
    std::fs::copy(target.join("release/shop"), &program)?;
    Ok(program)
}

/// Starts all programs, and loads each for many slices, in turns. Returns for each build its requests per second and its CPU
/// seconds per request.
fn in_turns(
    programs: &[PathBuf],
    order: &[usize],
    path: &str,
) -> Result<Vec<(usize, [f64; 2])>, Failed> {
    let interrupt = Interrupt::new();
    let placement = Placement::apart();
    let mut servers = Vec::new();
    for build in order {
        let command = format!("{} --port {{port}}", programs[*build].display());
        let launch = Launch {
            name: "shop",
            start: Start::Shell {
                command: &command,
                folder: Path::new("."),
                ready: Some("/health"),
                protocol: &Protocol::default(),
            },
            ready_within: Duration::from_secs(60),
            cpus: &placement.server,
        };
        servers.push(CommandServer::start(&launch, &interrupt)?);
    }
    let mut traffic = Traffic {
        duration: SLICE,
        ..Traffic::closed([Route::of(Request::get(path), 1.0)], 16)
    };
    let settings = Settings {
        cpus: &placement.generator,
        ..Settings::of(&interrupt)
    };
    let mut cpu_before = Vec::new();
    for server in &servers {
        cpu_before.push(cpu_seconds(server)?);
    }
    let mut sums = vec![(0.0, 0.0); servers.len()];
    for slice in 0..SLICES {
        // The first slice of each warms it up.
        traffic.warm_up = if slice == 0 {
            3 * SLICE
        } else {
            Duration::ZERO
        };
        for (server, (per_second, right)) in servers.iter().zip(&mut sums) {
            let outcome = engine::load::run(server.address(), &traffic, &settings)?;
            if outcome.users.faults() > 0 || outcome.users.completed == 0 {
                return Err(format!("{path}: requests had no answer or a wrong one").into());
            }
            *per_second += outcome.users.requests_per_second;
            *right += outcome.users.right_in_all as f64;
        }
    }
    let mut seen = Vec::new();
    for (at, (per_second, right)) in sums.into_iter().enumerate() {
        let cpu_s = cpu_seconds(&servers[at])? - cpu_before[at];
        seen.push((order[at], [per_second / SLICES as f64, cpu_s / right]));
    }
    Ok(seen)
}

fn cpu_seconds(server: &CommandServer) -> Result<f64, Failed> {
    let all = processes::from(server.id()).ok_or("its CPU time is unknown")?;
    Ok(processes::cpu_seconds(&all))
}

/// Spread of builds, as shares.
struct Spread {
    /// Standard deviation between builds, without what their own noise explains.
    between: f64,
    /// Standard deviation of one round.
    within: f64,
}

impl Spread {
    /// Estimates the spread of builds from their figures, one for each round (R. A. Fisher's analysis of variance, with
    /// random effects). A round's own mean has no part in it.
    fn of(figures: &[Vec<f64>]) -> Self {
        let (builds, rounds) = (figures.len(), figures[0].len());
        let mut logs: Vec<Vec<f64>> = Vec::new();
        for of_build in figures {
            logs.push(of_build.iter().map(|figure| figure.ln()).collect());
        }
        for round in 0..rounds {
            let mean = logs.iter().map(|logs| logs[round]).sum::<f64>() / builds as f64;
            for of_build in &mut logs {
                of_build[round] -= mean;
            }
        }
        let mut means = Vec::new();
        let mut within = 0.0;
        for of_build in &logs {
            let mean = of_build.iter().sum::<f64>() / rounds as f64;
            within += of_build.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            means.push(mean);
        }
        let within = within / ((builds - 1) * (rounds - 1)) as f64;
        let of_means = means.iter().map(|mean| mean * mean).sum::<f64>() / (builds - 1) as f64;
        Self {
            between: (of_means - within / rounds as f64).max(0.0).sqrt(),
            within: within.sqrt(),
        }
    }
}

/// Returns the spread that builds without any difference stay below in nineteen of twenty studies: each round's figures are
/// dealt to the builds at random (a permutation test within blocks).
fn by_chance(mut figures: Vec<Vec<f64>>) -> f64 {
    let mut random = fastrand::Rng::with_seed(1);
    let mut spreads = Vec::new();
    for _ in 0..DEALS {
        for round in 0..figures[0].len() {
            for build in (1..figures.len()).rev() {
                let other = random.usize(..=build);
                let (one, two) = (figures[build][round], figures[other][round]);
                (figures[build][round], figures[other][round]) = (two, one);
            }
        }
        spreads.push(Spread::of(&figures).between);
    }
    spreads.sort_by(f64::total_cmp);
    spreads[DEALS * 19 / 20]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_builds_is_told_from_the_drift_of_rounds_and_the_noise_of_slices() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut noise = |spread: f64| {
            let sum: f64 = (0..12).map(|_| random.f64()).sum();
            spread * (sum - 6.0)
        };
        let drifts: Vec<f64> = (0..40).map(|_| noise(0.1)).collect();
        let mut figures = Vec::new();
        for _ in 0..40 {
            let build = noise(0.02);
            let of_round = |drift: &f64| (build + drift + noise(0.05)).exp();
            figures.push(drifts.iter().map(of_round).collect());
        }
        let Spread { between, within } = Spread::of(&figures);
        assert!((0.014..0.026).contains(&between), "{between}");
        assert!((0.045..0.055).contains(&within), "{within}");
        // Of the noise's 5 % the means of forty rounds keep 0.8 %; their spread is known to a fifth.
        let chance = by_chance(figures);
        assert!((0.002..0.008).contains(&chance), "{chance}");
    }
}
