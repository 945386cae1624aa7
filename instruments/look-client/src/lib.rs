//! Client of `/debug/look`, the report of all instruments of a running service. With the feature `pid`, it can also look at
//! any process from outside.

#[macro_use]
extern crate terminal;

#[cfg(all(
    feature = "pid",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod pid;
mod saved;

use std::path::PathBuf;
use std::time::Duration;

use ecosystem::printable;
use engine::load::{Target, ask};
use engine::traffic::{Expected, Request};
use engine::url::Url;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use terminal::arguments::number;
use terminal::exit::{CliError, Exit};
use terminal::json;
use terminal::output::{Format, Output};
use terminal::progress::Terminal;

/// Whether this build can look at a process from outside.
const HAS_PID: bool = cfg!(all(
    feature = "pid",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
));

/// Command line of a look: the address or the process, and the time.
#[derive(Debug, Args)]
pub struct Look {
    /// Address of its debug endpoints: `http://127.0.0.1:6060`. If they ask for a token, put it into `DEBUG_TOKEN`
    #[arg(value_name = "URL", required_unless_present_any = ["pid", "name", "from"])]
    pub url: Option<String>,
    /// Look at this process from outside instead, which needs no endpoints (Linux)
    #[arg(long, value_name = "N", conflicts_with_all = ["url", "name"], hide = !HAS_PID)]
    pub pid: Option<u32>,
    /// Look at the process of this name from outside instead
    #[arg(long, value_name = "NAME", conflicts_with = "url", value_parser = NonEmptyStringValueParser::new())]
    #[arg(hide = !HAS_PID)]
    pub name: Option<String>,
    /// Seconds to look
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    #[arg(value_parser = number(1.0..=600.0, "10"))]
    pub seconds: f64,
    /// Say why the p99 of each route is high: what the slowest 1 % of its requests wait for, beside the rest
    #[arg(long, conflicts_with_all = ["pid", "name"])]
    pub tail: bool,
    /// Draw who waits for whom into this file, if the process runs tokio and its program has types
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub svg: Option<PathBuf>,
    /// Also write everything that was seen to this file: names and numbers, no values and no client's address
    #[arg(long, value_name = "FILE", conflicts_with = "tail")]
    pub save: Option<PathBuf>,
    /// Keep the hosts of other services in that file, which numbers them otherwise
    #[arg(long, requires = "save")]
    pub addresses: bool,
    /// Judge what such a file holds, and look at nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "pid", "name", "seconds", "tail", "save", "svg"])]
    pub from: Option<PathBuf>,
    /// Output format
    #[command(flatten)]
    pub output: Output,
}

/// Longest time that the endpoints take to look up names, on a slow machine.
const TO_WRITE: Duration = Duration::from_secs(60);

/// A process that is looked at from outside.
#[derive(Clone, Copy, Debug)]
enum Which<'a> {
    /// By its number.
    Pid(u32),
    /// By its name.
    Name(&'a str),
}

/// Asks the debug endpoints, or looks at a process from outside, and prints the answer.
///
/// # Errors
///
/// Fails if nothing answers at the URL, or something other than debug endpoints, or if the process cannot be looked at.
pub fn run(options: &Look) -> Result<Exit, CliError> {
    if let Some(file) = &options.from {
        return saved::judge(file, options.output.format);
    }
    match (&options.url, options.pid, &options.name) {
        (_, Some(number), _) => outside(Which::Pid(number), options),
        (_, _, Some(name)) => outside(Which::Name(name), options),
        (url, None, None) => by_url(url.as_deref().unwrap_or_default(), options),
    }
}

#[cfg(all(
    feature = "pid",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn outside(which: Which<'_>, options: &Look) -> Result<Exit, CliError> {
    let (seen, tasks) = pid::look(which, Duration::from_secs_f64(options.seconds))?;
    if let Some(file) = &options.svg {
        pid::draw(tasks.as_ref(), file)?;
    }
    saved::keep(&seen, options)?;
    pid::print(&seen, tasks, options.output.format)
}

#[cfg(not(all(
    feature = "pid",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
fn outside(which: Which<'_>, _: &Look) -> Result<Exit, CliError> {
    let option = match which {
        Which::Pid(number) => format!("--pid {number}"),
        Which::Name(name) => format!("--name {name}"),
    };
    if !cfg!(target_os = "linux") {
        return Err(CliError::invalid(format!(
            "look {option}: Linux only, on x86-64 or aarch64"
        )));
    }
    Err(CliError::usage(format!(
        "look {option}: this program was built without it; released programs of duel have it, or \
         `cargo install --path instruments/duel --features pid`"
    )))
}

