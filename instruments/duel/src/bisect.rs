//! Which of many commits made a service slower: a binary search whose comparisons are noisy.
//!
//! Each commit has a probability of being the first slow one, all of them the same at first. A commit in the
//! middle is compared with the base; how likely its rounds are if it is as slow as the last commit, and how
//! likely if it is as fast as the base, multiplies the probabilities of those up to it, and of those after it
//! (Bayes). The next one is where both halves are equally probable: M. Ben-Or and A. Hassidim, "The Bayesian
//! learner is optimal for noisy binary search", FOCS 2008; R. Waeber, P. I. Frazier and S. G. Henderson,
//! "Bisection search with noisy responses", SIAM J. Control Optim. 51(3), 2013. Unlike there, a commit is
//! measured until its own rounds tell, and not tried again: going back means building it again.

use std::ops::Range;

use serde::Serialize;
use special::Beta as _;

use engine::statistics::{TAIL, student};

/// A share of the whole effect: what other commits may do beside, as a standard deviation. It keeps a commit
/// that is half as slow from being taken for either.
const OTHERS: f64 = 1.0 / 6.0;
/// How often a commit's rounds are taken to mislead, whatever their spread says.
const MISLED: f64 = 1e-3;
/// From this probability on, what is slow tells how slow the slow ones are.
const CLEARLY: f64 = 0.9;
/// More rounds than this do not make a commit clearer.
const MOST_ROUNDS: usize = 18;
/// More degrees of freedom than this are a normal distribution.
const NORMAL: f64 = 1e4;

/// A search among commits in a row, the last of which is slow.
#[derive(Debug, Clone)]
pub struct Search {
    /// Of each commit the logarithm of how many times slower than the base it was, a round each.
    rounds: Vec<Vec<f64>>,
    /// Which commits cannot be measured.
    is_skipped: Vec<bool>,
    confidence: f64,
}

/// How many times slower, with an interval that holds the truth 95 times in a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slower {
    /// How many times.
    pub times: f64,
    /// The interval.
    pub interval: (f64, f64),
}

impl Search {
    /// Among so many commits, of whose last these are the rounds: logarithms of how many times slower than the
    /// base it was, at least two of them. It ends when one commit has the probability `confidence`.
    pub fn new(commits: usize, of_last: Vec<f64>, confidence: f64) -> Self {
        let mut rounds = vec![Vec::new(); commits.saturating_sub(1)];
        rounds.push(of_last);
        Self {
            is_skipped: vec![false; rounds.len()],
            rounds,
            confidence,
        }
    }

    /// Adds what was measured of a commit.
    pub fn add(&mut self, place: usize, rounds: &[f64]) {
        self.rounds[place].extend(rounds);
    }

    /// Leaves a commit out that cannot be measured.
    pub fn skip(&mut self, place: usize) {
        self.is_skipped[place] = true;
    }

