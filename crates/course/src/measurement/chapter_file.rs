//! `chapter.toml`: everything that makes one chapter different from another, as data.

mod error;
mod extra;
mod scenario;

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::{Deserialize, Serialize};
use statistics::metric::Unit;
use statistics::profile::ProfileKind;
use statistics::{FIRST_LOOK, Looks};

pub use self::{
    error::ChapterFileError,
    extra::{Baselines, Extra},
    scenario::{RetryRule, Scenario},
};
use crate::measurement::{
    checked,
    claim::{Claims, Role},
    law::Law,
    load::Exchange,
};
use engine::traffic::{Paced, Spacing, Traffic};

/// Counter on `/metrics`: times that worker threads of the service's runtime went to sleep.
pub const WORKER_PARKS: &str = "tokio_worker_parks";
/// Arguments that configure the lab's own upstream. They mean nothing to another upstream.
const OF_THE_EMBEDDED_UPSTREAM: [&str; 2] = ["--tls", "--upstream-latency-ms"];

/// Status by which a service says that it cannot serve a request now.
const SHED: u16 = 503;

/// The whole file. Durations are seconds unless a key says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChapterFile {
    /// The chapter's number.
    #[serde(deserialize_with = "checked::some")]
    pub chapter: u32,
    /// Its cargo package.
    #[serde(deserialize_with = "checked::words")]
    pub package: String,
    /// Its title, as the book prints it.
    #[serde(deserialize_with = "checked::words")]
    pub title: String,
    /// Minutes that a reader needs for all pages of the chapter.
    #[serde(deserialize_with = "checked::some")]
    pub minutes: u32,
    /// Direction in which noise pushes the chapter's effects.
    pub noise: Noise,
    /// Answers to the chapter's predictions, which no earlier page of the book may give away. A record leaves
    /// them out.
    #[serde(default, skip_serializing)]
    pub answers: Vec<String>,
    /// `true` if its services take `--database`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_database: bool,
    /// The request and its right answer.
    pub exchange: Exchange,
    /// The other request, of scenarios with a `write_share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Exchange>,
    /// The request of bystanders, of scenarios with a `bystanders_per_second`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bystander: Option<Exchange>,
    /// `true` if server and generator share all CPUs: for a claim about how many of them the
    /// server uses. The generator must then cost next to nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_cpus: bool,
    /// Largest median latency that the scripts of k6 and Locust accept, as a multiple of the latency without
    /// other users. For work whose length depends on the machine.
    #[serde(
        default,
        deserialize_with = "checked::positive_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub times_alone: Option<f64>,
    /// Load that all three generators send unless told otherwise.
    pub load: Scenario,
    /// Law that predicts what the fix can gain.
    pub law: Law,
    /// The chapter's claims.
    pub claims: Claims,
    /// Further figures that the server counts, shown beside the claims and in the chapter's table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secondary: Vec<Secondary>,
    /// Measurements that this chapter alone has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<Extra>,
    /// The chapter's table of variants and scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<Matrix>,
    /// Rules for grading the learner's edit.
    pub check: Check,
    /// Requirements on the machine and the run, without which nothing can be judged.
    pub conditions: Conditions,
    /// Number of rounds, and lengths of the profiles beside them.
    pub rounds: Rounds,
    /// Named loads.
    pub scenarios: BTreeMap<String, Scenario>,
    /// The profile whose picture shows the fault in the problem, and no fault in the solution.
    #[serde(default = "usually_await", skip_serializing_if = "is_await")]
    pub shown_by: ProfileKind,
    /// Profiles that the book's pages show as pictures without zoom. A record leaves them out.
    #[serde(default, skip_serializing)]
    pub stills: Vec<Still>,
    /// The commits of the step-by-step branch, in order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Figures published elsewhere.
    #[serde(default)]
    pub reference: Vec<Reference>,
}

