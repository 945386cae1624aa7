//! The options of each command.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use statistics::capacity::LONGEST_S;
use statistics::condition::Condition;
use terminal::arguments::{condition, goal, number, pointer, scheme, share, spacing, times};
pub(crate) use terminal::output::{Format, Output};

use engine::traffic::Spacing;

const COMPARE_EXAMPLES: &str = "\
Examples:
  Two commits, the base being where this branch left main:
    duel compare --base git:main...HEAD --change git:HEAD --run './target/release/shop --port {port}' \\
        --get '/checkout/{1..5000}' --users 100
  Two commands:
    duel compare --base './old --port {port}' --change './new --port {port}' --get / --get '/search?q=tea x3'
  Two servers that run, by their latency at a rate:
    duel compare --running http://127.0.0.1:8080 http://127.0.0.1:8081 --get / --rate 200 --metric p99_ms
  The highest rates that keep their p99 below 100 ms:
    duel compare --base './old --port {port}' --change './new --port {port}' --get / --at-capacity 'p99 < 100ms'
  Accept up to 3 % slower, and tell a noisy machine from a slower build:
    duel compare … --at-most-slower 3% --inconclusive fail

Exit codes: 0 faster or no difference, 1 slower or inconclusive, 2 wrong usage, 3 invalid, 4 inconclusive with
--inconclusive fail, 130 Ctrl-C";

const BISECT_EXAMPLES: &str = "\
Example:
    duel bisect --good v1.4 --bad HEAD --run './target/release/shop --port {port}' --get '/checkout/{1..5000}'";

const LOAD_EXAMPLES: &str = "\
Examples:
  50 users who ask again at once, for ten seconds:
    duel load http://127.0.0.1:8080 --get '/checkout/{1..5000} x20' --get '/search?q=tea'
  200 requests per second at random moments; exit code 1 if the p99 is over 100 ms:
    duel load http://127.0.0.1:8080/checkout/1 --rate 200 --fail-if 'p99 > 100ms'
  The highest rate that keeps the p99 below 100 ms, and what the limit is:
    duel load http://127.0.0.1:8080/checkout/1 --find 'p99 < 100ms' --look http://127.0.0.1:6060
  The time to the first byte of a stream, and between its events:
    duel load http://127.0.0.1:8080/events --stream --users 20
  A login whose token goes into each request:
    duel load http://127.0.0.1:8080/mine --login 'POST /login' --login-body @me.json --login-token /token

Exit codes: 0 good, 1 wrong or failed answers, or a condition of --fail-if, 2 wrong usage, 3 a service that hangs or
refuses connections, a generator at its limit, or a capacity that drifts, 130 Ctrl-C";

