//! Rust, git, the tools that `setup` installs, and profilers.

use std::path::Path;
use std::process::{Command, Stdio};

use numa::Parts;

use super::finding::{Finding, State};
use crate::compile;
use crate::tools::{self, Tools};

/// The oldest Rust that compiles the workshop.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// What nothing works without, as it answers in the workshop's folder: a
/// toolchain file may choose another there.
pub(super) fn rust(root: &Path) -> [Finding; 2] {
    let versions = [
        ("rustc", bench::provenance::rustc_version(root)),
        ("cargo", tools::version(compile::program(), ["--version"])),
    ];
    versions.map(|(name, version)| {
        let (found, remedy) = match version {
            Some(version) if at_least(&version, RUST) => return Finding::ok(name, version),
            Some(version) => (version, format!("{RUST} or newer is needed: rustup update")),
            None => (
                "not there".to_owned(),
                "install Rust from https://rustup.rs".to_owned(),
            ),
        };
        Finding::new(name, State::Required, found, remedy)
    })
}

pub(super) fn optional(tools: &Tools) -> Vec<Finding> {
    let mut findings = vec![
        program("git", "cargo workshop steps needs it: https://git-scm.com"),
        pinned(
            "k6",
            tools.k6_version(),
            tools::K6,
            "load --with k6: cargo workshop setup k6",
        ),
        pinned(
            "mdbook",
            tools.mdbook_version(),
            tools::MDBOOK,
            "reading the book in a browser: cargo workshop setup mdbook",
        ),
        locust(tools),
        found(
            "Go",
            tools::go().map(|(_, version)| version),
            "building k6, chapter 4's baseline, and go tool pprof: https://go.dev/dl",
        ),
        found(
            "nginx",
            tools::nginx().and_then(|nginx| tools::version(nginx, ["-v"])),
            "prove 4 --upstream nginx: https://nginx.org (on Debian: apt-get install nginx-light)",
        ),
        found(
            "PostgreSQL",
            tools::postgres()
                .and_then(|folder| tools::version(folder.join("postgres"), ["--version"])),
            "prove 9 --database postgres://…: https://www.postgresql.org (on Debian: apt-get install \
             postgresql)",
        ),
        found(
            "Python",
            tools::python().map(|(_, version)| version),
            "Locust: https://www.python.org",
        ),
        found(
            "browser",
            tools::browser().map(|file| file.display().to_string()),
            "the browser test: install Chromium (on Debian: apt-get install chromium), or set \
             CHROMIUM to its path",
        ),
    ];
    if cfg!(target_os = "linux") {
        findings.push(regions(tools));
        findings.push(perf());
        findings.push(program(
            "valgrind",
            "cachegrind and callgrind, which count where the machine does not (on Debian: apt-get \
             install valgrind)",
        ));
    }
    findings
}

fn locust(tools: &Tools) -> Finding {
    let pin = tools.locust_pin().unwrap_or_default();
    if tools.venv_is_current() {
        return Finding::ok("Locust", pin);
    }
    let remedy = "load --with locust: cargo workshop setup locust";
    if tools.venv().is_dir() {
        Finding::note("Locust", format!("not the pinned {pin}"), remedy)
    } else {
        Finding::missing("Locust", remedy)
    }
}

fn pinned(name: &'static str, version: Option<String>, pin: &str, remedy: &str) -> Finding {
    match version {
        Some(version) if version != pin => {
            Finding::note(name, format!("{version}, not the pinned {pin}"), remedy)
        }
        version => found(name, version, remedy),
    }
}

fn program(name: &'static str, remedy: &str) -> Finding {
    found(name, tools::version(name, ["--version"]), remedy)
}

fn found(name: &'static str, version: Option<String>, remedy: &str) -> Finding {
    match version {
        Some(version) => Finding::ok(name, version),
        None => Finding::missing(name, remedy),
    }
}

/// What `prove 7 --numa-nodes 4` takes.
fn regions(tools: &Tools) -> Finding {
    match Parts::find(&tools.kernel()) {
        Ok(_) => Finding::ok("QEMU and a kernel", "there, for prove 7 --numa-nodes 4"),
        Err(what) => Finding::new(
            "QEMU and a kernel",
            State::Missing,
            "prove 7 --numa-nodes 4 cannot run",
            what,
        ),
    }
}

/// `perf`, and whether the CPU's own counters can be read: in many virtual machines not.
fn perf() -> Finding {
    let Some(version) = tools::version("perf", ["--version"]) else {
        return Finding::missing(
            "perf",
            "profiles that the kernel's timer does not cap (on Debian: apt-get install linux-perf)",
        );
    };
    let counted = Command::new("perf")
        .args("stat --field-separator , --event instructions true".split(' '))
        .stdin(Stdio::null())
        .output();
    let counts = counted.is_ok_and(|said| {
        said.status.success() && !String::from_utf8_lossy(&said.stderr).contains("<not")
    });
    if counts {
        Finding::ok("perf", format!("{version}, hardware counters"))
    } else {
        Finding::note(
            "perf",
            format!("{version}, no hardware counters"),
            "as in many virtual machines: record with `-e cpu-clock`, count with cachegrind",
        )
    }
}

fn at_least(version: &str, wanted: &str) -> bool {
    let numbers =
        |text: &str| -> Vec<u32> { text.split('.').map_while(|n| n.parse().ok()).collect() };
    numbers(version) >= numbers(wanted)
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
    fn another_version_than_the_pinned_is_a_note_and_none_is_missing() {
        let state =
            |version: Option<&str>| pinned("k6", version.map(str::to_owned), "1.8.1", "").state;
        assert_eq!(state(Some("1.8.1")), State::Ok);
        assert_eq!(state(Some("1.7.0")), State::Note);
        assert_eq!(state(None), State::Missing);
    }
}
