//! The command line, as clap reads it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use engine::traffic::Spacing;
use look_client::Look;
pub(crate) use terminal::output::{Format, Output};

use terminal::arguments::{number, spacing, with_negative_numbers};

use crate::arguments::{chapter, installable, of_steps};
use crate::prediction::Range;
use crate::steps::Of;

/// A profiling workshop for Rust web services.
///
/// Without a command: where you are, and what to do next.
#[derive(Debug, Parser)]
#[command(name = "cargo workshop", bin_name = "cargo workshop", version)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Reads the process's arguments. `-1` is a wrong number and no option, wherever it stands.
    pub(crate) fn read() -> Self {
        // Cargo calls an installed `cargo-workshop` with the word `workshop` first.
        let mut words: Vec<_> = std::env::args_os().collect();
        if words.get(1).is_some_and(|word| word == "workshop") {
            words.remove(1);
        }
        if let Some(arguments) = own_service(&words) {
            return Self {
                output: Output {
                    format: Format::Human,
                },
                command: Some(Command::LoadOwn { arguments }),
            };
        }
        let is_load = words.get(1).is_some_and(|word| word == "load");
        let read = with_negative_numbers(Self::command())
            .try_get_matches_from(words)
            .unwrap_or_else(|mut error| {
                if is_load && error.kind() == ErrorKind::UnknownArgument {
                    let tip = "a chapter has its own requests; for your service give its address with --url";
                    let tip = ContextValue::StyledStrs(vec![tip.into()]);
                    error.insert(ContextKind::Suggested, tip);
                }
                error.exit()
            });
        Self::from_arg_matches(&read).unwrap_or_else(|error| error.exit())
    }
}

