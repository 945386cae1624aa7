//! How often `compare` is right, by run: a server against itself and against itself with more to do, beside
//! noise. `crates/analysis/tests/offline/comparison.rs` simulates the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use bench::{environment, provenance};
use measurement::comparison::{CPU_MS, REQUESTS_PER_SECOND};
use measurement::figures;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::{Context, beside, median, note, noted};
use super::scratch;
use crate::exit::CliError;
use crate::files;

/// A service of the standard library alone, whose work for a request is counted and not timed.
const SERVICE: &str = "crates/workshop/tests/commands/own_service/service.rs";
/// What decides what a comparison says: results of other code do not count.
const DECIDING: [&str; 5] = [
    "crates/analysis/src",
    "crates/bench/src",
    "crates/loadgen/src",
    "crates/measurement/src",
    SERVICE,
];
/// Steps of the base's work for a request: half a millisecond, in which reading and answering hardly count.
const WORK: f64 = 400_000.0;
/// Short, for a comparison of some twenty seconds to have rounds enough.
const COMPARE: &str = "compare --get / --users 4 --warm-up 0.1 --at-most 20";
/// Of a slice, in seconds. The system counts CPU time in hundredths of them.
const SECONDS: &str = "0.2";
const SECONDS_FOR_CPU_TIME: &str = "0.5";

/// All comparisons of a kind.
struct Kind {
    /// By how much the change answers fewer requests per second.
    slower: f64,
    metric: &'static str,
    margin: &'static str,
    count: usize,
}

const fn kind(slower: f64, metric: &'static str, margin: &'static str, count: usize) -> Kind {
    Kind {
        slower,
        metric,
        margin,
        count,
    }
}

/// Without a margin all that is not equal counts: it is the harder part.
const KINDS: [Kind; 11] = [
    kind(0.0, REQUESTS_PER_SECOND, "5%", 35),
    kind(0.0, REQUESTS_PER_SECOND, "0%", 35),
    kind(0.0, CPU_MS, "0%", 30),
    kind(0.02, CPU_MS, "5%", 20),
    kind(0.05, CPU_MS, "5%", 20),
    kind(0.1, CPU_MS, "5%", 20),
    kind(0.3, CPU_MS, "5%", 20),
    kind(0.02, REQUESTS_PER_SECOND, "5%", 10),
    kind(0.05, REQUESTS_PER_SECOND, "5%", 10),
    kind(0.1, REQUESTS_PER_SECOND, "5%", 10),
    kind(0.3, REQUESTS_PER_SECOND, "5%", 10),
];
/// So many in a hundred equal pairs may be called faster or slower.
const WRONG_IN_A_HUNDRED: usize = 2;

/// One comparison: a line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Compared {
    code: String,
    slower: f64,
    metric: String,
    margin: String,
    verdict: String,
    rounds: u64,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
    /// CPU time per request, change against base.
    cpu: Option<f64>,
}

/// Goes on where an earlier run of the same code ended.
pub(super) fn many(context: &Context<'_>) -> Result<(), CliError> {
    let file = context.folder.join("comparisons.jsonl");
    let parts = DECIDING.map(|part| context.workshop.root().join(part));
    let code = scratch::hash_of(&parts).map_err(CliError::because("the code cannot be read"))?;
    let service = context.folder.join("service");
    let mut build = context.command("rustc", "--edition 2024 -C opt-level=3 -o");
    context.run(build.arg(&service).arg(SERVICE))?;
    let mut all = compared(&file, &code)?;
    let done: Result<(), CliError> = beside_noise(|| {
        while let Some(kind) = next(&all) {
            let compared = compare(context, &service, kind, &code)?;
            note(&file, &compared)?;
            all.push(compared);
            // For whoever stops it before the end.
            files::replace(&context.folder.join("comparisons.md"), table(&all))?;
        }
        Ok(())
    });
    done?;
    context.note(&table(&all))?;
    let equal = all.iter().filter(|one| one.slower == 0.0);
    let wrong = equal.filter(|one| one.differs()).count();
    let mistaken = all.iter().filter(|one| one.slower > 0.0);
    let mistaken = mistaken.filter(|one| one.verdict == "faster").count();
    if wrong > WRONG_IN_A_HUNDRED || mistaken > 0 {
        return Err(CliError::bad(format!(
            "{wrong} of 100 equal pairs were called faster or slower, and {mistaken} slower \
             changes faster"
        )));
    }
    context.tell(format!("{wrong} of 100 equal pairs told apart"));
    Ok(())
}

