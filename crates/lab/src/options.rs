//! The command line of a chapter's server: what every chapter takes, and what this one uses.

use std::sync::Arc;

use axum::http::StatusCode;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, ValueEnum, value_parser};

use crate::cleanup::Cleanup;
use crate::scans::{DataSet, Scans};

/// A resource that a chapter's service uses. Each adds its options to the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uses {
    /// The stand-in [`Database`](crate::Database).
    Database,
    /// A database of its own, or the one that `--database` names: [`Lab::database_url`](crate::Lab::database_url).
    SqlDatabase,
    /// An [`Upstream`](crate::Upstream).
    Upstream,
    /// An upstream that can speak TLS. Goes with [`Uses::Upstream`] and the feature `tls`.
    UpstreamTls,
    /// A data set whose size fits the machine: [`Options::texts`].
    DataSet,
    /// Workers: the options `--cpus` and `--side-by-side` ([`Options::side_by_side`]).
    Workers,
    /// An archive: [`Lab::archive`](crate::Lab::archive).
    Archive,
}

/// The service of one chapter of the profiling workshop, on 127.0.0.1
#[derive(Debug, Parser)]
struct CommandLine<V: ValueEnum + Send + Sync + 'static> {
    /// Which code answers
    #[arg(value_enum, default_value = "exercise")]
    variant: V,

    #[command(flatten)]
    common: CommonOptions,
}

/// A server's command line. Options that the chapter does not use have their defaults.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The package's name.
    pub(crate) chapter: &'static str,
    /// The variant's name on the command line.
    pub(crate) variant: String,
    pub(crate) common: CommonOptions,
    pub(crate) database: DatabaseOptions,
    pub(crate) sql_database: SqlDatabaseOptions,
    pub(crate) upstream: UpstreamOptions,
    pub(crate) upstream_tls: UpstreamTlsOptions,
    pub(crate) data_set: DataSetOptions,
    pub(crate) workers: WorkerOptions,
    pub(crate) archive: ArchiveOptions,
    /// Counts scans. Made with the options, because it reads how many CPUs the process may use, and
    /// a chapter may pin its main thread to one of them later.
    pub(crate) scans: Scans,
    /// Values to drop when the server stops.
    pub(crate) cleanup: Cleanup,
}

// What stands above a field is its text in `--help`.

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CommonOptions {
    /// Port of the service; 0 picks a free one
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,

    /// Port of /metrics and /debug; 0 picks a free one
    #[arg(long, default_value_t = 6060)]
    pub(crate) admin_port: u16,

    /// Vary the data, and with it the right answer
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u64).range(..=u64::from(u32::MAX)))]
    pub(crate) data_seed: u64,

    // The default is enough for thousands of users at once.
    /// Connections that the system holds until the service accepts them
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = value_parser!(u32).range(1..=65_535))]
    pub(crate) backlog: u32,

    /// Stop when standard input closes
    #[arg(long, hide = true)]
    pub(crate) stop_with_stdin: bool,

    // A thousand ticks a second take about a hundredth of a CPU. Rounds that compare CPU time leave
    // them out.
    /// Leave out the task that ticks every millisecond, if the chapter has one
    #[arg(long, hide = true)]
    pub(crate) no_heartbeat: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DatabaseOptions {
    /// Duration of a call of the stand-in database, in milliseconds
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(..=60_000))]
    pub(crate) database_ms: Option<u64>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SqlDatabaseOptions {
    /// Keep the data in this database instead of in a file of the server's own
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct UpstreamOptions {
    /// Call this upstream instead of the embedded one
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,

    /// Milliseconds that the embedded upstream waits before it answers, as an upstream on a network would
    #[arg(long, value_name = "MS", conflicts_with = "upstream")]
    #[arg(value_parser = value_parser!(u64).range(..=60_000))]
    pub(crate) upstream_latency_ms: Option<u64>,

    /// The embedded upstream fails
    #[arg(long, value_enum, value_name = "HOW", conflicts_with = "upstream")]
    pub(crate) upstream_fault: Option<UpstreamFault>,

    /// Number of requests that it answers before it fails
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) upstream_fault_after: u64,

    /// Number of failed requests after which it answers again
    #[arg(long, value_name = "N")]
    pub(crate) upstream_faults: Option<u64>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct UpstreamTlsOptions {
    /// The embedded upstream speaks TLS
    #[arg(long, conflicts_with = "upstream")]
    pub(crate) tls: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DataSetOptions {
    /// Number of texts in the data set
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) texts: Option<u64>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WorkerOptions {
    /// Number of CPUs to use (Linux)
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) cpus: Option<u32>,

    /// Start the workers once for each CPU, from a thread that is pinned to it
    #[arg(long)]
    pub(crate) side_by_side: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ArchiveOptions {
    // A link of two gigabits, and slower than any machine copies in memory.
    /// MiB a second that the archive takes and gives; 0 is as fast as the machine
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) archive_mib_per_second: u32,

    /// The archive keeps nothing and answers with this status
    #[arg(long, value_name = "CODE")]
    pub(crate) archive_status: Option<StatusCode>,
}

/// Failure of the embedded upstream.
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
}

impl Options {
    /// A data set of these items, counted on `/metrics`.
    pub fn data_set<T>(&self, items: Arc<[T]>) -> DataSet<T> {
        DataSet::counted(items, self.scans.clone())
    }

