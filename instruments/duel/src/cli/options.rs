//! The options of each command.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use terminal::arguments::{number, pointer, share, spacing, times};
pub(crate) use terminal::output::{Format, Output};

use engine::traffic::Spacing;

/// What is sent to a service.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct Sent {
    /// A path to get; `/checkout/{1..5000}` or `/checkout/{file:ids.txt}` draws a value each time,
    /// and `'/search?q=tea x3'` is sent three times as often as another without a weight
    #[arg(long, value_name = "PATH")]
    pub get: Vec<String>,
    /// The same with another method: `'POST /orders'`
    #[arg(long, value_name = "METHOD PATH")]
    pub request: Vec<String>,
    /// What an access log in the common or combined format, such as nginx's, has of GET requests: its 50 most
    /// frequent routes by how often each was sent. Numbers and ids in paths are values
    #[arg(long, value_name = "FILE", conflicts_with_all = ["get", "request"])]
    pub access_log: Option<PathBuf>,
    /// A header of every request: `'Authorization: Bearer …'`
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// The body of each --request that has one, `@FILE` to read it; once, or once for each. That of
    /// gRPC is a message, whose frame is added if it has none
    #[arg(long, value_name = "TEXT")]
    pub body: Vec<String>,
    /// What each server is asked before all others: `'POST /login'`. They carry the cookies that its answer sets
    #[arg(long, value_name = "METHOD PATH")]
    pub login: Option<String>,
    /// Its body, `@FILE` to read it
    #[arg(long, value_name = "TEXT", requires = "login")]
    pub login_body: Option<String>,
    /// Where a token is in its answer, such as `/token`, that the others carry as `Authorization: Bearer …`
    #[arg(long, value_name = "POINTER", requires = "login", value_parser = pointer)]
    pub login_token: Option<String>,
    /// How the requests of --rate and of the bystander are spaced, an open loop
    #[arg(long, value_name = "HOW", default_value = "poisson", value_parser = spacing())]
    pub arrivals: Spacing,
    /// Repeats the random moments and values of an earlier run, which printed its seed [default: a fresh one]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u32>,
    /// A path that is asked at a steady rate beside the load: what the others feel of it
    #[arg(long, value_name = "PATH")]
    pub bystander: Option<String>,
    /// How often
    #[arg(
        long,
        value_name = "PER SECOND",
        default_value_t = 200.0,
        requires = "bystander"
    )]
    #[arg(value_parser = number(1.0..=10_000.0, "200"))]
    pub bystander_rate: f64,
    /// HTTPS: trust the certificate authorities of this file (PEM), and no others
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// HTTPS: check no certificate, such as of a service that made its own
    #[arg(long, conflicts_with = "cacert")]
    pub insecure: bool,
    /// HTTP/2, which the service must speak: chosen by ALPN in HTTPS, without asking in plain HTTP.
    /// Each user has a connection of its own, and one request on it at a time
    #[arg(long)]
    pub http2: bool,
    /// A new connection for each request
    #[arg(long)]
    pub no_keep_alive: bool,
    /// The status that every answer must have; bodies are not looked at then [default: status and
    /// body as learnt before the load]
    #[arg(long, value_name = "STATUS", value_parser = number(200_u16..=599, "200"))]
    pub expect_status: Option<u16>,
    /// What of a body must be as learnt; JSON is compared whatever the order of its keys
    /// [default: the whole body, or nothing where it changes from one answer to the next]
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        conflicts_with = "expect_status"
    )]
    pub compare: Option<Bodies>,
    /// Compare JSON without what this pointer names, such as `/generated_at`; `*` in `/items/*/id` is every
    /// element. May be repeated
    #[arg(long, value_name = "POINTER", conflicts_with = "expect_status", value_parser = pointer)]
    pub ignore_json: Vec<String>,
    /// A command that compares the files $EXPECTED and $RECEIVED, and ends with 0 if they are the same answer. It is
    /// asked about a few of each route before and after each load, for a process an answer is too slow under it
    #[arg(long, value_name = "COMMAND")]
    #[arg(conflicts_with_all = ["expect_status", "compare", "ignore_json"])]
    pub judge: Option<String>,
    /// A status that is right as well, by design, such as 503 of a service that sheds load; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = number(200_u16..=599, "503"))]
    pub allow_status: Vec<u16>,
    /// Seconds of load before anything is recorded
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    #[arg(value_parser = number(0.0..=600.0, "1"))]
    pub warm_up: f64,
    /// Seconds after which a request without an answer has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    #[arg(value_parser = number(0.1..=600.0, "30"))]
    pub time_out: f64,
}

