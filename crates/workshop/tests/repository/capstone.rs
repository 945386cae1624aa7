//! The ticket shop, which is a workspace of its own.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::running::{Running, free_port, wait_for};
use crate::{cargo, command, root, run, succeed, tool, turn};

#[test]
#[ignore = "needs some minutes, to compile another workspace"]
fn weekly_the_shop_keeps_its_contract_and_clippy_has_nothing_to_say() {
    let _turn = turn();
    succeed(&mut in_the_shop(
        "clippy --quiet --locked --all-targets -- --deny warnings",
    ));
    succeed(&mut in_the_shop("test --quiet --locked"));
}

#[test]
#[ignore = "needs a PostgreSQL server, whose address POSTGRES holds: postgres://shop@localhost/postgres"]
fn weekly_the_shop_keeps_its_contract_on_postgres() {
    let _turn = turn();
    succeed(&mut in_the_shop(
        "clippy --quiet --locked --all-targets --features postgres -- --deny warnings",
    ));
    succeed(&mut in_the_shop(
        "test --quiet --locked --features postgres -- --test-threads 1",
    ));
}

/// Checks the shop's answers only, not its speed.
#[test]
#[ignore = "needs k6 and Locust (cargo workshop setup k6 locust), and some minutes, to compile another workspace"]
fn weekly_k6_and_locust_meet_no_wrong_answer_in_the_shop() {
    let _turn = turn();
    let k6 = tool("bin/k6", "cargo workshop setup k6");
    let locust = tool("venv/bin/locust", "cargo workshop setup locust");
    succeed(&mut in_the_shop("build --quiet --locked --bins"));
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display();
    succeed(&mut program("capstone", &format!("init-db --data {data}")));
    let [port, payments] = [(); 2].map(|()| free_port());
    let _payments = start("payments", &format!("--port {payments}"), &payments);
    let words = format!(
        "--data {data} --port {port} --admin-port 0 --payments http://127.0.0.1:{payments}"
    );
    let _shop = start("capstone", &words, &port);
    let host = format!("http://127.0.0.1:{port}");

    let summary = folder.path().join("k6.json");
    let words = "run --quiet --no-usage-report -e USERS=4 -e WARM_UP=1 -e DURATION=9";
    let mut k6 = command(k6, words);
    k6.args(["-e", &format!("HOST={host}"), "--summary-export"]);
    let (output, all) = run(k6.arg(&summary).arg("k6/capstone.js"));
    assert!(matches!(output.status.code(), Some(0 | 99)), "{all}");
    let summary: Value = serde_json::from_slice(&fs::read(summary).unwrap()).unwrap();
    let counted = |name: &str| summary["metrics"][name]["count"].as_u64();
    assert_eq!(counted("journeys_broken"), Some(0), "{all}");
    assert!(counted("journeys_in_time") > Some(0), "{all}");

    let words = "-f locust/capstone.py --headless --only-summary -u 4 -t 10s --warm-up 1 --host";
    let mut locust = command(locust, words);
    let (output, all) = run(locust.arg(host).env("PYTHONDONTWRITEBYTECODE", "1"));
    assert!(matches!(output.status.code(), Some(0 | 99)), "{all}");
    assert!(all.contains(", 0 broken; score "), "{all}");
    assert!(!all.contains("no journey in time"), "{all}");
}

fn in_the_shop(words: &str) -> Command {
    let mut cargo = cargo(words);
    cargo.current_dir(root().join("capstone"));
    cargo
}

fn program(name: &str, words: &str) -> Command {
    command(root().join("capstone/target/debug").join(name), words)
}

fn start(name: &str, words: &str, port: &str) -> Running {
    let server = program(name, words).stdout(Stdio::null()).spawn();
    let server = Running(server.unwrap());
    wait_for(port);
    server
}
