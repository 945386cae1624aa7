//! Predictions of the laws at their edges. Predictions for the chapters as they are written are committed
//! with their captures, sentences included, and another test derives them again.

use course::analysis::prediction::{Inputs, in_scenario, predicted};
use course::measurement::{
    chapter_file::{ChapterFile, Scenario},
    law::Law,
};

use engine::traffic::Phase;

use crate::support::chapter;

const CHAPTER_4: &str = include_str!("../../../../../chapters/4-client-per-request/chapter.toml");

/// Makes a law whose probe does this part of the work.
fn amdahl(left: f64) -> Law {
    Law::Amdahl {
        removes: "allocating".to_owned(),
        probe: "fewer".to_owned(),
        left,
        scenario: "saturated".to_owned(),
        frames: Vec::new(),
    }
}

/// Makes inputs with a probe that answers `gain` times as many requests as the problem.
fn probed(gain: f64) -> Inputs {
    Inputs {
        probe_gain: Some(gain),
        ..Inputs::default()
    }
}

fn regions(numa_nodes: u32) -> Inputs {
    Inputs {
        numa_nodes,
        ..Inputs::default()
    }
}

#[test]
fn laws_hold_at_their_edges() {
    let nothing = Inputs::default();
    let measured = Inputs {
        call_s: Some(0.0625),
        ..nothing
    };
    let little = |problem_in_flight| Law::Little {
        call_ms: 50.0,
        problem_in_flight,
        measured_by: None,
    };
    let barrier = || Law::Barrier { hold_ms: 50.0 };
    let locality = || Law::Locality {
        memory_bound: 0.7,
        across: 2.0,
    };
    for (law, (users, think_s, write_share), inputs, ratio, words) in [
        // Users who think for long do not reach the limit.
        (little(1), (1, 0.0, 0.0), nothing, 1.0, "1 user get"),
        (little(1), (2, 1.0, 0.0), nothing, 1.0, "one call"),
        (little(1), (200, 0.0, 0.0), nothing, 200.0, "4,000"),
        // A measured call counts instead of the planned one.
        (little(5), (300, 0.3, 0.0), nothing, 60.0 / 7.0, "of 50 ms"),
        (little(5), (300, 0.3, 0.0), measured, 300.0 / 29.0, "62.5"),
        (barrier(), (2, 1.0, 0.01), nothing, 1.0, "1.00 times"),
        (barrier(), (1_000, 0.0, 0.0), nothing, 1.0, "whether"),
        // The work takes eight of ten parts of the time; with a quarter of it left, four parts remain. Then
        // it takes 16 of 20 parts; with an eighth of it left, six remain.
        (amdahl(0.25), (1, 0.0, 0.0), probed(2.5), 5.0, "80.0 %"),
        (amdahl(0.125), (1, 0.0, 0.0), probed(20.0 / 6.0), 5.0, ""),
        (amdahl(0.25), (1, 0.0, 0.0), probed(1.0), 1.0, "0.0 %"),
        (locality(), (1, 0.0, 0.0), regions(4), 1.0 / 0.7, "75 %"),
        (locality(), (1, 0.0, 0.0), regions(1), 1.0, "no gain"),
        (locality(), (1, 0.0, 0.0), regions(0), 1.0, "no gain"),
    ] {
        let scenario = Scenario {
            users,
            think_s,
            write_share,
            ..chapter().load
        };
        let prediction = predicted(&law, &scenario, inputs).expect("every input is there");
        let off = prediction.ratio / ratio - 1.0;
        assert!(off.abs() < 1e-9, "{prediction:?}");
        assert!(prediction.sentence.contains(words), "{prediction:?}");
    }
}

#[test]
fn a_queue_grows_by_what_is_too_much_and_drains_by_what_is_too_little() {
    let law = Law::Overload {
        permits: 8,
        hold_ms: 20.0,
        measured_by: "database_call_seconds".to_owned(),
    };
    let file = include_str!("../../../../../chapters/10-overload/chapter.toml");
    let file = ChapterFile::parse(file, "chapter.toml", 2).unwrap();
    let mut burst = file.scenario("burst").unwrap().clone();
    burst.phases = [(1.2, 4.0), (0.5, 4.0)]
        .map(|(share, seconds)| Phase { share, seconds })
        .into();
    let of = |inputs| predicted(&law, &burst, inputs).unwrap();
    // 480 of 400 pass, so the queue grows by 80 a second. One of 92 is worked off in 230 ms: from 1.15 s on answers are
    // late. The 320 of the end drain by 200 a second, and are 92 again after 1.14 s.
    let late = [4.0 - 92.0 / 80.0, (320.0 - 92.0) / 200.0];
    let problem = 480.0 * (4.0 - late[0]) + 200.0 * (4.0 - late[1]);
    let solution = 480.0 * (4.0 - late[0]) + 400.0 * late[0] + 200.0 * 4.0;
    let prediction = of(Inputs::default());
    assert!((prediction.ratio - solution / problem).abs() < 1e-9);
    let sentence = prediction.sentence;
    assert!(sentence.contains("grows to 320, and 1.14 s"), "{sentence}");
    // Timers that are late make the capacity smaller, and the fault worse.
    let slow = Inputs {
        call_s: Some(0.025),
        ..Inputs::default()
    };
    assert!(of(slow).ratio > prediction.ratio);
    // Below the capacity there is nothing to gain, and without clients who leave nothing is late.
    burst.phases = Vec::new();
    burst.per_second = 200.0;
    let calm = predicted(&law, &burst, Inputs::default()).unwrap();
    assert!((calm.ratio - 1.0).abs() < 1e-9);
    burst.give_up_after_s = None;
    assert_eq!(predicted(&law, &burst, Inputs::default()), None);
}

#[test]
fn what_no_law_explains_and_what_was_not_measured_predict_nothing() {
    let scenario = || "alone".to_owned();
    let load = &chapter().load;
    // Probes slower than the problem, or so fast that the work would take all of the time or more.
    for gain in [0.9, 4.0, 1e9, f64::NAN] {
        assert_eq!(predicted(&amdahl(0.25), load, probed(gain)), None);
    }
    let wait = Law::Wait {
        scenario: scenario(),
    };
    let workers = Law::Workers {
        scenario: scenario(),
    };
    for law in [amdahl(0.25), wait, workers] {
        assert_eq!(predicted(&law, load, Inputs::default()), None);
    }
}

#[test]
fn what_was_measured_on_one_server_predicts_nothing_of_another() {
    let file = ChapterFile::parse(CHAPTER_4, "chapter.toml", 2).unwrap();
    // The work takes 29 of 30 parts, and one 64th of it is left.
    let inputs = probed(30.0 / (1.0 + 29.0 / 64.0));
    let plain = in_scenario(&file, "published", inputs).unwrap();
    assert!((plain.ratio - 30.0).abs() < 1e-9);
    assert_eq!(in_scenario(&file, "tls", inputs), None);
}
