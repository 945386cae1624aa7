//! The schemas describe what `look` and `tasks` answer.

mod common;

use std::io::Write;
use std::net::TcpStream;

use axum::Router;
use axum::routing::get;
use common::schema::{check_all, wrong_in};
use common::{ask, once_in_three};
use debug_endpoints::DebugEndpoints;
use diagnosis::{Evidence, Report};
use serde_json::Value;

const LOOK: &str = include_str!("../look.schema.json");
const TASKS: &str = include_str!("../tasks.schema.json");

#[test]
fn the_schemas_use_what_this_test_checks_and_describe_each_key() {
    for schema in [LOOK, TASKS] {
        check_all(schema);
    }
}

#[test]
fn answers_of_look_are_as_described() {
    static LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    async fn stuck_here() {
        let _guard = LOCK.lock().await;
    }
    let (_runtime, own, admin) = common::service(DebugEndpoints::new, |debug| {
        let routes = Router::new()
            .route("/stuck", get(stuck_here))
            .route("/at-once", get(|| async { "done" }));
        routes.layer(debug.layer())
    });
    let look = || {
        let answer = ask(admin, "/debug/look?seconds=1&format=json");
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice::<Value>(&answer.body).expect("JSON")
    };
    // Of an idle service, and of one that is stuck, which has a finding.
    let idle = look();
    assert_eq!(wrong_in(LOOK, "#", &idle), Vec::<String>::new());
    let _held = LOCK.blocking_lock();
    let mut stuck = Vec::new();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(own).expect("it listens");
        write!(stream, "GET /stuck HTTP/1.1\r\nHost: shop\r\n\r\n").expect("sent");
        stuck.push(stream);
    }
    ask(own, "/at-once");
    // A machine that stands still may show one of two looks something else.
    let (found, _) = once_in_three(|| {
        let found = look();
        assert_eq!(wrong_in(LOOK, "#", &found), Vec::<String>::new());
        // Its evidence can be judged elsewhere, to the same.
        let evidence = ask(admin, "/debug/look?seconds=1&format=evidence");
        let evidence = Evidence::from_file(&evidence.text()).expect("evidence");
        let again = serde_json::to_value(Report::new(&evidence).with_text()).expect("JSON");
        assert_eq!(wrong_in(LOOK, "#", &again), Vec::<String>::new());
        let first = |seen: &Value| ["findings", "waits"].map(|list| seen[list][0]["kind"].clone());
        let is_same = first(&found) == first(&again) && !first(&found)[0].is_null();
        (is_same, (found, again))
    });
    let refused = ask(admin, "/debug/look?seconds=1&format=evidence&tail=99");
    assert_eq!(refused.status, 400, "{}", refused.text());

    // What is checked is seen when it is wrong.
    for (key, bad) in [
        ("finished", Value::from("9")),
        ("cpus_used", Value::from(-1)),
        ("findings", serde_json::json!([{ "level": "perhaps" }])),
        ("unknown", Value::Null),
    ] {
        let mut damaged = found.clone();
        damaged[key] = bad;
        assert!(!wrong_in(LOOK, "#", &damaged).is_empty(), "{key} passes");
    }
    let mut without = found.clone();
    without.as_object_mut().expect("an object").remove("text");
    assert_eq!(
        wrong_in(LOOK, "#", &without),
        Vec::<String>::new(),
        "duel's has no text"
    );
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "tasks"
))]
#[test]
fn answers_of_tasks_are_as_described() {
    let (runtime, _, admin) = common::service(DebugEndpoints::new, |_| Router::new());
    let tasks = || {
        let answer = ask(admin, "/debug/tasks?format=json");
        if answer.status == 501 {
            assert!(
                answer.text().contains("`debug = true`"),
                "{}",
                answer.text()
            );
            return None;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice::<Value>(&answer.body).ok()
    };
    let Some(idle) = tasks() else {
        return;
    };
    assert_eq!(wrong_in(TASKS, "#", &idle), Vec::<String>::new());
    // With two tasks that wait for each other, every part of the answer has something.
    common::deadlock(&runtime);
    let stuck = tasks().expect("it had types before");
    assert_eq!(wrong_in(TASKS, "#", &stuck), Vec::<String>::new());
    assert!(
        stuck["circles"][0]["links"][0]["held_by"][0]["line"].is_object(),
        "{stuck}"
    );
    let mut damaged = stuck.clone();
    damaged["groups"][0]["state"] = Value::from("asleep");
    assert!(!wrong_in(TASKS, "#", &damaged).is_empty());
}
