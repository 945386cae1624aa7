//! Two builds of a service, side by side: rounds of short slices in balanced order, until they
//! decide.

mod asked;
mod capacities;
mod round;
mod run;

use std::time::{Duration, Instant};

use children::Interrupt;
use statistics::figures;
use statistics::metric::{
    BYSTANDER_P99, CPU_MS, PERCENTILES, REQUESTS_PER_SECOND, Triplet, answers_for, route_key,
};
use statistics::profile::ProfileKind;
use statistics::profile::SeenByBoth;
use statistics::rounds::run_until_decided;
use statistics::verdict::{Speed, Verdict, judge};
use statistics::{FIRST_LOOK, Looks, triplet};

use crate::load::{Latencies, TrafficOutcome};
use crate::outcome::GeneratorFacts;
use crate::traffic::Arrivals;
use crate::traffic::Traffic;

pub use self::asked::{
    Builds, Compared, Comparison, ComparisonError, Enough, Generator, LeftOut, Side,
};
pub use self::capacities::{AtCapacity, Capacities};
use self::round::{
    BASE, CHANGE, DISTURBED, Instance, NAMES, SETTLE_AT_MOST, SETTLE_LOOK, SLICES, Spoilt,
    WARM_AGAIN, names, settle,
};
use self::run::Run;
use crate::answers::{Asked, Learnt, learn};
use crate::event::Event;
use crate::load::ask::get;
use crate::service::CommandError;
use crate::service_profiles;

/// Longest slice that is chosen for the sake of a percentile.
const LONGEST_SLICE: Duration = Duration::from_secs(20);
/// Smallest number of rounds for a verdict.
const ROUNDS_AT_LEAST: f64 = FIRST_LOOK as f64;
/// Number of slices in a round: each of three servers, there and back again.
const SLICES_OF_A_ROUND: f64 = (3 * SLICES) as f64;

