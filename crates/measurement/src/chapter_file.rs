//! `chapter.toml`: everything that makes one chapter different from another, as data.

mod beside;
mod damage;
mod meaning;
mod setting;

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

pub use self::{
    beside::{Beside, Unit},
    damage::ChapterFileError,
    setting::Setting,
};
use crate::{
    claim::{Check, Conditions, Effect, Mechanism, NearTheBound, Point},
    instructions::Counting,
    law::Law,
    load::{Arrivals, Exchange, Load, Probe, Writes},
    price::Price,
    profile::ProfileKind,
    utilisation::Utilised,
};

/// The counter of calls to the stand-in database.
pub const DATABASE_CALLS: &str = "database_calls_total";
/// The processor time that went into the work itself, in seconds.
pub const WORK_CPU: &str = "work_cpu_seconds_total";
/// How often threads of the service's runtime went to sleep.
pub const WORKER_PARKS: &str = "tokio_worker_parks";
/// Arguments that ask the lab's own upstream for something: another one knows nothing of them.
const OF_THE_EMBEDDED_UPSTREAM: [&str; 2] = ["--tls", "--upstream-latency-ms"];

/// The whole file. Durations are seconds unless a key says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChapterFile {
    /// The chapter's number.
    pub chapter: u32,
    /// Its cargo package.
    pub package: String,
    /// Its title, as the book prints it.
    pub title: String,
    /// How long a reader needs, in minutes.
    pub minutes: u32,
    /// The request and its right answer.
    pub exchange: Exchange,
    /// The other request, of settings with a `write_share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Exchange>,
    /// The request of everybody else, of settings with a `probe_per_second`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Exchange>,
    /// What the server is asked once after the load when an exercise is graded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub afterwards: Option<Afterwards>,
    /// Whether server and generator share all processors: for a claim about how many of them the
    /// server uses. The generator must then cost next to nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_processors: bool,
    /// How many times as long as an answer with nobody else there the median may be, by the scripts of
    /// k6 and Locust: for work whose length depends on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_alone: Option<f64>,
    /// What all three generators send unless told otherwise.
    pub load: Setting,
    /// What the cure can gain.
    pub law: Law,
    /// The count that shows the fault.
    pub mechanism: Mechanism,
    /// What else the server counts, shown beside the mechanism and in the chapter's table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// The gain.
    pub effect: Effect,
    /// How near the solution comes to the law's bound.
    #[serde(default)]
    pub bound: Option<NearTheBound>,
    /// How near it comes to the utilisation law's, for the processor time that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilised: Option<Utilised>,
    /// What the solution may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Connections over time, as a plot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesOf>,
    /// Other settings in which law and measurement are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
    /// Other programs that do the same work, measured beside the solution when a capture is recorded
    /// and when a proof runs against nginx.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yardsticks: Option<Yardsticks>,
    /// The chapter's table of variants and settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<Matrix>,
    /// Instructions to count when a capture is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Counting>,
    /// What the learner's edit must reach.
    pub check: Check,
    /// When a run can be judged at all.
    pub conditions: Conditions,
    /// How many rounds, and the profiles beside them.
    pub rounds: Rounds,
    /// Named loads.
    pub settings: BTreeMap<String, Setting>,
    /// The commits of the step-by-step branch, in order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Figures published elsewhere.
    #[serde(default)]
    pub reference: Vec<Reference>,
}

/// A question whose answer shows what the load has left behind. It has no answer here: the
/// problem's is the right one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Afterwards {
    /// Path and query of a `GET`.
    pub path: String,
}

/// Other programs that do what the chapter's service does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Yardsticks {
    /// The setting: a key of `[settings]`.
    pub setting: String,
    /// Folder of a Go program within the chapter's: it takes `-port` and `-upstream`, and prints a
    /// line with its address.
    pub go: String,
    /// Where nginx, by the chapter's `nginx.conf`, answers as the upstream.
    pub nginx_upstream: String,
    /// Where the same nginx answers as a proxy before it.
    pub nginx_proxy: String,
}

/// Accepted and finished connections over time, of problem and solution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesOf {
    /// The setting: a key of `[settings]`.
    pub setting: String,
}

/// A table of variants (rows) and settings (columns), which `capture` measures: more than the one
/// comparison that the chapter claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// What its figures are, for the table's first cell.
    pub title: String,
    /// The rows.
    pub variants: Vec<String>,
    /// The columns: keys of `[settings]`.
    pub settings: Vec<String>,
}

/// How many rounds a proof takes, and how long its profiles last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rounds {
    /// Pairs of rounds on two equal servers, before anything else: the noise floor.
    pub equal_pairs: u32,
    /// Pairs of rounds, problem and solution in turn (ABBA), in the effect's setting.
    pub pairs: u32,
    /// Seconds of CPU profile of each variant, under the effect's load.
    pub cpu_profile_s: f64,
    /// Its samples a second of processor time; at most what the kernel's tick gives, often 250.
    #[serde(default = "samples_a_second", skip_serializing_if = "is_usual")]
    pub cpu_profile_hz: u32,
    /// Seconds of await profile of each variant.
    pub await_profile_s: f64,
    /// Seconds of heap profile of each variant when a capture is recorded; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_profile_s: Option<f64>,
    /// The setting of the heap profiles; the effect's unless it is named. dhat makes every
    /// allocation some microseconds longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_profile_setting: Option<String>,
    /// The setting of the await profiles; the effect's unless it is named. A load that saturates
    /// the processors would mix waiting for them into the picture.
    #[serde(default)]
    pub await_profile_setting: Option<String>,
}