/// Requests to a service, and their right answers.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct Sent {
    /// A path to get; `/checkout/{1..5000}` or `/checkout/{file:ids.txt}` draws a value each time,
    /// and `'/search?q=tea x3'` is sent three times as often as a path without a weight
    #[arg(long, value_name = "PATH")]
    pub get: Vec<String>,
    /// The same with another method: `'POST /orders'`
    #[arg(long, value_name = "METHOD PATH")]
    pub request: Vec<String>,
    /// GET requests of an access log in the common or combined format, such as nginx's: its 50 most frequent
    /// routes, weighted by their numbers of requests. Numbers and ids in paths are values
    #[arg(long, value_name = "FILE", conflicts_with_all = ["get", "request"])]
    pub access_log: Option<PathBuf>,
    /// A header of every request: `'Authorization: Bearer …'`
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Body of the requests by --request, `@FILE` to read it: one for all, or one for each. For gRPC it is a
    /// message, whose frame is added if it has none
    #[arg(long, value_name = "TEXT")]
    pub body: Vec<String>,
    /// Request that each server gets first: `'POST /login'`. All others carry the cookies that its answer sets
    #[arg(long, value_name = "METHOD PATH")]
    pub login: Option<String>,
    /// Body of the login, `@FILE` to read it
    #[arg(long, value_name = "TEXT", requires = "login")]
    pub login_body: Option<String>,
    /// Place of a token in the login's answer, such as `/token`; all others carry it in the header `Authorization`
    #[arg(long, value_name = "POINTER", requires = "login", value_parser = pointer)]
    pub login_token: Option<String>,
    /// Scheme before that token: `Bearer`, `Token`, …
    #[arg(
        long,
        value_name = "SCHEME",
        requires = "login_token",
        default_value = "Bearer"
    )]
    #[arg(value_parser = scheme)]
    pub login_scheme: String,
    /// Spacing of the requests of --rate and of the bystander: at random moments, or in even steps
    #[arg(long, value_name = "HOW", default_value = "poisson", value_parser = spacing())]
    pub arrivals: Spacing,
    /// Repeats the random moments and values of an earlier run, and which answers it compared: it printed its seed
    /// [default: a fresh one]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u32>,
    /// A path that gets requests at a steady rate during the load, to see how other routes suffer from it
    #[arg(long, value_name = "PATH")]
    pub bystander: Option<String>,
    /// Rate of the bystander's requests
    #[arg(
        long,
        value_name = "PER SECOND",
        default_value_t = 200.0,
        requires = "bystander"
    )]
    #[arg(value_parser = number(1.0..=10_000.0, "200"))]
    pub bystander_rate: f64,
    /// HTTPS: trust the certificate authorities of this file (PEM), and no others
    #[arg(long, value_name = "FILE", hide = !cfg!(feature = "tls"))]
    pub cacert: Option<PathBuf>,
    /// HTTPS: check no certificate, for a service that made its own
    #[arg(long, conflicts_with = "cacert", hide = !cfg!(feature = "tls"))]
    pub insecure: bool,
    /// HTTP/2, which the service must speak: negotiated by ALPN in HTTPS, assumed in plain HTTP.
    /// Each user has its own connection, with one request on it at a time
    #[arg(long, hide = !cfg!(feature = "http2"))]
    pub http2: bool,
    /// A new connection for each request
    #[arg(long)]
    pub no_keep_alive: bool,
    /// Status that every answer must have, whatever its body [default: status and body as learnt before
    /// the load]
    #[arg(long, value_name = "STATUS", value_parser = number(200_u16..=599, "200"))]
    pub expect_status: Option<u16>,
    /// Part of a body that must be as learnt; JSON may have its keys in any order [default: the whole body,
    /// or nothing if it changes from one answer to the next]
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        conflicts_with = "expect_status"
    )]
    pub compare: Option<Bodies>,
    /// Compare JSON without the value at this pointer, such as `/generated_at`; `*` in `/items/*/id` is every
    /// element. May be repeated
    #[arg(long, value_name = "POINTER", conflicts_with = "expect_status", value_parser = pointer)]
    pub ignore_json: Vec<String>,
    /// A command that compares the files $EXPECTED and $RECEIVED, and ends with 0 if they are the same answer. It
    /// judges a few answers of each route before and after each load, since it is too slow to judge all
    #[arg(long, value_name = "COMMAND")]
    #[arg(conflicts_with_all = ["expect_status", "compare", "ignore_json"])]
    pub judge: Option<String>,
    /// Another status that is right, such as 503 of a service that sheds load by design; may be repeated
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