impl Comparison<'_> {
    /// Runs rounds until they decide, the time is over, or something is wrong.
    ///
    /// # Errors
    ///
    /// Returns an error if servers, answers or generator fail, or on Ctrl-C.
    pub fn run(&self) -> Result<Compared, ComparisonError> {
        let began = Instant::now();
        let (traffic, learnt, has_counters, about_time) = self.prepare(began)?;
        let mut run = Run::new(self, began, traffic, learnt, has_counters);
        run_until_decided(&mut run, Looks::COMPARISON)?;
        let Run {
            traffic,
            rounds,
            spoilt,
            left_out,
            learnt,
            ..
        } = run;
        let mut notes = learnt.notes();
        notes.extend(about_time);
        let verdict = if run.is_generator_bound {
            generator_bound(&spoilt)
        } else {
            judge(self.deciding, self.goal, &rounds)
        };
        self.note(&spoilt, left_out.busy, &rounds, &mut notes);
        let mut profiles = Vec::new();
        if self.with_profiles {
            match self.profiles(&traffic) {
                Ok(taken) => profiles = taken,
                Err(error) if error.is_interrupt() => return Err(error),
                // The verdict stands without them.
                Err(error) => notes.push(format!("there are no profiles: {error}")),
            }
        }
        Ok(Compared {
            profiles,
            verdict,
            rounds,
            left_out,
            notes,
            seconds: began.elapsed().as_secs_f64(),
            slice_s: traffic.duration.as_secs_f64(),
            generator_cpu: generator_cpu(&spoilt),
        })
    }

    fn begins(&self, what: &str) {
        (self.observer)(Event::Begins(1, 1, what));
    }

    /// Takes profiles of both builds, each under the load of a slice that lasts as long as they take. The rounds are
    /// over by then, because profiling costs time.
    fn profiles(&self, traffic: &Traffic) -> Result<Vec<SeenByBoth>, ComparisonError> {
        self.begins("profiles: servers start");
        let servers = self.start(triplet(0))?;
        let traffic = Traffic {
            duration: service_profiles::AT_MOST,
            ..traffic.clone()
        };
        let mut taken = [Vec::new(), Vec::new()];
        for index in [BASE, CHANGE] {
            self.begins(&format!("profiles of the {}", NAMES[index]));
            taken[index] = self.profiles_of(&servers[index], &traffic);
        }
        if self.interrupt.is_set() {
            return Err(CommandError::Interrupted.into());
        }
        let [base, change] = taken;
        let profiles = service_profiles::paired(base, &change);
        if profiles.is_empty() {
            return Err(ComparisonError::NoEndpoints);
        }
        Ok(profiles)
    }

    fn profiles_of(&self, server: &Instance, traffic: &Traffic) -> Vec<(ProfileKind, Vec<String>)> {
        let enough = Interrupt::new();
        let target = server.target.clone();
        let cpus = &*self.placement.generator;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let settings = crate::load::Settings {
                    cpus,
                    ..crate::load::Settings::of(&enough)
                };
                // The rounds have reported what the load does.
                let _ = crate::load::run(target, traffic, &settings);
            });
            let taken = service_profiles::take(&self.metrics_at(server));
            enough.set();
            taken
        })
    }

    /// Returns the load with its expected answers and the length of its slices, what was learned, whether both have
    /// a page of counters, and notes on the length of slices. The servers that were asked are not used further: those of a round are equally fresh.
    fn prepare(
        &self,
        began: Instant,
    ) -> Result<(Traffic, Learnt, bool, Vec<String>), ComparisonError> {
        let mut traffic = self.traffic.clone();
        self.begins("the servers start");
        let mut servers = self.start(triplet(0))?;
        let start = began.elapsed();
        let learnt = self.learn(&servers, &mut traffic)?;
        self.counters(&servers)?;
        let mut notes = Vec::new();
        self.fit(&mut servers, &mut traffic, &mut notes)?;
        if let Some(sentence) = self.tell_time(began.elapsed(), start, &traffic) {
            (self.observer)(Event::Said(&sentence));
            notes.push(sentence);
        }
        let has_counters = !self.metrics_path.is_empty()
            && !self.read(&servers[BASE]).is_empty()
            && !self.read(&servers[CHANGE]).is_empty();
        Ok((traffic, learnt, has_counters, notes))
    }

    /// Returns the load with its expected answers, and what was learned. The servers that were asked have ended.
    fn learnt(&self) -> Result<(Traffic, Learnt), ComparisonError> {
        let mut traffic = self.traffic.clone();
        self.begins("the servers start");
        let servers = self.start(triplet(0))?;
        let learnt = self.learn(&servers, &mut traffic)?;
        Ok((traffic, learnt))
    }

    /// Starts a server that is logged in.
    fn fresh(&self, index: usize) -> Result<Instance, ComparisonError> {
        let mut server = self.start_one(index)?;
        self.log_in(&mut server, index)?;
        Ok(server)
    }

    fn asked<'s>(&'s self, servers: &'s [Instance; 3], index: usize) -> Asked<'s> {
        Asked {
            who: NAMES[index],
            target: &servers[index].target,
            time_out: self.traffic.time_out,
            interrupt: self.interrupt,
        }
    }

    fn learn(
        &self,
        servers: &[Instance; 3],
        traffic: &mut Traffic,
    ) -> Result<Learnt, ComparisonError> {
        self.begins("the base's answers are learnt");
        let learnt = learn(&self.asked(servers, BASE), traffic, &self.how)?;
        for sentence in &learnt.advice {
            (self.observer)(Event::Said(sentence));
        }
        self.begins("the change's answers are compared");
        learnt.compare(&self.asked(servers, CHANGE))?;
        Ok(learnt)
    }

    /// Chooses the length of a slice for the percentiles that are reported. A slice has to hold enough answers, and to
    /// be longer than they take.
    fn fit(
        &self,
        servers: &mut [Instance; 3],
        traffic: &mut Traffic,
        notes: &mut Vec<String>,
    ) -> Result<(), ComparisonError> {
        let slices = SLICES as f64;
        let mut needed = traffic.duration;
        if let Some(paced) = &traffic.bystander {
            let seconds = answers_for(0.99) / (paced.per_second * slices);
            needed = needed.max(Duration::from_secs_f64(seconds));
        }
        let deciding = if self.deciding.key.starts_with("bystander") {
            None
        } else {
            self.deciding.quantile()
        };
        // If no percentile decides, a slice must hold enough answers for the median.
        let wanted = answers_for(deciding.unwrap_or(0.5));
        // A long latency lengthens slices only so far that there is time for three rounds.
        let in_time = self
            .at_most
            .div_f64(ROUNDS_AT_LEAST * SLICES_OF_A_ROUND * 2.0);
        let longest = match deciding {
            Some(_) => in_time.clamp(traffic.duration.min(LONGEST_SLICE), LONGEST_SLICE),
            None => LONGEST_SLICE,
        };
        self.begins("how long a slice must be");
        for index in [BASE, CHANGE] {
            let mut probe = Traffic {
                bystander: None,
                ..traffic.clone()
            };
            loop {
                let outcome = self.load(servers, index, &probe)?;
                settle(&servers[index]);
                let seen = self.latencies(&outcome, traffic);
                let (mut answers, mut is_bound) = (0.0, false);
                if let Some(seen) = seen {
                    answers = seen.count() as f64;
                    if let Some(quantile) = deciding
                        && let Some(latency) = seen.at(quantile)
                    {
                        is_bound = latency.is_lower_bound;
                        let long = Duration::from_secs_f64(latency.ms / 1e3 * 1.5);
                        needed = needed.max(long.min(longest));
                    }
                }
                if answers > 0.0 && !is_bound {
                    let seconds = wanted / (answers / probe.duration.as_secs_f64() * slices);
                    let seconds = Duration::try_from_secs_f64(seconds);
                    needed = needed.max(seconds.unwrap_or(Duration::MAX));
                }
                if answers > 0.0 && !is_bound || is_bound && probe.duration >= longest {
                    break;
                }
                if probe.duration >= longest {
                    return Err(ComparisonError::Invalid(format!(
                        "under load the {} answered nothing in {} s.",
                        NAMES[index],
                        figures::count(probe.duration.as_secs_f64())
                    )));
                }
                probe.duration = (probe.duration * 4).min(longest);
            }
        }
        if needed > LONGEST_SLICE {
            notes.push(format!(
                "a slice would have to last {} s for {}, more than {} s; the load is too small for it.",
                figures::count(needed.as_secs_f64().ceil()),
                self.deciding.label,
                LONGEST_SLICE.as_secs()
            ));
            needed = LONGEST_SLICE;
        } else if needed > traffic.duration {
            notes.push(format!(
                "slices last {} s, for a latency takes so many answers, and time for them.",
                figures::ratio(needed.as_secs_f64())
            ));
        }
        traffic.duration = needed;
        Ok(())
    }

    /// Returns the latencies that the deciding metric is about.
    fn latencies(&self, outcome: &TrafficOutcome, traffic: &Traffic) -> Option<Latencies> {
        for (index, route) in outcome.users.routes.iter().enumerate() {
            for (_, key) in PERCENTILES {
                if route_key(key, &traffic.routes[index].name) == self.deciding.key {
                    return Some(route.latency.clone());
                }
            }
        }
        outcome.users.all()
    }

    /// Returns a warning if there is no time for as many rounds as a verdict needs.
    fn tell_time(&self, elapsed: Duration, start: Duration, traffic: &Traffic) -> Option<String> {
        let slice = traffic.duration + traffic.warm_up.min(WARM_AGAIN) + SETTLE_LOOK;
        let round = start + traffic.warm_up * 3 + slice.mul_f64(SLICES_OF_A_ROUND);
        // No round begins once the time is over.
        let needed = elapsed + round.mul_f64(ROUNDS_AT_LEAST - 1.0);
        if needed <= self.at_most {
            return None;
        }
        Some(format!(
            "--at-most {} is too short for the three rounds that a verdict takes: with slices of {} s they take some {} s.",
            figures::ratio(self.at_most.as_secs_f64()),
            figures::ratio(traffic.duration.as_secs_f64()),
            figures::count(
                (elapsed + round.mul_f64(ROUNDS_AT_LEAST))
                    .as_secs_f64()
                    .ceil()
            )
        ))
    }

    /// Checks that both have the counters that are asked for.
    fn counters(&self, servers: &[Instance; 3]) -> Result<(), ComparisonError> {
        for counter in self.counters {
            for index in [BASE, CHANGE] {
                let at = self.metrics_at(&servers[index]);
                let found = get(at, self.metrics_path, self.traffic.time_out);
                let reason = match found {
                    Ok(_) if self.read(&servers[index]).contains_key(counter) => continue,
                    Ok(body) => format!("it has {}", names(&String::from_utf8_lossy(&body))),
                    Err(reason) => reason.to_string(),
                };
                return Err(ComparisonError::NoCounter(format!(
                    "the {} has no `{counter}` at {}: {reason}",
                    NAMES[index], self.metrics_path
                )));
            }
        }
        Ok(())
    }

    /// Adds the notes that the reader needs beside the verdict.
    fn note(&self, spoilt: &[Spoilt], shed: u32, rounds: &[Triplet], notes: &mut Vec<String>) {
        let (mut foreign, mut disturbed) = (0.0, 0);
        for one in spoilt {
            foreign = one.foreign.max(foreign);
            disturbed += u32::from(one.foreign > DISTURBED);
        }
        if foreign > DISTURBED {
            let counted = disturbed.saturating_sub(shed);
            notes.push(format!(
                "the machine was busy: other programs used up to {} of the servers' CPU time in a \
                 slice; {}.",
                figures::percent(foreign),
                match (shed, counted) {
                    (0, _) =>
                        "such rounds are counted, since there were hardly any others".to_owned(),
                    (1, 0) => "1 such round was left out".to_owned(),
                    (shed, 0) => format!("{shed} such rounds were left out"),
                    (shed, counted) => format!(
                        "{shed} of {} such rounds were left out, and the others count, since there were too few without",
                        shed + counted
                    ),
                }
            ));
        }
        if let (Side::Running(_), _) | (_, Side::Running(_)) = (&self.base, &self.change) {
            notes.push(
                "the servers ran already: they were neither restarted nor pinned, and their CPU \
                 time and memory are unknown."
                    .to_owned(),
            );
        } else if self.placement.server.is_empty() {
            notes.push("servers and generator shared their CPUs.".to_owned());
        }
        if spoilt.iter().any(|one| one.is_unsettled) {
            notes.push(format!(
                "a server was still busy {} s after its load; what was left ran during the next \
                 one's.",
                SETTLE_AT_MOST.as_secs()
            ));
        }
        if let Arrivals::Closed { think } = self.traffic.arrivals
            && self.deciding.key == REQUESTS_PER_SECOND
            && !think.is_zero()
        {
            let most_asked = f64::from(self.traffic.users) / think.as_secs_f64();
            // Every round has this figure.
            let mut answered = 0.0;
            for round in rounds {
                answered += round.base.get(REQUESTS_PER_SECOND).unwrap_or(0.0);
            }
            if answered / rounds.len().max(1) as f64 > 0.9 * most_asked {
                notes.push(format!(
                    "{} who think for {} s ask at most {} times a second, which the base almost \
                     answers: the users are the limit. Take more of them, less think time, or \
                     --metric p50_ms.",
                    figures::things(self.traffic.users.into(), "user"),
                    figures::count(think.as_secs_f64()),
                    figures::count(most_asked.round())
                ));
            }
        }
        let lacks_bystander = |round: &Triplet| round.base.get(BYSTANDER_P99).is_none();
        if self.traffic.bystander.is_some() && rounds.iter().any(lacks_bystander) {
            notes.push(format!(
                "the bystander got fewer than {} answers in a round, too few for its 99th percentile.",
                figures::count(answers_for(0.99))
            ));
        }
    }
}

/// Returns the largest share of its CPU time that the generator used in a slice; `None` if no slice tells.
fn generator_cpu(spoilt: &[Spoilt]) -> Option<f64> {
    let mut most = None;
    for one in spoilt {
        if let Some(share) = one.generator_cpu {
            most = Some(share.max(most.unwrap_or(0.0)));
        }
    }
    most
}

/// Returns the verdict on a run whose generator was the limit.
fn generator_bound(spoilt: &[Spoilt]) -> Verdict<Speed> {
    let share = generator_cpu(spoilt);
    Verdict {
        kind: Speed::Invalid,
        is_good: false,
        reason: format!(
            "generator-bound: the generator used {}, so the figures describe it and not the service; ask for fewer users or some think time, and compare a \
             latency or {CPU_MS}.",
            match share {
                Some(share) if share < GeneratorFacts::BOUND => format!(
                    "all of its CPU time that other programs left it, {}",
                    figures::percent(share)
                ),
                Some(share) => format!("{} of its CPU time", figures::percent(share)),
                None => "all of its CPU time".to_owned(),
            }
        ),
    }
}
