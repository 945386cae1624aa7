//! Profiles of a server under load, taken in rounds of their own.

use std::time::{Duration, Instant};

use crate::flamegraph;
use crate::generator::{self, GeneratorError};
use crate::heap::HeapProfile;
use crate::interrupt::Interrupt;
use crate::proof::{Bench, ProofError};
use crate::record::{Profile, ProfileKind};
use crate::server::{Server, ServerError};

/// A profile and its data in every format that its kind has.
#[derive(Debug, Clone)]
pub struct ProfileData {
    /// Its facts.
    pub profile: Profile,
    /// Its folded stacks.
    pub folded: String,
    /// The other formats by file extension: `svg`, `pb.gz`, or `json` for dhat.
    pub formats: Vec<(&'static str, Vec<u8>)>,
}

impl ProfileData {
    /// What it shows most of, in a phrase.
    pub fn most(&self) -> String {
        match flamegraph::most_frequent_leaf(&self.folded) {
            Ok(Some((leaf, share))) => format!("{:.0} % in {leaf}", share * 100.0),
            _ => "nothing".to_owned(),
        }
    }
}

impl Bench<'_> {
    /// A profile of one variant, in the chapter's setting for this kind.
    ///
    /// # Errors
    ///
    /// When server, generator or profiler fails, or on Ctrl-C.
    pub fn profile(
        &self,
        variant: &str,
        kind: ProfileKind,
        seconds: f64,
    ) -> Result<ProfileData, ProofError> {
        let setting = self.chapter.profile_setting(kind);
        let mut load = self.setting(setting)?.load(&self.chapter.exchange);
        // The load stops when the profile is there, and must not before.
        load.duration = patience(seconds);
        let enough = Interrupt::new();
        let server = self.start(variant, 0)?;
        std::thread::scope(|scope| {
            let driver = scope.spawn(|| {
                let settings = generator::Settings {
                    processors: &self.placement.generator,
                    interrupt: &enough,
                    progress: None,
                };
                generator::run(server.service(), &load, &settings)
            });
            self.sleep(generator::ramp(&load) + load.warm_up);
            let profile = self.take(&server, variant, setting, kind, seconds);
            enough.set();
            match driver.join() {
                Ok(Err(GeneratorError::Interrupted) | Ok(_)) | Err(_) => profile,
                Ok(Err(error)) => Err(error.into()),
            }
        })
    }

    /// Sleeps, but not on after Ctrl-C.
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
        setting: &str,
        kind: ProfileKind,
        seconds: f64,
    ) -> Result<ProfileData, ProofError> {
        if self.interrupt.is_set() {
            return Err(ServerError::Interrupted.into());
        }
        let (folded, formats) = match kind {
            ProfileKind::Cpu => formats(server, "/debug/pprof/profile", "/debug/pprof", seconds)?,
            ProfileKind::Await => formats(server, "/debug/await", "/debug/await", seconds)?,
            ProfileKind::Heap => heap(server, variant, seconds)?,
        };
        // The lab says how much longer processors stood idle; pictures add that themselves.
        let (idle, folded) = idle_apart(&folded);
        let samples = folded
            .lines()
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum();
        let unit = match kind {
            ProfileKind::Cpu => "1/99 s of processor time",
            ProfileKind::Await => "a microsecond that a request spent in flight",
            ProfileKind::Heap => "an allocation",
        };
        Ok(ProfileData {
            profile: Profile {
                variant: variant.to_owned(),
                kind,
                setting: setting.to_owned(),
                seconds,
                samples,
                capacity: (kind == ProfileKind::Cpu).then_some(samples + idle),
                unit: unit.to_owned(),
            },
            folded,
            formats,
        })
    }
}

/// The weight of the idle frame, and the other lines.
fn idle_apart(folded: &str) -> (u64, String) {
    let weight = |line: &str| {
        line.strip_prefix(flamegraph::IDLE)?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let idle = folded.lines().filter_map(weight).sum();
    let others = folded
        .split_inclusive('\n')
        .filter(|line| weight(line.trim_end()).is_none())
        .collect();
    (idle, others)
}

type Formats = (String, Vec<(&'static str, Vec<u8>)>);

/// Takes a profile, and asks for it again in the other formats.
fn formats(server: &Server, take: &str, again: &str, seconds: f64) -> Result<Formats, ServerError> {
    let folded = server.ask(
        &format!("{take}?seconds={seconds}&format=folded&idle=true"),
        patience(seconds),
    )?;
    let ask = |format: &str| {
        let path = format!("{again}/last?format={format}&idle=true");
        server.ask(&path, patience(seconds))
    };
    Ok((
        String::from_utf8_lossy(&folded).into_owned(),
        vec![("svg", ask("svg")?), ("pb.gz", ask("pprof")?)],
    ))
}

fn heap(server: &Server, variant: &str, seconds: f64) -> Result<Formats, ServerError> {
    let path = format!("/debug/heap?seconds={seconds}");
    let json = server.ask(&path, patience(seconds))?;
    let profile = HeapProfile::read(&json).map_err(|error| ServerError::Admin {
        variant: variant.to_owned(),
        path,
        reason: format!("what it answered is not a heap profile: {error}"),
    })?;
    Ok((profile.folded, vec![("json", json)]))
}

/// Resolving symbols takes seconds the first time.
fn patience(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds + 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_kept_apart_from_the_stacks() {
        let (idle, stacks) = idle_apart("[idle] 290\nmain;work 7\nmain;rest 3\n");
        assert_eq!(idle, 290);
        assert_eq!(stacks, "main;work 7\nmain;rest 3\n");
    }
}
