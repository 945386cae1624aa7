//! Users of the capstone's ticket shop, and the score that they give it.
//!
//! They come with a browser, log in, look around and buy, as journeys of several requests each. How many there are
//! follows the shop: more while each route keeps its objective, fewer once one does not. The score is what journeys are
//! worth that were completed with each answer in time, a second.

mod browser;
mod cost;
mod count;
pub mod fingerprints;
mod objectives;
mod user;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use children::Interrupt;
use children::cpus::{self, PinError};
use children::limits::{FileLimit, allow_open_files};
use engine::load::cpu_time::Spent;
use engine::load::{GeneratorError, Latencies};
use engine::outcome::GeneratorFacts;
use serde::{Deserialize, Serialize};
use statistics::{TAIL, student};
use tokio::task::LocalSet;

pub use self::cost::{Costs, Process};
use self::cost::{Meter, Used};
use self::count::Counts;
pub use self::objectives::{Journey, Kind, Objectives};
use self::user::User;

/// Time after which the number of users changes.
const STEP: Duration = Duration::from_secs(2);
/// Longest step that counts. In a longer one the machine stood still, or gave the generator no CPU.
const LONGEST_STEP: Duration = Duration::from_secs(4);
/// A warm-up ends once an objective is missed for the second time, but not after less than this, nor after more.
const WARM_UP: [Duration; 2] = [Duration::from_secs(6), Duration::from_secs(40)];
/// Largest number of users that the generator can simulate.
const MOST_USERS: usize = 4000;
/// Parts of a run. Each has a score of its own, from which the interval is computed.
const PARTS: usize = 6;
/// Largest share of broken journeys in a valid run.
const BROKEN: f64 = 0.01;

/// The reason why a run has no score.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// Wrong answers, or none.
    #[error("{broken} of {all} journeys broke, the first by {first}")]
    Broken {
        /// Number of journeys that broke.
        broken: u64,
        /// Number of all journeys.
        all: u64,
        /// Reason why the first one broke.
        first: String,
    },
    /// An answer that is wrong by the rules, however fast it came.
    #[error("wrong under load, so there is no score: {0}")]
    Wrong(String),
    /// A step took too long.
    #[error("the machine stood still for {} s: let nothing else run, and repeat", .0.as_secs())]
    StoodStill(Duration),
    /// The generator used all its CPU time, so the score describes the generator.
    #[error("generator-bound: the users took {:.0} % of a CPU, all that was left to them, so the score is theirs and not the shop's", .0 * 100.0)]
    GeneratorBound(f64),
    /// Other programs had the CPU that the shop wanted.
    #[error(
        "the shop waited {:.0} % of its time for a CPU that other programs used: no score, nothing was kept; close them, such \
         as an editor that indexes, and repeat",
        .lost * 100.0
    )]
    Starved {
        /// Share of its time that the shop waited for a CPU.
        lost: f64,
        /// Costs that need no quiet machine.
        counted: Costs,
    },
    /// The generator had no CPU or no memory of its own.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// The system does not allow as many open files as the users need.
    #[error(transparent)]
    Files(#[from] FileLimit),
    /// The generator cannot be kept apart from the shop.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The runtime does not start.
    #[error("the generator does not start: {0}")]
    Runtime(#[from] std::io::Error),
}

/// The result of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Score {
    /// Worth of the journeys that were completed in time, per second.
    pub score: f64,
    /// 95 % interval of the score: from, to.
    pub interval: [f64; 2],
    /// Journeys completed in time, per second.
    pub journeys_per_second: f64,
    /// Number of journeys that ended in the counted time, broken ones among them.
    #[serde(default)]
    pub journeys: u64,
    /// Number of journeys that were completed with a late answer.
    pub late_journeys: u64,
    /// Number of journeys with a wrong answer, or with none.
    pub broken_journeys: u64,
    /// Users, averaged over time.
    pub users: f64,
    /// Number of steps in which each route was the one that missed its objective most.
    pub missed: BTreeMap<String, u32>,
    /// Number of answers of each route, and their 99 % quantile in milliseconds.
    pub p99_ms: BTreeMap<String, (u64, f64)>,
    /// Counted time in seconds.
    pub seconds: f64,
    /// Costs of a journey, which noise hardly touches.
    #[serde(default)]
    pub costs: Costs,
    /// Share of the shop's CPU time that other programs had; `None` where the system does not tell.
    #[serde(default)]
    pub lost: Option<f64>,
}