/// The kind that has the smallest share of its comparisons: a run that is stopped has some of each.
fn next(all: &[Compared]) -> Option<&'static Kind> {
    let share = |kind: &Kind| {
        let done = all.iter().filter(|one| one.is_of(kind)).count();
        done as f64 / kind.count as f64
    };
    let shares = KINDS.iter().map(|kind| (kind, share(kind)));
    let open = shares.filter(|(_, share)| *share < 1.0);
    open.min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(kind, _)| kind)
}

fn compare(
    context: &Context<'_>,
    service: &Path,
    kind: &Kind,
    code: &str,
) -> Result<Compared, CliError> {
    let serve = |work: f64| {
        format!(
            "'{}' --port {{port}} --work {}",
            service.display(),
            work.round()
        )
    };
    let mut command = context.own(COMPARE);
    command.args(["--base", &serve(WORK)]);
    command.args(["--change", &serve(WORK / (1.0 - kind.slower))]);
    command.args(["--metric", kind.metric, "--margin", kind.margin]);
    let is_of_cpu_time = kind.metric == CPU_MS;
    command.args([
        "--seconds",
        if is_of_cpu_time {
            SECONDS_FOR_CPU_TIME
        } else {
            SECONDS
        },
    ]);
    command
        .arg("--report")
        .arg(context.folder.join("comparison"));
    let (_, said) = context.json(&mut command)?;
    let effect = &said["effect"];
    let metrics = said["metrics"].as_array();
    let cpu = metrics.and_then(|all| all.iter().find(|one| one["metric"] == "cpu_ms_per_request"));
    Ok(Compared {
        code: code.to_owned(),
        slower: kind.slower,
        metric: kind.metric.to_owned(),
        margin: kind.margin.to_owned(),
        verdict: said["verdict"].as_str().unwrap_or("invalid").to_owned(),
        rounds: said["rounds"].as_u64().unwrap_or(0),
        ratio: effect["ratio"].as_f64(),
        interval: pair(&effect["interval"]),
        cpu: cpu.and_then(|cpu| Some(cpu["change"].as_f64()? / cpu["base"].as_f64()?)),
    })
}

fn pair(value: &Value) -> Option<(f64, f64)> {
    Some((value[0].as_f64()?, value[1].as_f64()?))
}

impl Compared {
    fn is_of(&self, kind: &Kind) -> bool {
        (self.slower - kind.slower).abs() < 1e-9
            && self.metric == kind.metric
            && self.margin == kind.margin
    }

    /// Whether the two are told apart.
    fn differs(&self) -> bool {
        matches!(&*self.verdict, "faster" | "slower")
    }
}

/// Those in `file` that this code made.
fn compared(file: &Path, code: &str) -> Result<Vec<Compared>, CliError> {
    let mut all: Vec<Compared> = noted(file)?;
    all.retain(|one| one.code == code);
    Ok(all)
}

