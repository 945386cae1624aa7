//! Records and outcomes of runs that never ran, for the tests of analysis and reports.

use children::environment::Environment;
use course::measurement::{
    chapter_file::ChapterFile,
    claim::{Claim, Claims, PROBLEM, SOLUTION},
    record::{Inputs, Purpose, Record, Round},
    reference,
};
use drawing::profile::Profile;
use engine::outcome::{GeneratorFacts, Latency, Outcome};
use statistics::profile::ProfileKind;
use statistics::{Side, triplets};

const CHAPTER_1: &str = include_str!("../../../../chapters/1-mutex-held-across-await/chapter.toml");
const FIGURES: &str = include_str!("../../../../reference/seed-figures.toml");

pub(crate) fn chapter() -> ChapterFile {
    let mut chapter = ChapterFile::parse(CHAPTER_1, "chapter.toml", 2).unwrap();
    chapter.rounds.pairs = 6;
    chapter
}

/// Makes an outcome of `completed` right answers in `seconds`, each after about `ms`.
pub(crate) fn outcome(users: u32, completed: u64, seconds: f64, ms: f64) -> Outcome {
    let quantiles = (0..=40)
        .map(|step| 1.0 - 0.5_f64.powf(f64::from(step) / 4.0))
        .map(|q| (q, ms * (1.0 + 0.02 * (1.0 / (1.0 - q)).ln())))
        .collect();
    Outcome {
        generator: GeneratorFacts {
            cpu_share: Some(0.31),
            waited_share: Some(0.0),
            users,
            ..GeneratorFacts::default()
        },
        seconds,
        completed,
        requests_per_second: completed as f64 / seconds,
        unfinished: u64::from(users) - 1,
        latency: Latency {
            mean_ms: ms * 1.02,
            min_ms: ms,
            max_ms: ms * 1.2,
            quantiles,
            lower_bound_from: None,
        },
        per_second: vec![completed],
        ..Outcome::default()
    }
}

pub(crate) fn round(
    purpose: Purpose,
    variant: &str,
    scenario: &str,
    peak: f64,
    outcome: Outcome,
) -> Round {
    let readings = [("database_calls_in_flight_peak".to_owned(), peak)];
    Round {
        purpose,
        variant: variant.to_owned(),
        scenario: scenario.to_owned(),
        seed: 0,
        wall_s: outcome.seconds + 0.5,
        connections: Vec::new(),
        outcome,
        readings: readings.into(),
        server_cpu_s: Some(0.9),
        throttled_s: Some(0.0),
        elsewhere_share: None,
    }
}

/// Makes the record of a good run of chapter 1: 30 answers a round against about 28,000.
pub(crate) fn record() -> Record {
    use Purpose::{Claim, Equal};
    let chapter = chapter();
    let saturated = |purpose, variant, peak, answers, ms| {
        let outcome = outcome(1_000, answers, 1.6, ms);
        round(purpose, variant, "saturated", peak, outcome)
    };
    let published = |variant, peak, answers, ms| {
        let outcome = outcome(3_000, answers, 4.0, ms);
        round(Claim, variant, "published", peak, outcome)
    };
    let more = [
        0, 140, 20, 90, 60, 210, 30, 150, 80, 40, 120, 90, 70, 10, 100, 50, 180, 30,
    ];
    let sides = triplets(chapter.rounds.pairs).flatten();
    let rounds = sides.zip(more).map(|(side, more)| match side {
        Side::Base => saturated(Claim, PROBLEM, 1.0, 32, 1_050.0),
        Side::Change => saturated(Claim, SOLUTION, 1_000.0, 28_500 + more, 53.0),
        Side::Again => saturated(Equal, SOLUTION, 1_000.0, 28_500 + more, 53.0),
    });
    let problem = |answers| published(PROBLEM, 1.0, answers, 2_700.0);
    let solution = |answers| published(SOLUTION, 330.0, answers, 51.0);
    let rounds = rounds.chain([
        problem(80),
        solution(21_200),
        solution(21_260),
        problem(80),
        problem(80),
        solution(21_230),
    ]);
    let rounds = rounds.collect();
    Record {
        format: Record::FORMAT,
        command: "cargo workshop prove 1".to_owned(),
        started: "2026-11-20T20:30:00Z".to_owned(),
        inputs: Inputs::Digest("60047d4c1f1f".to_owned()),
        variant: SOLUTION.to_owned(),
        environment: Environment {
            cpu_model: "Example CPU 9000 @ 2.40GHz".to_owned(),
            cpus_usable: 2,
            cpus_online: 2,
            memory_mib: 24_576,
            numa_nodes: 1,
            system: "Debian GNU/Linux 12".to_owned(),
            kernel: "6.18.5".to_owned(),
            quota: None,
            governor: Some("performance".to_owned()),
            placement: Some("server on CPU 0, generator on CPU 1".to_owned()),
            optimised: true,
            build_profile: "dev".to_owned(),
            tools: [("rustc".to_owned(), "1.95.0".to_owned())].into(),
        },
        references: reference::look_up(FIGURES, "seed-figures.toml", &chapter.reference).unwrap(),
        chapter,
        rounds,
        profiles: vec![
            profile(PROBLEM, ProfileKind::Cpu, 9, Some(750)),
            profile(PROBLEM, ProfileKind::Await, 20_000, None),
            profile(SOLUTION, ProfileKind::Cpu, 710, Some(750)),
            profile(SOLUTION, ProfileKind::Await, 20_000, None),
        ],
    }
}

pub(crate) fn profile(
    variant: &str,
    kind: ProfileKind,
    samples: u64,
    capacity: Option<u64>,
) -> Profile {
    Profile {
        variant: variant.to_owned(),
        kind,
        scenario: "saturated".to_owned(),
        seconds: 3.0,
        samples,
        capacity,
        frames_share: None,
        unit: match kind {
            ProfileKind::Cpu => "4 ms of CPU time",
            ProfileKind::Await => "a request seen waiting",
            ProfileKind::Heap => "an allocation",
        }
        .to_owned(),
    }
}

/// Changes the claims of a record; the list must still be one that can be judged.
#[track_caller]
pub(crate) fn claiming(record: &mut Record, edit: impl FnOnce(&mut Vec<Claim>)) {
    let mut claims: Vec<Claim> = record.chapter.claims.clone().into();
    edit(&mut claims);
    record.chapter.claims = Claims::try_from(claims).unwrap();
}
