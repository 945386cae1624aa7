//! The chapters of this repository, and their records.

use std::{fs, path::PathBuf};

use course::measurement::{
    chapter_file::ChapterFile,
    claim::{Claim, Claims},
    record::Record,
};

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

fn chapters() -> Vec<ChapterFile> {
    let folders = fs::read_dir(root().join("chapters")).unwrap();
    let files = folders
        .map(|entry| entry.unwrap().path().join("chapter.toml"))
        .filter(|path| path.is_file());
    let mut chapters: Vec<ChapterFile> = files
        .map(|path| {
            let read = ChapterFile::read(&path, &path.to_string_lossy(), 2);
            read.unwrap_or_else(|error| panic!("{error}"))
        })
        .collect();
    chapters.sort_by_key(|chapter| chapter.chapter);
    chapters
}

fn recorded(chapter: u32) -> Record {
    let path = root().join(format!("flamegraphs/chapter{chapter}/capture.json"));
    let text = fs::read_to_string(&path).unwrap();
    Record::parse(&text).unwrap_or_else(|error| panic!("chapter {chapter}: {error}"))
}

#[test]
fn every_chapter_can_be_read() {
    let chapters = chapters();
    assert!(chapters.len() >= 10);
    for (number, chapter) in (1..).zip(&chapters) {
        assert_eq!(chapter.chapter, number);
    }
}

#[test]
fn every_record_is_of_this_layout_and_of_what_the_chapter_claims() {
    assert_eq!(Record::FORMAT, 2);
    for chapter in chapters() {
        let (number, record) = (chapter.chapter, recorded(chapter.chapter));
        assert_eq!(record.format, Record::FORMAT, "chapter {number}");
        assert_eq!(record.chapter.chapter, number);
        assert!(!record.rounds.is_empty(), "chapter {number}");
        // Claims that only a check judges are no part of a proof, and need no new record.
        let proved = |claims: &Claims| claims.clone().only(Claim::is_proved);
        assert_eq!(
            proved(&record.chapter.claims),
            proved(&chapter.claims),
            "chapter {number}"
        );
        assert_eq!(record.chapter.extras, chapter.extras, "chapter {number}");
        for claim in chapter.claims.iter().filter(|claim| claim.is_proved()) {
            let rounds = record.rounds_of(claim);
            for variant in ["problem", "solution"] {
                assert!(
                    rounds.iter().any(|round| round.variant == variant),
                    "chapter {number}: no round of the {variant} for {claim:?}"
                );
            }
        }
    }
}
