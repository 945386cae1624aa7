//! The faults that people reported, as the services of `diagnosis/tests/field`: `look` names each, and none in those without.
//!
//! A busy machine can hide a fault, or look like one: each service has some attempts, of which one has to be right.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::running::{Running, free_port, wait_for};
use crate::{cargo, json, root, succeed, tell, turn, workshop};

const ATTEMPTS: u32 = 3;

/// One service, and the first finding that `look` must report.
struct Case {
    program: &'static str,
    /// Options of the load: the request, the number of users, and the seconds that each thinks.
    load: &'static str,
    kind: &'static str,
    /// Words of the sentence: the line that has to change, or what it is about.
    says: &'static str,
}

const fn case(
    program: &'static str,
    load: &'static str,
    kind: &'static str,
    says: &'static str,
) -> Case {
    Case {
        program,
        load,
        kind,
        says,
    }
}

const CASES: [Case; 34] = [
    case(
        "actor",
        "--get /price --users 8",
        "channel",
        "actor::ask_supplier",
    ),
    case(
        "blockpool",
        "--get /export --users 24",
        "full_blocking_pool",
        "blockpool::export",
    ),
    case(
        "body",
        "--get /probe --users 4 --think 0.02",
        "connections",
        "hardly used again",
    ),
    case(
        "buffered",
        "--get /batch --users 8 --think 0.01",
        "unpolled",
        "buffered",
    ),
    case(
        "dashmap",
        "--get /visit/{1..3} --users 6",
        "blocked_worker",
        "dashmap::visit",
    ),
    case(
        "db",
        "--get /like/{1..100} --users 8 --think 0.005",
        "database",
        "db::count_up",
    ),
    case(
        "field-actix",
        "--get /row --users 6",
        "blocked_worker",
        "row",
    ),
    case(
        "h2streams",
        "--get /quote --users 40",
        "answer_or_stream",
        "h2streams",
    ),
    case(
        "lifo",
        "--get /quote --users 4 --think 0.02",
        "computing_worker",
        "lifo.rs",
    ),
    case(
        "logging",
        "--get /order --users 4 --think 0.01",
        "blocked_worker",
        "logging::order",
    ),
    case(
        "nagle",
        "--get /report --users 8 --think 0.01",
        "nagle",
        "Nagle's algorithm",
    ),
    case(
        "onelock",
        "--get /row/{1..100} --users 8",
        "lock",
        "onelock::read",
    ),
    case(
        "permits",
        "--get /render --users 8",
        "stuck",
        "permits::render",
    ),
    case(
        "rayon",
        "--get /rank --users 4 --think 0.01",
        "blocked_worker",
        "rayon",
    ),
    case(
        "regex",
        "--get /check/{1..9} --users 8 --think 0.005",
        "computing_worker",
        "regex::check",
    ),
    case(
        "sessions",
        "--get /visit --users 8 --think 0.002",
        "memory",
        "live memory grows",
    ),
    case(
        "unbounded",
        "--get /event --users 4 --think 0.001",
        "memory",
        "live memory grows",
    ),
    case("sse", "--get /events --users 8", "lock", "sse"),
    case(
        "biased",
        "--get /status/{1..3} --users 8 --think 0.01",
        "one_task",
        "biased::supervise",
    ),
    case(
        "blpop",
        "--get /stock --users 8 --think 0.005",
        "shared_connection",
        "blpop::stock",
    ),
    case(
        "emfile",
        "--get /mailbox/{1..9} --users 4 --think 0.02",
        "descriptors",
        "file descriptors are open",
    ),
    case(
        "inturn",
        "--get /profile/{1..9} --users 8 --think 0.01",
        "one_after_another",
        "inturn::profile",
    ),
    case(
        "jsonclone",
        "--get /item/{1..9} --users 6 --think 0.005",
        "computing_worker",
        "jsonclone::item",
    ),
    case(
        "login",
        "--get /login/{1..3} --users 4 --think 0.01",
        "computing_worker",
        "login::login",
    ),
    case(
        "lookups",
        "--get /quote --users 16 --think 0.01",
        "connections",
        "hardly used again",
    ),
    case(
        "otel",
        "--get /quote/{1..9} --users 8 --think 0.01",
        "blocked_worker",
        "otel.rs",
    ),
    case(
        "reread",
        "--get /balance/{1..3} --users 6 --think 0.005",
        "waits_for_itself",
        "reread::rate",
    ),
    case(
        "rows",
        "--get /basket/{1..900} --users 4 --think 0.005",
        "in_a_row",
        "rows::prices",
    ),
    case(
        "scan",
        "--get /page/{1..9} --users 4 --think 0.02",
        "sqlite_computes",
        "scan::flag",
    ),
    case(
        "secondconn",
        "--get /price/{1..9} --users 8 --think 0.002",
        "waits_for_itself",
        "secondconn",
    ),
    case(
        "selectall",
        "--get /fan/{1..9} --users 6 --think 0.01",
        "computing_worker",
        "selectall::fan",
    ),
    case(
        "stampede",
        "--get /stats --users 16 --think 0.005",
        "equal_work",
        "Stats::compute",
    ),
    case(
        "stdmpsc",
        "--get /wait/{1..9} --users 8 --think 0.01",
        "blocked_worker",
        "stdmpsc::wait",
    ),
    case(
        "twopermits",
        "--get /mix --users 8 --think 0.002",
        "waits_for_itself",
        "twopermits::mix",
    ),
];