/// The arguments of `duel load`, where `words` are `load --url URL …` and so about a service of the reader's own.
fn own_service(words: &[OsString]) -> Option<Vec<OsString>> {
    if words.get(1)? != "load" {
        return None;
    }
    let mut url = None;
    let mut others = Vec::new();
    let mut rest = words[2..].iter();
    while let Some(word) = rest.next() {
        if word == "--url" {
            url = Some(rest.next()?.clone());
        } else if let Some(value) = word.to_str().and_then(|word| word.strip_prefix("--url=")) {
            url = Some(value.into());
        } else {
            others.push(word.clone());
        }
    }
    others.insert(0, url?);
    Some(others)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prove a chapter's claim on this machine: problem against solution
    Prove(Prove),
    /// Grade your exercise.rs
    Check {
        /// The chapter's number
        #[arg(value_parser = chapter)]
        chapter: u32,
        /// Grade another variant instead, such as solution
        #[arg(long, default_value = "exercise", conflicts_with = "regions")]
        variant: String,
        /// Chapter 7 in a small emulated machine with so many NUMA nodes
        #[arg(long = "numa-nodes", value_name = "NODES", value_parser = number(2_u32..=8, "4"))]
        regions: Option<u32>,
        #[command(flatten)]
        output: Output,
    },
    /// Grade your exercise.rs at every save, with keys for hints
    Watch {
        /// The chapter's number [default: the first that is not passed]
        #[arg(value_parser = chapter)]
        chapter: Option<u32>,
    },
    /// Write down what you expect of a fix; `prove` sets it beside the measurement
    Predict(Predict),
    /// The next hint of a chapter
    Hint {
        /// The chapter's number
        #[arg(value_parser = chapter)]
        chapter: u32,
        /// Show all hints up to this one again
        #[arg(long, value_name = "N", value_parser = number(1_usize..=99, "2"))]
        upto: Option<usize>,
        #[command(flatten)]
        output: Output,
    },
    /// The solution, as a diff from your exercise.rs
    Solution {
        /// The chapter's number
        #[arg(value_parser = chapter)]
        chapter: u32,
    },
    /// Put exercise.rs back as it was shipped, and keep a copy of yours
    Reset {
        /// The chapter's number
        #[arg(value_parser = chapter)]
        chapter: u32,
    },
    /// Put a chapter's load on one variant; with --url instead of a chapter, put a load on your own service
    Load(Load),
    /// The arguments of `duel load`
    #[command(skip)]
    LoadOwn { arguments: Vec<OsString> },
    /// Ask all instruments of your own service at once, under your load, and say what holds requests up
    Look(Look),
    /// Compare two builds of your own service
    #[command(disable_help_flag = true)]
    Compare {
        /// The arguments of `duel compare`; `--help` tells them
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<OsString>,
    },
    /// Profile one variant under its chapter's load
    Profile(Profile),
    /// The ticket shop in capstone/: its scores, a bench and hints
    #[command(disable_help_flag = true)]
    Capstone {
        /// The arguments of the shop's own program; `--help` tells them
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<OsString>,
    },
    /// Record a chapter's evidence for the book, under flamegraphs/
    Capture(Capture),
    /// Make a git branch that turns a chapter's problem into its solution, a commit for each step
    Steps {
        /// A chapter's number, or capstone, whose branch has all of its fixes [default: all chapters]
        #[arg(value_parser = of_steps)]
        of: Option<Of>,
        #[command(flatten)]
        output: Output,
    },
    /// Check this machine: what is there, and which commands need what is missing
    Doctor {
        #[command(flatten)]
        output: Output,
    },
    /// Install pinned k6, Locust, mdbook, flamegraph and samply into .tools/
    Setup {
        /// Only these
        #[arg(value_name = "TOOL", ignore_case = true, value_parser = installable())]
        tools: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Prove {
    /// Chapters
    #[arg(value_name = "CHAPTER", value_parser = chapter)]
    pub(crate) chapters: Vec<u32>,
    /// All chapters, one after the other
    #[arg(long, conflicts_with_all = ["chapters", "regions"])]
    pub(crate) all: bool,
    /// Also what the law predicted, how busy the load generator was, and published figures
    #[arg(long, conflicts_with = "regions")]
    pub(crate) details: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Variant to compare with the problem: solution, exercise (your own), or another
    #[arg(long, default_value = "solution")]
    pub(crate) variant: String,
    /// Most triplets of rounds (problem, solution, solution again), if the chapter's are too few for a noisy machine
    #[arg(long, value_name = "TRIPLETS", value_parser = number(1_u32..=1000, "20"))]
    pub(crate) triplets: Option<u32>,
    /// Repeats the random moments of an earlier proof's requests, which printed its seed [default: a fresh one]
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u32>,
    /// Folder for the report [default: .workshop/reports]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) extent: Extent,
    /// Upstream of chapter 4's services; with nginx, its baselines are measured, too
    #[arg(long, value_enum, default_value_t = UpstreamOf::Embedded)]
    pub(crate) upstream: UpstreamOf,
    /// The database of chapter 9's services, such as `postgres://me@localhost/shop`, instead of a file
    /// of their own
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Chapter 7 in a small emulated machine with so many NUMA nodes: counts, no times
    #[arg(long = "numa-nodes", value_name = "NODES", value_parser = number(2_u32..=8, "4"))]
    #[arg(conflicts_with_all = ["triplets", "seed", "no_profiles", "matrix", "upstream", "database"])]
    pub(crate) regions: Option<u32>,
    /// CPUs of that machine [default: two for each node]
    #[arg(long, value_name = "CPUS", requires = "regions", value_parser = number(2_u32..=240, "8"))]
    pub(crate) cpus: Option<u32>,
}

/// Extra work of a proof besides its claims.
#[derive(Debug, Args)]
pub(crate) struct Extent {
    /// End with the verdict: no profiles, and no flamegraphs in the report
    #[arg(long)]
    pub(crate) no_profiles: bool,
    /// Also the chapter's table of all variants
    #[arg(long)]
    pub(crate) matrix: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// The chapter's number
    #[arg(value_parser = chapter)]
    pub(crate) chapter: u32,
    /// Factor by which a fix is better: a number, or a range such as 10-100
    #[arg(long, value_name = "TIMES")]
    pub(crate) gain: Option<Range>,
    /// The root cause's count in the problem
    #[arg(long, value_name = "COUNT")]
    pub(crate) problem: Option<Range>,
    /// The same in a fixed service
    #[arg(long, value_name = "COUNT")]
    pub(crate) fix: Option<Range>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// The chapter's number
    #[arg(value_parser = chapter)]
    pub(crate) chapter: u32,
    /// Load generator
    #[arg(long, value_enum, default_value_t = With::Embedded)]
    pub(crate) with: With,
    /// Which code answers: problem, exercise, solution, or another variant of the chapter
    #[arg(long, default_value = "exercise")]
    pub(crate) variant: String,
    /// Simultaneous users [default: the chapter's]
    #[arg(long, value_parser = number(1_u32..=1_000_000, "200"))]
    pub(crate) users: Option<u32>,
    /// Seconds that a user thinks between an answer and the next request [default: the chapter's]
    #[arg(long, value_name = "SECONDS", value_parser = number(0.0..=3600.0, "0.5"))]
    pub(crate) think: Option<f64>,
    /// Open loop: this many requests per second on a schedule, whatever the answers do; --think
    /// then means nothing, and only the embedded generator can do it
    #[arg(long, value_name = "PER SECOND", value_parser = number(0.01..=1_000_000.0, "500"))]
    pub(crate) rate: Option<f64>,
    /// Share of the requests that write, such as 0.05 [default: the chapter's]
    #[arg(long, value_name = "SHARE", value_parser = number(0.0..=0.99, "0.05"))]
    pub(crate) write_share: Option<f64>,
    /// Seconds of recorded load
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    #[arg(value_parser = number(0.1..=3600.0, "10"))]
    pub(crate) seconds: f64,
    /// A server that runs already, `http://127.0.0.1:8080`, instead of one of our own
    #[arg(long, value_name = "URL")]
    pub(crate) host: Option<String>,
    /// Spacing of the requests of --rate: at random moments, or in even steps
    #[arg(long, value_name = "HOW", default_value = "poisson", value_parser = spacing())]
    pub(crate) arrivals: Spacing,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// The chapter's number
    #[arg(value_parser = chapter)]
    pub(crate) chapter: u32,
    /// Which instrument
    #[arg(long, value_enum)]
    pub(crate) kind: Kind,
    /// Which code answers: problem, exercise, solution, or another variant of the chapter
    #[arg(long, default_value = "exercise")]
    pub(crate) variant: String,
    /// Seconds of profiling
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    #[arg(value_parser = number(0.1..=600.0, "10"))]
    pub(crate) seconds: f64,
    /// Folder for the files [default: .workshop/profiles]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Capture {
    /// Chapters; all of them if none is named
    #[arg(value_name = "CHAPTER", value_parser = chapter)]
    pub(crate) chapters: Vec<u32>,
    /// Record whatever was measured with other inputs than today's: chapters, and the tables of studies. Each record is
    /// kept once it is whole, so Ctrl-C loses only the one in progress
    #[arg(long, conflicts_with_all = ["chapters", "derive", "verify", "seed", "look", "regions"])]
    pub(crate) all: bool,
    /// Measure even while other programs use the machine: for a try, not for the book
    #[arg(long, conflicts_with_all = ["derive", "verify", "look", "regions"])]
    pub(crate) even_if_busy: bool,
    /// Measure nothing: derive tables, plots and flamegraphs from the records again
    #[arg(long)]
    pub(crate) derive: bool,
    /// Measure and write nothing: fail if a derived file differs from its record
    #[arg(long, conflicts_with = "derive")]
    pub(crate) verify: bool,
    /// Repeats the random moments of an earlier capture's requests, which printed its seed [default: a fresh one]
    #[arg(long, value_name = "SEED", conflicts_with_all = ["derive", "verify", "look", "regions"])]
    pub(crate) seed: Option<u32>,
    /// Instead: record the output of `look` on each chapter's problem under its load, in ten seconds
    #[arg(long, conflicts_with_all = ["derive", "verify"])]
    pub(crate) look: bool,
    /// Instead: chapter 7 in a small emulated machine with so many NUMA nodes
    #[arg(long = "numa-nodes", value_name = "NODES", value_parser = number(2_u32..=8, "4"))]
    #[arg(conflicts_with_all = ["derive", "verify"])]
    pub(crate) regions: Option<u32>,
    /// CPUs of that machine [default: two for each node]
    #[arg(long, value_name = "CPUS", requires = "regions", value_parser = number(2_u32..=240, "8"))]
    pub(crate) cpus: Option<u32>,
}

/// A load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum With {
    /// The workshop's own, which needs nothing installed
    Embedded,
    K6,
    Locust,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpstreamOf {
    /// The lab's own
    Embedded,
    /// nginx, with the configuration in the chapter's folder
    Nginx,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Functions that use CPU time
    Cpu,
    /// Places that allocate memory
    Heap,
    /// Waits of requests
    Await,
}