/// The settings of a run.
pub struct Settings<'a> {
    /// Address of the shop.
    pub shop: SocketAddr,
    /// Counted time, after a warm-up.
    pub time: Duration,
    /// Number of users to begin with, if the limit is known to be near it.
    pub users: Option<f64>,
    /// The shop as a process, to measure its costs; `None` to leave them out.
    pub process: Option<Process<'a>>,
    /// Objectives, which say what answers are in time.
    pub objectives: Objectives,
    /// CPUs of the generator; empty for all.
    pub cpus: &'a [usize],
    /// Ends it.
    pub interrupt: &'a Interrupt,
    /// Callback after each step, with the number of users and the route that missed its objective.
    pub observer: &'a dyn Fn(usize, Option<&str>),
}

/// Sends users to the shop.
///
/// # Errors
///
/// Returns an error if the run is invalid.
pub fn run(settings: &Settings<'_>) -> Result<Score, RunError> {
    allow_open_files(MOST_USERS as u64 + 100)?;
    cpus::pin_current_thread(settings.cpus)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, travel(settings))
}

async fn travel(settings: &Settings<'_>) -> Result<Score, RunError> {
    let counts = Rc::new(Counts::new(settings.shop, settings.objectives.clone()));
    if let Some(users) = settings.users {
        let first = (1..MOST_USERS).find(|first| *first as f64 >= users);
        counts.users.set(first.unwrap_or(MOST_USERS));
    }
    let began = Instant::now();
    let mut spent = Spent::now();
    let (mut there, mut user_steps, mut steps) = (0, 0, 0_u32);
    let mut missed_by = BTreeMap::new();
    let mut fell = false;
    let mut is_near = settings.users.is_some();
    let mut meter: Option<Meter<'_>> = None;
    let since = loop {
        let new = counts.users.get().saturating_sub(there);
        for place in 0..new {
            // Spread over the step, so that they do not all log in at once.
            let after = STEP.mul_f64(place as f64 / new as f64);
            tokio::task::spawn_local(come(Rc::clone(&counts), there + place, after));
        }
        there += new;
        let step = Instant::now();
        tokio::time::sleep(STEP).await;
        if step.elapsed() > LONGEST_STEP {
            return Err(RunError::StoodStill(step.elapsed()));
        }
        if settings.interrupt.is_set() {
            return Err(RunError::Interrupted);
        }
        let users = counts.users.get();
        if let Some(meter) = &mut meter {
            meter.look();
        }
        let missed = counts.missed();
        (settings.observer)(users, missed);
        let Some(since) = counts.since.get() else {
            let took = began.elapsed();
            // The first miss may be the cold shop's; the second one is where the limit is.
            let is_found = missed.is_some() && is_near && took >= WARM_UP[0];
            let next = match missed {
                None if is_near => users + users.div_ceil(4),
                None => users * 2,
                Some(_) if is_near => users - users.div_ceil(6),
                Some(_) => users / 2,
            };
            is_near |= missed.is_some();
            counts.users.set(next.clamp(1, MOST_USERS));
            if is_found || took >= WARM_UP[1] {
                counts.since.set(Some(Instant::now()));
                if let Some(process) = &settings.process {
                    meter = Meter::begin(process).await;
                }
                spent = Spent::now();
            }
            continue;
        };
        user_steps += users;
        steps += 1;
        let next = match missed {
            // The late answers of this step belong to requests from before the users became fewer.
            Some(_) if fell => users,
            Some(_) => users - users.div_ceil(6),
            None => users + users.div_ceil(12),
        };
        fell = missed.is_some() && !fell;
        if let Some(route) = missed {
            *missed_by.entry(route.to_owned()).or_default() += 1;
        }
        counts.users.set(next.clamp(1, MOST_USERS));
        if since.elapsed() >= settings.time {
            break since;
        }
    };
    let cost = spent.until_now();
    let generator = GeneratorFacts {
        cpu_share: cost.used,
        waited_share: cost.waited,
        ..GeneratorFacts::default()
    };
    if generator.is_bound() {
        return Err(RunError::GeneratorBound(cost.used.unwrap_or(1.0)));
    }
    let used = meter.as_mut().and_then(Meter::used);
    let mut score = score(&counts, since, missed_by);
    if let Ok(score) = &mut score {
        score.users = user_steps as f64 / f64::from(steps);
        if let Some(meter) = &meter {
            score.lost = used.map(Used::lost);
            let each = |of_all: f64| of_all / score.journeys as f64;
            score.costs.cpu_ms = used.map(|used| each(used.ran * 1e3));
            score.costs.commits = meter.commits().map(each);
            score.costs.queries = meter.queries().await.map(each);
        }
    }
    let starved = used.filter(|used| used.is_starved());
    unless_starved(score, starved.map(Used::lost))
}

