//! `cargo workshop capstone bench --against COMMIT`: whether the shop became better, and how sure that is.

use std::time::{Duration, Instant};

use duel::report::{Comparison, Side as Named};
use engine::metric::{Figures, Metric, Round, Unit};
use engine::statistics::{Looks, Side, triplet};
use engine::verdict::{DEFAULT_MARGIN, Goal, Word, judge};
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, json};

use super::Shop;
use super::bench::{Length, measure, test};
use super::others::Others;
use crate::cli::Format;

/// After so many rounds it stays inconclusive.
const MOST_ROUNDS: u32 = 12;

/// The only metric: what journeys are worth a second.
fn metric() -> Metric {
    Metric {
        key: "score".to_owned(),
        label: "score".to_owned(),
        unit: Unit::Count,
        larger_is_better: Some(true),
    }
}

pub(super) fn run(
    shop: &Shop,
    time: Duration,
    no_tests: bool,
    revision: &str,
    format: Format,
) -> Result<Exit, CliError> {
    let interrupt = ctrl_c::watch();
    let others = Others::open(shop)?;
    let commit = others.commit(revision)?;
    if !no_tests {
        test(shop, &interrupt)??;
    }
    let began = Instant::now();
    let payments = shop.built("payments", &interrupt)?;
    let (base, change) = (
        others.shop(&commit.hash, &interrupt)?,
        shop.here(&interrupt)?,
    );
    let metric = metric();
    let goal = Goal::Difference {
        margin: DEFAULT_MARGIN,
    };
    let (mut of_base, mut of_change) = (None, None);
    let mut rounds = Vec::new();
    let verdict = loop {
        let number = u32::try_from(rounds.len()).unwrap_or(u32::MAX);
        let mut round = Round::default();
        for side in triplet(number) {
            let (built, users, figures) = match side {
                Side::Base => (&base, &mut of_base, &mut round.base),
                Side::Again => (&base, &mut of_base, &mut round.again),
                Side::Change => (&change, &mut of_change, &mut round.change),
            };
            let length = Length {
                time,
                users: *users,
            };
            let score = measure(built, &payments, length, false, &|_| (), &interrupt)?;
            *users = Some(score.users);
            figures.insert(metric.key.clone(), score.score);
        }
        let score = |of: &Figures| of.get(&metric.key).unwrap_or(0.0);
        eprintln!(
            "round {}: {revision} {:.1}, the shop here {:.1}, {revision} again {:.1}",
            number + 1,
            score(&round.base),
            score(&round.change),
            score(&round.again)
        );
        rounds.push(round);
        let counted = number + 1;
        if Looks::COMPARISON.is_one(counted) || counted == MOST_ROUNDS {
            let verdict = judge(&metric, goal, &rounds);
            if verdict.word != Word::Inconclusive || counted == MOST_ROUNDS {
                break verdict;
            }
        }
    };
    let named = |name: &str, commit| Named {
        name: name.to_owned(),
        commit,
        program: None,
    };
    let sides = (named(revision, Some(commit)), named("capstone/", None));
    let seconds = began.elapsed().as_secs_f64();
    let metrics = std::slice::from_ref(&metric);
    let comparison = Comparison::new(&verdict, &[], seconds, &metric, metrics, &rounds, sides);
    match format {
        Format::Json => json::print(&comparison)?,
        Format::Human => println!("{}", comparison.text()),
    }
    Ok(match verdict.word {
        Word::Invalid => Exit::Invalid,
        _ if verdict.is_good => Exit::Good,
        _ => Exit::Bad,
    })
}