#[cfg(test)]
impl Sent {
    /// Returns the options of a command line that has none of them.
    pub(crate) fn plain() -> Self {
        use clap::FromArgMatches as _;

        let read = Self::augment_args(clap::Command::new("")).get_matches_from([""]);
        Self::from_arg_matches(&read).expect("every option has a default")
    }
}

/// Who sends the load of `--with locust`.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Workers {
    /// Workers of Locust on this machine, of a reader's own service [default: 1]
    #[arg(long, value_name = "N", value_parser = number(0_u32..=256, "4"))]
    pub workers: Option<u32>,
    /// Workers of Locust on other machines, which are waited for
    #[arg(long, value_name = "N", value_parser = number(1_u32..=1000, "4"))]
    pub expect_workers: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// A command that starts the service as it is, with `{port}` or the variable PORT to listen on;
    /// or `git:REVISION`
    #[arg(long, value_name = "COMMAND", required_unless_present = "running")]
    pub base: Option<String>,
    /// The same of the service with the change
    #[arg(long, value_name = "COMMAND", required_unless_present = "running")]
    pub change: Option<String>,
    /// Two that run already, base and change, instead; they are not pinned
    #[arg(long, value_name = "URL", num_args = 2, conflicts_with_all = ["base", "change"])]
    pub running: Vec<String>,
    #[command(flatten)]
    pub how: Comparing,
    /// Which load generator: embedded, or locust
    #[arg(long, value_enum, default_value_t = With::Embedded)]
    pub with: With,
    #[command(flatten)]
    pub workers: Workers,
    /// No round begins after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0)]
    #[arg(value_parser = number(1.0..=86_400.0, "300"))]
    pub at_most: f64,
    /// The change must be so many times as good
    #[arg(long, value_name = "TIMES", value_parser = times, help_heading = "Verdict")]
    #[arg(conflicts_with_all = ["at_most_slower", "margin"])]
    pub at_least: Option<f64>,
    /// The change may be worse by this share, and no more
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Verdict")]
    #[arg(conflicts_with = "margin")]
    pub at_most_slower: Option<f64>,
    /// What the command ends with when the verdict is inconclusive: 0, or 4 [default: 1, as when it is slower]
    #[arg(long, value_name = "HOW", value_enum, help_heading = "Verdict")]
    pub inconclusive: Option<Inconclusive>,
    /// A counter that both have under --metrics, told beside
    #[arg(long, value_name = "NAME", help_heading = "Verdict")]
    pub root_cause: Vec<String>,
    /// Where the counters are, as Prometheus text; on the port that `{admin_port}` gives, if the
    /// command has it
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/metrics",
        help_heading = "Verdict"
    )]
    pub metrics: String,
    /// Also profile both builds afterwards, if they have the endpoints of debug-endpoints, for the report
    #[arg(long, help_heading = "Output")]
    pub profiles: bool,
    /// Where the report goes [default: target/duel]
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Also write the figures for tools that keep them, into this folder: `bencher.json` in Bencher's metric format, and
    /// `smaller-is-better.json` and `bigger-is-better.json` for github-action-benchmark
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub export: Option<PathBuf>,
    /// Also write a summary for a pull request
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub markdown: Option<PathBuf>,
}

