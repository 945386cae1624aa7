//! The chapters of this repository, and their records.

use std::{fs, path::PathBuf};

use course::measurement::{
    chapter_file::ChapterFile,
    claim::{Claim, Claims},
    law::Law,
    record::Record,
};
use course::{
    analysis::prediction::{Inputs, predicted},
    measurement::chapter_file::Noise,
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
        assert_eq!(record.chapter.noise, chapter.noise, "chapter {number}");
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

/// Returns the law with calls of this many ms; `None` for a law that knows no call.
fn with_calls_of(law: &Law, ms: f64) -> Option<Law> {
    let mut law = law.clone();
    match &mut law {
        Law::Little { call_ms: call, .. }
        | Law::Barrier { hold_ms: call }
        | Law::Overload { hold_ms: call, .. } => *call = ms,
        _ => return None,
    }
    Some(law)
}

/// Other programs make calls longer. So a chapter whose gain grows with them cannot say that noise only pushes it down.
#[test]
fn the_law_confirms_the_direction_in_which_noise_pushes() {
    let gain = |chapter: &ChapterFile, ms| {
        let law = with_calls_of(&chapter.law, ms)?;
        let prediction = predicted(&law, chapter.effect_scenario(), Inputs::default());
        Some(prediction.expect("the law predicts").ratio)
    };
    let mut with_a_law = Vec::new();
    for chapter in chapters() {
        let Some(ms) = chapter.law.shortest_answer_ms() else {
            continue;
        };
        let [short, long] = [ms, 1.25 * ms].map(|ms| gain(&chapter, ms).unwrap());
        let grows = long > 1.001 * short;
        let number = chapter.chapter;
        assert_eq!(
            grows,
            chapter.noise != Noise::Down,
            "chapter {number}: {short} {long}"
        );
        with_a_law.push(number);
    }
    assert_eq!(with_a_law, [1, 2, 9, 10]);
    // The figures that chapter 10's file and METHODOLOGY.md name.
    let overload = &chapters()[9];
    assert_eq!(overload.noise, Noise::Up);
    let gains = [20.0, 22.0, 25.0].map(|ms| format!("{:.2}", gain(overload, ms).unwrap()));
    assert_eq!(gains, ["2.22", "3.47", "9.96"]);
}
