//! What a record of several NUMA nodes shows, without a machine.

use std::collections::BTreeMap;

use crate::captured::has;
use analysis::regions::judge;
use analysis::verdict::VerdictKind;
use measurement::record::Commit;
use measurement::regions::{Copy, Load, Placement, Reader, Reads, Record, Seen};
use report::regions::{table, values};

const REGIONS: u32 = 4;
const CPUS: u32 = 8;

fn copy(number: usize, region: u32) -> Copy {
    Copy {
        number,
        address: 0x10_0000 * (number as u64 + 1),
        bytes: 0x8_0000,
        built_in_region: region,
        built_by_pinned: true,
        pages: Some(BTreeMap::from([(region, 128)])),
    }
}

fn reader(cpu: usize, pinned: bool, copy: usize) -> Reader {
    Reader {
        pinned_to: pinned.then_some(cpu),
        reads: 5,
        at_home: 0,
        moved: 0,
        from: vec![Reads {
            cpu,
            copy,
            reads: 5,
        }],
    }
}

fn seen(variant: &str, copies: Vec<Copy>, readers: Vec<Reader>, loads: Vec<Vec<u64>>) -> Seen {
    Seen {
        variant: variant.to_owned(),
        answers: 40,
        resident_kib: 64 * 1024,
        placement: Placement {
            regions: vec![0, 0, 1, 1, 2, 2, 3, 3],
            copies,
            readers,
        },
        loads,
    }
}

/// One copy in region 0, read from everywhere.
fn problem() -> Seen {
    let readers = (0..8).map(|cpu| reader(cpu, false, 0)).collect();
    let loads = vec![vec![1000, 0, 0, 0]; 4];
    seen("problem", vec![copy(0, 0)], readers, loads)
}

/// A copy for each region, and one to copy from.
fn fixed() -> Seen {
    let copies = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)];
    let readers = (0..8).map(|cpu| reader(cpu, true, 1 + cpu / 2));
    let loads = (0..4)
        .map(|region| {
            (0..4)
                .map(|memory| if memory == region { 9_999 } else { 0 })
                .collect()
        })
        .collect();
    seen(
        "solution",
        copies.map(|(number, region)| copy(number, region)).to_vec(),
        readers.collect(),
        loads,
    )
}

fn record(variants: Vec<Seen>) -> Record {
    Record {
        command: "cargo workshop prove 7 --numa-nodes 4".to_owned(),
        started: "2026-11-21T14:00:00Z".to_owned(),
        commit: Commit {
            hash: "0123456789abcdef".to_owned(),
            dirty: false,
        },
        tools: BTreeMap::from([("QEMU".to_owned(), "7.2".to_owned())]),
        regions: REGIONS,
        cpus: CPUS,
        load: Load {
            texts: 30_000,
            connections: 1,
            requests: 5,
        },
        variants,
    }
}

#[track_caller]
fn verdict(variants: Vec<Seen>, kind: VerdictKind, words: &[&str]) {
    let verdict = judge(&record(variants), &["solution"]);
    assert_eq!(verdict.kind, kind, "{}", verdict.reason);
    has(&verdict.reason, words);
}

#[test]
fn a_quarter_before_and_all_afterwards_is_proved() {
    let (problem, fixed) = (problem(), fixed());
    assert_eq!(problem.local_loads(), Some(0.25));
    assert_eq!(problem.local_pages(), Some(0.25));
    assert_eq!(
        (problem.pinned_readers(), problem.regions_with_a_copy()),
        (0, 0)
    );
    assert_eq!(fixed.local_loads(), Some(1.0));
    assert_eq!(
        (fixed.pinned_readers(), fixed.regions_with_a_copy()),
        (8, 4)
    );
    let words = ["25.0 %", "100.0 %"];
    verdict(vec![problem, fixed], VerdictKind::Proved, &words);
}

#[test]
fn a_problem_that_reads_nearby_by_luck_refutes_the_claim() {
    let mut lucky = problem();
    lucky.loads = vec![vec![1000, 0, 0, 0], vec![0; 4], vec![0; 4], vec![0; 4]];
    let variants = vec![lucky, fixed()];
    verdict(variants, VerdictKind::Refuted, &["local already"]);
}

#[test]
fn every_way_to_fall_short_has_its_sentence() {
    type Change = fn(&mut Seen);
    let refuted: [(Change, &str); 7] = [
        (
            |seen| seen.placement.readers[3].pinned_to = None,
            "7 of 8 workers",
        ),
        (|seen| seen.placement.readers[3].moved = 1, "7 of 8 workers"),
        (
            |seen| seen.placement.readers[3].pinned_to = Some(2),
            "7 of 8 workers",
        ),
        (
            |seen| seen.placement.copies[2].pages = Some(BTreeMap::from([(1, 64), (0, 64)])),
            "3 of 4 regions",
        ),
        (
            |seen| seen.placement.copies.push(copy(5, 3)),
            "keeps 6 copies",
        ),
        (
            |seen| seen.loads[0][1] = 2_000,
            "loads from the data set were local",
        ),
        // One copy that pinned workers share is no fix.
        (
            |seen| {
                seen.placement.copies.truncate(2);
                for reader in &mut seen.placement.readers {
                    reader.from[0].copy = 1;
                }
            },
            "0 of 4 regions",
        ),
    ];
    // What was not counted tells nothing.
    let invalid: [(Change, &str); 3] = [
        (|seen| seen.answers = 39, "not all requests"),
        (
            |seen| seen.loads = vec![vec![0; 4]; 4],
            "no load was counted",
        ),
        (
            |seen| seen.placement.copies[1].pages = None,
            "the kernel did not tell",
        ),
    ];
    for (kind, ways) in [
        (VerdictKind::Refuted, &refuted[..]),
        (VerdictKind::Invalid, &invalid[..]),
    ] {
        for (change, words) in ways {
            let mut short = fixed();
            change(&mut short);
            verdict(vec![problem(), short], kind, &[words]);
        }
    }
    let words = ["nothing was seen of the solution"];
    verdict(vec![problem()], VerdictKind::Invalid, &words);
}

#[test]
fn nearly_all_is_not_rounded_up_to_all() {
    let mut nearly = fixed();
    nearly.loads[0][1] = 1;
    let record = record(vec![problem(), nearly]);
    has(
        &table(&record),
        &[
            "| 25.0\u{a0}% | 99.99\u{a0}% |",
            "| 0\u{a0}of\u{a0}8 | 8\u{a0}of\u{a0}8 |",
            "at commit `0123456789ab`",
        ],
    );
    has(
        &values(&record),
        &[
            "ANCHOR: solution-local-loads -->\n99.99 %",
            "ANCHOR: verdict -->\nproved",
        ],
    );
}

#[test]
fn a_record_survives_its_file() {
    let record = record(vec![problem(), fixed()]);
    let text = serde_json::to_string(&record).expect("plain data");
    let read: Record = serde_json::from_str(&text).expect("as it was written");
    assert_eq!(read, record);
}
