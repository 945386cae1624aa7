//! What laws predict, by themselves and for the chapters as they are written.

use analysis::prediction::{Inputs, Prediction, in_scenario, predicted};
use measurement::{
    chapter_file::{ChapterFile, Scenario},
    law::{Amdahl, Barrier, Law, Little, Locality, Utilisation, Wait, Workers},
};

use crate::support::chapter;

const CHAPTER_4: &str = include_str!("../../../../chapters/4-client-per-request/chapter.toml");

/// Checks the gain that a law predicts for so many users, and words of its sentence.
#[track_caller]
fn gains(
    law: &Law,
    (users, think_s, write_share): (u32, f64, f64),
    inputs: Inputs,
    ratio: f64,
    words: &[&str],
) -> Prediction {
    let scenario = Scenario {
        users,
        think_s,
        write_share,
        ..chapter().load
    };
    let prediction = predicted(law, &scenario, inputs).expect("every input is there");
    close(Some(prediction.ratio), ratio);
    for word in words {
        assert!(prediction.sentence.contains(word), "{prediction:?}");
    }
    prediction
}

#[track_caller]
fn close(figure: Option<f64>, expected: f64) {
    let figure = figure.expect("a bound");
    let off = (figure / expected - 1.0).abs();
    assert!(off < 1e-9, "{figure} is not {expected}");
}

#[test]
fn a_held_lock_passes_twenty_a_second_whatever_the_users() {
    let law = Law::Little(Little {
        call_ms: 50.0,
        problem_in_flight: 1,
        measured_by: None,
    });
    let nothing = Inputs::default();
    for users in [1, 200, 3_000] {
        let saturated = gains(&law, (users, 0.0, 0.0), nothing, users.into(), &[]);
        close(saturated.problem, 20.0);
    }
    let free = 3_000.0 / 0.55;
    let published = gains(&law, (3_000, 0.5, 0.0), nothing, free / 20.0, &["5,455"]);
    close(published.solution, free);
    close(published.problem, 20.0);
    // Users who think long do not meet the limit.
    let idle = gains(&law, (2, 1.0, 0.0), nothing, 1.0, &[]);
    close(idle.problem, 2.0 / 1.05);
}

#[test]
fn a_call_that_was_measured_counts_in_place_of_the_one_that_was_planned() {
    let law = Law::Little(Little {
        call_ms: 50.0,
        problem_in_flight: 5,
        measured_by: Some("pool_connection_held_seconds".to_owned()),
    });
    let planned = Inputs::default();
    let measured = Inputs {
        call_s: Some(0.0625),
        ..planned
    };
    let free = |call: f64| 300.0 / (0.3 + call);
    for (inputs, call, words) in [
        (planned, 0.05, ["5 calls of 50 ms", "at most 100 requests"]),
        (
            measured,
            0.0625,
            ["5 calls of 62.5 ms", "at most 80 requests"],
        ),
    ] {
        let ratio = free(call) / (5.0 / call);
        let bounds = gains(&law, (300, 0.3, 0.0), inputs, ratio, &words);
        close(bounds.problem, 5.0 / call);
        close(bounds.solution, free(call));
    }
}

#[test]
fn every_write_is_a_barrier_and_reads_alone_wait_for_nobody() {
    let law = Law::Barrier(Barrier { hold_ms: 50.0 });
    for (write_share, limited) in [(0.0, 20_000.0), (0.01, 2_000.0), (0.05, 400.0)] {
        let free = 20_000.0 / (1.0 - write_share);
        let load = (1_000, 0.0, write_share);
        let bounds = gains(&law, load, Inputs::default(), free / limited, &[]);
        close(bounds.problem, limited);
        close(bounds.solution, free);
    }
    // Few users do not meet the barrier.
    gains(&law, (2, 1.0, 0.01), Inputs::default(), 1.0, &[]);
}

/// A law whose probe does this part of the work.
fn amdahl(left: f64) -> Law {
    Law::Amdahl(Amdahl {
        removes: "allocating".to_owned(),
        probe: "fewer".to_owned(),
        left,
        scenario: "saturated".to_owned(),
        frames: Vec::new(),
    })
}

