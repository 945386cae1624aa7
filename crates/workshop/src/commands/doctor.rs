//! `cargo workshop doctor`: the tools that this machine has, those that it lacks, and their uses.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use children::environment;
use children::environment::Environment;
use course::bench::counters::{Judged, Usable, counts};
use course::bench::provenance;
use serde::Serialize;

use crate::chapters::Workshop;
use crate::cli::Format;
use crate::compile;
use crate::emulator::Emulator;
use crate::tools::{self, Get, Tool, Tools};
use terminal::exit::{CliError, Exit};
use terminal::json;

/// The oldest Rust that compiles the workshop.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");
/// Files that a server or generator opens beside its connections.
const BESIDE: u64 = 100;

/// One line of the doctor.
#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    state: State,
    found: String,
    /// Remedy for the reader; empty if nothing has to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// Figures or comfort suffer.
    Note,
    /// A command does without, or cannot be run.
    Missing,
    /// Nothing works without.
    Required,
}

impl Finding {
    fn new(
        name: &'static str,
        state: State,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state,
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Ok, found, "")
    }

    /// A note with its remedy if there is something to do about it.
    fn noted_if(
        is_to_do: bool,
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        if is_to_do {
            Self::new(name, State::Note, found, remedy)
        } else {
            Self::ok(name, found)
        }
    }
}

pub(crate) fn run(format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let tools = Tools::of(&workshop);
    let mut findings = rust(workshop.root());
    findings.extend(machine(&environment::observe(true, "", BTreeMap::new())));
    findings.extend(counters());
    findings.push(open_files(u64::from(most_users(&workshop)) + BESIDE));
    findings.push(port("port 8080", 8080, "the service"));
    findings.push(port("port 6060", 6060, "profiles and counters"));
    for one in tools::all() {
        if one.linux_only && !cfg!(target_os = "linux") {
            continue;
        }
        match &one.get {
            Get::Kernel(_) => findings.push(emulator(&tools)),
            // Cargo says what it lacks.
            Get::Crates(_) => {}
            _ => findings.push(tool(one, tools.pin(one), tools.found(one))),
        }
    }
    if cfg!(target_os = "linux") {
        findings.extend(perf());
    }
    match format {
        Format::Json => json::print_all("finding", &findings)?,
        Format::Human => print(&findings),
    }
    let required = findings.iter().any(|f| f.state == State::Required);
    Ok(if required { Exit::Bad } else { Exit::Good })
}

fn print(findings: &[Finding]) {
    use anstyle::{AnsiColor, Style};

    for finding in findings {
        let (word, colour) = match finding.state {
            State::Ok => ("ok", AnsiColor::Green),
            State::Note => ("note", AnsiColor::Yellow),
            State::Missing => ("missing", AnsiColor::Yellow),
            State::Required => ("WRONG", AnsiColor::Red),
        };
        let style = Style::new().fg_color(Some(colour.into()));
        println!(
            "{style}{word:<8}{style:#}{:<20} {}",
            finding.name, finding.found
        );
        if !finding.remedy.is_empty() {
            println!("{:29}{}", "", finding.remedy);
        }
    }
    let end = if findings.iter().all(|f| f.state == State::Ok) {
        "nothing is missing"
    } else {
        "`cargo workshop prove 1` needs only Rust; each line marked `missing` says what it is for"
    };
    println!("\n{end}");
}

/// Checks Rust, which everything needs. Asks it in the workshop's folder, for a toolchain file may choose
/// another version there.
fn rust(root: &Path) -> Vec<Finding> {
    let versions = [
        ("rustc", provenance::rustc_version(root)),
        ("cargo", tools::version(compile::program(), ["--version"])),
    ];
    let mut findings = Vec::new();
    for (name, version) in versions {
        findings.push(match version {
            Some(version) if at_least(&version, RUST) => Finding::ok(name, version),
            Some(version) => {
                let remedy = format!("{RUST} or newer is needed: rustup update");
                Finding::new(name, State::Required, version, remedy)
            }
            None => {
                let remedy = "install Rust from https://rustup.rs";
                Finding::new(name, State::Required, "not there", remedy)
            }
        });
    }
    findings
}

fn at_least(version: &str, wanted: &str) -> bool {
    let numbers =
        |text: &str| -> Vec<u32> { text.split('.').map_while(|n| n.parse().ok()).collect() };
    numbers(version) >= numbers(wanted)
}