    /// Reads the process's arguments: the variant, and everything else. A usage error ends the
    /// process with code 2, as clap does.
    ///
    /// `chapter` is the package's name. For chapters whose variants need runtimes of their own;
    /// others call [`crate::Lab::start`].
    pub fn read<V: ValueEnum + Send + Sync + 'static>(
        chapter: &'static str,
        uses: &[Uses],
    ) -> (V, Self) {
        let matches = command::<V>(chapter, uses).get_matches();
        let (variant, options) =
            parse(&matches, chapter, uses).unwrap_or_else(|error| error.exit());
        // Before any code of the chapter runs, which may never come to an end.
        if options.common.stop_with_stdin {
            options.cleanup.stop_with_stdin();
        }
        (variant, options)
    }

    /// Returns the same seed as [`crate::Lab::data_seed`], for data that are built before the lab opens.
    pub fn data_seed(&self) -> u64 {
        self.common.data_seed
    }

    /// Returns whether `--side-by-side` was given: the chapter then starts its workers once for each CPU, from a thread that
    /// is pinned to it, as one process on each CPU would.
    pub fn side_by_side(&self) -> bool {
        self.workers.side_by_side
    }
}

fn command<V: ValueEnum + Send + Sync + 'static>(
    chapter: &'static str,
    uses: &[Uses],
) -> clap::Command {
    let command = CommandLine::<V>::command().name(chapter);
    uses.iter().fold(command, |command, uses| match uses {
        Uses::Database => DatabaseOptions::augment_args(command),
        Uses::SqlDatabase => SqlDatabaseOptions::augment_args(command),
        Uses::Upstream => UpstreamOptions::augment_args(command),
        Uses::UpstreamTls => UpstreamTlsOptions::augment_args(command),
        Uses::DataSet => DataSetOptions::augment_args(command),
        Uses::Workers => WorkerOptions::augment_args(command),
        Uses::Archive => ArchiveOptions::augment_args(command),
    })
}

fn parse<V: ValueEnum + Send + Sync + 'static>(
    matches: &ArgMatches,
    chapter: &'static str,
    uses: &[Uses],
) -> Result<(V, Options), clap::Error> {
    let CommandLine { variant, common } = CommandLine::<V>::from_arg_matches(matches)?;
    let name = variant.to_possible_value();
    let mut options = Options {
        chapter,
        variant: name.map_or_else(String::new, |value| value.get_name().to_owned()),
        common,
        ..Options::default()
    };
    for uses in uses {
        match uses {
            Uses::Database => options.database.update_from_arg_matches(matches)?,
            Uses::SqlDatabase => options.sql_database.update_from_arg_matches(matches)?,
            Uses::Upstream => options.upstream.update_from_arg_matches(matches)?,
            Uses::UpstreamTls => options.upstream_tls.update_from_arg_matches(matches)?,
            Uses::DataSet => options.data_set.update_from_arg_matches(matches)?,
            Uses::Workers => options.workers.update_from_arg_matches(matches)?,
            Uses::Archive => options.archive.update_from_arg_matches(matches)?,
        }
    }
    if let Some(cpus) = options.workers.cpus {
        options.scans = Scans::on_the_last(cpus);
    }
    Ok((variant, options))
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

    const USES: [Uses; 2] = [Uses::Upstream, Uses::Archive];

    fn run(arguments: &[&str]) -> Result<(Variant, Options), clap::Error> {
        let line = [&["chapter0"], arguments].concat();
        let matches = command::<Variant>("chapter0", &USES).try_get_matches_from(line);
        parse(&matches?, "chapter0", &USES)
    }

    #[test]
    fn a_bare_command_runs_the_exercise_on_the_documented_ports() {
        let (variant, options) = run(&[]).expect("no argument is needed");
        assert_eq!(variant, Variant::Exercise);
        assert_eq!(options.variant, "exercise");
        let CommonOptions {
            port, admin_port, ..
        } = options.common;
        assert_eq!((port, admin_port), (8080, 6060));
        assert_eq!(options.archive.archive_mib_per_second, 256);
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error_and_says_why() {
        let elsewhere = ["--upstream", "http://127.0.0.1:18081/"];
        let waiting = ["--upstream-latency-ms", "20"];
        for (arguments, words) in [
            (&["slow"] as &[_], "problem, exercise, few-at-once"),
            // There is no data set.
            (&["--texts", "3"], "'--texts'"),
            (&[elsewhere, waiting].concat(), "cannot be used with"),
        ] {
            let refusal = run(arguments).expect_err(words);
            assert_eq!(refusal.exit_code(), 2);
            assert!(refusal.to_string().contains(words), "{refusal}");
        }
        run(&elsewhere).expect("without the latency it is right");
        let (_, options) = run(&waiting).expect("the embedded one can wait");
        assert_eq!(options.upstream.upstream_latency_ms, Some(20));
    }

    #[test]
    fn help_lists_the_variants_and_the_options_that_the_chapter_uses() {
        let help = command::<Variant>("chapter0", &USES)
            .render_help()
            .to_string();
        let values = "[default: exercise] [possible values: problem, exercise, few-at-once]";
        assert!(help.contains(values), "{help}");
        assert!(help.contains("--upstream-fault <HOW>"), "{help}");
        assert!(!help.contains("--database"), "{help}");
        assert!(!help.contains("--stop-with-stdin"), "{help}");
    }
}