fn by_url(url: &str, options: &Look) -> Result<Exit, CliError> {
    let is_json = options.output.format == Format::Json;
    let what = format!("looking into {url} for {} s", options.seconds);
    let time = Duration::from_secs_f64(options.seconds);
    let terminal = Terminal::new();
    if let Some(file) = &options.save {
        let evidence = terminal.during(&what, time, || saved::save(url, file, options));
        drop(terminal);
        return saved::print(&evidence?, options.output.format);
    }
    let said = terminal.during(&what, time, || {
        if options.tail {
            ask_for_tail(url, options.seconds, is_json)
        } else {
            ask(url, options.seconds, is_json)
        }
    });
    drop(terminal);
    let said = said?;
    if is_json {
        let report: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&said)
            .map_err(|why| {
                CliError::invalid(format!(
                    "{url} answered with something else than a report: {why}"
                ))
            })?;
        let kind = if options.tail { "tail" } else { "look" };
        json::print_as(kind, &report)?;
    } else {
        println!("{}", said.trim_end());
    }
    Ok(Exit::Good)
}

/// Returns the report of the debug endpoints at `url` after `seconds`, as text or as JSON.
///
/// # Errors
///
/// Fails if nothing answers at the URL, or something other than debug endpoints.
pub fn ask(url: &str, seconds: f64, is_json: bool) -> Result<String, CliError> {
    let format = if is_json { "&format=json" } else { "" };
    answer_of(
        url,
        &format!("/debug/look?seconds={seconds}{format}"),
        seconds,
    )
}

/// Returns what the slowest 1 % of each route's requests waited for within `seconds`, as text or as JSON.
///
/// # Errors
///
/// Fails as [`ask()`] does, and if the endpoints know no tail.
pub fn ask_for_tail(url: &str, seconds: f64, is_json: bool) -> Result<String, CliError> {
    let path = format!("/debug/look?seconds={seconds}&tail=99&format=json");
    let json = answer_of(url, &path, seconds)?;
    // Endpoints of a version without tails ignore the parameter, and answer with an ordinary look.
    let said: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
    let (true, Some(text)) = (said["percentile"].is_number(), said["text"].as_str()) else {
        return Err(CliError::invalid(format!(
            "{url} answered without a tail: its debug endpoints are of an earlier version. Update debug-endpoints in \
             the service, or look without --tail"
        )));
    };
    Ok(if is_json { json } else { printable(text) })
}

/// Returns the answer of the debug endpoints at `url` for `path`, which they give after `seconds`.
fn answer_of(url: &str, path: &str, seconds: f64) -> Result<String, CliError> {
    let url = Url::find(url).map_err(|error| CliError::usage(format!("look {url}: {error}")))?;
    if url.is_encrypted {
        return Err(CliError::usage(format!(
            "look {}: debug endpoints speak plain HTTP; write http://",
            url.origin()
        )));
    }
    // The token is not an option, because others on this machine could read it.
    let mut headers = Vec::new();
    if let Ok(token) = std::env::var("DEBUG_TOKEN") {
        let value = format!("Bearer {}", token.trim());
        headers.push(("authorization".to_owned(), value));
    }
    let request = Request {
        method: "GET".to_owned(),
        path: path.to_owned(),
        headers,
        body: None,
        expected: Expected::of(200, None),
    };
    let time_out = Duration::from_secs_f64(seconds) + TO_WRITE;
    let origin = url.origin();
    let target = Target::from(url.address);
    let answer = ask::ask(&target, &request, time_out).map_err(|why| {
        if target.speaks_tls_unasked() {
            return CliError::invalid(format!(
                "{origin} does not answer ({why}): HTTPS is spoken there, and debug endpoints speak plain HTTP on a \
                 separate port, often 6060"
            ));
        }
        CliError::invalid(format!(
            "{origin} does not answer ({why}): is the service running, and is this the address of its debug endpoints, \
             often port 6060? In a service that is stuck, only endpoints with a separate listener answer \
             (DebugEndpoints::listen)"
        ))
    })?;
    let text = String::from_utf8_lossy(&answer.body);
    match answer.status {
        // A service must not control the reader's terminal.
        200 => Ok(printable(&text)),
        404 => Err(CliError::invalid(format!(
            "{origin} has no /debug/look: it is not the address of debug endpoints, or they are of an earlier version"
        ))),
        status => Err(CliError::invalid(format!(
            "{origin} answered {status}: {}",
            text.trim()
        ))),
    }
}

/// Returns a sentence on how much of `client_ms`, the latency at the client, is spent in the service. `said` is the
/// JSON of the endpoints; `None` if they measured no latency.
pub fn inside(said: &str, client_ms: f64) -> Option<String> {
    let said: serde_json::Value = serde_json::from_str(said).ok()?;
    let text = printable(said["text"].as_str()?.trim_end());
    let inside = said["latency_ms"].as_f64()?;
    let outside = 1.0 - inside / client_ms;
    let shares = if outside > 0.2 && client_ms - inside > 0.5 {
        format!(
            "{:.0} % of the time lies outside of its handlers, in sockets, the kernel, a proxy, or here",
            outside * 100.0
        )
    } else {
        "it is spent in there".to_owned()
    };
    Some(format!(
        "{inside:.3} ms in the service, {client_ms:.3} ms for the client: {shares}.\n{text}"
    ))
}

