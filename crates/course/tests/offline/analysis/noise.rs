//! Simulated proofs: how often an interval holds the truth, and how often a proof is wrong.

use std::convert::Infallible;
use std::ops::ControlFlow;

use rand::Rng as _;
use rand_pcg::Pcg32;
use statistics::rounds::{Rounds, run_until_decided};
use statistics::{Gains, Looks, Mean, Side};

/// Largest number of triplets, as chapters have it.
const MOST: u32 = 8;
/// True ratios, in multiples of the claimed one.
const TRUTHS: [f64; 6] = [1.0, 1.15, 1.3, 1.5, 2.0, 10.0];
/// Largest distance of a ratio from its prediction, as a share.
const WITHIN: f64 = 0.15;
/// Kinds of noise.
const MODELS: usize = 9;
/// The claimed ratio. Only its distance from the true one matters.
const CLAIMED: f64 = 2.0;

/// Noise in the rounds of a proof.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Model {
    /// Rounds differ by 5 %, as a quiet machine's do.
    Quiet,
    /// Rounds differ by 15 %.
    Loud,
    /// Student's t with three degrees of freedom: now and then a round is far off.
    HeavyTails,
    /// One round in ten runs at half its speed.
    Disturbed,
    /// The machine loses 3 % from round to round.
    Drift,
    /// Rounds differ by 5 %, and each proof's servers have luck of their own, with this standard deviation.
    Offset(f64),
}

impl Model {
    const ALL: [Self; MODELS] = [
        Self::Quiet,
        Self::Loud,
        Self::HeavyTails,
        Self::Disturbed,
        Self::Drift,
        Self::Offset(0.025),
        Self::Offset(0.05),
        Self::Offset(0.1),
        Self::Offset(0.15),
    ];

    /// Returns whether more rounds come nearer to the true ratio. No interval can account for an offset that
    /// all rounds of a proof share.
    pub(crate) fn keeps_the_ratio(self) -> bool {
        !matches!(self, Self::Offset(_))
    }

    fn name(self) -> String {
        let name = match self {
            Self::Quiet => "5 % from round to round",
            Self::Loud => "15 % from round to round",
            Self::HeavyTails => "5 %, with heavy tails (t, 3 degrees of freedom)",
            Self::Disturbed => "5 %, and one round in ten at half its speed",
            Self::Drift => "5 %, on a machine that loses 3 % a round",
            Self::Offset(wide) => {
                let percent = 100.0 * wide;
                return format!("5 %, and an offset of {percent} % that a whole proof shares");
            }
        };
        name.to_owned()
    }

    /// Returns the error of a round's figure, as a logarithm.
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
            Self::Quiet | Self::Offset(_) => 0.05 * normal(random),
        }
    }

    fn offset(self, random: &mut Pcg32) -> f64 {
        match self {
            Self::Offset(wide) => wide * normal(random),
            _ => 0.0,
        }
    }
}

/// Shares of proofs and predictions that are right or wrong.
pub(crate) struct Rates {
    /// Share of proofs whose last interval holds the true ratio, for each of [`TRUTHS`].
    pub(crate) covered: [f64; TRUTHS.len()],
    /// Share of proofs that end as proved, for each of [`TRUTHS`]. At the first, the bound itself, each
    /// counts as wrong.
    pub(crate) proved: [f64; TRUTHS.len()],
    /// Mean number of triplets, for each of [`TRUTHS`].
    pub(crate) triplets: [f64; TRUTHS.len()],
    /// Share of predictions that hold although the truth is at the edge of the band, above and below.
    pub(crate) wrongly_predicted: [f64; 2],
    /// Share of right predictions that hold.
    pub(crate) rightly_predicted: f64,
    /// Share of predictions from three pairs of rounds that hold although the truth is at the edge of the
    /// band, above and below.
    pub(crate) wrongly_measured: [f64; 2],
    /// Share of right predictions from three pairs of rounds that hold.
    pub(crate) rightly_measured: f64,
}

