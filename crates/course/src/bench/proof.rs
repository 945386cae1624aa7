//! The order of a proof. Some rounds are measured once; then problem, fix and the fix again follow in
//! triplets until it is decided. The profiles come last, in rounds of their own.

mod plan;

use std::ops::ControlFlow;

use crate::analysis::machine::Machine;
use crate::measurement::chapter_file::ChapterFile;
use crate::measurement::claim::PROBLEM;
use crate::measurement::record::{Purpose, Round};
use drawing::profile::Profile;
use statistics::Side;
use statistics::profile::ProfileKind;
use statistics::rounds::{Rounds, run_until_decided};

pub use self::plan::planned_s;
use self::plan::{beforehand, matrix_plan, most_triplets, triplet};
use crate::bench::profiling::ProfileData;
use crate::bench::rounds::{Bench, RunError, Step};
use engine::event::Event;

/// Largest difference in CPU use by other programs, as a share of the machine's CPU time, for which the
/// rounds of a triplet count as equal.
const UNEQUAL: f64 = 0.1;

/// Largest CPU use of two services together, as a share of their CPUs, for which both are profiled at once.
const FULL: f64 = 1.1;
/// Factor by which a lighter load lasts longer, and by which it has fewer users if the claims allow it.
const LIGHTER: u32 = 2;
/// Largest factor by which a load may last longer than in the chapter's file, however often it became lighter.
const LONGEST: u32 = 8;
/// Factor by which a load has fewer users on a busy machine, if the claims allow it.
const FEWER: u32 = 4;

/// Rounds and profiles of a proof; the record is built from them.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The chapter with the loads that were sent. A load is lighter than in its file if nothing was answered,
    /// or if the machine was busy.
    pub chapter: ChapterFile,
    /// Every round in the order in which it ran.
    pub rounds: Vec<Round>,
    /// Every profile with its data.
    pub profiles: Vec<ProfileData>,
    /// `true` if every server was an optimised build.
    pub optimised: bool,
}

/// Measures the chapter's table; nothing for a chapter without one.
///
/// # Errors
///
/// Fails like [`run`].
pub fn matrix(bench: &Bench<'_>) -> Result<Vec<Round>, RunError> {
    let mut proof = Proof::new(bench.chapter);
    let steps = matrix_plan(bench.chapter);
    for step in steps.chunks(1) {
        proof.measure(bench, step, steps.len())?;
    }
    Ok(proof.rounds)
}

/// Measures the variant `fix` against the problem, until `is_decided` returns `true` at one of the chapter's
/// looks. Each round has a server of its own: a process keeps its luck, and more rounds of the same process
/// would not average it out.
///
/// # Errors
///
/// Fails if a server or the generator fails, or on Ctrl-C.
pub fn run(
    bench: &Bench<'_>,
    fix: &str,
    is_decided: &dyn Fn(&Proof) -> bool,
) -> Result<Proof, RunError> {
    let mut proof = Proof::new(bench.chapter);
    let before = beforehand(bench.chapter, fix);
    let total = before.len() + 3 * bench.chapter.rounds.pairs as usize;
    for steps in before.chunk_by(|one, next| one.scenario == next.scenario) {
        introduce(bench, steps[0].scenario);
        if proof.measure_lighter_if_silent(bench, steps, total)? == Heard::Nothing {
            return Ok(proof);
        }
    }
    let scenario = bench.chapter.claims.effect().scenario();
    introduce(bench, scenario);
    let mut effect = Effect {
        bench,
        fix,
        is_decided,
        may_shrink: bench.chapter.claims.scale_with_users(scenario),
        proof,
        total,
        disturbed: 0,
        before_lighter: 0,
    };
    run_until_decided(&mut effect, bench.chapter.looks())?;
    Ok(effect.proof)
}

/// Says before the rounds of a scenario what its name stands for.
fn introduce(bench: &Bench<'_>, scenario: &str) {
    if let Some(load) = bench.chapter.scenario(scenario) {
        let said = format!("scenario \"{scenario}\": {}", load.in_words());
        (bench.observer)(Event::Said(&said));
    }
}

/// The rounds of the effect, in triplets: problem, fix, and the fix again.
struct Effect<'a> {
    bench: &'a Bench<'a>,
    fix: &'a str,
    is_decided: &'a dyn Fn(&Proof) -> bool,
    proof: Proof,
    /// Largest number of rounds of the proof that are not set aside.
    total: usize,
    /// Set until the load has fewer users because the machine is busy.
    may_shrink: bool,
    /// Number of triplets that were set aside.
    disturbed: u32,
    /// Number of triplets before the load became lighter for the last time. The lighter load has all of its own.
    before_lighter: u32,
}

