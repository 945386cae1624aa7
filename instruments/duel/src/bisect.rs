//! Binary search with noisy comparisons for the commit that made a service slower.
//!
//! Each commit has a probability of being the first slow one, all of them the same at first. A commit in the
//! middle is compared with the base. The likelihood of its rounds if it is as slow as the last commit multiplies the
//! probabilities of the commits up to it. Their likelihood if it is as fast as the base multiplies those of the
//! commits after it (Bayes). The next commit is the one at which both halves are equally probable: M. Ben-Or and
//! A. Hassidim, "The Bayesian learner is optimal for noisy binary search", FOCS 2008; R. Waeber, P. I. Frazier and
//! S. G. Henderson, "Bisection search with noisy responses", SIAM J. Control Optim. 51(3), 2013. Unlike there, each
//! commit is measured until its own rounds decide, and is not tried again, because that means building it again.

use std::ops::Range;

use serde::Serialize;
use special::Beta as _;
use statistics::{TAIL, student};

/// Standard deviation of the effect of all other commits, as a share of the whole effect. It keeps a commit that is
/// half as slow from counting as slow or as fast.
const OTHERS: f64 = 1.0 / 6.0;
/// Assumed probability that a commit's rounds mislead, whatever their spread says.
const MISLED: f64 = 1e-3;
/// Probability of being slow from which a commit counts for the size of the slowdown.
const CLEARLY: f64 = 0.9;
/// Largest number of rounds of a commit; more do not make it clearer.
const MOST_ROUNDS: usize = 18;
/// Degrees of freedom from which Student's distribution is taken for a normal one.
const NORMAL: f64 = 1e4;

/// Search among commits in a row, the last of which is slow.
#[derive(Debug, Clone)]
pub struct Search {
    /// Logarithm of the slowdown against the base in each round, for each commit.
    rounds: Vec<Vec<f64>>,
    /// `true` for each commit that cannot be measured.
    is_skipped: Vec<bool>,
    confidence: f64,
}

/// Slowdown, as a factor with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slower {
    /// Factor of the slowdown.
    pub times: f64,
    /// Interval of 95 % of the factor.
    pub interval: (f64, f64),
}

impl Search {
    /// Starts a search among `commits` commits. `of_last` holds the logarithm of the last one's slowdown against the
    /// base in each round, for at least two rounds. The search ends when one commit has the probability `confidence`.
    pub fn new(commits: usize, of_last: Vec<f64>, confidence: f64) -> Self {
        let mut rounds = vec![Vec::new(); commits.saturating_sub(1)];
        rounds.push(of_last);
        Self {
            is_skipped: vec![false; rounds.len()],
            rounds,
            confidence,
        }
    }

    /// Adds the rounds of a commit.
    pub fn add(&mut self, place: usize, rounds: &[f64]) {
        self.rounds[place].extend(rounds);
    }

    /// Leaves out a commit that cannot be measured.
    pub fn skip(&mut self, place: usize) {
        self.is_skipped[place] = true;
    }

    /// Returns the commit to measure next; `None` once the slow one is found, or if no other commit would tell more.
    pub fn next(&self) -> Option<usize> {
        let posterior = self.posterior();
        if posterior.iter().any(|one| *one >= self.confidence) {
            return None;
        }
        let least = (1.0 - self.confidence) / 8.0;
        let (mut next, mut most) = (None, 0.0);
        let mut up_to = 0.0;
        for (place, probability) in posterior.iter().enumerate() {
            up_to += probability;
            let told = f64::min(up_to, 1.0 - up_to);
            let is_open = !self.is_skipped[place] && self.rounds[place].is_empty();
            if is_open && told > least && told >= most {
                (next, most) = (Some(place), told);
            }
        }
        next
    }

    /// Returns whether these rounds of a commit are enough, so that the search can go on to another.
    pub fn is_enough(&self, place: usize, rounds: &[f64]) -> bool {
        let mut with = self.clone();
        with.add(place, rounds);
        let (posterior, effect, of_effect) = with.fit();
        let told = with.log_odds(place, effect, of_effect).abs();
        // The commit's two neighbours, and those around them, share the probability that the confidence leaves.
        told >= (4.0 / (1.0 - self.confidence)).ln()
            || with.rounds[place].len() >= MOST_ROUNDS
            || 2.0 * with.error(place) < OTHERS * effect.abs()
            || posterior.iter().any(|one| *one >= self.confidence)
    }

