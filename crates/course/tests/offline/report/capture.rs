//! A capture holds the measured data, and everything beside them can be derived again.

use std::{fs, path::Path};

use crate::report::captured::{capture, has, keep};
use crate::support::{outcome, profile, round};
use course::measurement::chapter_file::Extra;
use course::measurement::record::{CountsAt, Purpose};
use course::measurement::reference::Published;
use course::report::capture::{self, Capture, CaptureError};
use statistics::profile::ProfileKind;

fn written() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    capture().write(folder.path()).unwrap();
    folder
}

fn published() -> Vec<Published> {
    capture().record.references
}

#[track_caller]
fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn stale(folder: &tempfile::TempDir) -> String {
    capture::verify(folder.path(), published())
        .unwrap_err()
        .to_string()
}

#[test]
fn deriving_again_changes_nothing_and_other_tools_files_may_stay() {
    let folder = written();
    capture::verify(folder.path(), published()).unwrap();
    capture::derive(folder.path(), published()).unwrap();
    fs::write(folder.path().join("problem.cpu.pb.gz"), [0x1f, 0x8b]).unwrap();
    capture::verify(folder.path(), published()).unwrap();
}

#[test]
fn a_figure_typed_by_hand_is_found() {
    let folder = written();
    let table = text(folder.path(), "table.md").replace("893", "1,893");
    fs::write(folder.path().join("table.md"), table).unwrap();
    let error = stale(&folder);
    has(
        &error,
        &["table.md: differs from", "derive the capture again"],
    );
    capture::derive(folder.path(), published()).unwrap();
    capture::verify(folder.path(), published()).unwrap();
}

#[test]
fn files_that_are_missing_or_left_over_are_named() {
    let folder = written();
    let path = |name| folder.path().join(name);
    fs::rename(path("problem.cpu.svg"), path("old.cpu.svg")).unwrap();
    has(&stale(&folder), &["problem.cpu.svg: missing"]);
    capture::derive(folder.path(), published()).unwrap();
    has(&stale(&folder), &["old.cpu.svg: left over"]);
    fs::remove_file(path("solution.await.folded")).unwrap();
    has(&stale(&folder), &["solution.await.folded: missing"]);
}

#[test]
fn frames_that_no_picture_shows_are_not_kept() {
    let mut full = capture();
    full.folded.insert(
        "solution.cpu.folded".to_owned(),
        "worker;tokio::runtime::run;core::ops::call;tokio::task::poll;hyper::dispatch;hyper::poll;chapter1::read 710\n"
            .to_owned(),
    );
    let folder = tempfile::tempdir().unwrap();
    full.write(folder.path()).unwrap();
    assert_eq!(
        text(folder.path(), "solution.cpu.folded"),
        "worker;tokio::runtime::run;hyper::dispatch;hyper::poll;chapter1::read 710\n"
    );
    let kept = Capture::read(folder.path()).unwrap();
    assert_eq!(kept.flamegraphs().unwrap(), full.flamegraphs().unwrap());
}

#[test]
fn stacks_of_a_heap_profile_are_read_from_dhats_file() {
    let mut capture = capture();
    let taken = profile("problem", ProfileKind::Heap, 3, None);
    let json = r#"{"pps":[{"tb":8,"tbk":1,"fs":[1,2,2]},{"tb":16,"tbk":2,"fs":[1,2]}],
        "ftbl":["[root]","0x1: clone (a.rs:1:1)","0x2: sort (b.rs:2:2)"]}"#;
    capture.dhat.insert(taken.dhat_name(), json.to_owned());
    capture.record.profiles.push(taken);
    let folder = tempfile::tempdir().unwrap();
    capture.write(folder.path()).unwrap();
    capture::verify(folder.path(), published()).unwrap();
    has(
        &text(folder.path(), "values.md"),
        &["problem-heap-top-share -->\n100 %\n"],
    );
    let there = Capture::read(folder.path()).unwrap();
    assert_eq!(there.folded["problem.heap.folded"], "sort;clone 3\n");
    fs::remove_file(folder.path().join("problem.heap.json")).unwrap();
    has(&stale(&folder), &["problem.heap.json: missing"]);
}