impl Rounds for Effect<'_> {
    type Error = RunError;

    fn run(&mut self, number: u32, order: [Side; 3]) -> Result<ControlFlow<()>, RunError> {
        let chapter = self.bench.chapter;
        let most = chapter.rounds.pairs;
        if number - self.before_lighter >= most_triplets(chapter) {
            return Ok(ControlFlow::Break(()));
        }
        let steps = triplet(chapter, self.fix, number, order);
        let proof = &mut self.proof;
        let lasted_s = proof.chapter.effect_scenario().duration_s;
        if proof.measure_lighter_if_silent(self.bench, &steps, self.total)? == Heard::Nothing {
            return Ok(ControlFlow::Break(()));
        }
        if proof.chapter.effect_scenario().duration_s > lasted_s {
            self.before_lighter = number;
        }
        // The machine's own report decides what is set aside, never the measured figures.
        let scenario = chapter.claims.effect().scenario();
        if self.may_shrink
            && proof.was_busy_in_the_last_triplet()
            && proof.lighten(chapter, scenario, FEWER)
        {
            self.may_shrink = false;
            self.before_lighter = number + 1;
            if let Some(load) = proof.chapter.scenario(scenario) {
                let fewer = format!(
                    "the machine is busy with other programs: these rounds start again with a lighter load ({}), and \
                     claims that depend on the number of users shrink with it",
                    load.in_words()
                );
                (self.bench.observer)(Event::Said(&fewer));
            }
        } else if self.disturbed < most / 2 && proof.sets_aside_the_last_triplet() {
            self.disturbed += 1;
            let again = format!(
                "other programs disturbed one of these three rounds: all three are measured again ({} of at most {} times)",
                self.disturbed,
                most / 2
            );
            (self.bench.observer)(Event::Said(&again));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn counted(&self) -> u32 {
        let rounds = self.proof.rounds.iter();
        // A triplet has one such round, unless the triplet is set aside.
        let again = rounds.filter(|round| round.purpose == Purpose::Equal);
        u32::try_from(again.count()).unwrap_or(u32::MAX)
    }

    fn are_decisive(&mut self) -> bool {
        (self.is_decided)(&self.proof)
    }
}

impl Proof {
    fn new(chapter: &ChapterFile) -> Self {
        Self {
            chapter: chapter.clone(),
            rounds: Vec::new(),
            profiles: Vec::new(),
            optimised: true,
        }
    }

    /// Returns whether the machine was so busy in one of the last three rounds that a fix may have looked
    /// worse than it is.
    fn was_busy_in_the_last_triplet(&self) -> bool {
        let last = self.rounds.iter().rev().take(3);
        Machine::during(last.map(|round| (String::new(), round))).was_busy()
    }

    /// Sets the last three rounds aside if other programs used the machine in one of them more than in
    /// another. Only that decides, never the measured figures: leaving out rounds that look bad could prove
    /// anything.
    fn sets_aside_the_last_triplet(&mut self) -> bool {
        let from = self.rounds.len().saturating_sub(3);
        let last = &mut self.rounds[from..];
        let (mut low, mut high) = (1.0_f64, 0.0_f64);
        for round in &*last {
            if let Some(share) = round.elsewhere_share {
                (low, high) = (low.min(share), high.max(share));
            }
        }
        if high - low <= UNEQUAL {
            return false;
        }
        for round in last {
            round.purpose = Purpose::Disturbed;
        }
        true
    }

    /// Takes a CPU and an await profile of problem and fix.
    ///
    /// Readers who wait get them two at a time (`at_once`): a CPU profile counts its own process's CPU time, whatever
    /// runs beside it, and an await profile takes almost none. Both CPU profiles are taken at once if the CPUs have
    /// time for both.
    ///
    /// # Errors
    ///
    /// Fails like [`run`].
    pub fn profile_both(
        &mut self,
        bench: &Bench<'_>,
        fix: &str,
        at_once: bool,
    ) -> Result<(), RunError> {
        use ProfileKind::{Await, Cpu};
        let cpus = bench.placement.server.len().max(1) as f64;
        let busy = self.cpus_used_by(PROBLEM) + self.cpus_used_by(fix);
        let order = if !at_once {
            [(PROBLEM, Cpu), (PROBLEM, Await), (fix, Cpu), (fix, Await)]
        } else if busy <= FULL * cpus {
            [(PROBLEM, Cpu), (fix, Cpu), (PROBLEM, Await), (fix, Await)]
        } else {
            [(PROBLEM, Cpu), (fix, Await), (fix, Cpu), (PROBLEM, Await)]
        };
        for profiles in order.chunks(if at_once { 2 } else { 1 }) {
            for data in profile_at_once(bench, profiles)? {
                let Profile { variant, kind, .. } = &data.profile;
                let label = format!("{} profile of the {variant}", kind.key());
                (bench.observer)(Event::Profiled(&label, &data.most()));
                self.profiles.push(data);
            }
        }
        Ok(())
    }

    /// Returns the CPUs that a variant's server kept busy in its last round.
    fn cpus_used_by(&self, variant: &str) -> f64 {
        let last = self.rounds.iter().rfind(|round| round.variant == variant);
        match last {
            Some(round) => round.server_cpu_s.unwrap_or(f64::INFINITY) / round.wall_s,
            None => f64::INFINITY,
        }
    }

    /// Measures steps of one scenario. If a round answers nothing, makes the load lighter, as far as that goes,
    /// and measures all of the scenario's rounds again.
    ///
    /// On a machine that is busy with something else, a thousand users may wait longer than a round lasts.
    fn measure_lighter_if_silent(
        &mut self,
        bench: &Bench<'_>,
        steps: &[Step<'_>],
        total: usize,
    ) -> Result<Heard, RunError> {
        let [Step { scenario, .. }, ..] = steps else {
            return Ok(Heard::Answers);
        };
        while self.measure(bench, steps, total)? == Heard::Nothing {
            if !self.lighten(bench.chapter, scenario, LIGHTER) {
                return Ok(Heard::Nothing);
            }
            let lighter = match self.chapter.scenario(scenario) {
                Some(load) => format!("{}, {} s a round", load.in_words(), load.duration_s),
                None => String::new(),
            };
            let said =
                format!("nothing was answered in a round, so the load becomes lighter ({lighter})");
            (bench.observer)(Event::Said(&said));
        }
        Ok(Heard::Answers)
    }

    /// Makes the load of a scenario lighter and sets its rounds aside. Rounds last [`LIGHTER`] times as long,
    /// and there are `fewer` times fewer users if the claims allow it. Returns `false` and changes nothing if
    /// they would last more than [`LONGEST`] times as long as `planned`, or if there is no such scenario.
    fn lighten(&mut self, planned: &ChapterFile, scenario: &str, fewer: u32) -> bool {
        let fewer_users = self.chapter.claims.scale_with_users(scenario);
        let Some(plan) = planned.scenario(scenario) else {
            return false;
        };
        let Some(load) = self.chapter.scenarios.get_mut(scenario) else {
            return false;
        };
        if load.duration_s * f64::from(LIGHTER) > plan.duration_s * f64::from(LONGEST) {
            return false;
        }
        load.warm_up_s *= f64::from(LIGHTER);
        load.duration_s *= f64::from(LIGHTER);
        if fewer_users {
            load.users = (load.users / fewer).max(1);
            load.users_per_cpu = None;
        }
        for round in &mut self.rounds {
            if round.scenario == scenario {
                round.purpose = Purpose::Disturbed;
            }
        }
        true
    }

    /// Measures one round after the other; `total` is the largest number of rounds that are not set aside.
    /// Stops after a round that answers nothing.
    fn measure(
        &mut self,
        bench: &Bench<'_>,
        steps: &[Step<'_>],
        total: usize,
    ) -> Result<Heard, RunError> {
        for step in steps {
            let label = step.label();
            let rounds = self.rounds.iter();
            let before = rounds.filter(|round| round.purpose != Purpose::Disturbed);
            (bench.observer)(Event::Begins(before.count() + 1, total, &label));
            let chapter = self.chapter.clone();
            let bench = Bench {
                chapter: &chapter,
                ..bench.clone()
            };
            let (round, optimised) = bench.round_of(step)?;
            let per_second = round.outcome.requests_per_second;
            (bench.observer)(Event::Measured(&label, per_second));
            self.optimised &= optimised;
            let is_silent = round.is_silent(&chapter.claims.effect().quantity);
            self.rounds.push(round);
            if is_silent {
                return Ok(Heard::Nothing);
            }
        }
        Ok(Heard::Answers)
    }
}

/// Takes profiles, all at the same time, each for as long as the chapter says. Takes one again that is too short for a
/// picture.
fn profile_at_once(
    bench: &Bench<'_>,
    profiles: &[(&str, ProfileKind)],
) -> Result<Vec<ProfileData>, RunError> {
    // Another thread cannot use the observer.
    let (program, chapter, interrupt) = (bench.program, bench.chapter, bench.interrupt);
    let arguments = bench.arguments;
    let silent = move |&(variant, kind): &(&str, ProfileKind)| {
        let bench = Bench {
            arguments,
            ..Bench::new(program, chapter, interrupt, &|_| ())
        };
        let seconds = match kind {
            ProfileKind::Cpu => chapter.rounds.cpu_profile_s,
            _ => chapter.rounds.await_profile_s,
        };
        let taken = bench.profile(variant, kind, seconds)?;
        match taken.seconds_for_a_picture() {
            Some(longer) => bench.profile(variant, kind, longer),
            None => Ok(taken),
        }
    };
    let silent = &silent;
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for profile in profiles {
            running.push(scope.spawn(move || silent(profile)));
        }
        let mut taken = Vec::new();
        for profile in running {
            match profile.join() {
                Ok(data) => taken.push(data?),
                // Pass on a panic of the other thread.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(taken)
    })
}

/// Result of some steps: all rounds had answers, or one had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Answers,
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::claim::{Bound, SOLUTION};
    use children::Interrupt;
    use engine::outcome::Outcome;
    use std::path::Path;

    const CHAPTER_1: &str =
        include_str!("../../../../chapters/1-mutex-held-across-await/chapter.toml");
    const CHAPTER_5: &str =
        include_str!("../../../../chapters/5-cpu-work-on-the-reactor/chapter.toml");

    fn chapter(text: &str) -> ChapterFile {
        ChapterFile::parse(text, "chapter.toml", 2).expect("it can be read")
    }

    fn round(outcome: Outcome) -> Round {
        Round {
            purpose: Purpose::Claim,
            variant: PROBLEM.to_owned(),
            scenario: "saturated".to_owned(),
            seed: 0,
            outcome,
            readings: [].into(),
            server_cpu_s: None,
            throttled_s: None,
            elsewhere_share: None,
            wall_s: 1.0,
            series: Vec::new(),
        }
    }

    #[test]
    fn a_lighter_load_lasts_longer_and_has_fewer_users_where_the_claims_grow_with_them() {
        for (text, users, claimed) in [(CHAPTER_1, 500, 150.0), (CHAPTER_5, 64, 10.0)] {
            let planned = chapter(text);
            let mut proof = Proof::new(&planned);
            proof.rounds.push(round(Outcome::default()));
            let before = proof.chapter.effect_scenario().duration_s;
            assert!(proof.lighten(&planned, "saturated", 2));
            let effect = proof.chapter.claims.effect();
            let bound: Option<Bound> = effect.ratio;
            let load = proof.chapter.effect_scenario();
            let is = |figure: f64, expected: f64| (figure - expected).abs() < 1e-9;
            assert_eq!(load.users, users);
            assert!(is(load.duration_s, 2.0 * before), "{load:?}");
            assert!(
                is(bound.expect("a bound").limit(users), claimed),
                "{bound:?}"
            );
            assert_eq!(proof.rounds[0].purpose, Purpose::Disturbed);
            assert!(!proof.lighten(&planned, "nowhere", 2));
        }
    }

    #[test]
    fn a_load_becomes_lighter_three_times_and_then_no_more() {
        let planned = chapter(CHAPTER_1);
        let mut proof = Proof::new(&planned);
        for _ in 0..3 {
            assert!(proof.lighten(&planned, "saturated", 2));
        }
        assert!(!proof.lighten(&planned, "saturated", 2));
        let load = proof.chapter.effect_scenario();
        assert_eq!(load.users, 125);
        let longest = 8.0 * planned.effect_scenario().duration_s;
        assert!((load.duration_s - longest).abs() < 1e-9, "{load:?}");
    }

    #[test]
    fn rounds_of_a_triplet_or_pair_send_at_the_same_moments() {
        let file = chapter(CHAPTER_1);
        for (number, order) in (0..).zip(statistics::triplets(3)) {
            let steps = triplet(&file, SOLUTION, number, order);
            assert!(steps.iter().all(|step| step.number == number));
        }
        for pair in beforehand(&file, SOLUTION).chunks(2) {
            let [one, other] = pair else {
                panic!("a round without a partner");
            };
            assert_ne!(one.variant, other.variant);
            assert_eq!(one.number, other.number);
        }
        let interrupt = Interrupt::new();
        let bench = Bench {
            seed: 40,
            ..Bench::new(Path::new("chapter1"), &file, &interrupt, &|_| ())
        };
        let seeds = [0, 1, 2].map(|number| {
            let order = [Side::Base, Side::Change, Side::Again];
            bench.seed_of(&triplet(&file, SOLUTION, number, order)[0])
        });
        assert_eq!(seeds, [40, 41, 42]);
    }

    #[test]
    fn a_round_is_silent_that_only_had_too_little_time() {
        let chapter = chapter(CHAPTER_1);
        let effect = &chapter.claims.effect().quantity;
        let nothing = round(Outcome::default());
        assert!(nothing.is_silent(effect));
        let failed = round(Outcome {
            errors: [("status 500".to_owned(), 3)].into(),
            ..Outcome::default()
        });
        assert!(!failed.is_silent(effect));
        let some = round(Outcome {
            completed: 20,
            requests_per_second: 20.0,
            ..Outcome::default()
        });
        assert!(!some.is_silent(effect));
    }
}
