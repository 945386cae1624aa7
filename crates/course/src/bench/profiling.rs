//! Profiles of a server under load, taken in rounds of their own.

use std::time::{Duration, Instant};

use crate::analysis::heap::{self, HeapProfile};
use crate::bench::rounds::{Bench, RunError};
use crate::bench::server::{Server, ServerError};
use children::Interrupt;
use drawing::folded;
use drawing::profile::Profile;
use engine::load::GeneratorError;
use engine::load::ask::Unanswered;
use statistics::figures;
use statistics::profile::ProfileKind;

/// A profile and its data in every format that its kind has.
#[derive(Debug, Clone)]
pub struct ProfileData {
    /// Facts about it.
    pub profile: Profile,
    /// Its folded stacks.
    pub folded: String,
    /// The other formats by file extension: `svg`, `pb.gz`, or `json` for dhat.
    pub formats: Vec<(&'static str, Vec<u8>)>,
}

impl ProfileData {
    /// Returns how long a CPU profile has to last for [`folded::MEANINGFUL`] samples; `None` if it has them, or if that
    /// takes longer than [`LONGEST`].
    pub(crate) fn seconds_for_a_picture(&self) -> Option<f64> {
        let Profile {
            kind,
            samples,
            seconds,
            ..
        } = self.profile;
        if kind != ProfileKind::Cpu || samples >= folded::MEANINGFUL {
            return None;
        }
        let needed = SPARE * seconds * folded::MEANINGFUL as f64 / samples as f64;
        (needed <= LONGEST).then_some(needed)
    }

    /// Formats its most frequent leaf; if there are too few samples, says so.
    pub fn most(&self) -> String {
        let samples = self.profile.samples;
        if self.profile.kind == ProfileKind::Cpu && samples < folded::MEANINGFUL {
            let remedy = match self.profile.capacity {
                Some(all) if 2 * samples >= all => {
                    "`cargo workshop profile` with more `--seconds` takes them"
                }
                _ => "the service used little CPU time",
            };
            let samples = figures::things(samples, "sample");
            return format!(
                "{samples}, and a picture needs {}: {remedy}",
                folded::MEANINGFUL
            );
        }
        match folded::most_frequent_leaf(&self.folded) {
            Ok(Some((leaf, share))) => format!("{:.0} % in {leaf}", share * 100.0),
            _ => "nothing".to_owned(),
        }
    }
}

/// Longest CPU profile that is taken because a shorter one has too few samples, in seconds. A service for which this is
/// too short does next to nothing, and its picture says so.
const LONGEST: f64 = 12.0;
/// Factor by which a longer profile exceeds the length that just suffices.
const SPARE: f64 = 1.2;

/// Largest number of servers started for one CPU profile, see [`Taken::hid`].
const MOST_STARTS: u32 = 3;

/// Number of due samples above which a lack of samples means something. A service that mostly waits uses a
/// few hundredths of a second, and no start of it gives a profile worth reading.
const TELLING: f64 = 20.0;

struct Taken {
    data: ProfileData,
    /// `true` if fewer than a quarter of the samples came that the used CPU time calls for.
    ///
    /// Samples fall on the kernel's ticks. A service that works in short bursts after its timers can keep
    /// step with the ticks. It then runs between them for as long as it lives, but a fresh server starts at
    /// another phase.
    hid: bool,
}

impl Bench<'_> {
    /// Takes a profile of one variant, in the chapter's scenario for this kind.
    ///
    /// # Errors
    ///
    /// Fails if server, generator or profiler fails, or on Ctrl-C.
    pub fn profile(
        &self,
        variant: &str,
        kind: ProfileKind,
        seconds: f64,
    ) -> Result<ProfileData, RunError> {
        let mut taken = self.profile_once(variant, kind, seconds)?;
        for _ in 1..MOST_STARTS {
            if !taken.hid {
                break;
            }
            let again = self.profile_once(variant, kind, seconds)?;
            if again.data.profile.samples > taken.data.profile.samples {
                taken = again;
            }
        }
        Ok(taken.data)
    }

