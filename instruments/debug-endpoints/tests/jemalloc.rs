//! Heap profiles by jemalloc, which reads its configuration when the process starts.
#![cfg(all(target_os = "linux", feature = "jemalloc", not(feature = "heap")))]

mod common;

use std::io::Read;
use std::process::Command;

use common::ask;
use debug_endpoints::{DebugEndpoints, Jemalloc};

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const CONFIGURATION: &str = "_RJEM_MALLOC_CONF";

#[inline(never)]
fn keeps_memory() -> Vec<Vec<u8>> {
    (0..1_000).map(|_| vec![1; 10_000]).collect()
}

#[test]
fn who_keeps_memory_is_told_by_name_once_jemalloc_records_it() {
    let kept = std::hint::black_box(keeps_memory());
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let memory = ask(admin, "/debug/memory?seconds=0.01").text();
    let live = memory.contains("\"allocator\":\"jemalloc\"") && memory.contains("\"live\":{");
    assert!(live, "{memory}");
    let metrics = ask(admin, "/debug/metrics").text();
    assert!(metrics.contains("process_live_memory_bytes "), "{metrics}");
    let answer = ask(admin, "/debug/pprof/heap");
    if std::env::var_os(CONFIGURATION).is_some() {
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut protobuf = Vec::new();
        flate2::read::GzDecoder::new(&*answer.body)
            .read_to_end(&mut protobuf)
            .expect("gzip");
        let text = String::from_utf8_lossy(&protobuf);
        assert!(text.contains("keeps_memory") && text.contains("inuse_space"));
        drop(kept);
        return;
    }
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains(CONFIGURATION), "{}", answer.text());
    let mut tests = Command::new(std::env::current_exe().expect("this program"));
    tests
        .env(CONFIGURATION, "prof:true,lg_prof_sample:12")
        .arg("--nocapture");
    let output = tests.output().expect("started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
