//! The rounds of a comparison: which of them count, and when they are enough.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

use statistics::figures;
use statistics::metric::Triplet;
use statistics::rounds::Rounds;
use statistics::verdict::{Speed, judge};
use statistics::{FIRST_LOOK, Side};

use super::asked::{Comparison, ComparisonError, LeftOut};
use super::round::{AGAIN, BASE, CHANGE, DISTURBED, Spoilt};
use crate::answers::Learnt;
use crate::event::Event;
use crate::traffic::Traffic;

/// A comparison whose servers have shown that they answer alike.
pub(super) struct Run<'c> {
    comparison: &'c Comparison<'c>,
    began: Instant,
    pub(super) learnt: Learnt,
    has_counters: bool,
    /// Load of each slice.
    pub(super) traffic: Traffic,
    /// Rounds that count.
    pub(super) rounds: Vec<Triplet>,
    /// Faults of every round, counted or not.
    pub(super) spoilt: Vec<Spoilt>,
    /// Number of rounds that do not count.
    pub(super) left_out: LeftOut,
    /// Set if the generator was the limit too often.
    pub(super) is_generator_bound: bool,
}

/// Fate of a round.
#[derive(Clone, Copy)]
enum Fate {
    Counted,
    Silent,
    GeneratorBound,
    Disturbed,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counted => "counted",
            Self::Silent => "not counted: a slice had no answer",
            Self::GeneratorBound => "not counted: the generator was the limit",
            Self::Disturbed => "not counted: other programs used the CPU",
        })
    }
}

impl<'c> Run<'c> {
    pub(super) fn new(
        comparison: &'c Comparison<'c>,
        began: Instant,
        traffic: Traffic,
        learnt: Learnt,
        has_counters: bool,
    ) -> Self {
        Self {
            comparison,
            began,
            learnt,
            has_counters,
            traffic,
            rounds: Vec::new(),
            spoilt: Vec::new(),
            left_out: LeftOut::default(),
            is_generator_bound: false,
        }
    }

    fn fate(&self, fault: &Spoilt, is_late: bool) -> Fate {
        // Without an answer, a latency is known to be longer than the slice, and that decides.
        let is_latency = self.comparison.deciding.quantile().is_some();
        if fault.is_silent && !is_latency {
            return Fate::Silent;
        }
        if fault.is_generator_bound {
            return Fate::GeneratorBound;
        }
        let has_others = self.left_out.busy as usize * 2 <= self.rounds.len();
        if fault.foreign > DISTURBED && has_others && !is_late {
            return Fate::Disturbed;
        }
        Fate::Counted
    }

    fn tell(&self, number: u32, round: &Triplet, fate: Fate) {
        let Comparison {
            deciding, observer, ..
        } = self.comparison;
        let values = [&round.base, &round.change, &round.again].map(|figures| {
            match figures.get(&deciding.key) {
                Some(value) => figures::count(value),
                None => "-".to_owned(),
            }
        });
        let [base, change, again] = values;
        let text = format!(
            "round {number:>2}: {} {base} (base), {change} (change), {again} (base again); {fate}",
            deciding.label
        );
        observer(Event::Said(&text));
    }

    /// Returns whether the rounds that count are enough for who asked for no verdict.
    fn are_enough(&self) -> bool {
        match self.comparison.enough {
            Some(are_enough) => self.counted() >= FIRST_LOOK && are_enough(&self.rounds),
            None => false,
        }
    }
}

impl Rounds for Run<'_> {
    type Error = ComparisonError;

    fn run(&mut self, number: u32, order: [Side; 3]) -> Result<ControlFlow<()>, ComparisonError> {
        let (comparison, so_far) = (self.comparison, number + 1);
        if let Some(builds) = &comparison.builds {
            comparison.begins(&format!("round {so_far}: base and change are built"));
            (builds.make)(number)?;
        }
        comparison.begins(&format!("round {so_far}: servers start"));
        let mut servers = comparison.start(order)?;
        // All servers of a round get the same seed, and each round gets another.
        self.traffic.seed = comparison.traffic.seed.wrapping_add(u64::from(number));
        let asked = [BASE, CHANGE, AGAIN].map(|index| comparison.asked(&servers, index));
        self.learnt
            .compare_more(asked.each_ref(), &mut self.traffic)?;
        let (round, fault) = comparison.round(
            number,
            order,
            &mut servers,
            &self.traffic,
            self.has_counters,
        )?;
        if comparison.how.judge.is_some() {
            for index in [BASE, CHANGE] {
                self.learnt.compare(&comparison.asked(&servers, index))?;
            }
        }
        drop(servers);
        let is_late = self.began.elapsed() > comparison.at_most;
        let fate = self.fate(&fault, is_late);
        self.tell(so_far, &round, fate);
        self.spoilt.push(fault);
        match fate {
            Fate::Counted => self.rounds.push(round),
            Fate::Silent => self.left_out.silent += 1,
            Fate::GeneratorBound => self.left_out.generator_bound += 1,
            Fate::Disturbed => self.left_out.busy += 1,
        }
        let LeftOut {
            generator_bound,
            silent,
            ..
        } = self.left_out;
        if generator_bound * 2 > so_far && (generator_bound >= 2 || is_late) {
            self.is_generator_bound = true;
            return Ok(ControlFlow::Break(()));
        }
        if silent >= 3 && silent * 2 > so_far {
            return Err(ComparisonError::Invalid(format!(
                "in {silent} of {so_far} rounds a server gave no answer for a whole slice of {} s; take longer slices \
                 with --seconds, or more users.",
                figures::ratio(self.traffic.duration.as_secs_f64())
            )));
        }
        let is_last = match &comparison.builds {
            Some(builds) => so_far >= builds.rounds,
            None => false,
        };
        if is_last || is_late || self.are_enough() {
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn counted(&self) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    fn are_decisive(&mut self) -> bool {
        let Comparison {
            deciding,
            goal,
            enough,
            ..
        } = self.comparison;
        enough.is_none() && judge(deciding, *goal, &self.rounds).kind != Speed::Inconclusive
    }
}
