//! Proof of a fix of chapter 6's fault in a container, more workers than a quota gives time: counts, law, effect and
//! guardrail (`container.md`).
//!
//! `cargo run -p studies --bin container` proves `container-solution`; name another variant to prove that, such as
//! `container-exercise`. Linux only, as root. The exit code is 0 if the fix is proved, else 1.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use children::cpus;
use engine::traffic::Traffic;
use statistics::figures;
use statistics::{Gains, Looks, Side};
use studies::Failed;
use studies::limits::{counted, under, under_quota};

/// Rounds of each server in a container, and the time of each.
const ROUNDS: u32 = 6;
const ROUND: Duration = Duration::from_secs(3);

fn main() -> Result<ExitCode, Failed> {
    match studies::argument(1, "container-solution".to_owned())?.as_str() {
        "serve" => {
            serve(&studies::argument(2, String::new())?)?;
            Ok(ExitCode::SUCCESS)
        }
        fix => prove(fix),
    }
}

/// Proves a variant of chapter 6 against `container-problem`, in a group with the time of half of the CPUs.
fn prove(fix: &str) -> Result<ExitCode, Failed> {
    studies::compile(&[6])?;
    let cpus = cpus::count();
    let quota = cpus / 2;
    if quota == 0 {
        return Err("a quota of half of the CPUs needs two of them".into());
    }
    let mut problem = Vec::new();
    let (mut fixed, mut again) = (Vec::new(), Vec::new());
    for order in statistics::triplets(ROUNDS) {
        for side in order {
            let (variant, rounds) = match side {
                Side::Base => ("container-problem", &mut problem),
                Side::Change => (fix, &mut fixed),
                Side::Again => (fix, &mut again),
            };
            rounds.push(Served::under_quota(variant, quota)?);
        }
    }
    let free = Served::of(&under("true", &["serve", fix], "true")?)?;
    let rows = [
        count_workers(quota, &problem, &[&*fixed, &again].concat()),
        count_free_workers(cpus, &free),
        find_gap(quota, cpus, &problem),
        compare("99th percentile", false, 2.0, [&problem, &fixed, &again])?,
        compare("requests a second", true, 0.9, [&problem, &fixed, &again])?,
    ];
    println!("| | `container-problem` | `{fix}` | claim | measured | |");
    println!("| --- | ---: | ---: | --- | --- | --- |");
    for row in &rows {
        println!("{row}");
    }
    println!(
        "| periods throttled | {} | {} | none | | |",
        throttled(&problem),
        throttled(&fixed)
    );
    let verdict = rows.iter().map(|row| row.holds).min();
    let verdict = verdict.unwrap_or(Holds::NotDecided);
    println!(
        "\nThe verdict is {}. A quota of {quota} of {cpus} CPUs in periods of 100 ms, a user for each CPU, \
         {ROUNDS} rounds of {} s each.",
        match verdict {
            Holds::Yes => "proved",
            Holds::NotDecided => "inconclusive",
            Holds::No => "refuted",
        },
        ROUND.as_secs()
    );
    studies::print_provenance("A process of its own for each round");
    Ok(ExitCode::from(u8::from(verdict != Holds::Yes)))
}

/// Judgement of a claim, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    No,
    NotDecided,
    Yes,
}

impl Holds {
    /// Judges a count, which noise cannot touch.
    fn a_count(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// Judges a time or a rate: other programs may have taken what a server lacks.
    fn a_figure(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::NotDecided }
    }
}

/// A claim about the container, judged.
struct Row {
    name: String,
    problem: String,
    fix: String,
    claim: String,
    measured: String,
    holds: Holds,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            problem,
            fix,
            claim,
            measured,
            holds,
        } = self;
        let holds = match holds {
            Holds::Yes => "holds",
            Holds::NotDecided => "not decided",
            Holds::No => "does not hold",
        };
        write!(
            f,
            "| {name} | {problem} | {fix} | {claim} | {measured} | {holds} |"
        )
    }
}

/// Share of workers and CPUs that have each other: 1 if there are as many.
fn matching(workers: f64, cpus: u32) -> f64 {
    let cpus = f64::from(cpus);
    workers.min(cpus) / workers.max(cpus)
}

/// Judges the root cause: the workers, for each CPU's worth of time that the quota gives.
fn count_workers(quota: u32, problem: &[Served], fix: &[Served]) -> Row {
    let is_wrong_before = problem
        .iter()
        .all(|served| matching(served.workers, quota) <= 0.6);
    let is_right_after = fix
        .iter()
        .all(|served| matching(served.workers, quota) >= 0.99);
    Row {
        name: format!("workers, for the time of {quota}"),
        problem: problem[0].workers.to_string(),
        fix: fix[0].workers.to_string(),
        claim: "as many as the quota has CPUs, and not so in the problem".to_owned(),
        measured: String::new(),
        holds: Holds::a_count(is_wrong_before && is_right_after),
    }
}