/// Prediction of a ratio.
#[derive(Debug, Clone, Copy)]
enum Predicted {
    Nothing,
    /// Predicted by arithmetic.
    Exactly(f64),
    /// Predicted by pairs of rounds of their own, which have this true ratio.
    ByRounds(f64),
}

impl Rates {
    /// Returns the smallest coverage at any truth.
    pub(crate) fn least_covered(&self) -> f64 {
        self.covered.iter().copied().fold(1.0, f64::min)
    }

    /// Returns the larger share of wrong predictions that hold.
    pub(crate) fn most_wrongly_predicted(&self) -> f64 {
        let [above, below] = self.wrongly_predicted;
        above.max(below)
    }

    /// Returns the larger share of wrong measured predictions that hold.
    pub(crate) fn most_wrongly_measured(&self) -> f64 {
        let [above, below] = self.wrongly_measured;
        above.max(below)
    }
}

fn rates(model: Model, proofs: u32, random: &mut Pcg32) -> Rates {
    let mut run = |truth, predicted| -> Vec<Proof> {
        (0..proofs)
            .map(|_| proof(model, truth, predicted, random))
            .collect()
    };
    let share = |proofs: &[Proof], is_so: fn(&Proof) -> bool| {
        proofs.iter().filter(|one| is_so(one)).count() as f64 / proofs.len() as f64
    };
    let proved = |proofs: &Vec<Proof>| share(proofs, |one| one.proved);
    let triplets = |proofs: &Vec<Proof>| {
        proofs
            .iter()
            .map(|one| f64::from(one.triplets))
            .sum::<f64>()
            / proofs.len() as f64
    };
    let by_truth = TRUTHS.map(|truth| run(truth * CLAIMED, Predicted::Nothing));
    // Far above the claim only the prediction decides.
    let far = 10.0 * CLAIMED;
    let off = [1.0 + WITHIN, 1.0 - WITHIN];
    let mut exactly = |off: f64| proved(&run(far, Predicted::Exactly(far / off)));
    let (wrongly_predicted, rightly_predicted) = (off.map(&mut exactly), exactly(1.0));
    let mut by_rounds = |off: f64| proved(&run(far, Predicted::ByRounds(far / off)));
    let (wrongly_measured, rightly_measured) = (off.map(&mut by_rounds), by_rounds(1.0));
    Rates {
        covered: by_truth
            .each_ref()
            .map(|proofs| share(proofs, |one| one.covers)),
        proved: by_truth.each_ref().map(proved),
        triplets: by_truth.each_ref().map(triplets),
        wrongly_predicted,
        rightly_predicted,
        wrongly_measured,
        rightly_measured,
    }
}

struct Proof {
    covers: bool,
    proved: bool,
    triplets: u32,
}

/// Triplets of a proof on a machine that is simulated.
struct Simulated<'r> {
    model: Model,
    random: &'r mut Pcg32,
    /// True ratio, with the luck of this proof's servers.
    ratio: f64,
    predicted: Option<Mean>,
    /// Rounds so far, those for the prediction among them.
    rounds: usize,
    triplets: u32,
    gains: Gains,
}

/// Looks of a proof of a chapter.
fn looks() -> Looks {
    Looks::of_proof(MOST)
}

impl Simulated<'_> {
    fn figure(&mut self, ratio: f64) -> f64 {
        let error = self.model.error(self.rounds, self.random);
        self.rounds += 1;
        ratio * error.exp()
    }

    /// Measures a predicted ratio in three pairs of rounds of their own.
    fn probe(&mut self, ratio: f64) -> Option<Mean> {
        let mut pairs = Gains::default();
        for is_first in [true, false, true] {
            let (problem, probe) = if is_first {
                (self.figure(1.0), self.figure(ratio))
            } else {
                let probe = self.figure(ratio);
                (self.figure(1.0), probe)
            };
            pairs.add(&[problem], &[probe], true).expect("figures");
        }
        pairs.mean()
    }

    fn interval(&self) -> (f64, f64) {
        self.gains.interval(looks()).expect("rounds")
    }

    fn is_proved(&self) -> bool {
        let holds = match self.predicted {
            None => true,
            Some(predicted) => {
                let apart = self.gains.mean().expect("rounds").over(predicted);
                let (low, high) = apart.interval(looks()).expect("rounds");
                1.0 - WITHIN <= low && high <= 1.0 + WITHIN
            }
        };
        self.interval().0 >= CLAIMED && holds
    }
}

