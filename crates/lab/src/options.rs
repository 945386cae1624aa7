//! The command line that every chapter's server shares.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum, value_parser};

use crate::Scans;
use crate::kept::Kept;

/// The service of one chapter of the profiling workshop, on 127.0.0.1
#[derive(Debug, Parser)]
struct CommandLine<V: ValueEnum + Send + Sync + 'static> {
    /// Which code answers
    #[arg(value_enum, default_value = "exercise")]
    variant: V,

    #[command(flatten)]
    options: Options,
}

// What stands above a field is its text in `--help`, unless it is skipped.
/// How a server was asked to run: its command line without the variant.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of the command line.
pub struct Options {
    /// The package's name.
    #[arg(skip)]
    pub(crate) chapter: &'static str,

    /// The variant's name on the command line.
    #[arg(skip)]
    pub(crate) variant: String,

    /// Port of the service; 0 picks a free one
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,

    /// Port of /metrics and /debug; 0 picks a free one
    #[arg(long, default_value_t = 6060)]
    pub(crate) admin_port: u16,

    /// Vary the data, and with it the right answer
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u64).range(..=u64::from(u32::MAX)))]
    pub(crate) data_seed: u64,

    // The others are hidden: only some chapters have an upstream, a data set, a database or files, and only
    // drivers need the rest. The book's pages name them where they matter.
    //
    /// Call this upstream instead of the embedded one
    #[arg(long, value_name = "URL", hide = true)]
    pub(crate) upstream: Option<String>,

    /// The embedded upstream speaks TLS
    #[arg(long, conflicts_with = "upstream", hide = true)]
    pub(crate) tls: bool,

    // A thousand ticks a second take about a hundredth of a CPU. Rounds that compare CPU time leave
    // them out.
    /// Leave out the task that ticks every millisecond
    #[arg(long, hide = true)]
    pub(crate) no_heartbeat: bool,

    /// The embedded upstream waits that long before it answers, as one on a network
    #[arg(long, value_name = "MS", hide = true)]
    #[arg(conflicts_with = "upstream", value_parser = value_parser!(u64).range(..=60_000))]
    pub(crate) upstream_latency_ms: Option<u64>,

    /// The embedded upstream fails
    #[arg(long, value_enum, value_name = "HOW", hide = true)]
    #[arg(conflicts_with = "upstream")]
    pub(crate) upstream_fault: Option<UpstreamFault>,

    /// It answers so many requests first
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub(crate) upstream_fault_after: u64,

    /// And after so many that failed it answers again
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) upstream_faults: Option<u64>,

    /// A call of the stand-in database takes that long
    #[arg(long, value_name = "MS", hide = true)]
    #[arg(value_parser = value_parser!(u64).range(..=60_000))]
    pub(crate) database_ms: Option<u64>,

    /// Keep a data set of so many texts
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), hide = true)]
    pub(crate) texts: Option<u64>,

    /// Use only so many of the CPUs that there are (Linux)
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..), hide = true)]
    pub(crate) cpus: Option<u32>,

    /// Start the workers once for each CPU, from a thread that is pinned to it
    #[arg(long, hide = true)]
    pub(crate) side_by_side: bool,
    /// Keep the data in this database instead of in a file of the server's own
    #[arg(long, value_name = "URL", hide = true)]
    pub(crate) database: Option<String>,

    /// Put temporary files there instead of into the system's folder for them
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(crate) files: Option<PathBuf>,

    // As fast as a volume of a cloud that was paid for, and slower than any machine copies in memory.
    /// MiB a second that the stand-in disk of temporary files writes and reads; 0 is as fast as the
    /// machine's own
    #[arg(long, value_name = "N", default_value_t = 256, hide = true)]
    pub(crate) disk_mib_per_second: u32,

    /// Stop when standard input closes
    #[arg(long, hide = true)]
    pub(crate) stop_with_stdin: bool,

    /// Counts scans. Made with the options, because it reads how many CPUs the process may use, and
    /// a chapter may pin its main thread to one of them later.
    #[arg(skip)]
    pub(crate) scans: Scans,

    /// What goes when the server stops.
    #[arg(skip)]
    pub(crate) kept: Kept,
}