fn machine(here: &Environment) -> Vec<Finding> {
    let cpus = format!(
        "{} usable of {}, {}",
        here.cpus_usable, here.cpus_online, here.cpu_model
    );
    let is_shared = here.cpus_usable == 1;
    let memory = format!("{:.1} GiB", here.memory_mib as f64 / 1024.0);
    let is_little = here.memory_mib < 3 * 1024;
    let mut findings = vec![
        Finding::ok("system", format!("{}, kernel {}", here.system, here.kernel)),
        Finding::noted_if(
            is_shared,
            "CPUs",
            cpus,
            "server and generator share it: figures are lower, and some claims cannot be shown",
        ),
        quota(here),
    ];
    findings.extend(here.governor.as_deref().map(governor));
    findings.push(Finding::noted_if(
        is_little,
        "memory",
        memory,
        "compiling wants about 3 GiB: CARGO_BUILD_JOBS=1 makes it do with less",
    ));
    findings.extend(tick());
    findings
}

fn quota(here: &Environment) -> Finding {
    match here.quota {
        Some(quota) if quota < f64::from(here.cpus_usable) => Finding::new(
            "CPU quota",
            State::Note,
            format!("{quota:.1} CPUs"),
            "a run that the quota holds back is invalid: raise it (docker run --cpus) or remove it",
        ),
        _ => Finding::ok("CPU quota", "none that limits this process"),
    }
}

fn governor(name: &str) -> Finding {
    let remedy = "the clock follows the load, which adds noise: sudo cpupower frequency-set -g \
                  performance, on mains power";
    let steady = matches!(name, "performance" | "schedutil");
    Finding::noted_if(!steady, "governor", name, remedy)
}

/// The tick of the running kernel, by the configuration that distributions ship under `/boot`.
fn tick() -> Option<Finding> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let config = std::fs::read_to_string(format!("/boot/config-{}", release.trim())).ok()?;
    let tick = config
        .lines()
        .find_map(|line| line.strip_prefix("CONFIG_HZ="))?;
    Some(Finding::ok(
        "kernel tick",
        format!("{tick} Hz: CPU profiles get at most {tick} samples a second of CPU time"),
    ))
}

/// Checks the numbers of CPUs that programs would count here, and names the counters that are wrong. It counts on
/// this thread, which is not pinned.
fn counters() -> Vec<Finding> {
    let usable = Usable::here();
    let affinity = match children::cpus::available()[..] {
        [] => "the system does not tell".to_owned(),
        ref may => format!("this process may run on {} CPUs", may.len()),
    };
    let mut findings = vec![Finding::ok("affinity", affinity)];
    for (counter, count) in counts() {
        findings.push(count_of(counter, count, usable));
    }
    findings
}

fn count_of(counter: &str, count: usize, usable: Usable) -> Finding {
    let (name, asked) = match counter {
        "std" => ("std counts", "std::thread::available_parallelism"),
        "num_cpus" => ("num_cpus counts", "num_cpus::get"),
        "tokio" => ("tokio counts", "workers of its multi-thread runtime"),
        _ => ("many_cpus counts", "SystemHardware::CPUs"),
    };
    let found = format!("{count} ({asked})");
    let (wrong, consequence) = match usable.judge(count) {
        Judged::Right => return Finding::ok(name, found),
        Judged::TooFew => ("few", "leaves some idle"),
        Judged::TooMany => ("many", "is throttled"),
    };
    let time = match usable.quota {
        Some(quota) => format!(" for the time of {quota:.1}"),
        None => String::new(),
    };
    Finding::new(
        name,
        State::Note,
        format!("{found}, which is wrong: too {wrong}"),
        format!(
            "this process may use {} CPUs{time}; a service that starts as many workers as counted {consequence}: chapter 6",
            usable.cpus
        ),
    )
}

/// The largest load of any chapter; one that cannot be read has its own command to say so.
fn most_users(workshop: &Workshop) -> u32 {
    let mut most = 0;
    for chapter in workshop.chapters().unwrap_or_default() {
        if let Ok(file) = chapter.file() {
            for scenario in file.scenarios.values() {
                most = most.max(scenario.users);
            }
        }
    }
    most
}

fn open_files(needed: u64) -> Finding {
    match children::limits::allow_open_files(needed) {
        Ok(()) => Finding::ok(
            "open files",
            format!("{needed} available, and the largest load needs no more"),
        ),
        Err(limit) => Finding::new(
            "open files",
            State::Note,
            format!("{} at most", limit.allowed),
            format!(
                "the largest load needs {needed}: ulimit -n {needed} (as root if it refuses), or fewer \
                 users with --users"
            ),
        ),
    }
}

