//! What the endpoints do to their process: its memory, its signals, its temporary folder.
#![cfg(all(target_os = "linux", feature = "cpu"))]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::ask;
use debug_endpoints::DebugEndpoints;

const PROFILE: &str = "/debug/pprof/profile?seconds=0.1&format=folded";

#[test]
fn little_memory_no_file_and_no_ignored_signal_are_left() {
    // The folder is the process's from its beginning, so it takes another process.
    let folder = std::env::temp_dir();
    if folder.ends_with("of-debug-endpoints") {
        return in_folder(&folder);
    }
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("of-debug-endpoints");
    let mut tests = Command::new(std::env::current_exe().expect("this program"));
    let output = tests
        .env("TMPDIR", &folder)
        .arg("--nocapture")
        .output()
        .expect("started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn in_folder(folder: &Path) {
    let before = status("VmRSS:", 10);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let debug = runtime.block_on(async { DebugEndpoints::new() });
    let _router = debug.router();
    let admin = debug.listen("127.0.0.1:0").expect("a free port");
    assert_eq!(ask(admin, "/debug/metrics").status, 200);
    let kib = status("VmRSS:", 10) - before;
    assert!(
        kib < 20 * 1024,
        "{kib} KiB more, before anybody asked for a profile"
    );

    let refused = || {
        let answer = ask(admin, PROFILE);
        let sentence = answer.text();
        assert_eq!(answer.status, 503, "{sentence}");
        let told = folder
            .to_str()
            .is_some_and(|folder| sentence.contains(folder));
        assert!(told && sentence.contains("make it writable"), "{sentence}");
    };
    let taken = |which: &str| {
        let answer = ask(admin, PROFILE);
        assert_eq!(answer.status, 200, "{which}: {}", answer.text());
        let left: Vec<_> = fs::read_dir(folder)
            .expect("it is there")
            .flatten()
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let is_ignored = status("SigIgn:", 16) >> 26 & 1 == 1;
        assert!(
            !is_ignored,
            "programs that the service starts would inherit that"
        );
    };
    refused();
    fs::create_dir(folder).expect("made");
    taken("first");
    taken("second");
    // It goes in the middle of a profile, then while one begins.
    for (pause, seconds) in [(700, 3), (0, 2)] {
        let asked = std::thread::spawn(move || {
            loop {
                let path = format!("/debug/pprof/profile?seconds={seconds}");
                let status = ask(admin, &path).status;
                if status != 409 {
                    return status;
                }
            }
        });
        let patience = Instant::now() + Duration::from_secs(30);
        while ask(admin, PROFILE).status != 409 {
            assert!(Instant::now() < patience);
        }
        std::thread::sleep(Duration::from_millis(pause));
        // At once: what is removed file by file may get another one meanwhile.
        let gone = folder.with_file_name(format!("gone-{pause}"));
        fs::rename(folder, gone).expect("moved");
        let status = asked.join().expect("answered");
        assert!([500, 503].contains(&status), "{status}");
        refused();
        fs::create_dir(folder).expect("made");
        if pause == 0 && ask(admin, PROFILE).status == 503 {
            // pprof looked for the folder in the very moment that it went, and stays stuck: no guard can be had again.
            let sentence = ask(admin, PROFILE).text();
            assert!(sentence.contains("start the service anew"), "{sentence}");
            return;
        }
        taken("after the folder was gone");
    }
}

/// A number of this process, in KiB or as bits.
fn status(name: &str, radix: u32) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line
        .and_then(|rest| rest.split_whitespace().next())
        .expect(name);
    u64::from_str_radix(word, radix).expect("a number")
}