/// What the book includes, as `flamegraphs/README.md` says.
fn table(all: &[Compared]) -> String {
    let mut text = "\
<!-- ANCHOR: comparisons -->
| the change answers | decides | margin | comparisons | *faster* | *slower* | *no difference* | *inconclusive* | *invalid* | came out | interval, ± | rounds |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"
    .to_owned();
    for kind in &KINDS {
        let of_it: Vec<&Compared> = all.iter().filter(|one| one.is_of(kind)).collect();
        let count = |word| of_it.iter().filter(|one| one.verdict == word).count();
        let middle = |figure: &dyn Fn(&Compared) -> Option<f64>| {
            median(of_it.iter().filter_map(|one| figure(one)).collect())
        };
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figures::percent);
        let what = if kind.slower > 0.0 {
            format!(
                "{} fewer requests per second",
                figures::percent(kind.slower)
            )
        } else {
            "as many: it is the base".to_owned()
        };
        let decides = if kind.metric == CPU_MS {
            "CPU time per request"
        } else {
            "requests per second"
        };
        let cells = [
            what,
            decides.to_owned(),
            kind.margin.replace('%', " %"),
            of_it.len().to_string(),
            count("faster").to_string(),
            count("slower").to_string(),
            count("no_difference").to_string(),
            count("inconclusive").to_string(),
            count("invalid").to_string(),
            shown(middle(&|one| one.ratio.map(|ratio| 1.0 - ratio))),
            match middle(&|one| one.interval.map(|(low, high)| (high - low) / 2.0)) {
                Some(half) if half > 1.0 => "over 100 %".to_owned(),
                half => shown(half),
            },
            middle(&|one| Some(one.rounds as f64)).map_or("-".to_owned(), figures::count),
        ];
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let date = provenance::now();
    let machine = environment::observe(true, "dev", BTreeMap::new());
    let _ = writeln!(
        text,
        "<!-- ANCHOR_END: comparisons -->\n\n*{} comparisons beside a program that keeps a CPU busy in bursts, \
         half of the time; the last three columns are medians. Run by `cargo workshop test many-comparisons` on \
         {} (UTC): {}.*",
        all.len(),
        date.get(..10).unwrap_or(&date),
        machine.in_a_line()
    );
    text
}

/// Keeps a CPU busy half of the time meanwhile, in bursts that no slice can fall in step with.
fn beside_noise<T>(work: impl FnOnce() -> T) -> T {
    /// Of a burst, and of the rest after it.
    const LONGEST: Duration = Duration::from_secs(1);
    /// Multiples of it lie evenly, and never repeat.
    const GOLDEN: f64 = 1.618_033_988_749_895;
    let bursts = |is_over: &dyn Fn() -> bool| {
        for number in 1_u32.. {
            let busy = (f64::from(number) * GOLDEN).fract();
            let rests = (f64::from(number) * GOLDEN * GOLDEN * GOLDEN.sqrt()).fract();
            let began = Instant::now();
            while began.elapsed() < LONGEST.mul_f64(busy) && !is_over() {
                std::hint::spin_loop();
            }
            if is_over() {
                return;
            }
            std::thread::sleep(LONGEST.mul_f64(rests));
        }
    };
    beside(bursts, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared_of(kind: &Kind, verdict: &str) -> Compared {
        Compared {
            code: "a".to_owned(),
            slower: kind.slower,
            metric: kind.metric.to_owned(),
            margin: kind.margin.to_owned(),
            verdict: verdict.to_owned(),
            rounds: 3,
            ratio: Some(0.95),
            interval: Some((0.94, 0.96)),
            cpu: None,
        }
    }

    #[test]
    fn each_kind_has_its_turn_until_all_have_enough() {
        let mut all = Vec::new();
        while let Some(kind) = next(&all) {
            all.push(compared_of(kind, "slower"));
            // One kind does not wait until another is done.
            let has = |kind: &Kind| all.iter().any(|one| one.is_of(kind));
            assert!(all.len() < KINDS.len() || KINDS.iter().all(has));
        }
        assert_eq!(all.len(), 220);
        let equal = all.iter().filter(|one| one.slower == 0.0);
        assert_eq!(equal.count(), 100);
    }

    #[test]
    fn a_file_is_gone_on_with_by_the_same_code_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("comparisons.jsonl");
        assert!(compared(&file, "a").unwrap().is_empty());
        note(&file, &compared_of(&KINDS[4], "slower")).unwrap();
        note(&file, &compared_of(&KINDS[0], "no_difference")).unwrap();
        let all = compared(&file, "a").unwrap();
        assert!(all[0].is_of(&KINDS[4]) && all[1].is_of(&KINDS[0]));
        assert!(compared(&file, "b").unwrap().is_empty());
        let text = table(&all);
        let row = "| 5.0 % fewer requests per second | CPU time per request | 5 % | 1 | 0 | 1 | 0 | 0 | 0 | 5.0 % | 1.0 % | 3 |";
        assert!(text.contains(row), "{text}");
    }
}