/// Refuses the score of a shop that lost this share of its time to other programs. Costs that were counted remain.
fn unless_starved(score: Result<Score, RunError>, lost: Option<f64>) -> Result<Score, RunError> {
    let Some(lost) = lost else {
        return score;
    };
    // Journeys may also break because other programs had the CPU.
    let costs = score.map_or_else(|_| Costs::default(), |score| score.costs);
    let counted = Costs {
        cpu_ms: None,
        ..costs
    };
    Err(RunError::Starved { lost, counted })
}

/// Runs one of the users, who pauses while the run wants fewer.
async fn come(counts: Rc<Counts>, number: usize, after: Duration) {
    tokio::time::sleep(after).await;
    let mut user = User::new(Rc::clone(&counts), number as u64);
    loop {
        if number < counts.users.get() {
            user.travel().await;
        } else {
            tokio::time::sleep(STEP / 4).await;
        }
    }
}

fn score(
    counts: &Counts,
    since: Instant,
    missed: BTreeMap<String, u32>,
) -> Result<Score, RunError> {
    let time = since.elapsed();
    let seconds = time.as_secs_f64();
    if let Some(rule) = counts.wrong.take() {
        return Err(RunError::Wrong(rule));
    }
    let journeys = counts.journeys.take();
    let (late, broken) = (counts.late_journeys.get(), counts.broken_journeys.get());
    let all = journeys.len() as u64 + late + broken;
    if broken as f64 > all as f64 * BROKEN {
        let first = counts.broke.take().unwrap_or_default();
        return Err(RunError::Broken { broken, all, first });
    }
    let mut parts = [0.0; PARTS];
    for (kind, ended) in &journeys {
        let part = (*ended - since).as_nanos() * PARTS as u128 / time.as_nanos();
        let part = usize::try_from(part).unwrap_or(PARTS).min(PARTS - 1);
        if let Some(journey) = counts.objectives.journeys.get(kind) {
            parts[part] += f64::from(journey.worth) * PARTS as f64 / seconds;
        }
    }
    let mut p99_ms = BTreeMap::new();
    for (route, answers) in counts.answers.take() {
        let count = answers.len() as u64;
        let latencies = Latencies::of(answers.into_iter().map(|ms| (ms, 1)))?;
        let p99 = match latencies.at(0.99) {
            Some(quantile) => quantile.ms,
            None => 0.0,
        };
        p99_ms.insert(route.to_owned(), (count, p99));
    }
    let (score, interval) = mean(&parts);
    Ok(Score {
        score,
        interval,
        journeys_per_second: journeys.len() as f64 / seconds,
        journeys: all,
        late_journeys: late,
        broken_journeys: broken,
        users: 0.0,
        missed,
        p99_ms,
        seconds,
        costs: Costs {
            bytes: Some(counts.bytes.get() as f64 / all as f64),
            ..Costs::default()
        },
        lost: None,
    })
}

/// The mean of a run's parts, and its 95 % interval.
fn mean(parts: &[f64; PARTS]) -> (f64, [f64; 2]) {
    let count = PARTS as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
    let quantile = student(count - 1.0, TAIL).unwrap_or(f64::INFINITY);
    let error = quantile * (squares / (count - 1.0) / count).sqrt();
    (mean, [mean - error, mean + error])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_equal_parts_is_a_point_and_widens_with_them() {
        assert_eq!(mean(&[3.0; PARTS]), (3.0, [3.0; 2]));
        let (middle, [from, to]) = mean(&[2.0, 4.0, 2.0, 4.0, 2.0, 4.0]);
        assert!((middle - 3.0).abs() < 1e-9);
        assert!((to - from - 2.0 * 2.571 * (1.2_f64 / 6.0).sqrt()).abs() < 1e-3);
    }

    #[test]
    fn a_shop_without_a_cpu_has_no_score_but_counts() {
        let costs = Costs {
            cpu_ms: Some(9.0),
            queries: Some(7.5),
            ..Costs::default()
        };
        let score = || {
            Ok(Score {
                costs,
                ..Score::default()
            })
        };
        assert!(unless_starved(score(), None).is_ok());
        let Err(RunError::Starved { lost, counted }) = unless_starved(score(), Some(0.4)) else {
            panic!("a score beside other programs");
        };
        assert_eq!(
            (lost, counted.cpu_ms, counted.queries),
            (0.4, None, Some(7.5))
        );
    }
}