/// How the embedded upstream fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpstreamFault {
    /// 503, with a body that reads like an answer.
    Status,
    /// 200, with a body that is none.
    Garbage,
    /// It closes the connection before the answer.
    HangUp,
    /// It never answers.
    Silence,
    /// It begins an answer that never ends.
    Stall,
    /// It begins an answer, and closes the connection.
    BreakOff,
    /// A price below nothing.
    Negative,
    /// Another message than before, of the same length.
    Changed,
}

impl Options {
    /// Reads the process's arguments: the variant, and everything else. A usage error ends the
    /// process with code 2, as clap does.
    ///
    /// `chapter` is the package's name. For chapters whose variants need runtimes of their own;
    /// others call [`crate::Lab::start`].
    pub fn read<V: ValueEnum + Send + Sync + 'static>(chapter: &'static str) -> (V, Self) {
        let matches = command::<V>(chapter).get_matches();
        let line = CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let (variant, options) = line.for_chapter(chapter);
        // Before any code of the chapter runs, which may never come to an end.
        if options.stop_with_stdin {
            options.kept.stop_with_stdin();
        }
        (variant, options)
    }

    /// As [`crate::Lab::data_seed`], for data that are built before the lab opens.
    pub fn data_seed(&self) -> u64 {
        self.data_seed
    }

    /// Whether workers are started once for each CPU, as by so many processes that have one each.
    pub fn side_by_side(&self) -> bool {
        self.side_by_side
    }

    /// Counts scans of a data set on `/metrics`.
    pub fn scans(&self) -> Scans {
        self.scans.clone()
    }
}

fn command<V: ValueEnum + Send + Sync + 'static>(chapter: &'static str) -> clap::Command {
    CommandLine::<V>::command().name(chapter)
}

impl<V: ValueEnum + Send + Sync + 'static> CommandLine<V> {
    fn for_chapter(self, chapter: &'static str) -> (V, Options) {
        let Self { variant, options } = self;
        let value = variant.to_possible_value();
        let name = value.map(|value| value.get_name().to_owned());
        let scans = options.cpus.map(Scans::on_the_last);
        let options = Options {
            scans: scans.unwrap_or(options.scans),
            chapter,
            variant: name.unwrap_or_default(),
            ..options
        };
        (variant, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
    enum Variant {
        Problem,
        Exercise,
        FewAtOnce,
    }

    fn parse(arguments: &[&str]) -> Result<(Variant, Options), clap::Error> {
        let matches = command::<Variant>("chapter0")
            .try_get_matches_from([&["chapter0"], arguments].concat());
        CommandLine::from_arg_matches(&matches?).map(|line| line.for_chapter("chapter0"))
    }

    #[test]
    fn a_bare_command_runs_the_exercise_on_the_documented_ports() {
        let (variant, options) = parse(&[]).expect("no argument is needed");
        assert_eq!(variant, Variant::Exercise);
        assert_eq!(options.variant, "exercise");
        assert_eq!((options.port, options.admin_port), (8080, 6060));
    }

    #[test]
    fn another_upstream_has_a_latency_of_its_own() {
        let waits = parse(&["--upstream-latency-ms", "20"]).expect("the embedded one can wait");
        assert_eq!(waits.1.upstream_latency_ms, Some(20));
        let url = "http://127.0.0.1:18081/";
        let both = parse(&["--upstream", url, "--upstream-latency-ms", "20"]);
        let said = both.expect_err("one or the other").to_string();
        assert!(said.contains("cannot be used with"), "{said}");
        parse(&["--upstream", url]).expect("without the latency it is right");
    }

    #[test]
    fn an_unknown_variant_is_refused_with_the_ones_there_are() {
        let said = parse(&["slow"]).expect_err("no such variant").to_string();
        assert!(said.contains("problem, exercise, few-at-once"), "{said}");
    }

    #[test]
    fn help_lists_the_variants_and_no_hidden_option() {
        let help = command::<Variant>("chapter0").render_help().to_string();
        let values = "[default: exercise] [possible values: problem, exercise, few-at-once]";
        assert!(help.contains(values), "{help}");
        assert!(!help.contains("--stop-with-stdin"), "{help}");
    }
}
