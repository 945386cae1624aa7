//! Simulated proofs: how often an interval holds the truth, and how often a proof is wrong.

use duel::statistics::{REPORTED, Side, interval, tail_of_look, triplets};
use rand::Rng as _;
use rand_pcg::Pcg32;

/// Triplets at the first look, and most of them: what chapters have.
const LOOKS: (u32, u32) = (3, 8);
/// The ratio that is claimed. Only its distance from the true one matters.
const CLAIMED: f64 = 2.0;

/// What disturbs the rounds of a proof.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Model {
    /// Rounds differ by 5 %, as a quiet machine's do.
    Quiet,
    /// By 15 %.
    Loud,
    /// Student's t with three degrees of freedom: now and then a round is far off.
    HeavyTails,
    /// One round in ten runs at half its speed.
    Disturbed,
    /// The machine loses 3 % from round to round.
    Drift,
    /// Each proof's servers have luck of their own, half as wide as the noise of a round.
    HalfAnOffset,
    /// As wide as the noise of a round.
    WholeOffset,
}

impl Model {
    const ALL: [Self; 7] = [
        Self::Quiet,
        Self::Loud,
        Self::HeavyTails,
        Self::Disturbed,
        Self::Drift,
        Self::HalfAnOffset,
        Self::WholeOffset,
    ];

    /// Whether more rounds come nearer to the true ratio. No interval can know of an offset that all
    /// rounds of a proof share.
    pub(crate) fn keeps_the_ratio(self) -> bool {
        !matches!(self, Self::HalfAnOffset | Self::WholeOffset)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Quiet => "5 % from round to round",
            Self::Loud => "15 % from round to round",
            Self::HeavyTails => "5 %, with heavy tails (t, 3 degrees of freedom)",
            Self::Disturbed => "5 %, and one round in ten at half its speed",
            Self::Drift => "5 %, on a machine that loses 3 % a round",
            Self::HalfAnOffset => "5 %, and an offset of 2.5 % that a whole proof shares",
            Self::WholeOffset => "5 %, and an offset of 5 % that a whole proof shares",
        }
    }

    /// The logarithm of what a round measures too much.
    fn error(self, round: usize, random: &mut Pcg32) -> f64 {
        match self {
            Self::Loud => 0.15 * normal(random),
            Self::HeavyTails => {
                let chi: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
                0.05 * normal(random) / (chi / 3.0).sqrt()
            }
            Self::Disturbed => {
                let half = if uniform(random) < 0.1 {
                    0.5_f64.ln()
                } else {
                    0.0
                };
                0.05 * normal(random) + half
            }
            Self::Drift => 0.05 * normal(random) - 0.03 * round as f64,
            Self::Quiet | Self::HalfAnOffset | Self::WholeOffset => 0.05 * normal(random),
        }
    }

    fn offset(self, random: &mut Pcg32) -> f64 {
        match self {
            Self::HalfAnOffset => 0.025 * normal(random),
            Self::WholeOffset => 0.05 * normal(random),
            _ => 0.0,
        }
    }
}

/// How often a proof is right.
pub(crate) struct Rates {
    /// The 95 % interval at the end holds the true ratio.
    pub(crate) covered: f64,
    /// Proved, where the truth is the very bound: the worst case.
    pub(crate) wrongly_proved: f64,
    /// Proved, where the truth is 15 % and 50 % above the bound.
    pub(crate) found: [f64; 2],
    /// Triplets that the last of these took, in the mean.
    pub(crate) triplets: f64,
}

fn rates(model: Model, proofs: u32, random: &mut Pcg32) -> Rates {
    let share = |count: usize| count as f64 / f64::from(proofs);
    let mut run =
        |truth: f64| -> Vec<Proof> { (0..proofs).map(|_| proof(model, truth, random)).collect() };
    let proved = |proofs: &[Proof]| share(proofs.iter().filter(|one| one.proved).count());
    let at_the_bound = run(CLAIMED);
    let near = run(1.15 * CLAIMED);
    let far = run(1.5 * CLAIMED);
    Rates {
        covered: share(at_the_bound.iter().filter(|one| one.covers).count()),
        wrongly_proved: proved(&at_the_bound),
        found: [proved(&near), proved(&far)],
        triplets: far.iter().map(|one| f64::from(one.triplets)).sum::<f64>() / f64::from(proofs),
    }
}

struct Proof {
    covers: bool,
    proved: bool,
    triplets: u32,
}

/// Looks after each triplet from the first look on, as `prove` does.
fn proof(model: Model, truth: f64, random: &mut Pcg32) -> Proof {
    let (first, most) = LOOKS;
    let offset = model.offset(random);
    let mut ratios = Vec::new();
    let mut round = 0;
    for (number, sides) in (1..).zip(triplets(most)) {
        let mut log = truth.ln() + offset;
        for side in sides {
            let error = model.error(round, random);
            round += 1;
            log += match side {
                Side::Base => -error,
                Side::Change => error,
                Side::Again => 0.0,
            };
        }
        ratios.push(log.exp());
        if number < first {
            continue;
        }
        let decisive = interval(&ratios, tail_of_look(number, first, most));
        let (low, high) = decisive.expect("ratios");
        if low >= CLAIMED || high < CLAIMED || number == most {
            let (reported_low, reported_high) = interval(&ratios, REPORTED).expect("ratios");
            return Proof {
                covers: (reported_low..=reported_high).contains(&truth),
                proved: low >= CLAIMED,
                triplets: number,
            };
        }
    }
    unreachable!("the last look ends it")
}

/// The rates for each kind of noise.
pub(crate) fn all_rates() -> [(Model, Rates); 7] {
    let mut random = Pcg32::new(9, 1);
    Model::ALL.map(|model| (model, rates(model, 4_000, &mut random)))
}

/// What METHODOLOGY.md shows of them.
pub(crate) fn table(rates: &[(Model, Rates)]) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let rows = rates.iter().map(|(model, rates)| {
        format!(
            "| {} | {} | {} | {} | {} | {:.1} |\n",
            model.name(),
            percent(rates.covered),
            percent(rates.wrongly_proved),
            percent(rates.found[0]),
            percent(rates.found[1]),
            rates.triplets
        )
    });
    format!(
        "| noise | interval holds the truth | proved at the bound | proved 15 % above | proved 50 % above | triplets then |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n{}",
        rows.collect::<String>()
    )
}

/// A uniform number between 0 and 1.
fn uniform(random: &mut Pcg32) -> f64 {
    f64::from(random.next_u32()) / f64::from(u32::MAX)
}

/// A standard normal number (Box and Muller).
fn normal(random: &mut Pcg32) -> f64 {
    let radius = (-2.0 * uniform(random).max(1e-12).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}