/// Direction in which a busy machine pushes a measured gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Noise {
    /// A fix looks worse than it is, so that a measured gain is a lower bound.
    Down,
    /// The problem suffers more than its fix, so that a fix looks better than it is.
    Up,
    /// One or the other, by what the other programs hit.
    Both,
}

impl Noise {
    /// Formats a clause on how noise may flatter a fix; `None` if it cannot.
    pub fn flatters(self) -> Option<&'static str> {
        match self {
            Self::Down => None,
            Self::Up => Some("which makes the gain look larger"),
            Self::Both => Some("which can make the gain look larger or smaller"),
        }
    }
}

/// A table of variants (rows) and scenarios (columns), which `capture` measures. It shows more than the one
/// comparison that the chapter claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Title of its figures, for the table's first cell.
    pub title: String,
    /// The rows.
    pub variants: Vec<String>,
    /// The columns: keys of `[scenarios]`.
    pub scenarios: Vec<String>,
}

/// A figure that the server counts and that no claim is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secondary {
    /// Name of the count, as reports print it.
    #[serde(deserialize_with = "checked::words")]
    pub name: String,
    /// The name under which the server's `/metrics` carries it.
    #[serde(deserialize_with = "checked::words")]
    pub quantity: String,
    /// Its unit.
    #[serde(default, skip_serializing_if = "Unit::is_count")]
    pub unit: Unit,
}

impl Secondary {
    /// Returns the name of its single figure in the book's `values.md`, without the variant.
    pub fn key(&self) -> String {
        self.quantity.replace('_', "-")
    }
}

/// Rules for grading the learner's edit, beside the claims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The scenario in which it is graded: a key of `[scenarios]`.
    pub scenario: String,
    /// Recorded seconds of a round, if a grade needs less than a proof.
    #[serde(
        default,
        deserialize_with = "checked::some_seconds_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub duration_s: Option<f64>,
    /// The effect that an exercise must reach, as a ratio to the problem's. An honest fix may gain less than
    /// the chapter's, but none is worse than the problem. A value below 1 allows for the noise of one round.
    /// The value is above 1 where every fix gains many times as much. An edit that raises the root cause's
    /// count but leaves the fault in place does not reach it.
    #[serde(default = "not_worse", deserialize_with = "checked::positive")]
    pub effect_at_least: f64,
    /// Meaning of a missed bound on the root cause: a clause for the grade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
}

fn not_worse() -> f64 {
    0.8
}

/// Requirements on the machine and the run, without which the claims cannot be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// Fewest pairs of rounds, problem and fix, before anything is decided.
    #[serde(deserialize_with = "checked::some")]
    pub pairs_at_least: u32,
    /// Fewest CPUs that the run must be able to use.
    #[serde(default = "one")]
    pub cpus_at_least: u32,
    /// Fewest NUMA nodes that the machine must have.
    #[serde(default = "one")]
    pub numa_nodes_at_least: u32,
}

fn one() -> u32 {
    1
}

/// Number of rounds of a proof, and lengths of its profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rounds {
    /// Most pairs of rounds, problem and fix, in the effect's scenario, each with a round of the fix
    /// again. A proof ends sooner when it is decided.
    #[serde(deserialize_with = "checked::some")]
    pub pairs: u32,
    /// Seconds of CPU profile of each variant, under the effect's load.
    #[serde(deserialize_with = "checked::seconds")]
    pub cpu_profile_s: f64,
    /// Its samples a second of CPU time; at most what the kernel's tick gives, often 250.
    #[serde(default = "samples_a_second", skip_serializing_if = "is_usual")]
    pub cpu_profile_hz: u32,
    /// Seconds of await profile of each variant.
    #[serde(deserialize_with = "checked::seconds")]
    pub await_profile_s: f64,
    /// The scenario of the await profiles; the effect's unless it is named. A load that saturates
    /// the CPUs would mix waiting for them into the picture.
    pub await_profile_scenario: Option<String>,
}