/// Returns what limits a loaded service, in a sentence: its CPUs, or the first limit, fault or wait that its endpoints
/// name in `said`, their JSON. `None` if they name nothing.
pub fn limit(said: &str) -> Option<String> {
    let said: serde_json::Value = serde_json::from_str(said).ok()?;
    let headline = |kind: &str| said[kind][0]["headline"].as_str();
    if said["is_cpu_limit"] == true {
        let (used, all) = (said["cpus_used"].as_f64()?, said["cpus"].as_u64()?);
        let computing = said["computing"].as_str();
        let most = computing.map(|place| format!("; most computing: {place}"));
        let most = most.unwrap_or_default();
        return Some(printable(&format!(
            "the service's CPUs, {used:.1} of {all} used{most}."
        )));
    }
    let found = headline("bounds").or_else(|| headline("findings"));
    Some(printable(found.or_else(|| headline("waits"))?))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn time_outside_of_the_service_is_named() {
        let said = r#"{ "latency_ms": 0.5, "text": "Nothing." }"#;
        let outside = inside(said, 42.0).unwrap();
        assert!(
            outside.contains("99 % of the time lies outside of its handlers"),
            "{outside}"
        );
        assert!(outside.ends_with("Nothing."));
        assert!(inside(said, 0.6).unwrap().contains("is spent in there"));
        assert_eq!(inside(r#"{ "latency_ms": null }"#, 1.0), None);
    }

    #[test]
    fn the_limit_of_a_loaded_service_is_its_cpus_or_the_first_thing_that_is_named() {
        let limit = |said: &str| limit(said);
        let busy = r#"{"is_cpu_limit": true, "cpus_used": 1.96, "cpus": 2, "computing": "sha2"}"#;
        assert_eq!(
            limit(busy).unwrap(),
            "the service's CPUs, 2.0 of 2 used; most computing: sha2."
        );
        let waits = r#""waits": [{"headline": "a query"}]"#;
        let bounds = r#""bounds": [{"headline": "a pool of 10"}], "findings": []"#;
        assert_eq!(limit(&format!("{{{waits}}}")).unwrap(), "a query");
        assert_eq!(
            limit(&format!("{{{bounds}, {waits}}}")).unwrap(),
            "a pool of 10"
        );
        assert_eq!(limit("{}"), None);
    }

    #[test]
    fn a_look_at_the_tail_asks_for_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut client, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let length = client.read(&mut request).unwrap();
            let body = r#"{"percentile":99.0,"text":"None."}"#;
            let length_of_body = body.len();
            write!(
                client,
                "HTTP/1.1 200 OK\r\ncontent-length: {length_of_body}\r\n\r\n{body}"
            )
            .unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        assert_eq!(ask_for_tail(&url, 3.0, false).unwrap(), "None.");
        let asked = asked.join().unwrap();
        assert!(
            asked.starts_with("GET /debug/look?seconds=3&tail=99&format=json "),
            "{asked}"
        );
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        look: Look,
    }

    /// Starts a server that answers one request with this status and body, and returns its URL.
    fn server(head: &'static str, body: &'static str) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut client, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = client.read(&mut request).unwrap();
            let length = body.len();
            write!(
                client,
                "HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .unwrap();
        });
        format!("http://{address}")
    }

    #[test]
    fn evidence_is_saved_as_it_came_and_judged_again() {
        let evidence = diagnosis::Evidence {
            seconds: 2.0,
            cpus: 3,
            ..diagnosis::Evidence::default()
        };
        let text: &'static str = evidence.to_file(diagnosis::Addresses::Numbered).leak();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seen.json");
        let look = |url: String, file: &str, path: &std::path::Path| {
            let line = ["look", &url, file, path.to_str().unwrap()];
            let words = line.iter().filter(|word| !word.is_empty());
            run(&Line::try_parse_from(words).unwrap().look)
        };
        look(server("200 OK", text), "--save", &file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        look(String::new(), "--from", &file).unwrap();
        std::fs::write(&file, "{}").unwrap();
        let error = look(String::new(), "--from", &file).unwrap_err();
        assert!(
            error.to_string().contains("no evidence of a look"),
            "{error}"
        );
    }

    #[test]
    fn endpoints_that_know_no_tail_are_told_from_a_tail() {
        for body in [r#"{"findings":[],"text":"Nothing."}"#, "1. Nothing."] {
            let error = ask_for_tail(&server("200 OK", body), 1.0, false).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("answered without a tail"), "{text}");
            assert!(text.contains("look without --tail"), "{text}");
        }
    }

    #[test]
    fn what_a_server_sends_moves_nothing_in_the_terminal() {
        let body = "1. \u{1b}]0;title\u{7}\u{1b}[2Jgone\n\u{1b}]52;c;bHM=\u{7}";
        let said = ask(&server("200 OK", body), 1.0, false).unwrap();
        assert!(said.contains("gone\n"), "{said}");
        let error = ask(&server("500 No", body), 1.0, false).unwrap_err();
        let encoded = r#"{ "latency_ms": 0.5, "text": "\u001b[2Jgone" }"#;
        for text in [said, error.to_string(), inside(encoded, 0.6).unwrap()] {
            assert!(!text.contains('\u{1b}') && text.contains("u001b"), "{text}");
        }
    }
}
