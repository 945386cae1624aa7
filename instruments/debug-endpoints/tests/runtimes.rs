//! A second runtime beside the one that is watched, in a process of its own: event loops are counted.
#![cfg(target_os = "linux")]

mod common;

use axum::Router;
use debug_endpoints::DebugEndpoints;
use tokio::runtime::{Builder, Runtime};

#[test]
fn what_is_not_watched_is_told_until_it_is() {
    let (service, _, admin) = common::service(DebugEndpoints::new, |_| Router::new());
    let asked = |admin| {
        let heartbeat = common::ask(admin, "/debug/heartbeat?seconds=0.2").text();
        let metrics = common::ask(admin, "/debug/metrics").text();
        (heartbeat, metrics)
    };
    let (heartbeat, metrics) = asked(admin);
    // The runtime has the name of the thread that made the endpoints.
    assert!(heartbeat.contains("with 2 workers\""), "{heartbeat}");
    assert!(
        metrics.contains("\nprocess_event_loops_not_watched 0\n"),
        "{metrics}"
    );
    assert!(metrics.contains("\ntokio_workers 2\n"), "{metrics}");

    let mut second = Builder::new_multi_thread();
    let second = second.worker_threads(1).thread_name("rows").enable_all();
    let second: Runtime = second.build().expect("a runtime");
    // A thread takes its name once it runs.
    let (_, metrics) = common::once_in_three(|| {
        let (heartbeat, metrics) = asked(admin);
        let told = heartbeat.contains("1 event loop that it does not watch")
            && heartbeat.contains("1 rows");
        (told, (heartbeat, metrics))
    });
    assert!(
        metrics.contains("\nprocess_event_loops_not_watched 1\n"),
        "{metrics}"
    );

    let debug = DebugEndpoints::new().runtime("front", service.handle().clone());
    let admin = debug.listen("127.0.0.1:0").expect("a free port");
    let on_the_worker = second.spawn(async move { debug.watch_current_runtime() });
    second.block_on(on_the_worker).expect("it ends");
    let (heartbeat, metrics) = asked(admin);
    for told in [
        "\"runtime\":\"front\"",
        "\"runtime\":\"rows\"",
        "watches 2 runtimes (front, rows) with 3 workers\"",
    ] {
        assert!(heartbeat.contains(told), "{told}: {heartbeat}");
    }
    for told in [
        "{runtime=\"front\"} 2\n",
        "tokio_workers{runtime=\"rows\"} 1\n",
        "_not_watched 0\n",
    ] {
        assert!(metrics.contains(told), "{told}: {metrics}");
    }
}