/// Workers that send the load of `--with locust`.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Workers {
    /// Workers of Locust on this machine [default: 1]
    #[arg(long, value_name = "N", value_parser = number(0_u32..=256, "4"))]
    pub workers: Option<u32>,
    /// Workers of Locust on other machines; the load begins when they are there
    #[arg(long, value_name = "N", value_parser = number(1_u32..=1000, "4"))]
    pub expect_workers: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct Compare {
    /// A command that starts the service without the change, with `{port}` or the variable PORT to listen
    /// on; or `git:REVISION`
    #[arg(long, value_name = "COMMAND", required_unless_present = "running")]
    pub base: Option<String>,
    /// The same for the service with the change
    #[arg(long, value_name = "COMMAND", required_unless_present = "running")]
    pub change: Option<String>,
    /// Instead: addresses of base and change, if both run already; they are not pinned
    #[arg(long, value_name = "URL", num_args = 2, conflicts_with_all = ["base", "change"])]
    pub running: Vec<String>,
    /// Load generator: embedded, or locust
    #[arg(long, value_enum, default_value_t = With::Embedded)]
    pub with: With,
    #[command(flatten)]
    pub workers: Workers,
    /// Build both revisions anew for each of so many rounds at most, with the round's number for `{layout}` in --build. The
    /// interval then covers what the layout of the code does
    #[arg(long, value_name = "ROUNDS", value_parser = number(3_u32..=100, "12"), conflicts_with = "running")]
    pub layouts: Option<u32>,
    /// Seconds after which no further round begins
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0)]
    #[arg(value_parser = number(1.0..=86_400.0, "300"))]
    pub at_most: f64,
    /// Smallest factor by which the change must be better
    #[arg(long, value_name = "TIMES", value_parser = times, help_heading = "Verdict")]
    #[arg(conflicts_with_all = ["at_most_slower", "margin"])]
    pub at_least: Option<f64>,
    /// Largest share by which the change may be worse
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Verdict")]
    #[arg(conflicts_with = "margin")]
    pub at_most_slower: Option<f64>,
    /// Exit code of an inconclusive verdict: 0, or 4 [default: 1, as if it were slower]
    #[arg(long, value_name = "HOW", value_enum, help_heading = "Verdict")]
    pub inconclusive: Option<Inconclusive>,
    /// Compare the highest rates that keep this condition, in place of a metric: 'p99 < 100ms', 'errors < 0.1 %'. May be repeated
    #[arg(long, value_name = "CONDITION", value_parser = goal, help_heading = "Verdict")]
    #[arg(conflicts_with_all = ["metric", "root_cause", "profiles", "export", "users", "think", "seconds", "with", "judge", "bystander", "layouts"])]
    pub at_capacity: Vec<Condition>,
    /// A counter that both have under --metrics, to be printed with the verdict
    #[arg(long, value_name = "NAME", help_heading = "Verdict")]
    pub root_cause: Vec<String>,
    /// Path of the counters, as Prometheus text; on the port that `{admin_port}` gives, if the command
    /// has it
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
    /// Folder for the report [default: target/duel]
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Also write the figures for tools that keep them, into this folder: `bencher.json` in Bencher's metric format, and
    /// `smaller-is-better.json` and `bigger-is-better.json` for github-action-benchmark
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub export: Option<PathBuf>,
    /// Also write a summary for a pull request
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub markdown: Option<PathBuf>,
    #[command(flatten)]
    pub how: Comparing,
}

/// Options of everything that compares builds: how to build, start, load and judge them.
#[derive(Debug, Args)]
pub(crate) struct Comparing {
    /// Command that builds a revision, in a separate worktree
    #[arg(long, value_name = "COMMAND", default_value = "cargo build --release")]
    pub build: String,
    /// Command that starts a revision's build, in the same folder
    #[arg(long, value_name = "COMMAND")]
    pub run: Option<String>,
    /// A path that answers with 2xx once the service is ready [default: its port is enough]
    #[arg(long, value_name = "PATH")]
    pub ready: Option<String>,
    /// Seconds until the service must be ready
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    #[arg(value_parser = number(0.1..=3600.0, "30"))]
    pub ready_within: f64,
    /// Simultaneous users
    #[arg(long, default_value_t = 50, value_parser = number(1_u32..=1_000_000, "200"))]
    pub users: u32,
    /// Seconds that a user thinks between an answer and the next request
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = number(0.0..=3600.0, "0.5"))]
    pub think: f64,
    /// Open loop: this many requests per second on a schedule, whatever the answers do; with --at-capacity, the first rate
    #[arg(long, value_name = "PER SECOND", conflicts_with = "think", value_parser = number(0.01..=1_000_000.0, "500"))]
    pub rate: Option<f64>,
    /// Seconds that a slice records; it is lengthened if a percentile needs more
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    #[arg(value_parser = number(0.1..=20.0, "1"))]
    pub seconds: f64,
    /// Metric that decides [default: `requests_per_second`, with --rate `p50_ms`]
    #[arg(long, value_name = "METRIC", help_heading = "Verdict")]
    pub metric: Option<String>,
    /// Share below which a difference counts as none
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share, help_heading = "Verdict")]
    pub margin: f64,
    #[command(flatten)]
    pub output: Output,
    // The heading of these options would pass to all that follow.
    #[command(flatten)]
    pub sent: Sent,
}

/// A search for the commit that made a service slower.
#[derive(Debug, Args)]
#[command(after_help = BISECT_EXAMPLES)]
pub(crate) struct Bisect {
    /// A revision that is fast enough
    #[arg(long, value_name = "REVISION")]
    pub good: String,
    /// A later revision that is slower; between them, only first parents count, so a merge is one commit
    #[arg(long, value_name = "REVISION")]
    pub bad: String,
    /// Probability at which a commit counts as found, from 0.5 to 0.99
    #[arg(
        long,
        value_name = "PROBABILITY",
        default_value_t = 0.95,
        help_heading = "Verdict"
    )]
    #[arg(value_parser = number(0.5..=0.99, "0.95"))]
    pub confidence: f64,
    /// Seconds, builds included, after which no further round begins
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0)]
    #[arg(value_parser = number(1.0..=86_400.0, "3600"))]
    pub at_most: f64,
    #[command(flatten)]
    pub how: Comparing,
}

