//! All tasks of this process, as its own endpoints tell them.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "tasks"
))]

mod common;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex as Lock};
use std::time::Duration;

use axum::Router;
use common::{Answer, ask, ask_until, wait_until};
use debug_endpoints::DebugEndpoints;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// One look at a time, and these tests share a process.
static ALONE: Lock<()> = Lock::new(());

/// Memory that a look may take, in KiB.
const MOST_MEMORY: u64 = 100 << 10;

/// Tasks that wait for the lock.
const WAITERS: usize = 7;

/// Starts a service in which tasks wait for a lock that one of them keeps across a long call. Returns nothing if this build has
/// no types, after a check of what the endpoint says then.
fn service() -> Option<(Runtime, SocketAddr)> {
    async fn keep(ids: Arc<Mutex<Vec<u64>>>) {
        let guard = ids.lock().await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        drop(guard);
    }
    async fn wait(ids: Arc<Mutex<Vec<u64>>>) {
        ids.lock().await.push(1);
    }
    let (runtime, _, admin) = common::service(DebugEndpoints::new, |_| Router::new());
    let ids = Arc::new(Mutex::new(Vec::new()));
    runtime.spawn(keep(ids.clone()));
    wait_until("a task holds the lock", || ids.try_lock().is_err());
    for _ in 0..WAITERS {
        runtime.spawn(wait(ids.clone()));
    }
    let waits = format!("{WAITERS} tasks wait for a lock at ");
    let answer = ask_until(admin, "/debug/tasks", |answer| {
        answer.status == 501 || answer.text().contains(&waits)
    });
    if answer.status == 501 {
        let text = answer.text();
        assert!(
            text.contains("add `debug = true` below `[profile."),
            "{text}"
        );
        return None;
    }
    Some((runtime, admin))
}

fn tasks(admin: SocketAddr, query: &str) -> Answer {
    let answer = ask(admin, &format!("/debug/tasks{query}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

/// Returns the number of the line in this file that has a text.
fn line(text: &str) -> String {
    let mut lines = include_str!("tasks.rs").lines();
    let at = lines.position(|line| line.contains(text)).expect(text) + 1;
    format!("tests/tasks.rs:{at}")
}

#[test]
fn a_service_tells_where_its_tasks_wait_and_who_holds_the_lock() {
    let _alone = ALONE.lock();
    let Some((runtime, admin)) = service() else {
        return;
    };
    let text = tasks(admin, "").text();
    let wait_at = line("ids.lock().await.push(1)");
    let wanted = format!("{WAITERS} tasks wait for a lock at ");
    let found = text.lines().find(|line| line.contains(&wanted));
    assert!(found.is_some_and(|line| line.ends_with(&wait_at)), "{text}");
    let keeps = line("tokio::time::sleep(Duration::from_secs(3600)).await");
    let holds = "holds a lock (`guard`, a MutexGuard<Vec<u64>>), suspended at";
    let found = text.lines().find(|line| line.contains(holds));
    let found = found.unwrap_or_default();
    assert!(
        found.contains(&keeps) && found.contains("it waits for a timer"),
        "{text}"
    );
    assert!(!text.contains("eadlock"), "{text}");

    common::deadlock(&runtime);
    let text = tasks(admin, "").text();
    assert!(
        text.contains("Deadlock: 2 tasks wait for each other in a circle"),
        "{text}"
    );

    // One function's tasks alone.
    let text = tasks(admin, "?of=transfer").text();
    assert!(text.starts_with("2 of "), "{text}");
    assert!(!text.contains("tasks::service::wait"), "{text}");
    assert!(text.contains("Deadlock"), "{text}");
    let text = tasks(admin, "?of=no_such_function").text();
    assert!(
        text.starts_with("0 of ") && !text.contains("transfer"),
        "{text}"
    );
}

#[test]
fn the_page_and_the_picture_show_the_same_and_run_nothing() {
    let _alone = ALONE.lock();
    let Some((runtime, admin)) = service() else {
        return;
    };
    common::deadlock(&runtime);
    let page = tasks(admin, "?format=html&of=%3Cscript%3E");
    assert!(page.head.contains("default-src 'none'"), "{}", page.head);
    let text = page.text();
    assert!(
        text.contains("value=\"&lt;script&gt;\"") && !text.contains("<script"),
        "{text}"
    );
    let text = tasks(admin, "?format=html").text();
    for part in [
        "<details open>",
        "7 tasks, waiting",
        "Vec&lt;u64&gt;",
        "Deadlock: 2 tasks wait for each other",
        "data:image/svg+xml",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let opened = text.matches("<details").count();
    assert_eq!(opened, text.matches("</details>").count());
    let picture = tasks(admin, "?format=svg");
    assert!(picture.head.contains("image/svg+xml"), "{}", picture.head);
    let picture = picture.text();
    for part in [
        "7 tasks wait",
        "holds `guard`",
        "MutexGuard&lt;Vec&lt;u64&gt;&gt;",
        "prefers-color-scheme:dark",
    ] {
        assert!(picture.contains(part), "no {part} in {picture}");
    }
    assert_eq!(ask(admin, "/debug/tasks?format=pprof").status, 400);
}

#[test]
fn tasks_of_the_endpoints_are_told_apart_from_those_of_the_service() {
    let _alone = ALONE.lock();
    let Some((_runtime, admin)) = service() else {
        return;
    };
    // With this question, a task of the endpoints begins to wait for the end of its counts.
    assert_eq!(ask(admin, "/debug/await/recent").status, 200);
    let report = tasks(admin, "?format=json");
    let report: serde_json::Value = serde_json::from_slice(&report.body).expect("JSON");
    let (mut own, mut others) = (0, 0);
    for group in report["groups"].as_array().expect("groups") {
        let future = group["future"].as_str().expect("a name");
        let is_own = future.contains("debug_endpoints::");
        assert_eq!(group["of_endpoints"], is_own, "{group}");
        own += usize::from(future.contains("recent_for"));
        others += usize::from(!is_own);
    }
    assert!(own == 1 && others > 1, "{report}");
    let text = tasks(admin, "?of=recent_for").text();
    assert!(text.contains("of the debug endpoints, not of"), "{text}");
}

#[test]
fn a_look_tells_who_waits_for_whom_and_that_nobody_moves() {
    let _alone = ALONE.lock();
    let Some((_runtime, admin)) = service() else {
        return;
    };
    let text = ask(admin, "/debug/look?seconds=0.2").text();
    for part in [
        &format!("{WAITERS} tasks wait for a lock at ")[..],
        ", all in all 10 snapshots",
        " in 10 of 10 snapshots; it waits for a timer",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn a_look_takes_little_memory_and_gives_it_back() {
    let _alone = ALONE.lock();
    let Some((_runtime, admin)) = service() else {
        return;
    };
    // The peak of what follows, and not of the tests before it.
    std::fs::write("/proc/self/clear_refs", "5").expect("to reset the peak");
    let before = common::status("VmRSS:", 10);
    for _ in 0..5 {
        tasks(admin, "?format=json");
    }
    let (peak, after) = (common::status("VmHWM:", 10), common::status("VmRSS:", 10));
    println!("{before} KiB before, {peak} at most, {after} after");
    assert!(peak < before + MOST_MEMORY, "{before} KiB, {peak} at most");
    // It may even be less than before.
    assert!(
        after < before + MOST_MEMORY / 3,
        "{before} KiB, {after} after"
    );
}
