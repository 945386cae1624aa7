//! Studies: each program in `src/bin/` prints a table of the book and what it was measured with. The first table is
//! recorded by hand; from then on `cargo workshop capture --all` repeats the command that stands below the table:
//!
//! ```text
//! cargo run -p studies --bin hidden_stall -- 20 >flamegraphs/measuring/hidden-stall.md
//! cargo workshop capture --derive           # draws the plots of these tables again
//! ```
//!
//! The package is no default member of the workspace: plain `cargo build` leaves it out. This library
//! holds what the programs share.

#![allow(
    clippy::missing_errors_doc,
    reason = "a study ends with whatever error there is"
)]

pub mod limits;
pub mod strategies;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use children::environment;
use children::tool;
use children::{Interrupt, cpus};
use course::bench::drivers::{k6, locust};
use course::bench::provenance;
use course::bench::server::{Launch, Server};
use course::measurement::chapter_file::ChapterFile;
use course::measurement::record::Inputs;
use engine::load::Settings;
use engine::outcome::{GeneratorKind, Latency, Outcome};
use engine::traffic::Traffic;
use statistics::figures;
use statistics::{Gains, Looks};

/// An error of a study, from any thread.
pub type Failed = Box<dyn Error + Send + Sync>;

/// The argument in this place, counted from 1, if there is one.
pub fn argument<T: FromStr>(index: usize, otherwise: T) -> Result<T, T::Err> {
    match std::env::args().nth(index) {
        Some(text) => text.parse(),
        None => Ok(otherwise),
    }
}

/// The folder of a chapter, below the workspace's.
pub fn folder(number: u32) -> Result<PathBuf, Failed> {
    let begin = format!("{number}-");
    for entry in Path::new("chapters").read_dir()?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begin) {
            return Ok(entry.path());
        }
    }
    Err("no such chapter in this folder".into())
}

/// Reads the chapter's `chapter.toml`.
pub fn chapter_file(number: u32) -> Result<ChapterFile, Failed> {
    let file = folder(number)?.join("chapter.toml");
    let name = file.display().to_string();
    Ok(ChapterFile::read(&file, &name, cpus::count())?)
}

/// Compiles the servers of these chapters.
pub fn compile(chapters: &[u32]) -> Result<(), Failed> {
    let packages = chapters
        .iter()
        .map(|number| format!("--package=chapter{number}"));
    build(packages)
}

/// Compiles a chapter's server with these features, and returns its path.
pub fn compile_with(chapter: u32, features: &str) -> Result<PathBuf, Failed> {
    build([
        format!("--package=chapter{chapter}"),
        format!("--features={features}"),
    ])?;
    program(chapter)
}

fn build(arguments: impl IntoIterator<Item = String>) -> Result<(), Failed> {
    let mut cargo = Command::new("cargo");
    let status = cargo.arg("build").args(arguments).status()?;
    if !status.success() {
        return Err("a chapter does not compile".into());
    }
    Ok(())
}

/// Starts a compiled chapter's server, on these CPUs if there are any, with further arguments.
pub fn start(
    chapter: u32,
    variant: &str,
    cpus: &[usize],
    arguments: &[String],
) -> Result<Server, Failed> {
    start_program(&program(chapter)?, variant, cpus, arguments)
}

/// Returns the path of a chapter's compiled server.
fn program(chapter: u32) -> Result<PathBuf, Failed> {
    let name = format!("chapter{chapter}{}", std::env::consts::EXE_SUFFIX);
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// Starts this program of a chapter's server as [`start`] does.
pub fn start_program(
    program: &Path,
    variant: &str,
    cpus: &[usize],
    arguments: &[String],
) -> Result<Server, Failed> {
    let launch = Launch {
        cpus,
        arguments,
        ..Launch::of(program, variant)
    };
    let server = Server::start(&launch, &Interrupt::new())?;
    if !server.is_optimised() {
        return Err("the chapter was compiled without optimisation".into());
    }
    Ok(server)
}

/// Puts a load on a server, from these CPUs if there are any.
pub fn load(server: &Server, load: &Traffic, cpus: &[usize]) -> Result<Outcome, Failed> {
    let interrupt = Interrupt::new();
    let settings = Settings {
        cpus,
        ..Settings::of(&interrupt)
    };
    let outcome = Outcome::from(engine::load::run(server.service(), load, &settings)?);
    let mut faults = outcome.error_count() + outcome.wrong_answers;
    if let Some(pings) = &outcome.bystander {
        faults += pings.errors.values().sum::<u64>();
    }
    if faults > 0 {
        return Err(format!("{faults} requests had no answer or a wrong one").into());
    }
    Ok(outcome)
}

/// A chapter's server, as a target of any of the three generators.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The chapter, whose scripts k6 and Locust run.
    pub chapter: u32,
    /// The running server.
    pub server: &'a Server,
    /// The generator's CPUs; all if there are none.
    pub cpus: &'a [usize],
}