/// A load on one service.
#[derive(Debug, Args)]
#[command(after_help = LOAD_EXAMPLES)]
pub(crate) struct Load {
    /// Address of the service, `http://127.0.0.1:8080`; with a path, if that is the only request
    #[arg(value_name = "URL")]
    pub url: String,
    /// Simultaneous users [default: 50; with --find as many as the limit needs]
    #[arg(long, value_parser = number(1_u32..=1_000_000, "200"))]
    pub users: Option<u32>,
    /// Seconds that a user thinks between an answer and the next request
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = number(0.0..=3600.0, "0.5"))]
    pub think: f64,
    /// Open loop: this many requests per second on a schedule, whatever the answers do; with --find, the first rate
    #[arg(long, value_name = "PER SECOND", conflicts_with = "think", value_parser = number(0.01..=1_000_000.0, "500"))]
    pub rate: Option<f64>,
    /// Find the highest rate that keeps this condition: 'p99 < 100ms', 'p95 < 1s', 'errors < 0.1 %'. May be repeated
    #[arg(long, value_name = "CONDITION", value_parser = goal, help_heading = "Limits")]
    #[arg(conflicts_with_all = ["think", "k6", "locust", "judge", "fail_if", "bystander"])]
    pub find: Vec<Condition>,
    /// Seconds after which the search ends
    #[arg(long, value_name = "SECONDS", default_value_t = LONGEST_S, requires = "find", help_heading = "Limits")]
    #[arg(value_parser = number(5.0..=LONGEST_S, "120"))]
    pub at_most: f64,
    /// Exit with 1 if this holds: 'p99 > 100ms', 'errors > 1 %', 'rate < 500'. May be repeated
    #[arg(long, value_name = "CONDITION", value_parser = condition, help_heading = "Limits")]
    pub fail_if: Vec<Condition>,
    /// Also measure the times within answers that come in pieces: to the first byte of the body, and between events of
    /// `text/event-stream`, JSON lines, or chunks of any other body
    #[arg(long, conflicts_with = "find")]
    pub stream: bool,
    /// Folder for a report as HTML [default: none; with --find target/duel]
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// Seconds of recorded load
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    #[arg(value_parser = number(0.1..=3600.0, "10"))]
    pub seconds: f64,
    /// Load generator: embedded, or locust
    #[arg(long, value_enum, default_value_t = With::Embedded)]
    pub with: With,
    /// Address of the service's debug endpoints: look at it during the load, and compare its time with the
    /// client's
    #[arg(long, value_name = "URL")]
    pub look: Option<String>,
    /// Write the load as a k6 script, too
    #[arg(long, value_name = "FILE")]
    pub k6: Option<PathBuf>,
    /// Write the load as a Locust file, too
    #[arg(long, value_name = "FILE")]
    pub locust: Option<PathBuf>,
    /// Locust's workers
    #[command(flatten)]
    pub workers: Workers,
    /// Output format
    #[command(flatten)]
    pub output: Output,
    /// Requests
    #[command(flatten)]
    pub sent: Sent,
}

/// Workflows for a repository.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Command that builds the service [default: found out by `cargo metadata`]
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// Command that starts the build, with `{port}` in place of its port [default: the program, with
    /// `--port {port}`]
    #[arg(long, value_name = "COMMAND")]
    pub run: Option<String>,
    /// Address of the action: `OWNER/REPOSITORY/instruments/duel@COMMIT` [default: that of this version, if
    /// it was released]
    #[arg(long, value_name = "ADDRESS")]
    pub action: Option<String>,
    /// Overwrite existing workflows
    #[arg(long)]
    pub force: bool,
}

/// Meaning of an inconclusive comparison for the exit code.
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
    /// Only its size
    Size,
    /// Only the status
    Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum With {
    /// The built-in one, which needs nothing installed
    Embedded,
    /// Refused with the way to it: k6 sends the script that --k6 writes
    #[value(hide = true)]
    K6,
    Locust,
}
