//! `chapter.toml`: everything that makes one chapter different from another, as data.

mod damage;
mod meaning;

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

pub use self::damage::ChapterFileError;
use crate::{
    claim::{Check, Conditions, Effect, Mechanism, NearTheBound},
    law::{Law, Prediction},
    load::{Arrivals, Exchange, Load},
    record::ProfileKind,
};

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
    /// What all three generators send unless told otherwise.
    pub load: Setting,
    /// What the cure can gain.
    pub law: Law,
    /// The count that shows the fault.
    pub mechanism: Mechanism,
    /// The gain.
    pub effect: Effect,
    /// How near the solution comes to the law's bound.
    #[serde(default)]
    pub bound: Option<NearTheBound>,
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

/// Users and times: with the chapter's [`Exchange`], a [`Load`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Simultaneous users.
    pub users: u32,
    /// Pause between an answer and the user's next request, in seconds.
    #[serde(default)]
    pub think_s: f64,
    /// Whether a user keeps its connection.
    #[serde(default = "yes")]
    pub keep_alive: bool,
    /// Loaded but not recorded, in seconds.
    pub warm_up_s: f64,
    /// Recorded, in seconds.
    pub duration_s: f64,
    /// A request without an answer for so many seconds is an error. The
    /// problem's users wait for `users` calls one after another: allow that.
    #[serde(default = "minute")]
    pub time_out_s: f64,
}

fn yes() -> bool {
    true
}

fn minute() -> f64 {
    60.0
}

impl Setting {
    /// The load that this setting makes of `exchange`.
    pub fn load(&self, exchange: &Exchange) -> Load {
        Load {
            exchange: exchange.clone(),
            users: self.users,
            arrivals: Arrivals::Closed {
                think: self.think(),
            },
            keep_alive: self.keep_alive,
            warm_up: Duration::from_secs_f64(self.warm_up_s),
            duration: Duration::from_secs_f64(self.duration_s),
            time_out: Duration::from_secs_f64(self.time_out_s),
        }
    }

    /// The pause between an answer and the user's next request.
    pub fn think(&self) -> Duration {
        Duration::from_secs_f64(self.think_s)
    }

    /// Warm-up and recorded time together, in seconds.
    pub fn whole_s(&self) -> f64 {
        self.warm_up_s + self.duration_s
    }
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
    /// Seconds of await profile of each variant.
    pub await_profile_s: f64,
    /// The setting of the await profiles; the effect's unless it is named. A load that saturates
    /// the processors would mix waiting for them into the picture.
    #[serde(default)]
    pub await_profile_setting: Option<String>,
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
    /// travel and a path on this machine must not travel with them.
    ///
    /// # Errors
    ///
    /// One sentence with file, line, key and remedy when it cannot be read, is
    /// not TOML, has a key too many or too few, or says something impossible.
    pub fn read(path: &Path, shown_as: &str) -> Result<Self, ChapterFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ChapterFileError::unreadable(shown_as, &error))?;
        Self::parse(&text, shown_as)
    }

    /// As [`ChapterFile::read`], from text.
    ///
    /// # Errors
    ///
    /// As [`ChapterFile::read`].
    pub fn parse(text: &str, shown_as: &str) -> Result<Self, ChapterFileError> {
        let file: Self = toml::from_str(text)
            .map_err(|error| ChapterFileError::of_shape(text, shown_as, &error))?;
        meaning::check(&file)
            .map_err(|wrong| ChapterFileError::of_meaning(text, shown_as, wrong))?;
        Ok(file)
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

    /// The name of the setting that profiles of this kind are taken in.
    pub fn profile_setting(&self, kind: ProfileKind) -> &str {
        match (kind, &self.rounds.await_profile_setting) {
            (ProfileKind::Await, Some(setting)) => setting,
            _ => &self.effect.setting,
        }
    }

    /// What the law predicts in the named setting.
    pub fn prediction(&self, setting: &str) -> Option<Prediction> {
        let setting = self.setting(setting)?;
        Some(self.law.predicted(setting.users, setting.think()))
    }

    /// Seconds of load that a whole proof takes, without starts and drawing.
    pub fn planned_s(&self) -> f64 {
        let whole = |name: &str| self.setting(name).map_or(0.0, Setting::whole_s);
        let warm_up = self.effect_setting().warm_up_s;
        f64::from(2 * (self.rounds.equal_pairs + self.rounds.pairs)) * whole(&self.effect.setting)
            + self
                .bound
                .as_ref()
                .map_or(0.0, |bound| 2.0 * whole(&bound.setting))
            + 2.0 * (2.0 * warm_up + self.rounds.cpu_profile_s + self.rounds.await_profile_s)
    }
}
