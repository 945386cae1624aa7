//! Verdicts on records, without a machine: on the one in the book, and on changed copies of it.

use std::collections::BTreeMap;

use course::analysis::verdict::VerdictKind::{self, Invalid, Proved, Refuted};
use numa::record::{Record, Variant};
use numa::verdict::judge;
use numa::{table, values};

const RECORDED: &str = include_str!("../../../flamegraphs/chapter7/regions/4x2.json");

fn recorded() -> Record {
    serde_json::from_str(RECORDED).expect("a record")
}

/// Returns the record with a change to one variant's counts.
fn changed(variant: &str, change: impl Fn(&mut Variant)) -> Record {
    let mut record = recorded();
    let mut variants = record.variants.iter_mut();
    change(variants.find(|it| it.name == variant).expect("recorded"));
    record
}

#[track_caller]
fn verdict(record: &Record, kind: VerdictKind, words: &str) {
    let verdict = judge(record, "solution");
    assert_eq!(verdict.kind, kind, "{}", verdict.reason);
    assert!(verdict.reason.contains(words), "{}", verdict.reason);
}

#[test]
fn a_record_is_written_as_it_was_read() {
    let written = serde_json::to_string_pretty(&recorded()).expect("plain data");
    assert_eq!(written + "\n", RECORDED);
}

#[test]
fn a_quarter_before_and_all_afterwards_is_proved() {
    let record = recorded();
    let counts = |name| {
        let variant = record.variant(name).expect("recorded");
        let pinned = variant.pinned_readers();
        (variant.local_pages(), pinned, variant.nodes_with_a_copy())
    };
    assert_eq!(counts("problem"), (Some(0.25), 0, 0));
    assert_eq!(counts("solution"), (Some(1.0), 8, 4));
    verdict(
        &record,
        Proved,
        "25.0 % of the problem's, 99.99 % of the solution's",
    );
}

#[test]
fn every_way_to_fall_short_has_its_sentence() {
    type Change = fn(&mut Variant);
    let of_the_solution: [(VerdictKind, &str, Change); 10] = [
        (Refuted, "7 of 8 workers", |it| {
            it.placement.readers[3].pinned_to = None;
        }),
        (Refuted, "7 of 8 workers", |it| {
            it.placement.readers[3].moved = 1;
        }),
        (Refuted, "7 of 8 workers", |it| {
            it.placement.readers[3].pinned_to = Some(2);
        }),
        (Refuted, "3 of 4 regions", |it| {
            it.placement.copies[2].pages = Some(BTreeMap::from([(1, 64), (0, 64)]));
        }),
        (Refuted, "keeps 6 copies", |it| {
            let copy = it.placement.copies[0].clone();
            it.placement.copies.push(copy);
        }),
        (Refuted, "loads from the data set were local", |it| {
            it.loads[0][1] = 2_000_000;
        }),
        // One copy that pinned workers share is no fix.
        (Refuted, "0 of 4 regions", |it| {
            let mut readers = it.placement.readers.iter_mut();
            readers.by_ref().for_each(|reader| reader.from[0].copy = 1);
        }),
        // A missing count makes the record invalid.
        (Invalid, "not all requests of the solution", |it| {
            it.answers = 39;
        }),
        (Invalid, "no load was counted", |it| {
            it.loads = vec![vec![0; 4]; 4];
        }),
        (Invalid, "the kernel did not tell", |it| {
            it.placement.copies[1].pages = None;
        }),
    ];
    for (kind, words, change) in of_the_solution {
        verdict(&changed("solution", change), kind, words);
    }
    let lucky = changed("problem", |it| it.loads[0][0] = 1_499_500 * 4);
    verdict(&lucky, Refuted, "local already");
    let mut alone = recorded();
    alone.variants.truncate(1);
    verdict(&alone, Invalid, "nothing was seen of the solution");
}

#[test]
fn nearly_all_is_not_rounded_up_to_all() {
    let record = changed("solution", |it| it.loads[0][3] = 1);
    let (table, values) = (table(&record), values(&record));
    for row in [
        "| 25.0\u{a0}% | 100.0\u{a0}% | 99.99\u{a0}% |",
        "| 0\u{a0}of\u{a0}8 | 0\u{a0}of\u{a0}8 | 8\u{a0}of\u{a0}8 |",
        "at commit c16cafd06aa4, inputs not recorded",
    ] {
        assert!(table.contains(row), "{row}\n{table}");
    }
    for anchor in [
        "ANCHOR: solution-local-loads -->\n99.99 %",
        "ANCHOR: verdict -->\nproved",
    ] {
        assert!(values.contains(anchor), "{anchor}\n{values}");
    }
}
