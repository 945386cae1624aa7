//! The command line, as clap reads it.

use clap::{Parser, Subcommand, ValueEnum};

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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prove a chapter's claim on this machine: problem against solution
    Prove {
        /// Chapters; all of them if none is named
        #[arg(value_name = "CHAPTER")]
        chapters: Vec<u32>,
        #[command(flatten)]
        output: Output,
        /// Fixes the order of rounds and the resampling; printed in every report
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Pairs of rounds that the effect is measured with, where the chapter's are too few for a
        /// noisy machine
        #[arg(long, value_name = "PAIRS", value_parser = clap::value_parser!(u32).range(1..=1000))]
        pairs: Option<u32>,
        /// Where the report goes [default: .workshop/reports]
        #[arg(long, value_name = "FOLDER")]
        report: Option<std::path::PathBuf>,
        /// Also by k6 and Locust: do the three agree?
        #[arg(long)]
        all_generators: bool,
        /// Also the chapter's table of all variants
        #[arg(long)]
        matrix: bool,
        /// What the services of chapter 4 call; beside nginx its yardsticks are measured, too
        #[arg(long, value_enum, default_value_t = UpstreamOf::Embedded)]
        upstream: UpstreamOf,
        /// Chapter 7 in a small emulated machine with so many memory regions: counts, no times
        #[arg(long, value_name = "REGIONS")]
        #[arg(conflicts_with_all = ["seed", "pairs", "all_generators", "matrix", "upstream"])]
        regions: Option<u32>,
        /// Processors of that machine [default: two for each region]
        #[arg(long, value_name = "PROCESSORS", requires = "regions")]
        processors: Option<u32>,
    },
    /// Grade your exercise.rs
    Check {
        chapter: u32,
        /// Chapter 7 in a small emulated machine with so many memory regions
        #[arg(long, value_name = "REGIONS")]
        regions: Option<u32>,
        #[command(flatten)]
        output: Output,
    },
    /// The next hint of a chapter
    Hint {
        chapter: u32,
        /// Show all hints up to this one again
        #[arg(long, value_name = "N")]
        upto: Option<usize>,
        #[command(flatten)]
        output: Output,
    },
    /// The solution, as a diff from your exercise.rs
    Solution { chapter: u32 },
    /// Put exercise.rs back as it was shipped; your work is kept aside
    Reset { chapter: u32 },
    /// Put a chapter's load on one variant
    Load {
        chapter: u32,
        /// Which load generator
        #[arg(long, value_enum, default_value_t = With::Embedded)]
        with: With,
        /// Which code answers
        #[arg(long, default_value = "exercise")]
        variant: String,
        /// Simultaneous users [default: the chapter's]
        #[arg(long)]
        users: Option<u32>,
        /// Seconds that a user thinks between an answer and the next request [default: the chapter's]
        #[arg(long, value_name = "SECONDS")]
        think: Option<f64>,
        /// Open loop: this many requests a second on a schedule, whatever the answers do; --think
        /// then means nothing, and only the embedded generator can do it
        #[arg(long, value_name = "PER SECOND")]
        rate: Option<f64>,
        /// Share of the requests that write, such as 0.05 [default: the chapter's]
        #[arg(long, value_name = "SHARE")]
        write_share: Option<f64>,
        /// Seconds of recorded load
        #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
        seconds: f64,
        /// A server that runs already, `http://127.0.0.1:8080`, instead of one of our own
        #[arg(long, value_name = "URL")]
        host: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Profile one variant under its chapter's load
    Profile {
        chapter: u32,
        /// Which instrument
        #[arg(long, value_enum)]
        kind: Kind,
        /// Which code answers
        #[arg(long, default_value = "exercise")]
        variant: String,
        /// Seconds of profiling
        #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
        seconds: f64,
        /// Where the files go [default: .workshop/profiles]
        #[arg(long, value_name = "FOLDER")]
        into: Option<std::path::PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Record a chapter's evidence for the book, under flamegraphs/
    Capture {
        /// Chapters; all of them if none is named
        #[arg(value_name = "CHAPTER")]
        chapters: Vec<u32>,
        /// Measure nothing: derive tables, plots and flamegraphs from what is recorded again
        #[arg(long)]
        derive: bool,
        /// Measure and write nothing: fail if what is derived differs from what is there
        #[arg(long, conflicts_with = "derive")]
        verify: bool,
        /// Instead: what the book says of the instruments themselves; all of it, or one file
        #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
        #[arg(conflicts_with_all = ["derive", "verify", "chapters"])]
        measuring: Option<String>,
        /// Instead: chapter 7 in a small emulated machine with so many memory regions
        #[arg(long, value_name = "REGIONS")]
        #[arg(conflicts_with_all = ["derive", "verify", "measuring"])]
        regions: Option<u32>,
        /// Processors of that machine [default: two for each region]
        #[arg(long, value_name = "PROCESSORS", requires = "regions")]
        processors: Option<u32>,
    },
    /// Write a branch a chapter, a commit a step, for reading with git
    Steps {
        #[command(flatten)]
        output: Output,
    },
    /// What this machine has, and what is missing for what
    Doctor {
        #[command(flatten)]
        output: Output,
    },
    /// Install pinned k6, Locust and mdbook into .tools/
    Setup {
        /// Only these
        #[arg(value_enum, value_name = "TOOL")]
        tools: Vec<Tool>,
    },
    /// Everything that CI checks
    Test {
        /// Only the checks whose name contains this
        #[arg(value_name = "NAME")]
        filter: Option<String>,
        /// Only these chapters, where a check goes through all
        #[arg(long = "chapter", value_name = "CHAPTER")]
        chapters: Vec<u32>,
        /// List the checks
        #[arg(long)]
        list: bool,
    },
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Output {
    /// For people, or one JSON value on standard output
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Human,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum With {
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
    Cpu,
    Heap,
    Await,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Tool {
    K6,
    Locust,
    Mdbook,
    Browser,
    /// The kernel of the machine with several memory regions
    Kernel,
    Nginx,
}
