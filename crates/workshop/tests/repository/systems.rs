//! The published systems that the workshop repeats: each has a command that runs it here, and what it printed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use crate::running::{Running, free_port, wait_for};
use crate::{built, cargo, command, root, run, succeed, tool, turn};

/// The rows of the table in `src/credits.md` that names the commands: a system's key in `reference/seed-figures.toml`, its
/// command, and the records that the row links to.
fn rows() -> BTreeMap<String, (String, Vec<String>)> {
    let page = fs::read_to_string(root().join("src/credits.md")).unwrap();
    let section = page
        .split("\n## ")
        .find(|part| part.starts_with("Run them"));
    let mut rows = BTreeMap::new();
    for line in section.expect("credits.md says how to run them").lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [_, key, command, records] = cells[..] else {
            continue;
        };
        let (Some(key), Some(command)) = (code(key), code(command)) else {
            continue;
        };
        let links = records.split("](").skip(1);
        let links = links.filter_map(|rest| rest.split([')', '#']).next());
        rows.insert(key, (command, links.map(str::to_owned).collect()));
    }
    rows
}

/// Returns the text between two backquotes.
fn code(cell: &str) -> Option<String> {
    Some(cell.strip_prefix('`')?.strip_suffix('`')?.to_owned())
}

#[test]
fn each_published_system_has_a_command_and_a_place_in_the_book() {
    let figures = fs::read_to_string(root().join("reference/seed-figures.toml")).unwrap();
    let parts = figures.lines().filter_map(|line| line.strip_prefix('['));
    let mut published: Vec<&str> = parts.filter_map(|part| part.split(']').next()).collect();
    published.sort_unstable();
    let rows = rows();
    let listed: Vec<&String> = rows.keys().collect();
    assert_eq!(
        listed, published,
        "systems of credits.md, and of the figures"
    );
    for (system, (command, links)) in rows {
        let program = command.strip_prefix("cargo run -p studies --bin ");
        let program = program.and_then(|rest| rest.split(' ').next());
        let program = program.unwrap_or_else(|| panic!("{system}: `{command}` runs no study"));
        let file = format!("studies/src/bin/{program}.rs");
        assert!(root().join(&file).is_file(), "{system}: there is no {file}");
        assert!(!links.is_empty(), "{system}: no link to what it measured");
        for link in links {
            let page = fs::read_to_string(root().join("src").join(&link));
            let page = page.unwrap_or_else(|_| panic!("{system}: there is no page {link}"));
            let shown = page.split("flamegraphs/measuring/").skip(1);
            let mut records = shown.filter_map(|rest| rest.split("}}").next());
            let made = |record: &str| {
                let record = root().join("flamegraphs/measuring").join(record);
                fs::read_to_string(record).is_ok_and(|text| text.contains(&command))
            };
            assert!(
                records.any(made),
                "{system}: {link} shows no record of `{command}`"
            );
        }
    }
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn weekly_each_published_system_runs() {
    let _turn = turn();
    let mut failed = Vec::new();
    for (system, (command, _)) in rows() {
        let words = command
            .strip_prefix("cargo ")
            .expect("the other test checks it");
        let (output, all) = run(&mut cargo(words));
        // The line below a table comes last, so the study has reached its end.
        if !output.status.success() || !all.contains("Measured by") {
            failed.push(format!("{system}: {command}: {all}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The published service under the published users, as the book shows it.
#[test]
#[ignore = "needs Locust (cargo workshop setup locust) and a quarter of a minute"]
fn the_published_service_answers_locust_on_each_route() {
    let _turn = turn();
    let (port, admin) = (free_port(), free_port());
    let build = "build --package chapter3 --example published";
    succeed(&mut cargo(build));
    let words = format!("--port {port} --admin-port {admin}");
    let mut service = command(built("examples/published"), &words);
    let _service = Running(service.stdout(Stdio::null()).spawn().unwrap());
    wait_for(&port);
    let locust = tool("venv/bin/locust", "cargo workshop setup locust");
    for route in ["/read", "/fast", "/cpualloc", "/cpu"] {
        let words = format!(
            "-f locust/published.py --host http://127.0.0.1:{port} --route {route} -u 4 -t 4s --headless --warm-up 1"
        );
        succeed(&mut command(&locust, &words));
    }
}

/// The same service with the built-in generator, by one command.
#[test]
#[ignore = "compiles the studies, and takes half a minute"]
fn weekly_the_published_service_starts_under_its_load() {
    let _turn = turn();
    for route in ["/fast", "/cpualloc"] {
        let words = format!("run --quiet -p studies --bin published -- {route} 5");
        let (output, all) = run(&mut cargo(&words));
        assert!(output.status.success(), "{route}: {all}");
        for words in ["/debug/pprof/flamegraph", "requests per second"] {
            assert!(all.contains(words), "{route}: {all}");
        }
    }
}