#[test]
#[ignore = "needs some minutes, to compile another workspace"]
fn weekly_look_names_the_faults_that_people_reported() {
    let is_named = |case: &Case, said: &Value| {
        // `look` lists an uncertain fault among the waits.
        let of = |list: &str| said[list].get(0);
        let first = of("findings").or_else(|| of("waits"));
        let first = first.unwrap_or(&Value::Null);
        let says = first["says"].as_str().unwrap_or_default();
        first["kind"] == case.kind && says.contains(case.says)
    };
    let missed = without(&[], is_named);
    assert!(missed.is_empty(), "not named: {missed:?}");
}

/// Uses the load that a service without the fault has to carry.
#[test]
#[ignore = "needs some minutes, to compile another workspace"]
fn weekly_look_accuses_no_service_without_a_fault() {
    let is_clear = |_: &Case, said: &Value| said["findings"].as_array().is_some_and(Vec::is_empty);
    let accused = without(&["--fixed"], is_clear);
    assert!(accused.is_empty(), "accused without a fault: {accused:?}");
}

/// Returns the services for which no look satisfies `wanted`.
fn without(options: &[&str], wanted: impl Fn(&Case, &Value) -> bool) -> Vec<&'static str> {
    let _turn = turn();
    let programs = build();
    let is_as_wanted = |case: &&Case| {
        (0..ATTEMPTS).any(|_| {
            let said = look(&programs, case, options);
            let is_right = wanted(case, &said);
            if !is_right {
                tell(&format!("{} {options:?}: {said}", case.program));
            }
            is_right
        })
    };
    let others = CASES.iter().filter(|case| !is_as_wanted(case));
    others.map(|case| case.program).collect()
}

/// The folder with the services.
fn build() -> PathBuf {
    let field = root().join("instruments/diagnosis/tests/field");
    succeed(cargo("build --locked --quiet --target-dir target/test").current_dir(&field));
    field.join("target/test/debug")
}

fn look(programs: &Path, case: &Case, options: &[&str]) -> Value {
    let [port, admin] = [(); 2].map(|()| free_port());
    let mut service = Command::new(programs.join(case.program));
    service
        .args(["--port", &port, "--admin", &admin])
        .args(options);
    // One whose output nobody reads is a case of its own.
    let _service = Running(
        service
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap(),
    );
    wait_for(&port);
    let load = format!(
        "load --url http://127.0.0.1:{port} {} --seconds 6",
        case.load
    );
    // Any answer will do, for the service may answer no request.
    let mut load = workshop(&load);
    let _load = Running(
        load.stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    // Time for the load to start, and for everything that grows at first.
    thread::sleep(Duration::from_secs(2));
    json(&mut workshop(&format!(
        "look http://127.0.0.1:{admin} --seconds 3"
    )))
}
