//! The faults that people reported, as the services of `diagnosis/tests/field`: `look` names each, and none in those without.
//!
//! A busy machine can hide a fault, or look like one: each service has some attempts, of which one has to be right.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::running::{Running, free_port, wait_for};
use crate::{cargo, json, root, succeed, tell, turn, workshop};

const ATTEMPTS: u32 = 3;

/// Recorded looks at each version of a service.
const RECORDINGS: u32 = 3;

/// Time for which a service is loaded, in seconds. Tasks are looked at after everything else.
const LOADED: u32 = 25;

/// One service, and the finding that `look` must report: a row of the field's table.
struct Case {
    program: String,
    /// Options of the load: the request, the number of users, and the seconds that each thinks; or of lines of text.
    load: String,
    kind: String,
    /// Words of the sentence: the line that has to change, or what it is about.
    says: String,
}

fn cases() -> Vec<Case> {
    let table = root().join("instruments/diagnosis/tests/field/cases.md");
    let table = std::fs::read_to_string(table).unwrap();
    let mut cases = Vec::new();
    for row in table.lines().filter(|row| row.starts_with("| `")) {
        let cells: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let [program, load, kind, says] = cells[..] else {
            panic!("four cells: {row}");
        };
        cases.push(Case {
            program: program.to_owned(),
            load: load.to_owned(),
            kind: kind.to_owned(),
            says: says.to_owned(),
        });
    }
    cases
}