fn samples_a_second() -> u32 {
    99
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_usual(value: &u32) -> bool {
    *value == samples_a_second()
}

/// One commit of the step-by-step branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The commit's subject.
    pub name: String,
    /// The variant whose code the commit carries.
    pub variant: String,
    /// Why one does this, for the commit's message.
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
    /// What the figure is, as reports print it.
    pub label: String,
    /// What to know before comparing it with one's own.
    #[serde(default)]
    pub caveat: Option<String>,
}

impl ChapterFile {
    /// Reads and checks a file. Reports name it as `shown_as`, because figures
    /// travel and a path on this machine must not travel with them. `cpus` are those of the machine,
    /// by which some settings count their users.
    ///
    /// # Errors
    ///
    /// One sentence with file, line, key and remedy when it cannot be read, is
    /// not TOML, has a key too many or too few, or says something impossible.
    pub fn read(path: &Path, shown_as: &str, cpus: u32) -> Result<Self, ChapterFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ChapterFileError::unreadable(shown_as, &error))?;
        Self::parse(&text, shown_as, cpus)
    }

    /// As [`ChapterFile::read`], from text.
    ///
    /// # Errors
    ///
    /// As [`ChapterFile::read`].
    pub fn parse(text: &str, shown_as: &str, cpus: u32) -> Result<Self, ChapterFileError> {
        let mut file: Self = toml::from_str(text)
            .map_err(|error| ChapterFileError::of_shape(text, shown_as, &error))?;
        file.fit_to(cpus);
        meaning::check(&file)
            .map_err(|wrong| ChapterFileError::of_meaning(text, shown_as, wrong))?;
        Ok(file)
    }

    /// Fixes what depends on the number of processors: how many users some settings have.
    fn fit_to(&mut self, processors: u32) {
        let settings = self.settings.values_mut();
        for setting in settings.chain([&mut self.load]) {
            setting.fit_to(processors);
        }
    }

    /// The named setting. Those that the file itself names are always there:
    /// [`ChapterFile::parse`] has looked.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.get(name)
    }

    /// The setting in which the effect is judged. A record put together by hand
    /// may lack it; then [`ChapterFile::load`] stands in, and the verdict says so.
    pub fn effect_setting(&self) -> &Setting {
        self.setting(&self.effect.setting).unwrap_or(&self.load)
    }

    /// The load that a setting makes of the chapter's requests.
    pub fn load_of(&self, setting: &Setting) -> Load {
        let writes = self.write.clone().filter(|_| setting.write_share > 0.0);
        let probe = self
            .probe
            .clone()
            .filter(|_| setting.probe_per_second > 0.0);
        Load {
            exchange: self.exchange.clone(),
            writes: writes.map(|exchange| Writes {
                exchange,
                share: setting.write_share,
            }),
            probe: probe.map(|exchange| Probe {
                exchange,
                per_second: setting.probe_per_second,
            }),
            users: setting.users,
            arrivals: Arrivals::Closed {
                think: setting.think(),
            },
            keep_alive: setting.keep_alive,
            warm_up: Duration::from_secs_f64(setting.warm_up_s),
            duration: Duration::from_secs_f64(setting.duration_s),
            time_out: Duration::from_secs_f64(setting.time_out_s),
        }
    }

    /// The counters on `/metrics` that a round keeps.
    pub fn metrics(&self) -> Vec<String> {
        let mut metrics = vec![self.mechanism.metric.clone()];
        if self.utilised.is_some() {
            metrics.push(WORK_CPU.to_owned());
        }
        metrics.extend(self.law.metrics().iter().map(|&metric| metric.to_owned()));
        if matches!(self.law, Law::SetUp(_)) {
            metrics.push(WORKER_PARKS.to_owned());
        }
        metrics.extend(self.beside.iter().map(|beside| beside.metric.clone()));
        let limits = self.price.iter().flat_map(|price| &price.limits);
        metrics.extend(limits.map(|limit| limit.metric.clone()));
        metrics
    }

    /// The counter that every answer must have raised; `None` where an answer needs no call.
    pub fn calls_metric(&self) -> Option<&str> {
        let asks_database = self.law.shortest_answer_ms().is_some();
        let own = self.check.calls.as_deref();
        own.or_else(|| asks_database.then_some(DATABASE_CALLS))
    }

    /// The name of the setting that the mechanism is counted in; the effect's unless it has one.
    pub fn mechanism_setting(&self) -> &str {
        let own = self.mechanism.setting.as_deref();
        own.unwrap_or(&self.effect.setting)
    }

    /// Simultaneous users while the mechanism is counted.
    pub fn mechanism_users(&self) -> u32 {
        self.setting(self.mechanism_setting())
            .map_or(self.load.users, |setting| setting.users)
    }

    /// The name of the setting that profiles of this kind are taken in.
    pub fn profile_setting(&self, kind: ProfileKind) -> &str {
        let own = match kind {
            ProfileKind::Await => &self.rounds.await_profile_setting,
            ProfileKind::Heap => &self.rounds.heap_profile_setting,
            ProfileKind::Cpu => &None,
        };
        own.as_ref().unwrap_or(&self.effect.setting)
    }

    /// The same claims for services that call another upstream than the lab's: without the points
    /// that only the lab's can serve.
    #[must_use]
    pub fn with_another_upstream(mut self) -> Self {
        let settings = &self.settings;
        let any_can = |name: &str| {
            let arguments = settings.get(name).map(|setting| &setting.arguments);
            let asks = |argument: &String| OF_THE_EMBEDDED_UPSTREAM.contains(&argument.as_str());
            !arguments.is_some_and(|arguments| arguments.iter().any(asks))
        };
        self.points.retain(|point| any_can(&point.setting));
        self
    }
}