/// Judges the workers without a quota: one for each CPU.
fn count_free_workers(cpus: u32, free: &Served) -> Row {
    Row {
        name: "workers without a quota".to_owned(),
        problem: String::new(),
        fix: free.workers.to_string(),
        claim: format!("{cpus}, one for each CPU"),
        measured: String::new(),
        holds: Holds::a_count(matching(free.workers, cpus) >= 0.99),
    }
}

/// Judges the law: who is stopped waits for the rest of the period. Nine tenths of that allow for workers that
/// compute a little slower beside each other.
fn find_gap(quota: u32, cpus: u32, problem: &[Served]) -> Row {
    let gap_ms = 100.0 * (1.0 - f64::from(quota) / f64::from(cpus));
    let p99 = mean(problem, |served| served.p99_ms);
    Row {
        name: "99th percentile against the law".to_owned(),
        problem: figures::milliseconds(p99),
        fix: String::new(),
        claim: format!("at least 0.9 of the gap of {gap_ms:.0} ms"),
        measured: format!("{:.2} of it", p99 / gap_ms),
        holds: Holds::a_figure(p99 >= 0.9 * gap_ms),
    }
}

/// Compares a latency or a rate of problem, fix and fix again; the fix must be `bound` times as good or better.
fn compare(
    name: &str,
    is_rate: bool,
    bound: f64,
    [problem, fix, again]: [&[Served]; 3],
) -> Result<Row, Failed> {
    let figure = |served: &Served| {
        if is_rate {
            served.requests_per_second
        } else {
            served.p99_ms
        }
    };
    let mut gains = Gains::default();
    for ((problem, fix), again) in problem.iter().zip(fix).zip(again) {
        let fixes = [figure(fix), figure(again)];
        let added = gains.add(&[figure(problem)], &fixes, is_rate);
        added.ok_or("a round has no answers")?;
    }
    let ratio = gains.ratio().ok_or("no ratio")?;
    let (low, high) = gains.interval(Looks::ONCE).ok_or("too few rounds")?;
    let floor = gains.noise_floor().ok_or("too few rounds")?;
    let shown = |rounds| {
        if is_rate {
            figures::count(mean(rounds, figure).round())
        } else {
            figures::milliseconds(mean(rounds, figure))
        }
    };
    Ok(Row {
        name: name.to_owned(),
        problem: shown(problem),
        fix: shown(fix),
        claim: format!("{bound} times as good, or better"),
        measured: format!(
            "{ratio:.2} times ({low:.2} to {high:.2}), noise floor {:.0} %",
            floor * 100.0
        ),
        holds: Holds::a_figure(low >= bound),
    })
}

fn mean(rounds: &[Served], figure: impl Fn(&Served) -> f64) -> f64 {
    rounds.iter().map(figure).sum::<f64>() / rounds.len() as f64
}

/// Periods that were throttled, and all periods.
fn throttled(rounds: &[Served]) -> String {
    let (mut throttled, mut all) = (0.0, 0.0);
    for round in rounds {
        throttled += round.throttled;
        all += round.periods;
    }
    format!("{} of {}", figures::count(throttled), figures::count(all))
}

/// Figures of a server after a round of load.
#[derive(Clone, Copy)]
struct Served {
    workers: f64,
    requests_per_second: f64,
    p99_ms: f64,
    /// Periods of its group that were throttled, and all of them; 0 without a group.
    throttled: f64,
    periods: f64,
}

impl Served {
    /// Serves a round in a group with the time of `quota` CPUs.
    fn under_quota(variant: &str, quota: u32) -> Result<Self, Failed> {
        Self::of(&under_quota(quota, &["serve", variant])?)
    }

    /// Reads what [`serve`] printed, and the group's `cpu.stat` below it.
    fn of(said: &str) -> Result<Self, Failed> {
        let (figures, stat) = said.split_once('\n').unwrap_or((said, ""));
        let mut numbers: Vec<f64> = Vec::new();
        for figure in figures.split_whitespace() {
            numbers.push(figure.parse()?);
        }
        let [workers, requests_per_second, p99_ms] = numbers[..] else {
            return Err(format!("no figures of a round: {said}").into());
        };
        Ok(Self {
            workers,
            requests_per_second,
            p99_ms,
            throttled: counted(stat, "nr_throttled ").unwrap_or(0.0),
            periods: counted(stat, "nr_periods ").unwrap_or(0.0),
        })
    }
}

/// The process that starts the service, and leaves the group `$G` of it, if there is one, to put a load on it.
fn serve(variant: &str) -> Result<(), Failed> {
    let server = studies::start(6, variant, &[], &[])?;
    if let Ok(group) = std::env::var("G") {
        let above = Path::new(&group).join("../cgroup.procs");
        fs::write(above, std::process::id().to_string())?;
    }
    let load = Traffic {
        duration: ROUND,
        ..studies::chapter_file(6)?.exchange.by(cpus::count())
    };
    let outcome = studies::load(&server, &load, &[])?;
    let workers = server.metrics()?.get("scan_workers").unwrap_or_default();
    let p99_ms = outcome.latency.at(0.99).ok_or("no answers")?;
    println!("{workers} {} {p99_ms}", outcome.requests_per_second);
    Ok(())
}
