//! The command line that every chapter's server shares.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::Scans;

/// How a server was asked to run, read off its command line.
#[derive(Debug, Clone)]
pub struct Options {
    /// The package's name.
    pub(crate) chapter: &'static str,
    /// Which of the chapter's variants.
    pub(crate) variant: String,
    /// Port of the service; 0 picks a free one.
    pub(crate) port: u16,
    /// Port of the admin listener; 0 picks a free one.
    pub(crate) admin_port: u16,
    /// Varies the chapter's data, see [`crate::Lab::data_seed`].
    pub(crate) data_seed: u64,
    /// Another upstream than the embedded one, see [`crate::Upstream`].
    pub(crate) upstream: Option<String>,
    /// The embedded upstream speaks TLS.
    pub(crate) tls: bool,
    /// Where temporary files go, see [`crate::Lab::files`].
    pub(crate) files: Option<PathBuf>,
    /// How long the embedded upstream waits before it answers.
    pub(crate) upstream_latency: Duration,
    /// The task that ticks, where the chapter has one, does.
    pub(crate) heartbeat: bool,
    /// Size of the data set, see [`Options::texts`].
    pub(crate) texts: Option<u64>,
    /// Who scans; made here because it has to look before any thread is pinned.
    pub(crate) scans: Scans,
    /// Stop when standard input closes, so that a driver that dies leaves no server behind.
    pub(crate) stop_with_stdin: bool,
}

impl Options {
    /// Reads the process's arguments. A usage error ends the process with code 2, as clap does.
    ///
    /// `chapter` is the package's name, `variants` the names that the command line takes. For
    /// chapters whose variants need runtimes of their own; others call [`crate::Lab::start`].
    pub fn read(chapter: &'static str, variants: &'static [&'static str]) -> Self {
        Self::from_matches(chapter, &command(chapter, variants).get_matches())
    }

    /// The variant that was asked for.
    pub fn variant(&self) -> &str {
        &self.variant
    }

    /// As [`crate::Lab::data_seed`], for data that are built before the lab opens.
    pub fn data_seed(&self) -> u64 {
        self.data_seed
    }

    /// Counts scans of a data set on `/metrics`.
    pub fn scans(&self) -> Scans {
        self.scans.clone()
    }

    fn from_matches(chapter: &'static str, matches: &ArgMatches) -> Self {
        let port = |name| matches.get_one::<u16>(name).copied().unwrap_or_default();
        Self {
            chapter,
            variant: matches
                .get_one::<String>("variant")
                .cloned()
                .unwrap_or_default(),
            port: port("port"),
            admin_port: port("admin-port"),
            data_seed: matches
                .get_one::<u64>("data-seed")
                .copied()
                .unwrap_or_default(),
            upstream: matches.get_one::<String>("upstream").cloned(),
            tls: matches.get_flag("tls"),
            files: matches.get_one::<PathBuf>("files").cloned(),
            upstream_latency: Duration::from_millis(
                matches
                    .get_one::<u64>("upstream-latency-ms")
                    .copied()
                    .unwrap_or_default(),
            ),
            heartbeat: !matches.get_flag("no-heartbeat"),
            texts: matches.get_one::<u64>("texts").copied(),
            scans: Scans::default(),
            stop_with_stdin: matches.get_flag("stop-with-stdin"),
        }
    }
}

fn command(chapter: &'static str, variants: &'static [&'static str]) -> Command {
    Command::new(chapter)
        .about("The service of one chapter of the profiling workshop, on 127.0.0.1")
        .arg(
            Arg::new("variant")
                .value_name("VARIANT")
                .help("Which code answers")
                .value_parser(variants.to_vec())
                .default_value("exercise"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .help("Port of the service; 0 picks a free one")
                .value_parser(value_parser!(u16))
                .default_value("8080"),
        )
        .arg(
            Arg::new("admin-port")
                .long("admin-port")
                .help("Port of /metrics and /debug; 0 picks a free one")
                .value_parser(value_parser!(u16))
                .default_value("6060"),
        )
        .arg(
            Arg::new("data-seed")
                .long("data-seed")
                .help("Vary the data, and with it the right answer")
                .value_parser(value_parser!(u64).range(..=u64::from(u32::MAX)))
                .default_value("0"),
        )
        // Only some chapters have an upstream or a data set; their pages say so.
        .arg(
            Arg::new("upstream")
                .long("upstream")
                .value_name("URL")
                .help("Call this upstream instead of the embedded one")
                .hide(true),
        )
        .arg(
            Arg::new("tls")
                .long("tls")
                .help("The embedded upstream speaks TLS")
                .action(ArgAction::SetTrue)
                .conflicts_with("upstream")
                .hide(true),
        )
        // A thousand ticks a second cost some hundredths of a processor: rounds in which processor
        // time is judged do without.
        .arg(
            Arg::new("no-heartbeat")
                .long("no-heartbeat")
                .help("Leave out the task that ticks every millisecond")
                .action(ArgAction::SetTrue)
                .hide(true),
        )
        .arg(
            Arg::new("upstream-latency-ms")
                .long("upstream-latency-ms")
                .value_name("MS")
                .help(
                    "The embedded upstream waits that long before it answers, as one on a network",
                )
                .value_parser(value_parser!(u64).range(..=60_000))
                .default_value("0")
                .conflicts_with("upstream")
                .hide(true),
        )
        .arg(
            Arg::new("texts")
                .long("texts")
                .value_name("N")
                .help("Keep a data set of so many texts")
                .value_parser(value_parser!(u64).range(1..))
                .hide(true),
        )
        .arg(
            Arg::new("files")
                .long("files")
                .value_name("FOLDER")
                .help("Put temporary files there instead of into the system's folder for them")
                .value_parser(value_parser!(PathBuf))
                .hide(true),
        )
        .arg(
            Arg::new("stop-with-stdin")
                .long("stop-with-stdin")
                .help("Stop when standard input closes")
                .action(ArgAction::SetTrue)
                .hide(true),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        command("chapter0", &["problem", "exercise", "solution"])
            .try_get_matches_from([&["chapter0"], arguments].concat())
            .map(|matches| Options::from_matches("chapter0", &matches))
    }

    #[test]
    fn a_bare_command_runs_the_exercise_on_the_documented_ports() {
        let options = parse(&[]).expect("no argument is needed");
        assert_eq!(options.variant, "exercise");
        assert_eq!((options.port, options.admin_port), (8080, 6060));
    }

    #[test]
    fn another_upstream_has_a_latency_of_its_own() {
        let options = parse(&["--upstream-latency-ms", "20"]).expect("the embedded one can wait");
        assert_eq!(options.upstream_latency, Duration::from_millis(20));
        let url = "http://127.0.0.1:18081/";
        let both = parse(&["--upstream", url, "--upstream-latency-ms", "20"]);
        let said = both.expect_err("one or the other").to_string();
        assert!(said.contains("cannot be used with"), "{said}");
        parse(&["--upstream", url]).expect("without the latency it is right");
    }

    #[test]
    fn an_unknown_variant_is_refused_with_the_ones_there_are() {
        let said = parse(&["slow"]).expect_err("no such variant").to_string();
        assert!(said.contains("problem, exercise, solution"), "{said}");
    }
}
