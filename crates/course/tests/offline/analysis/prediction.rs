//! Predictions of the laws at their edges. Predictions for the chapters as they are written are committed
//! with their captures, sentences included, and another test derives them again.

use course::analysis::{
    prediction::{Inputs, in_scenario, predicted},
    verdict::analyse,
};
use course::measurement::{
    chapter_file::{ChapterFile, Scenario},
    claim::Role,
    law::Law,
    record::{Purpose, Record, Round},
};

use engine::traffic::Phase;
use rand::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

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

/// Chapter 10's record, in whose triplets these numbers of requests came in burst and calm, in turns, and a call took 20 ms.
fn with_arrivals(came: &[[u64; 2]]) -> Record {
    let path = "../../flamegraphs/chapter10/capture.json";
    let mut record = Record::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let is_effects = |round: &&mut Round| {
        let is_judged = matches!(round.purpose, Purpose::Claim | Purpose::Equal);
        is_judged && round.scenario == "burst"
    };
    for (place, round) in record.rounds.iter_mut().filter(is_effects).enumerate() {
        for (phase, first_attempts) in round
            .outcome
            .phases
            .iter_mut()
            .zip(came[place / 3 % came.len()])
        {
            phase.first_attempts = first_attempts;
        }
        round
            .readings
            .insert("database_call_seconds".to_owned(), 0.02);
    }
    record
}

#[test]
fn overload_is_predicted_from_the_requests_that_came() {
    let asked = with_arrivals(&[[1_920, 800]]);
    let prediction = analyse(&asked).prediction.unwrap();
    let chapter = &asked.chapter;
    let by_the_file = predicted(&chapter.law, chapter.effect_scenario(), Inputs::default());
    assert!((prediction.ratio / by_the_file.unwrap().ratio - 1.0).abs() < 1e-9);
    assert!(
        prediction.sentence.contains("480, then 200 come"),
        "{prediction:?}"
    );
    let more = analyse(&with_arrivals(&[[2_048, 828]])).prediction.unwrap();
    assert!(more.sentence.contains("512, then 207 come"), "{more:?}");
    assert!(more.ratio > 1.2 * prediction.ratio, "{more:?}");
}

#[test]
fn the_scatter_of_arrivals_is_in_the_interval_of_the_prediction() {
    let width = |came: &[[u64; 2]]| {
        let analysis = analyse(&with_arrivals(came));
        let finding = analysis.of(Role::Prediction).next().unwrap().clone();
        let (low, high) = finding.interval.unwrap();
        high / low
    };
    let [calm, busy] = [[1_920, 800], [2_048, 828]];
    let scattered = width(&[calm, busy]);
    assert!(scattered > 1.2 * width(&[calm]), "{scattered}");
}

/// Length of a call of chapter 10's record, in seconds.
const CALL_S: f64 = 0.0211;

/// Counts the answers in time of a queue before eight permits, with at most `longest` waiting.
fn answers_in_time(arrivals: &[f64], longest: usize) -> f64 {
    let (mut free_at, mut waiting) = ([0.0_f64; 8], Vec::<f64>::new());
    let mut in_time = 0.0;
    for &came in arrivals {
        waiting.retain(|starts| *starts > came);
        if waiting.len() >= longest {
            continue;
        }
        let first = free_at.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
        let starts = first.max(came);
        *first = starts + CALL_S;
        waiting.push(starts);
        let answered = starts + CALL_S;
        if answered - came <= 0.25 && answered <= 8.0 {
            in_time += 1.0;
        }
    }
    in_time
}

/// Simulates chapter 10's burst at random moments: the figures that its page, its file and its law rest on.
#[test]
fn simulated_bursts_gain_what_the_law_predicts() {
    let file = include_str!("../../../../../chapters/10-overload/chapter.toml");
    let file = ChapterFile::parse(file, "chapter.toml", 2).unwrap();
    let mut burst = file.scenario("burst").unwrap().clone();
    let inputs = Inputs {
        call_s: Some(CALL_S),
        ..Inputs::default()
    };
    let mut random = Pcg64::seed_from_u64(10);
    let (mut gains, mut apart) = (Vec::new(), Vec::new());
    for _ in 0..1_000 {
        let (mut arrivals, mut phases) = (Vec::new(), Vec::new());
        for (rate, begins) in [(480.0, 0.0), (200.0, 4.0)] {
            let (mut now, before) = (begins, arrivals.len());
            loop {
                let drawn = (f64::from(random.next_u32()) + 0.5) / 2.0_f64.powi(32);
                now -= drawn.ln() / rate;
                if now >= begins + 4.0 {
                    break;
                }
                arrivals.push(now);
            }
            let came = (arrivals.len() - before) as f64 / 4.0;
            phases.push(Phase {
                share: came / burst.per_second,
                seconds: 4.0,
            });
        }
        burst.phases = phases;
        let gain = answers_in_time(&arrivals, 40) / answers_in_time(&arrivals, usize::MAX);
        let by_law = predicted(&file.law, &burst, inputs).unwrap().ratio;
        gains.push(gain.ln());
        apart.push((gain / by_law).ln());
    }
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let deviation = |logs: &[f64]| {
        let squares = logs.iter().map(|log| (log - mean(logs)).powi(2));
        (squares.sum::<f64>() / logs.len() as f64).sqrt()
    };
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min).exp();
    let most = gains.iter().copied().fold(0.0, f64::max).exp();
    let said = format!(
        "gain {:.2}, {least:.2} to {most:.2}, deviation {:.3}; off {:.3}, deviation {:.3}",
        mean(&gains).exp(),
        deviation(&gains),
        mean(&apart),
        deviation(&apart)
    );
    println!("{said}");
    assert!((2.65..2.85).contains(&mean(&gains).exp()), "{said}");
    assert!(
        (1.8..2.2).contains(&least) && (3.8..4.6).contains(&most),
        "{said}"
    );
    assert!((0.11..0.15).contains(&deviation(&gains)), "{said}");
    assert!(mean(&apart).abs() < 0.04, "{said}");
    assert!((0.07..0.10).contains(&deviation(&apart)), "{said}");
}
