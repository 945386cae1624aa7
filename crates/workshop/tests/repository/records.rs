//! The records of the book: the code that they were made with.

use std::fs;
use std::path::{Path, PathBuf};

use course::bench::provenance;
use course::measurement::claim::SOLUTION;
use course::measurement::record::Inputs;
use course::report::capture::Capture;
use course::report::summary::Summary;
use serde_json::json;

use crate::results::described;
use crate::{chapters, root, tell};

/// Lists the tables below a folder of records.
fn tables(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tables(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_record_names_code_that_nobody_has() {
    for table in tables(&root().join("flamegraphs")) {
        let text = fs::read_to_string(&table).unwrap();
        assert!(
            !text.contains("with changes"),
            "{}: a record of files that were never committed; make it again: cargo workshop capture --all",
            table.display()
        );
    }
}

#[test]
fn proofs_for_scripts_have_the_form_that_is_described() {
    for (number, _) in chapters() {
        let capture = Capture::read(&root().join(format!("flamegraphs/chapter{number}"))).unwrap();
        let summary = Summary::new(&capture.record, &capture.analysis(), 60.0, None);
        let mut proof = serde_json::to_value(summary).unwrap();
        proof["schema"] = json!("proof/1");
        described(&proof);
    }
}

/// Tells which records are older than the code. A change of the code may leave its figures as they are, so this fails
/// nothing.
#[test]
fn records_say_what_they_were_made_with() {
    let mut stale = Vec::new();
    for (number, folder) in chapters() {
        let capture = Capture::read(&root().join(format!("flamegraphs/chapter{number}"))).unwrap();
        let today = provenance::of_chapter(&root(), &folder, SOLUTION).unwrap();
        if capture.record.inputs != Inputs::Digest(today) {
            stale.push(format!("chapter {number} ({})", capture.record.inputs));
        }
    }
    for table in tables(&root().join("flamegraphs/measuring")) {
        let text = fs::read_to_string(&table).unwrap();
        let command = text.rsplit_once("`cargo run -p studies --bin ");
        let Some((_, after)) = command else {
            continue;
        };
        let program = after.split([' ', '`']).next().unwrap();
        let today = provenance::of_study(&root(), program).unwrap();
        if !after.contains(&Inputs::Digest(today).to_string()) {
            stale.push(table.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    if !stale.is_empty() {
        let stale = stale.join(", ");
        tell(&format!(
            "made with other inputs than today's; cargo workshop capture --all makes them again: {stale}"
        ));
    }
}