    /// Returns the probability of each commit of being the first slow one.
    pub fn posterior(&self) -> Vec<f64> {
        self.fit().0
    }

    /// Returns the posterior probabilities, and the logarithm of the slowdown with its variance. The slowdown is that
    /// of all commits that are clearly slow, so the two are computed in turns.
    fn fit(&self) -> (Vec<f64>, f64, f64) {
        const TURNS: usize = 8;

        let variance = self.noise().0;
        let mut posterior = Vec::new();
        let (mut effect, mut rounds) = (0.0, 0.0);
        if let Some(last) = self.rounds.last() {
            (effect, rounds) = (mean(last).unwrap_or(0.0), last.len() as f64);
        }
        for _ in 0..TURNS {
            posterior = self.given(effect, variance / rounds);
            (effect, rounds) = (0.0, 0.0);
            let mut is_slow = 0.0;
            for (probability, seen) in posterior.iter().zip(&self.rounds) {
                is_slow += probability;
                // A commit that may be half as slow would distort the effect.
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
        // If a commit is slow, it or one before it is the first slow one.
        let places = 0..self.rounds.len();
        let mut logs: Vec<f64> = places
            .map(|one| self.log_odds(one, effect, of_effect))
            .collect();
        for place in (1..logs.len()).rev() {
            logs[place - 1] += logs[place];
        }
        let mut most = f64::NEG_INFINITY;
        for log in &logs {
            most = most.max(*log);
        }
        let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let all: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / all).collect()
    }

    /// Returns the shortest run of commits that holds the first slow one with the confidence, and its probability.
    pub fn likely(&self) -> (Range<usize>, f64) {
        let posterior = self.posterior();
        for length in 1..posterior.len() {
            // Among equally short runs, the most probable one wins.
            let (mut best, mut most) = (0, 0.0);
            for (start, run) in posterior.windows(length).enumerate() {
                let probability: f64 = run.iter().sum();
                if probability > most {
                    (best, most) = (start, probability);
                }
            }
            if most >= self.confidence {
                return (best..best + length, most);
            }
        }
        (0..posterior.len(), posterior.iter().sum())
    }

    /// Returns the slowdown of a commit against the base; `None` if it was not measured.
    pub fn measured(&self, place: usize) -> Option<Slower> {
        let mean = mean(&self.rounds[place])?;
        Some(self.slower(mean, self.error(place)))
    }

    /// Returns the slowdown of a commit against the one before it; `None` if either was not measured.
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

    /// Returns the variance of a round within a commit, and its degrees of freedom.
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

    /// Returns the standard error of a commit's mean.
    fn error(&self, place: usize) -> f64 {
        (self.noise().0 / self.rounds[place].len() as f64).sqrt()
    }

    /// Returns the logarithm of the likelihood ratio of a commit's rounds: slow against fast.
    fn log_odds(&self, place: usize, effect: f64, of_effect: f64) -> f64 {
        let mean = match mean(&self.rounds[place]) {
            Some(mean) if place + 1 < self.rounds.len() => mean,
            // Nothing is known of this commit; or it is the last, whose slowness points to no commit in particular.
            _ => return 0.0,
        };
        let (_, freedom) = self.noise();
        let own = self.error(place).powi(2);
        let others = (OTHERS * effect).powi(2);
        // A mean beyond fast or slow says no more than a mean at one of them.
        let mean = mean.clamp(effect.min(0.0), effect.max(0.0));
        let fast = log_density(mean, own, others, freedom);
        let slow = log_density(mean - effect, own + of_effect, others, freedom);
        let most = fast.max(slow);
        let (fast, slow) = ((fast - most).exp(), (slow - most).exp());
        let if_slow = (1.0 - MISLED) * slow + MISLED * fast;
        let if_fast = (1.0 - MISLED) * fast + MISLED * slow;
        (if_slow / if_fast).ln()
    }
}

/// Returns the mean; `None` of no values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the logarithm of Student's density at `away`, without its constant. The variance is the sum of `seen`, an
/// estimate with `freedom` degrees of freedom, and `known`. The freedom of both together is Welch's.
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

    /// Returns a round of a commit that is `times` times slower, with noise of 5 %.
    fn round(random: &mut Pcg64, times: f64) -> f64 {
        // Twelve uniform numbers make a normal one, near enough.
        let normal: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        times.ln() + 0.05 * normal
    }

    /// Searches to the end, as `duel bisect` does. Returns the search, and the number of rounds and of commits tried.
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

    /// Returns the slowdown of each commit: the product of the steps up to it.
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