/// A probe that answers so many times as many requests as the problem.
fn probed(gain: f64) -> Inputs {
    Inputs {
        probe_gain: Some(gain),
        ..Inputs::default()
    }
}

#[test]
fn a_probe_tells_the_share_that_vanishes() {
    // Of ten parts eight go into it. Where a quarter of these is left, four parts remain.
    let words = ["25 % is left", "2.50 times", "takes 80.0 %", "= 5.00 times"];
    gains(&amdahl(0.25), (1, 0.0, 0.0), probed(2.5), 5.0, &words);
    // The same of sixteen where an eighth of it is left: six of twenty.
    gains(&amdahl(0.125), (1, 0.0, 0.0), probed(20.0 / 6.0), 5.0, &[]);
    gains(&amdahl(0.25), (1, 0.0, 0.0), probed(1.0), 1.0, &["0.0 %"]);
}

#[test]
fn a_probe_that_no_law_explains_predicts_nothing() {
    // Slower than the problem, or as quick as if more than everything had gone.
    for gain in [0.9, 4.0, 1e9, f64::NAN] {
        assert_eq!(
            predicted(&amdahl(0.25), &chapter().load, probed(gain)),
            None
        );
    }
    assert_eq!(
        predicted(&amdahl(0.25), &chapter().load, Inputs::default()),
        None
    );
}

#[test]
fn a_ping_waits_behind_everybody() {
    let law = Law::Utilisation(Utilisation { work_ms: 4.0 });
    let nothing = Inputs::default();
    gains(&law, (32, 0.0, 0.0), nothing, 32.0, &["250", "128 ms"]);
}

/// A bystander alone, and problems side by side, are measured; the law says no more.
#[test]
fn what_was_measured_elsewhere_is_what_a_fix_gains_and_nothing_predicts_nothing() {
    let alone = Law::Wait(Wait {
        scenario: "alone".to_owned(),
    });
    let side_by_side = Law::Workers(Workers {
        scenario: "side-by-side".to_owned(),
    });
    let inputs = Inputs {
        bystander_ms: Some((20.0, 190.0)),
        side_by_side: Some((500.0, 925.0)),
        ..Inputs::default()
    };
    for (law, ratio, words) in [
        (alone, 9.5, ["20.0 ms", "190 ms", "64 users"]),
        (side_by_side, 1.85, ["500", "925", "1.85"]),
    ] {
        assert_eq!(predicted(&law, &chapter().load, Inputs::default()), None);
        gains(&law, (64, 0.0, 0.0), inputs, ratio, &words);
    }
}

#[test]
fn the_published_machine_gains_what_the_mix_allows_and_one_region_nothing() {
    let law = Law::Locality(Locality {
        memory_bound: 0.7,
        across: 2.0,
    });
    for (numa_nodes, ratio, words) in [
        (4, 1.0 / 0.7, ["75 %", "1.75"]),
        (1, 1.0, ["no gain", ""]),
        (0, 1.0, ["no gain", ""]),
    ] {
        let inputs = Inputs {
            numa_nodes,
            ..Inputs::default()
        };
        gains(&law, (1, 0.0, 0.0), inputs, ratio, &words);
    }
}

#[test]
fn chapter_1_predicts_what_the_book_says() {
    let file = chapter();
    let saturated = in_scenario(&file, "saturated", Inputs::default()).unwrap();
    assert!((saturated.ratio - 1_000.0).abs() < 1e-6);
    let published = in_scenario(&file, "published", Inputs::default()).unwrap();
    assert!((published.solution.unwrap() - 5_454.5).abs() < 0.1);
    // What an exercise must keep is far below what any fix gains.
    let check = in_scenario(&file, "check", Inputs::default()).unwrap();
    assert!(file.check.effect_at_least <= check.ratio / 2.0);
}

#[test]
fn what_was_measured_on_one_server_predicts_nothing_of_another() {
    let file = ChapterFile::parse(CHAPTER_4, "chapter.toml", 2).unwrap();
    // 29 parts of 30, of which one in 64 is left.
    let inputs = probed(30.0 / (1.0 + 29.0 / 64.0));
    let plain = in_scenario(&file, "published", inputs).unwrap();
    assert!((plain.ratio - 30.0).abs() < 1e-9);
    assert_eq!(in_scenario(&file, "tls", inputs), None);
}