impl Target<'_> {
    /// Puts a load on the server by this generator, k6 and Locust as `cargo workshop setup k6 locust` installed them.
    pub fn load_by(&self, generator: GeneratorKind, load: &Traffic) -> Result<Outcome, Failed> {
        let interrupt = Interrupt::new();
        let settings = |program, script| tool::Settings {
            program: Path::new(program),
            script,
            cpus: self.cpus,
            alone: None,
            interrupt: &interrupt,
        };
        let (service, chapter) = (self.server.service(), self.chapter);
        Ok(match generator {
            GeneratorKind::Embedded => self::load(self.server, load, self.cpus)?,
            GeneratorKind::K6 => {
                let script = PathBuf::from(format!("k6/chapter{chapter}.js"));
                k6::run(service, load, &settings(".tools/bin/k6", &script))?
            }
            GeneratorKind::Locust => {
                let script = PathBuf::from(format!("locust/chapter{chapter}.py"));
                locust::run(service, load, &settings(".tools/venv/bin/locust", &script))?
            }
        })
    }
}

/// The comparison of two sides over pairs of rounds.
pub struct Compared {
    /// Mean of each side's figures: the side asked about, and the other.
    pub means: [f64; 2],
    /// The first over the second.
    pub ratio: f64,
    /// The ratio's interval, at 95 %.
    pub interval: (f64, f64),
}

/// Compares the figures of rounds of two sides, as often the one first as the other. `round` is told whether it is the
/// side asked about.
pub fn compare(
    pairs: u32,
    mut round: impl FnMut(bool) -> Result<f64, Failed>,
) -> Result<Compared, Failed> {
    let mut sides = [Vec::new(), Vec::new()];
    for is_first in statistics::abba(true, false, pairs) {
        sides[usize::from(!is_first)].push(round(is_first)?);
    }
    let mut gains = Gains::default();
    for (first, second) in sides[0].iter().zip(&sides[1]) {
        gains.add(&[*second], &[*first], true).ok_or("no figure")?;
    }
    let mean = |side: &[f64]| side.iter().sum::<f64>() / f64::from(pairs);
    Ok(Compared {
        means: [mean(&sides[0]), mean(&sides[1])],
        ratio: gains.ratio().ok_or("no ratio")?,
        interval: gains.interval(Looks::ONCE).ok_or("too few pairs")?,
    })
}

/// Returns the value that this share of all values does not exceed; NaN if there are none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // A share of a length is an index of an existing value: small and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// Reads the published figures of this part of `reference/seed-figures.toml`.
pub fn published(part: &str) -> Result<toml::Table, Failed> {
    let all: toml::Table = include_str!("../../reference/seed-figures.toml").parse()?;
    match all.get(part) {
        Some(toml::Value::Table(figures)) => Ok(figures.clone()),
        _ => Err("no such published figures".into()),
    }
}

/// A latency in words.
pub fn milliseconds(latency: Option<f64>) -> String {
    match latency {
        Some(ms) => figures::milliseconds(ms),
        None => "unknown".to_owned(),
    }
}

/// Prints rows of percentiles, two columns.
pub fn print_percentiles(left: &Latency, right: &Latency) {
    for (name, left, right) in [
        ("median", left.at(0.5), right.at(0.5)),
        ("90th percentile", left.at(0.9), right.at(0.9)),
        ("99th percentile", left.at(0.99), right.at(0.99)),
        ("largest", Some(left.max_ms), Some(right.max_ms)),
    ] {
        println!(
            "| {name} | {} | {} |",
            milliseconds(left),
            milliseconds(right)
        );
    }
}

/// Prints the line below a table: how it was measured, by which command, when, of which code and where.
///
/// `cargo workshop capture --all` runs the command in this line again, unless the digest is that of the code as it is.
pub fn print_provenance(what: &str) {
    let mut arguments = std::env::args();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    let given: Vec<String> = arguments.collect();
    let arguments = match &*given {
        [] => String::new(),
        _ => format!(" -- {}", given.join(" ")),
    };
    let inputs = match provenance::of_study(Path::new("."), &program) {
        Ok(digest) => Inputs::Digest(digest).to_string(),
        Err(why) => format!("with inputs that cannot be read ({why})"),
    };
    println!(
        "\n*{what}. Measured by `cargo run -p studies --bin {program}{arguments}` on {} (UTC) {inputs}: {}.*",
        &provenance::now()[..10],
        environment::observe(true, "dev", BTreeMap::new()).in_a_line(),
    );
}