/// How builds are made, started, loaded and told.
#[derive(Debug, Args)]
pub(crate) struct Comparing {
    /// What builds a revision, in a worktree of its own
    #[arg(long, value_name = "COMMAND", default_value = "cargo build --release")]
    pub build: String,
    /// What starts a revision's build, in the same folder
    #[arg(long, value_name = "COMMAND")]
    pub run: Option<String>,
    /// A path that answers with 2xx once the service is ready [default: its port is enough]
    #[arg(long, value_name = "PATH")]
    pub ready: Option<String>,
    /// Seconds that this may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    #[arg(value_parser = number(0.1..=3600.0, "30"))]
    pub ready_within: f64,
    /// Simultaneous users
    #[arg(long, default_value_t = 50, value_parser = number(1_u32..=1_000_000, "200"))]
    pub users: u32,
    /// Seconds that a user thinks between an answer and the next request
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = number(0.0..=3600.0, "0.5"))]
    pub think: f64,
    /// Open loop: this many requests per second on a schedule, whatever the answers do
    #[arg(long, value_name = "PER SECOND", conflicts_with = "think", value_parser = number(0.01..=1_000_000.0, "500"))]
    pub rate: Option<f64>,
    /// Seconds that a slice records; longer where a percentile takes it
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    #[arg(value_parser = number(0.1..=20.0, "1"))]
    pub seconds: f64,
    #[command(flatten)]
    pub sent: Sent,
    /// What decides [default: `requests_per_second`, with --rate `p50_ms`]
    #[arg(long, value_name = "METRIC", help_heading = "Verdict")]
    pub metric: Option<String>,
    /// Differences below this share are none
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share, help_heading = "Verdict")]
    pub margin: f64,
    #[command(flatten)]
    pub output: Output,
}

/// A search for the commit that made a service slower.
#[derive(Debug, Args)]
pub(crate) struct Bisect {
    /// A revision that is as fast as it should be
    #[arg(long, value_name = "REVISION")]
    pub good: String,
    /// A later one that is slower; what lies between is followed by first parents, so a merge is one commit
    #[arg(long, value_name = "REVISION")]
    pub bad: String,
    #[command(flatten)]
    pub how: Comparing,
    /// How sure it must be, from 0.5 to 0.99
    #[arg(
        long,
        value_name = "PROBABILITY",
        default_value_t = 0.95,
        help_heading = "Verdict"
    )]
    #[arg(value_parser = number(0.5..=0.99, "0.95"))]
    pub confidence: f64,
    /// No round begins after so many seconds in all, builds included
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0)]
    #[arg(value_parser = number(1.0..=86_400.0, "3600"))]
    pub at_most: f64,
}

/// A load on one service.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// The service, `http://127.0.0.1:8080`, or with a path where that is all there is to ask for
    #[arg(value_name = "URL")]
    pub url: String,
    /// Simultaneous users
    #[arg(long, default_value_t = 50, value_parser = number(1_u32..=1_000_000, "200"))]
    pub users: u32,
    /// Seconds that a user thinks between an answer and the next request
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = number(0.0..=3600.0, "0.5"))]
    pub think: f64,
    /// Open loop: this many requests per second on a schedule, whatever the answers do
    #[arg(long, value_name = "PER SECOND", conflicts_with = "think", value_parser = number(0.01..=1_000_000.0, "500"))]
    pub rate: Option<f64>,
    /// Seconds of recorded load
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    #[arg(value_parser = number(0.1..=3600.0, "10"))]
    pub seconds: f64,
    /// Which load generator: embedded, or locust
    #[arg(long, value_enum, default_value_t = With::Embedded)]
    pub with: With,
    /// Look at the service meanwhile, by its debug endpoints there, and set its time beside the client's
    #[arg(long, value_name = "URL")]
    pub look: Option<String>,
    /// Write the load as a k6 script, too
    #[arg(long, value_name = "FILE")]
    pub k6: Option<PathBuf>,
    /// Write the load as a Locust file, too
    #[arg(long, value_name = "FILE")]
    pub locust: Option<PathBuf>,
    /// Who sends it
    #[command(flatten)]
    pub workers: Workers,
    /// How it is told
    #[command(flatten)]
    pub output: Output,
    /// What is sent
    #[command(flatten)]
    pub sent: Sent,
}

/// Workflows for a repository.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// What builds the service [default: found out by `cargo metadata`]
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// What starts the build, with `{port}` where its port goes [default: found out from its sources]
    #[arg(long, value_name = "COMMAND")]
    pub run: Option<String>,
    /// Where the action is: `OWNER/REPOSITORY/instruments/duel@COMMIT` [default: that of this version, if it was released]
    #[arg(long, value_name = "ADDRESS")]
    pub action: Option<String>,
    /// Write over workflows that are there
    #[arg(long)]
    pub force: bool,
}

/// What an inconclusive comparison counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Inconclusive {
    /// Exit code 0
    Pass,
    /// Exit code 4
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bodies {
    /// Every byte
    Body,
    /// JSON, whatever the order of its keys
    Json,
    /// How long it is
    Size,
    /// Nothing but the status
    Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum With {
    /// The workshop's own, which needs nothing installed
    Embedded,
    K6,
    Locust,
}