impl Rounds for Simulated<'_> {
    type Error = Infallible;

    fn run(&mut self, _number: u32, order: [Side; 3]) -> Result<ControlFlow<()>, Infallible> {
        let (mut problem, mut fixes) = (0.0, Vec::new());
        for side in order {
            match side {
                Side::Base => problem = self.figure(1.0),
                Side::Change | Side::Again => fixes.push(self.figure(self.ratio)),
            }
        }
        self.gains.add(&[problem], &fixes, true).expect("figures");
        self.triplets += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn counted(&self) -> u32 {
        self.triplets
    }

    fn are_decisive(&mut self) -> bool {
        self.is_proved() || self.interval().1 < CLAIMED
    }
}

/// Simulates a proof by the loop of `prove`: of a claim, and of a prediction if there is one.
fn proof(model: Model, truth: f64, predicted: Predicted, random: &mut Pcg32) -> Proof {
    let luck = model.offset(random).exp();
    let mut simulated = Simulated {
        model,
        random,
        ratio: truth * luck,
        predicted: None,
        rounds: 0,
        triplets: 0,
        gains: Gains::default(),
    };
    simulated.predicted = match predicted {
        Predicted::Nothing => None,
        Predicted::Exactly(ratio) => Mean::exactly(ratio),
        Predicted::ByRounds(ratio) => simulated.probe(ratio),
    };
    let Ok(()) = run_until_decided(&mut simulated, looks());
    let (low, high) = simulated.interval();
    Proof {
        covers: (low..=high).contains(&truth),
        proved: simulated.is_proved(),
        triplets: simulated.triplets,
    }
}

/// Simulates the rates for each kind of noise.
pub(crate) fn all_rates() -> [(Model, Rates); MODELS] {
    let mut random = Pcg32::new(9, 1);
    Model::ALL.map(|model| (model, rates(model, 4_000, &mut random)))
}

/// Formats the tables in METHODOLOGY.md.
pub(crate) fn tables(rates: &[(Model, Rates)]) -> [String; 2] {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let row = |model: &Model, cells: Vec<String>| {
        format!("| {} | {} |\n", model.name(), cells.join(" | "))
    };
    let proofs = rates.iter().map(|(model, rates)| {
        let [at_the_bound, near, _, half_more, ..] = rates.proved.map(percent);
        let triplets = format!("{:.1}", rates.triplets[3]);
        row(
            model,
            vec![
                at_the_bound,
                near,
                half_more,
                triplets,
                percent(rates.rightly_predicted),
                percent(rates.most_wrongly_predicted()),
                percent(rates.rightly_measured),
                percent(rates.most_wrongly_measured()),
            ],
        )
    });
    let covered = rates
        .iter()
        .map(|(model, rates)| row(model, rates.covered.map(percent).to_vec()));
    let truths = TRUTHS.map(|truth| format!("{truth}")).join(" | ");
    [
        format!(
            "| noise | proved at the bound | proved 15 % above | proved 50 % above | triplets then | right prediction holds | wrong one | right, if measured | wrong, if measured |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n{}",
            proofs.collect::<String>()
        ),
        format!(
            "| noise | {truths} |\n| --- |{}\n{}",
            " ---: |".repeat(TRUTHS.len()),
            covered.collect::<String>()
        ),
    ]
}

/// Draws a uniform number between 0 and 1.
fn uniform(random: &mut Pcg32) -> f64 {
    f64::from(random.next_u32()) / f64::from(u32::MAX)
}

/// Draws a standard normal number (Box and Muller).
pub(crate) fn normal(random: &mut Pcg32) -> f64 {
    let radius = (-2.0 * uniform(random).max(1e-12).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}