#[test]
#[ignore = "needs some minutes, to compile another workspace"]
fn weekly_look_names_the_faults_that_people_reported() {
    let is_named = |case: &Case, said: &Value| {
        // `look` lists an uncertain fault among the waits.
        let of = |list: &str| said[list].get(0);
        let first = of("findings").or_else(|| of("waits"));
        let first = first.unwrap_or(&Value::Null);
        let says = first["says"].as_str().unwrap_or_default();
        first["kind"] == case.kind && says.contains(&case.says)
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

/// Looks at each service with its fault and without, and keeps as evidence what was seen. Recordings that exist stay as they are.
/// `FIELD=actor,edge.fixed-2` names some of them by how they begin.
#[test]
#[ignore = "records missing evidence: an hour for all of it"]
fn weekly_evidence_of_the_field_is_recorded() {
    let _turn = turn();
    let programs = build();
    let only = std::env::var("FIELD").unwrap_or_default();
    let folder = root().join("instruments/diagnosis/tests/evidence");
    let commit = words(Command::new("git").args(["rev-parse", "--short=10", "HEAD"]));
    let machine =
        words(Command::new("sh").args(["-c", "nproc; uname -srm"])).replace('\n', " CPUs, ");
    for number in 1..=RECORDINGS {
        for case in cases() {
            for (version, options) in [("faulty", &[][..]), ("fixed", &["--fixed"][..])] {
                let name = format!("{}.{version}-{number}", case.program);
                let is_wanted = only.split(',').any(|start| name.starts_with(start));
                let file = folder.join(format!("{name}.json"));
                if !is_wanted || file.with_extension("json.gz").exists() {
                    continue;
                }
                look(&programs, &case, options);
                let Ok(text) = std::fs::read_to_string(saved(&programs, &case)) else {
                    tell(&format!("{name}: not recorded"));
                    continue;
                };
                let mut evidence: Value = serde_json::from_str(&text).unwrap();
                evidence["recorded"] = serde_json::json!({
                    "machine": machine, "load": case.load, "commit": commit,
                });
                std::fs::write(&file, evidence.to_string()).unwrap();
                succeed(Command::new("gzip").args(["-9nf"]).arg(&file));
            }
        }
    }
}

/// Returns what a command prints.
fn words(command: &mut Command) -> String {
    let printed = command.output().unwrap().stdout;
    String::from_utf8_lossy(&printed).trim().to_owned()
}

/// Returns the services for which no look satisfies `wanted`.
fn without(options: &[&str], wanted: impl Fn(&Case, &Value) -> bool) -> Vec<String> {
    let _turn = turn();
    let programs = build();
    let is_as_wanted = |case: &Case| {
        (0..ATTEMPTS).any(|_| {
            let said = look(&programs, case, options);
            let is_right = wanted(case, &said);
            if !is_right {
                tell(&format!("{} {options:?}: {said}", case.program));
            }
            is_right
        })
    };
    let others = cases().into_iter().filter(|case| !is_as_wanted(case));
    others.map(|case| case.program).collect()
}

/// The folder with the services.
fn build() -> PathBuf {
    let field = root().join("instruments/diagnosis/tests/field");
    succeed(cargo("build --locked --quiet --target-dir target/test").current_dir(&field));
    // The load is a program that the command compiles when it is first wanted: no look may begin before that.
    succeed(&mut workshop("load --url http://127.0.0.1:1 --help"));
    field.join("target/test/debug")
}

/// The file in which [`look`] leaves what it saw. Other processes may look at the same service.
fn saved(programs: &Path, case: &Case) -> PathBuf {
    programs.join(format!("{}-{}.json", case.program, std::process::id()))
}

/// Looks at a service under its load, and leaves what was seen in a file. There is none if the load ended before the look did.
fn look(programs: &Path, case: &Case, options: &[&str]) -> Value {
    let [port, admin] = [(); 2].map(|()| free_port());
    let mut service = Command::new(programs.join(&case.program));
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
    let mut load = Running(load(&case.load, &port));
    // Time for the load to start, and for everything that grows at first.
    thread::sleep(Duration::from_secs(2));
    // Evidence of a wrong answer can be judged again.
    let saved = saved(programs, case);
    let _ = std::fs::remove_file(&saved);
    let said = json(&mut workshop(&format!(
        "look http://127.0.0.1:{admin} --seconds 3 --save {}",
        saved.display()
    )));
    if load.0.try_wait().unwrap().is_some() {
        tell(&format!("{}: the load ended before the look", case.program));
        let _ = std::fs::remove_file(&saved);
    }
    said
}

/// Starts the load of a case. Any answer will do, for the service may answer no request.
fn load(options: &str, port: &str) -> Child {
    let mut load = if let Some(connections) = options.strip_prefix("--lines ") {
        lines(connections, port)
    } else if let Some(visitors) = options.strip_prefix("--visits ") {
        visits(visitors, port)
    } else if let Some(number) = options.strip_prefix("--datagrams ") {
        datagrams(number, port)
    } else if let Some(rate) = options.strip_prefix("--hurried ") {
        hurried(rate, port)
    } else {
        requests(options, port)
    };
    let load = load.stdout(Stdio::null()).stderr(Stdio::null());
    load.spawn().unwrap()
}

fn requests(options: &str, port: &str) -> Command {
    let mut load = workshop(&format!(
        "load --url http://127.0.0.1:{port} --seconds {LOADED}"
    ));
    for option in options.split_whitespace() {
        match option {
            "--post" => load.arg("--request"),
            "messages" => load.arg(messages()),
            path if options.contains(&format!("--post {path}")) => load.arg(format!("POST {path}")),
            other => load.arg(other),
        };
    }
    load
}

/// Returns a command that opens a connection for each request, with so many clients, while another one connects and sends
/// nothing for a second.
fn visits(visitors: &str, port: &str) -> Command {
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} || sleep 0.1");
    let visit = format!(
        "{connect}; printf 'GET /hello HTTP/1.1\\r\\nHost: edge\\r\\n\\r\\n' >&3; read -r -t 5 <&3; exec 3>&-; sleep 0.02"
    );
    let silent = format!("{connect}; sleep 1; exec 3>&-; sleep 0.2");
    let mut bash = Command::new("bash");
    bash.args([
        "-c",
        &format!(
            "end=$((SECONDS + {LOADED})); for _ in $(seq {visitors}); do ( while ((SECONDS < end)); do {visit}; done ) & done; \
             while ((SECONDS < end)); do {silent}; done; wait"
        ),
    ]);
    bash
}

/// Returns a command that sends so many datagrams each fiftieth of a second.
fn datagrams(number: &str, port: &str) -> Command {
    let mut bash = Command::new("bash");
    bash.args([
        "-c",
        &format!(
            "exec >/dev/udp/127.0.0.1/{port}; end=$((SECONDS + {LOADED})); \
             while ((SECONDS < end)); do for _ in {{1..{number}}}; do printf web.time:7; done; sleep 0.02; done"
        ),
    ]);
    bash
}

/// Returns a command that sends so many requests a second, of which one in three is given up after 20 ms.
fn hurried(rate: &str, port: &str) -> Command {
    let ask = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'GET /page HTTP/1.1\\r\\nHost: field\\r\\n\\r\\n' >&3"
    );
    let mut bash = Command::new("bash");
    bash.args([
        "-c",
        &format!(
            "end=$((SECONDS + {LOADED})); for ((n = 0; SECONDS < end; n++)); do \
             if ((n % 3)); then ( {ask} && read -r -t 8 <&3 ) & else ( {ask} && sleep 0.02 ) & fi; \
             sleep $((1000 / {rate}))e-3; done; wait"
        ),
    ]);
    bash
}

/// Returns a command that sends fifty lines of text on each connection, every twentieth of a second.
fn lines(connections: &str, port: &str) -> Command {
    let text = format!("event {}\\n", "x".repeat(60)).repeat(50);
    let one = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3 >/dev/null & \
         for _ in $(seq {}); do printf '{text}' >&3; sleep 0.05; done; kill $!",
        LOADED * 20
    );
    let mut bash = Command::new("bash");
    bash.args([
        "-c",
        &format!("for _ in $(seq {connections}); do ( {one} ) & done; wait"),
    ]);
    bash
}

/// Writes a JSON document of 600 kB, and returns the argument that names it as a body.
fn messages() -> String {
    let text = format!(r#"{{"type":"text","text":"{}"}}"#, "word ".repeat(12));
    let content = vec![text; 8].join(",");
    let message = format!(r#"{{"role":"user","content":[{content}]}}"#);
    let body = format!(
        r#"{{"model":"m","messages":[{}]}}"#,
        vec![message; 700].join(",")
    );
    let file = root().join("target/messages.json");
    std::fs::write(&file, body).unwrap();
    format!("@{}", file.display())
}