fn samples_a_second() -> u32 {
    99
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_usual(value: &u32) -> bool {
    *value == samples_a_second()
}

fn usually_await() -> ProfileKind {
    ProfileKind::Await
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_await(value: &ProfileKind) -> bool {
    *value == ProfileKind::Await
}

/// A profile that the book's pages show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Still {
    /// The variant that was profiled.
    #[serde(deserialize_with = "checked::words")]
    pub variant: String,
    /// The instrument.
    pub kind: ProfileKind,
    /// Beginnings of the names of boxes that a number in the picture points at.
    #[serde(default)]
    pub pointed: Vec<String>,
}

/// One commit of the step-by-step branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The commit's subject.
    #[serde(deserialize_with = "checked::words")]
    pub name: String,
    /// The variant whose code the commit carries.
    #[serde(deserialize_with = "checked::words")]
    pub variant: String,
    /// Reason for the step, for the commit's message.
    #[serde(deserialize_with = "checked::words")]
    pub why: String,
}

/// A pointer to a figure in `reference/seed-figures.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The table in that file.
    pub source: String,
    /// The key in that table.
    pub figure: String,
    /// Name of the figure, as reports print it.
    pub label: String,
    /// Caveat before comparing it with one's own.
    pub caveat: Option<String>,
}