    fn profile_once(
        &self,
        variant: &str,
        kind: ProfileKind,
        seconds: f64,
    ) -> Result<Taken, RunError> {
        let scenario = self.chapter.profile_scenario(kind);
        self.under_load(variant, scenario, seconds, |server| {
            let before = cpu_time(server);
            let data = self.take(server, variant, scenario, kind, seconds)?;
            let used = cpu_time(server) - before;
            Ok(Taken {
                hid: kind == ProfileKind::Cpu && self.is_hidden(&data, used),
                data,
            })
        })
    }

    /// Asks a server's `/debug/look` what delays its requests, for `seconds` under the load of the await
    /// profiles.
    ///
    /// # Errors
    ///
    /// Fails if server or generator cannot be run, or on Ctrl-C.
    pub fn look(&self, variant: &str, seconds: f64) -> Result<String, RunError> {
        let scenario = self.chapter.profile_scenario(ProfileKind::Await);
        self.under_load(variant, scenario, seconds, |server| {
            if self.interrupt.is_set() {
                return Err(ServerError::Interrupted.into());
            }
            let path = format!("/debug/look?seconds={seconds}");
            let said = server.ask(&path, deadline(seconds))?;
            Ok(String::from_utf8_lossy(&said).into_owned())
        })
    }

    /// Does `work` of up to `seconds` with a fresh server under the load of this scenario.
    fn under_load<T>(
        &self,
        variant: &str,
        scenario: &str,
        seconds: f64,
        work: impl FnOnce(&Server) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let asked = self.scenario(scenario)?;
        let mut load = self.chapter.load_of(asked);
        // The load stops when the work is done, so it must be planned for longer.
        load.duration = deadline(seconds);
        let enough = Interrupt::new();
        let server = self.start(variant, asked)?;
        let cpus = &self.placement.generator;
        std::thread::scope(|scope| {
            let driver = scope.spawn(|| {
                let settings = engine::load::Settings {
                    cpus,
                    interrupt: &enough,
                    progress: None,
                };
                engine::load::run(server.service(), &load, &settings)
            });
            self.sleep(engine::load::ramp(&load) + load.warm_up);
            let done = work(&server);
            enough.set();
            match driver.join() {
                Ok(Err(GeneratorError::Interrupted) | Ok(_)) | Err(_) => done,
                Ok(Err(error)) => Err(error.into()),
            }
        })
    }

    fn is_hidden(&self, data: &ProfileData, cpu_s: f64) -> bool {
        let due = cpu_s * f64::from(self.chapter.rounds.cpu_profile_hz);
        due >= TELLING && 4.0 * (data.profile.samples as f64) < due
    }