#[test]
fn a_record_of_another_version_or_none_is_refused() {
    let folder = written();
    let path = folder.path().join("capture.json");
    let record = text(folder.path(), "capture.json");
    fs::write(&path, record.replacen("\"format\": 2", "\"format\": 9", 1)).unwrap();
    has(&stale(&folder), &["format is 9"]);
    for none in ["{", "[]", "{\"chapter\": []}"] {
        fs::write(&path, none).unwrap();
        let error = stale(&folder);
        has(&error, &["capture.json", "record the capture again"]);
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(
        Capture::read(folder.path()),
        Err(CaptureError::Io { .. })
    ));
}

#[test]
fn a_capture_that_cannot_be_derived_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("chapter1");
    let mut no_number = capture();
    no_number.record.rounds[0].wall_s = f64::NAN;
    let error = no_number.write(&target).unwrap_err();
    assert!(matches!(error, CaptureError::NotARecord { .. }), "{error}");
    let mut no_count = capture();
    let stacks = no_count.folded.get_mut("problem.cpu.folded").unwrap();
    "main;poll\n".clone_into(stacks);
    let error = no_count.write(&target).unwrap_err().to_string();
    assert!(error.starts_with("problem.cpu.folded: line 1"), "{error}");
    assert!(!target.exists(), "half a capture is none");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = capture().write(&file.join("chapter1")).unwrap_err();
    has(&error.to_string(), &["file", "may write"]);
}

#[test]
fn a_run_without_rounds_still_gives_a_capture_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = capture();
    capture.record.rounds.clear();
    capture.record.profiles.clear();
    capture.folded.clear();
    capture.write(folder.path()).unwrap();
    capture::verify(folder.path(), published()).unwrap();
    assert!(text(folder.path(), "table.md").contains("Verdict: **invalid**"));
    assert!(!folder.path().join("plots/latency.svg").exists());
}

/// A queue that was counted has a plot for each variant, both on one scale, and a figure for its page.
#[test]
fn a_counted_queue_is_drawn_for_problem_and_fix_on_one_scale() {
    let mut capture = capture();
    let scenario = "saturated".to_owned();
    assert!(
        capture
            .plots()
            .iter()
            .all(|(name, _)| !name.contains("queue"))
    );
    capture
        .record
        .chapter
        .extras
        .push(Extra::Queue { scenario });
    for (variant, longest) in [("problem", 480), ("solution", 40)] {
        let outcome = outcome(500, 800, 2.0, 50.0);
        let mut round = round(Purpose::Series, variant, "saturated", 8.0, outcome);
        round.outcome.per_second = vec![370, 430];
        for (s, waiting) in [(0.1, 0), (1.0, longest), (1.9, longest / 2)] {
            round.series.push(CountsAt {
                s,
                accepted: 500,
                finished: 0,
                waiting,
            });
        }
        capture.record.rounds.push(round);
    }
    let plots = capture.plots();
    let drawn = |name: &str| {
        let plot = plots.iter().find(|(plot, _)| *plot == name);
        let (_, svg) = plot.unwrap_or_else(|| panic!("there is no plot {name}"));
        keep(&format!("{name}.svg"), svg);
        svg
    };
    for name in ["queue-problem", "queue-solution"] {
        has(
            drawn(name),
            &["waiting", "answered in time per second", "at most 480"],
        );
    }
    let values = &capture.derived().unwrap()["values.md"];
    for (variant, longest) in [("problem", 480), ("solution", 40)] {
        has(
            values,
            &[&format!("{variant}-longest-queue -->\n{longest}\n")],
        );
    }
}