impl ChapterFile {
    /// Reads and checks a file. Reports name it as `shown_as`, because they leave this machine and must not
    /// carry its paths. `cpus` is the machine's number of CPUs, because some scenarios count users per CPU.
    ///
    /// # Errors
    ///
    /// Returns one sentence with file, line and remedy. The file may be unreadable or not TOML, have a key
    /// too many or too few, or say something impossible.
    pub fn read(path: &Path, shown_as: &str, cpus: u32) -> Result<Self, ChapterFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ChapterFileError::unreadable(shown_as, &error))?;
        Self::parse(&text, shown_as, cpus)
    }

    /// Reads and checks the text of a file, like [`ChapterFile::read`].
    ///
    /// # Errors
    ///
    /// Fails like [`ChapterFile::read`], but never because of the file system.
    pub fn parse(text: &str, shown_as: &str, cpus: u32) -> Result<Self, ChapterFileError> {
        let mut file: Self = toml::from_str(text)
            .map_err(|error| ChapterFileError::refused(text, shown_as, &error))?;
        for scenario in file.scenarios.values_mut().chain([&mut file.load]) {
            scenario.fit_to(cpus);
        }
        match file.nameless() {
            None => Ok(file),
            Some(what) => Err(ChapterFileError::placeless(shown_as, &what)),
        }
    }

    /// Returns the first contradiction between parts of the file, such as the name of a scenario that does
    /// not exist.
    fn nameless(&self) -> Option<String> {
        for (key, name) in self.named_scenarios() {
            if self.scenario(name).is_none() {
                let known: Vec<&str> = self.scenarios.keys().map(String::as_str).collect();
                return Some(format!(
                    "{key}: there is no scenario `{name}`; add [scenarios.{name}] or name one of: {}",
                    known.join(", ")
                ));
            }
        }
        for (place, extra) in self.extras.iter().enumerate() {
            let kind = std::mem::discriminant(extra);
            let mut before = self.extras[..place].iter();
            if before.any(|one| std::mem::discriminant(one) == kind) {
                return Some("extras: two of them are of one kind; keep one".to_owned());
            }
        }
        if self.rounds.pairs < self.conditions.pairs_at_least {
            return Some(format!(
                "rounds.pairs: {} pairs of rounds can never meet conditions.pairs_at_least = {}; plan \
                 more pairs or ask for fewer",
                self.rounds.pairs, self.conditions.pairs_at_least
            ));
        }
        for (name, scenario) in &self.scenarios {
            if let Some(what) = self.flaw_of(name, scenario) {
                return Some(what);
            }
        }
        self.flaw_of("load", &self.load)
    }

    /// Returns the scenarios that the file refers to, each with the key that does.
    fn named_scenarios(&self) -> Vec<(&'static str, &str)> {
        let mut named = Vec::new();
        for claim in self.claims.iter() {
            named.push(("claims", claim.scenario()));
        }
        named.push(("check.scenario", self.check.scenario.as_str()));
        if let Some(name) = self.law.scenario() {
            named.push(("law", name));
        }
        for extra in &self.extras {
            named.push(extra.scenario());
        }
        if let Some(name) = &self.rounds.await_profile_scenario {
            named.push(("rounds.await_profile_scenario", name));
        }
        if let Some(matrix) = &self.matrix {
            for name in &matrix.scenarios {
                named.push(("matrix.scenarios", name));
            }
        }
        named
    }

    /// Describes a scenario that cannot be run.
    fn flaw_of(&self, name: &str, scenario: &Scenario) -> Option<String> {
        if scenario.users == 0 {
            return Some(format!(
                "{name}: it has no users; say how many `users` there are, or how many `users_per_cpu`"
            ));
        }
        if let Some(what) = scenario.contradiction() {
            return Some(format!("{name}.{what}"));
        }
        for (key, table, value, is_there) in [
            (
                "write_share",
                "write",
                scenario.write_share,
                self.write.is_some(),
            ),
            (
                "bystanders_per_second",
                "bystander",
                scenario.bystanders_per_second,
                self.bystander.is_some(),
            ),
        ] {
            if value > 0.0 && !is_there {
                return Some(format!(
                    "{name}.{key}: there is no [{table}] that says what to send; add it"
                ));
            }
        }
        None
    }

    /// Returns the scenario in which connections are counted over time.
    pub fn connections(&self) -> Option<&str> {
        self.extras.iter().find_map(|extra| match extra {
            Extra::Connections { scenario } => Some(scenario.as_str()),
            _ => None,
        })
    }

    /// Returns the scenario in which the queue is counted over time.
    pub fn queue(&self) -> Option<&str> {
        self.extras.iter().find_map(|extra| match extra {
            Extra::Queue { scenario } => Some(scenario.as_str()),
            _ => None,
        })
    }

    /// Returns the other programs to measure.
    pub fn baselines(&self) -> Option<&Baselines> {
        self.extras.iter().find_map(|extra| match extra {
            Extra::Baselines(baselines) => Some(baselines),
            _ => None,
        })
    }

    /// Returns the seconds of each heap profile and their scenario.
    pub fn heap_profiles(&self) -> Option<(f64, &str)> {
        self.extras.iter().find_map(|extra| match extra {
            Extra::Heap { seconds, scenario } => Some((*seconds, scenario.as_str())),
            _ => None,
        })
    }

    /// Returns whether the requests of some scenario come at random moments.
    pub fn comes_at_random(&self) -> bool {
        let mut scenarios = self.scenarios.values();
        scenarios.any(|scenario| scenario.per_second > 0.0)
    }

    /// Returns the named scenario. [`ChapterFile::parse`] checks that every scenario that the file refers to
    /// exists.
    pub fn scenario(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.get(name)
    }

    /// Returns the scenario in which the effect is judged. A record put together by hand may lack it; then
    /// [`ChapterFile::load`] stands in, and the verdict says so.
    pub fn effect_scenario(&self) -> &Scenario {
        self.scenario(self.claims.effect().scenario())
            .unwrap_or(&self.load)
    }

    /// Simultaneous users in the named scenario.
    pub fn users(&self, scenario: &str) -> u32 {
        self.scenario(scenario).unwrap_or(&self.load).users
    }

    /// Returns the load of a scenario, made of the chapter's requests. The first route is the exchange, the
    /// second the write.
    pub fn load_of(&self, scenario: &Scenario) -> Traffic {
        let share = scenario.write_share;
        let writes = self.write.as_ref().filter(|_| share > 0.0);
        let mut own = self.exchange.route(1.0 - share);
        if scenario.give_up_after_s.is_some() {
            for request in &mut own.requests {
                request.expected.allowed = [SHED].into();
            }
        }
        let per_second = scenario.bystanders_per_second;
        let bystander = self.bystander.as_ref().filter(|_| per_second > 0.0);
        Traffic {
            bystander: bystander.map(|exchange| Paced {
                route: exchange.route(1.0),
                per_second,
                spacing: Spacing::Even,
            }),
            arrivals: scenario.arrivals(),
            phases: scenario.phases.as_slice().into(),
            clients: scenario.clients(),
            keep_alive: scenario.keep_alive,
            warm_up: Duration::from_secs_f64(scenario.warm_up_s),
            duration: Duration::from_secs_f64(scenario.duration_s),
            time_out: Duration::from_secs_f64(scenario.time_out_s),
            ..Traffic::closed(
                [own]
                    .into_iter()
                    .chain(writes.map(|writes| writes.route(share))),
                scenario.users,
            )
        }
    }

    /// Returns the looks at which a proof checks whether it is decided.
    pub fn looks(&self) -> Looks {
        Looks::of_proof(self.rounds.pairs)
    }

    /// Returns the counters on `/metrics` that a round keeps.
    pub fn metrics(&self) -> Vec<String> {
        let mut counters = Vec::new();
        for claim in self.claims.iter() {
            counters.extend(claim.quantity.counter());
        }
        counters.extend(self.law.metrics());
        counters.push(WORKER_PARKS);
        for one in &self.secondary {
            counters.push(&one.quantity);
        }
        counters.into_iter().map(str::to_owned).collect()
    }

    /// Returns the further scenarios, beside the effect's, in which something is claimed, each with its
    /// number of pairs of rounds. A judged prediction needs enough pairs for an interval, and one that is
    /// only reported needs one pair. Other claims are judged by the worse of two pairs. Root causes are left
    /// out, because one round of each variant is enough for them.
    pub fn further_scenarios(&self) -> Vec<(&str, u32)> {
        let own = self.claims.effect().scenario();
        let mut further: Vec<(&str, u32)> = Vec::new();
        for claim in self.claims.iter() {
            let name = claim.scenario();
            let pairs = match (claim.role, claim.within) {
                (Role::Prediction, None) => 1,
                (Role::Prediction, Some(_)) => FIRST_LOOK,
                _ => 2,
            };
            if name == own || claim.role == Role::RootCause || !claim.is_proved() {
                continue;
            }
            match further.iter_mut().find(|(known, _)| *known == name) {
                Some((_, most)) => *most = pairs.max(*most),
                None => further.push((name, pairs)),
            }
        }
        further
    }

    /// Returns the name of the scenario in which profiles of this kind are taken.
    pub fn profile_scenario(&self, kind: ProfileKind) -> &str {
        let own = match kind {
            ProfileKind::Await => self.rounds.await_profile_scenario.as_deref(),
            ProfileKind::Heap => self.heap_profiles().map(|(_, scenario)| scenario),
            ProfileKind::Cpu => None,
        };
        match own {
            Some(scenario) => scenario,
            None => self.claims.effect().scenario(),
        }
    }

    /// Removes the claims in scenarios that only the lab's own upstream can serve, for services that call
    /// another one. The chapter's own effect and root cause stay.
    #[must_use]
    pub fn with_another_upstream(mut self) -> Self {
        let mut ours = Vec::new();
        for (name, scenario) in &self.scenarios {
            for argument in &scenario.arguments {
                if OF_THE_EMBEDDED_UPSTREAM.contains(&argument.as_str()) {
                    ours.push(name.as_str());
                }
            }
        }
        self.claims = self.claims.only(|claim| !ours.contains(&claim.scenario()));
        self
    }
}