    /// Sleeps for `duration`, or until Ctrl-C.
    fn sleep(&self, duration: Duration) {
        let end = Instant::now() + duration;
        while Instant::now() < end && !self.interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn take(
        &self,
        server: &Server,
        variant: &str,
        scenario: &str,
        kind: ProfileKind,
        seconds: f64,
    ) -> Result<ProfileData, RunError> {
        if self.interrupt.is_set() {
            return Err(ServerError::Interrupted.into());
        }
        let hz = self.chapter.rounds.cpu_profile_hz;
        let ask = |path: &str| server.ask_unless(self.interrupt, path, deadline(seconds));
        let (folded, formats) = match kind {
            ProfileKind::Cpu => {
                let take = format!("/debug/pprof/profile?frequency={hz}&");
                formats(&ask, &take, "/debug/pprof", seconds)?
            }
            ProfileKind::Await => formats(&ask, "/debug/await?", "/debug/await", seconds)?,
            ProfileKind::Heap => heap_formats(&ask, variant, seconds)?,
        };
        // The folded stacks contain the CPUs' idle time. Pictures add it themselves.
        let (folded, idle) = folded::without_idle(&folded);
        let mut samples = 0;
        for line in folded.lines() {
            if let Some((_, count)) = line.rsplit_once(' ') {
                samples += count.parse::<u64>().unwrap_or_default();
            }
        }
        let unit = match kind {
            ProfileKind::Cpu => format!("1/{hz} s of CPU time"),
            ProfileKind::Await => "a microsecond that a request spent in flight".to_owned(),
            ProfileKind::Heap => "an allocation".to_owned(),
        };
        Ok(ProfileData {
            profile: Profile {
                variant: variant.to_owned(),
                kind,
                scenario: scenario.to_owned(),
                seconds,
                samples,
                capacity: match kind {
                    ProfileKind::Cpu => Some(samples + idle),
                    ProfileKind::Await | ProfileKind::Heap => None,
                },
                frames_share: self.frames_share(kind, &folded),
                unit,
            },
            folded,
            formats,
        })
    }

    /// Returns the share of a CPU profile's samples that have one of the law's frames.
    fn frames_share(&self, kind: ProfileKind, folded: &str) -> Option<f64> {
        let frames = self.chapter.law.frames();
        if kind != ProfileKind::Cpu || frames.is_empty() {
            return None;
        }
        folded::share_with(folded, frames).ok().flatten()
    }
}

type Formats = (String, Vec<(&'static str, Vec<u8>)>);

/// Function that asks the server for a path.
type Ask<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, ServerError>;

/// Takes a profile, and asks for it again in the other formats.
fn formats(ask: Ask<'_>, take: &str, again: &str, seconds: f64) -> Result<Formats, ServerError> {
    let folded = ask(&format!("{take}seconds={seconds}&format=folded&idle=true"))?;
    let svg = ask(&format!("{again}/last?format=svg&idle=true"))?;
    let pprof = ask(&format!("{again}/last?format=pprof&idle=true"))?;
    Ok((
        String::from_utf8_lossy(&folded).into_owned(),
        vec![("svg", svg), ("pb.gz", pprof)],
    ))
}

fn heap_formats(ask: Ask<'_>, variant: &str, seconds: f64) -> Result<Formats, ServerError> {
    let path = format!("/debug/heap?seconds={seconds}");
    let json = ask(&path)?;
    let strange = |error: serde_json::Error| {
        let reason = format!("what it answered is not a heap profile: {error}");
        ServerError::no(variant, &path, &Unanswered::Failed(reason))
    };
    let json = heap::portable(&json).map_err(strange)?;
    let profile = HeapProfile::read(&json).map_err(strange)?;
    Ok((profile.folded, vec![("json", json)]))
}

/// Returns the CPU time that the server has used so far, in seconds; 0 if it does not report it.
fn cpu_time(server: &Server) -> f64 {
    let metrics = server.metrics().unwrap_or_default();
    metrics.get("process_cpu_seconds").unwrap_or_default()
}

/// Returns the longest time to wait for a profile. Resolving symbols takes some seconds the first time.
fn deadline(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds + 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile of a second, all of its samples in one function.
    fn profile(kind: ProfileKind, samples: u64, capacity: Option<u64>) -> ProfileData {
        ProfileData {
            profile: Profile {
                variant: "problem".to_owned(),
                kind,
                scenario: "saturated".to_owned(),
                seconds: 1.0,
                samples,
                capacity,
                frames_share: None,
                unit: String::new(),
            },
            folded: format!("main;tcache_get {samples}\n"),
            formats: Vec::new(),
        }
    }

    #[test]
    fn a_profile_that_is_too_short_is_taken_again_unless_that_takes_too_long() {
        let longer = |kind, samples| profile(kind, samples, None).seconds_for_a_picture();
        assert_eq!(longer(ProfileKind::Cpu, 100), Some(3.6));
        assert_eq!(longer(ProfileKind::Cpu, 300), None);
        for samples in [0, 1, 29] {
            assert_eq!(longer(ProfileKind::Cpu, samples), None, "{samples}");
        }
        assert_eq!(longer(ProfileKind::Await, 100), None);
    }

    #[test]
    fn a_handful_of_samples_names_no_function() {
        let most = |kind, samples, capacity| profile(kind, samples, capacity).most();
        assert_eq!(
            most(ProfileKind::Cpu, 4, Some(250)),
            "4 samples, and a picture needs 300: the service used little CPU time"
        );
        assert_eq!(
            most(ProfileKind::Cpu, 240, Some(250)),
            "240 samples, and a picture needs 300: `cargo workshop profile` with more `--seconds` takes them"
        );
        assert_eq!(most(ProfileKind::Cpu, 300, None), "100 % in tcache_get");
        assert_eq!(most(ProfileKind::Heap, 4, None), "100 % in tcache_get");
    }
}
