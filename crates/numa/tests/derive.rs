//! The program's command `derive`: files that follow from a record.

use std::fs;
use std::path::Path;
use std::process::Command;

use terminal::testing::Ran;

/// The book's records.
const REGIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../flamegraphs/chapter7/regions"
);

fn derive(folder: &Path, options: &[&str]) -> Ran {
    let mut numa = Command::new(env!("CARGO_BIN_EXE_numa"));
    Ran::of(numa.arg("derive").arg(folder).args(options))
}

#[test]
fn the_books_table_and_figures_are_what_their_record_gives() {
    let said = derive(Path::new(REGIONS), &["--verify"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_file_that_differs_from_its_record_is_named_and_can_be_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let record = fs::read(Path::new(REGIONS).join("4x2.json")).unwrap();
    fs::write(folder.path().join("4x2.json"), record).unwrap();
    fs::write(folder.path().join("4x2.md"), "another table").unwrap();
    let refused = derive(folder.path(), &["--verify"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("4x2.md is not what its record gives"),
        "{refused:?}"
    );
    for options in [&[][..], &["--verify"]] {
        let said = derive(folder.path(), options);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}