    /// The commit to measure next; `None` once it is found, or where no other would tell more.
    pub fn next(&self) -> Option<usize> {
        let posterior = self.posterior();
        if posterior.iter().any(|one| *one >= self.confidence) {
            return None;
        }
        let up_to = posterior.iter().scan(0.0, |sum, one| {
            *sum += one;
            Some(*sum)
        });
        let told = up_to.map(|share| f64::min(share, 1.0 - share)).enumerate();
        let is_open = |place: usize| !self.is_skipped[place] && self.rounds[place].is_empty();
        told.filter(|(place, told)| is_open(*place) && *told > (1.0 - self.confidence) / 8.0)
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(place, _)| place)
    }

    /// Whether these rounds of a commit say all that it can, so that another comes next.
    pub fn is_enough(&self, place: usize, rounds: &[f64]) -> bool {
        let mut with = self.clone();
        with.add(place, rounds);
        let (posterior, effect, of_effect) = with.fit();
        let told = with.log_odds(place, effect, of_effect).abs();
        // Two neighbours, and those around them, share what is left of the confidence.
        told >= (4.0 / (1.0 - self.confidence)).ln()
            || with.rounds[place].len() >= MOST_ROUNDS
            || 2.0 * with.error(place) < OTHERS * effect.abs()
            || posterior.iter().any(|one| *one >= self.confidence)
    }

    /// The probability of each commit of being the first slow one.
    pub fn posterior(&self) -> Vec<f64> {
        self.fit().0
    }

    /// That, and how slow the slow ones are: the logarithm, and its variance. All that are clearly slow tell
    /// it, in turns with who is slow.
    fn fit(&self) -> (Vec<f64>, f64, f64) {
        const TURNS: usize = 8;

        let variance = self.noise().0;
        let of_last = self.rounds.last().map_or(&[][..], |last| last);
        let mut posterior = Vec::new();
        let (mut effect, mut rounds) = (mean(of_last).unwrap_or(0.0), of_last.len() as f64);
        for _ in 0..TURNS {
            posterior = self.given(effect, variance / rounds);
            (effect, rounds) = (0.0, 0.0);
            let mut is_slow = 0.0;
            for (probability, seen) in posterior.iter().zip(&self.rounds) {
                is_slow += probability;
                // One that may be half as slow would draw the effect to itself.
                if is_slow > CLEARLY {
                    effect += seen.iter().sum::<f64>();
                    rounds += seen.len() as f64;
                }
            }
            effect /= rounds;
        }
        (posterior, effect, variance / rounds)
    }

    fn given(&self, effect: f64, of_effect: f64) -> Vec<f64> {
        // A slow commit speaks for itself and for all before it.
        let places = 0..self.rounds.len();
        let mut logs: Vec<f64> = places
            .map(|one| self.log_odds(one, effect, of_effect))
            .collect();
        for place in (1..logs.len()).rev() {
            logs[place - 1] += logs[place];
        }
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let all: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / all).collect()
    }

    /// The fewest neighbours that hold the first slow commit with the confidence, and their probability.
    pub fn likely(&self) -> (Range<usize>, f64) {
        let posterior = self.posterior();
        let sum = |range: &Range<usize>| posterior[range.clone()].iter().sum::<f64>();
        let all = posterior.len();
        let ranges = (1..all).flat_map(|length| (0..=all - length).map(move |at| at..at + length));
        let enough = ranges.filter(|range| sum(range) >= self.confidence);
        // Of those that are equally short the most probable.
        let best = enough.min_by(|a, b| a.len().cmp(&b.len()).then(sum(b).total_cmp(&sum(a))));
        let best = best.unwrap_or(0..all);
        let probability = sum(&best);
        (best, probability)
    }

    /// How much slower than the base a commit is; `None` where it was not measured.
    pub fn measured(&self, place: usize) -> Option<Slower> {
        let mean = mean(&self.rounds[place])?;
        Some(self.slower(mean, self.error(place)))
    }

    /// How much slower than the commit before it a commit is; `None` where one of both was not measured.
    pub fn step(&self, place: usize) -> Option<Slower> {
        let Some(before) = place.checked_sub(1) else {
            return self.measured(place);
        };
        let step = mean(&self.rounds[place])? - mean(&self.rounds[before])?;
        Some(self.slower(step, self.error(place).hypot(self.error(before))))
    }

    fn slower(&self, log: f64, error: f64) -> Slower {
        let half = student(self.noise().1, TAIL).unwrap_or(f64::INFINITY) * error;
        Slower {
            times: log.exp(),
            interval: ((log - half).exp(), (log + half).exp()),
        }
    }

    /// Variance of a round within a commit, and its degrees of freedom.
    fn noise(&self) -> (f64, f64) {
        let (mut squares, mut freedom) = (0.0, 0);
        for rounds in &self.rounds {
            if let Some(mean) = mean(rounds) {
                squares += rounds.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
                freedom += rounds.len() - 1;
            }
        }
        let freedom = freedom.max(1) as f64;
        (squares / freedom, freedom)
    }

    /// Standard error of a commit's mean.
    fn error(&self, place: usize) -> f64 {
        (self.noise().0 / self.rounds[place].len() as f64).sqrt()
    }

    /// How much likelier a commit's rounds are if it is slow than if it is fast, as a logarithm.
    fn log_odds(&self, place: usize, effect: f64, of_effect: f64) -> f64 {
        let Some(mean) = mean(&self.rounds[place]).filter(|_| place + 1 < self.rounds.len()) else {
            // Nothing is known; and that the last is slow speaks for no other commit more.
            return 0.0;
        };
        let (_, freedom) = self.noise();
        let own = self.error(place).powi(2);
        let others = (OTHERS * effect).powi(2);
        // What lies outside of both says no more than what lies at one of them.
        let mean = mean.clamp(effect.min(0.0), effect.max(0.0));
        let fast = log_density(mean, own, others, freedom);
        let slow = log_density(mean - effect, own + of_effect, others, freedom);
        let most = fast.max(slow);
        let (fast, slow) = ((fast - most).exp(), (slow - most).exp());
        let mixed = |a: f64, b: f64| (1.0 - MISLED) * a + MISLED * b;
        (mixed(slow, fast) / mixed(fast, slow)).ln()
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Student's density of an error with the variance `seen`, an estimate with so many degrees of freedom, and
/// `known`, without its constant. The freedom of both together is Welch's.
fn log_density(away: f64, seen: f64, known: f64, freedom: f64) -> f64 {
    let variance = (seen + known).max(f64::MIN_POSITIVE);
    let freedom = (variance.powi(2) / seen.powi(2) * freedom).min(NORMAL);
    let half = freedom / 2.0;
    let scale = half.ln_beta(0.5) + (freedom * variance).ln() / 2.0;
    -(half + 0.5) * (away.powi(2) / variance / freedom).ln_1p() - scale
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    const ROUNDS_AT_LEAST: usize = 3;

    /// A round of a commit that is so many times slower, with noise of 5 %.
    fn round(random: &mut Pcg64, times: f64) -> f64 {
        // Twelve uniform numbers make a normal one, near enough.
        let normal: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        times.ln() + 0.05 * normal
    }

    /// Searches to the end, as `duel bisect` does; with the number of rounds and of commits tried.
    fn search(seed: u64, slower: &[f64], broken: &[usize]) -> (Search, usize, usize) {
        let random = &mut Pcg64::seed_from_u64(seed);
        let last = slower[slower.len() - 1];
        let of_last = (0..8).map(|_| round(random, last)).collect();
        let mut search = Search::new(slower.len(), of_last, 0.95);
        let (mut rounds, mut tried) = (0, 0);
        while let Some(place) = search.next() {
            if broken.contains(&place) {
                search.skip(place);
                continue;
            }
            let mut of_it = Vec::new();
            while of_it.len() < ROUNDS_AT_LEAST || !search.is_enough(place, &of_it) {
                of_it.push(round(random, slower[place]));
            }
            search.add(place, &of_it);
            (rounds, tried) = (rounds + of_it.len(), tried + 1);
        }
        (search, rounds, tried)
    }

    /// Commits of which each from those places on is so many times slower.
    fn commits(count: usize, steps: &[(usize, f64)]) -> Vec<f64> {
        let so_far = |at| steps.iter().filter(move |(from, _)| at >= *from);
        let slower = |at| so_far(at).map(|(_, times)| times).product();
        (0..count).map(slower).collect()
    }

    fn found(search: &Search) -> Option<usize> {
        let (range, _) = search.likely();
        (range.len() == 1).then_some(range.start)
    }

    #[test]
    fn one_slow_commit_of_thirty_is_found_in_noise_of_half_its_size() {
        let (mut right, mut wrong, mut rounds, mut tried) = (0, 0, 0, 0);
        for seed in 0..200 {
            let slow = usize::try_from(seed).unwrap() * 7 % 30;
            let (search, of_it, commits) = search(seed, &commits(30, &[(slow, 1.1)]), &[]);
            match found(&search) {
                Some(one) if one == slow => right += 1,
                Some(_) => wrong += 1,
                None => {}
            }
            (rounds, tried) = (rounds + of_it, tried + commits);
        }
        assert!(right >= 190, "{right} right, {wrong} wrong");
        // A search without noise takes five commits.
        assert!(tried <= 200 * 6 && rounds <= 200 * 36, "{tried} {rounds}");
    }

    #[test]
    fn of_two_slow_commits_the_greater_is_found_with_its_own_share() {
        let (mut right, mut covered) = (0, 0);
        for seed in 0..100 {
            let (search, ..) = search(seed, &commits(30, &[(6, 1.06), (19, 1.18)]), &[]);
            if found(&search) == Some(19) {
                right += 1;
                let (low, high) = search.step(19).unwrap().interval;
                covered += u32::from((low..high).contains(&1.18));
            }
        }
        assert!(right >= 90 && covered >= 85, "{right} {covered}");
    }

    #[test]
    fn commits_that_cannot_be_measured_are_not_told_apart_from_the_next() {
        let (search, ..) = search(1, &commits(12, &[(6, 2.0)]), &[4, 5]);
        let (range, probability) = search.likely();
        assert_eq!(range, 4..7);
        assert!(probability >= 0.95);
        assert_eq!(search.measured(5), None);
        assert_eq!(search.step(6), None);
        assert_eq!(search.next(), None);
    }

    #[test]
    fn half_of_the_effect_is_taken_for_neither() {
        let mut search = Search::new(3, vec![0.69, 0.70, 0.69], 0.95);
        let half = [0.34, 0.35, 0.35];
        assert!(search.is_enough(1, &half));
        search.add(1, &half);
        let posterior = search.posterior();
        assert!(
            (posterior[1] / posterior[2] - 1.0).abs() < 0.2,
            "{posterior:?}"
        );
    }

    #[test]
    fn one_commit_is_it() {
        let search = Search::new(1, vec![0.1, 0.2, 0.1], 0.95);
        assert_eq!(search.next(), None);
        assert_eq!(search.likely(), (0..1, 1.0));
        let slower = search.step(0).unwrap();
        assert!(slower.interval.0 < slower.times && slower.times < slower.interval.1);
    }
}