/// Binds the port and releases it again, for only that shows whether it is free.
fn port(name: &'static str, number: u16, whose: &str) -> Finding {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, number)) {
        Ok(_) => Finding::ok(name, format!("free for {whose}")),
        Err(error) => Finding::new(
            name,
            State::Note,
            format!("taken ({error})"),
            "cargo run -p chapter1 then needs --port or --admin-port; prove and check pick free ones",
        ),
    }
}

/// Judges the version that was found of a tool, by the one that `setup` installs.
fn tool(tool: &'static Tool, pin: Option<String>, found: Option<String>) -> Finding {
    let name = tool.name.as_str();
    let Some(version) = found else {
        return Finding::new(name, State::Missing, "not there", tool.remedy());
    };
    match pin {
        Some(pin) if version != pin => {
            let found = format!("{version}, not the pinned {pin}");
            Finding::new(name, State::Note, found, tool.remedy())
        }
        _ => Finding::ok(name, version),
    }
}

fn emulator(tools: &Tools) -> Finding {
    let name = "QEMU and its kernel";
    match Emulator::find(tools) {
        Ok(_) => Finding::ok(name, "there, for prove 7 --numa-nodes 4"),
        Err(what) => {
            let found = "prove 7 --numa-nodes 4 cannot run";
            Finding::new(name, State::Missing, found, what)
        }
    }
}

/// Checks whether `perf` may record, and whether it can read the CPU's own counters. In many virtual machines it
/// cannot. Returns nothing if there is no `perf`.
fn perf() -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, words, given, refused, remedy) in [
        (
            "perf's permission",
            "record --event cpu-clock --output /dev/null true",
            "given",
            "not given",
            "cargo flamegraph and samply need it, too: echo 1 | sudo tee \
             /proc/sys/kernel/perf_event_paranoid",
        ),
        (
            "perf's counters",
            "stat --field-separator , --event instructions true",
            "can be read",
            "cannot be read",
            "no command needs them, and many virtual machines have none: record with `perf record -e cpu-clock`, \
             count instructions with `valgrind --tool=cachegrind`",
        ),
    ] {
        let mut perf = Command::new("perf");
        let asked = perf.args(words.split(' ')).stdin(Stdio::null()).output();
        let Ok(said) = asked else {
            continue;
        };
        let stderr = String::from_utf8_lossy(&said.stderr);
        if said.status.success() && !stderr.contains("<not") {
            findings.push(Finding::ok(name, given));
        } else {
            findings.push(Finding::new(name, State::Note, refused, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(at_least("1.95.0", "1.90"));
        assert!(at_least("1.100.0", "1.90"));
        assert!(!at_least("1.89.1", "1.90"));
        assert!(at_least("1.90.0-nightly", "1.90"));
    }

    #[test]
    fn what_is_not_as_it_should_be_is_told_and_how() {
        let machine = |quota| Environment {
            cpus_usable: 2,
            quota,
            ..Environment::default()
        };
        let counted = |count, quota| count_of("num_cpus", count, Usable { cpus: 176, quota });
        let k6 = |found: Option<&str>| {
            let row = tools::all().iter().find(|tool| tool.name == "k6");
            tool(
                row.unwrap(),
                Some("1.8.1".to_owned()),
                found.map(str::to_owned),
            )
        };
        for (finding, state, words) in [
            (quota(&machine(None)), State::Ok, "none"),
            (quota(&machine(Some(2.0))), State::Ok, "none"),
            (quota(&machine(Some(1.5))), State::Note, "1.5 CPUs"),
            (governor("performance"), State::Ok, "performance"),
            (governor("powersave"), State::Note, "powersave"),
            (counted(176, None), State::Ok, "176"),
            (counted(44, None), State::Note, "too few"),
            (counted(176, Some(2.0)), State::Note, "too many"),
            (k6(Some("1.8.1")), State::Ok, "1.8.1"),
            (k6(Some("1.7.0")), State::Note, "not the pinned 1.8.1"),
            (k6(None), State::Missing, "not there"),
        ] {
            assert_eq!(finding.state, state, "{finding:?}");
            assert!(finding.found.contains(words), "{finding:?}");
            assert_eq!(finding.remedy.is_empty(), state == State::Ok, "{finding:?}");
        }
    }
}
