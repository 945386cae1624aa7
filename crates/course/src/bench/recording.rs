//! Measurement of one chapter: the proof, the further measurements that were asked for, and the [`Record`] of
//! all of it.

mod baselines;
mod heap;
mod outside;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::analysis::verdict::{self, analyse};
use crate::measurement::record::{Inputs, Purpose, Record};
use crate::measurement::reference::Published;

use self::outside::Nginx;
pub use self::outside::nginx;
use crate::bench::profiling::ProfileData;
use crate::bench::proof::{self, Proof};
use crate::bench::provenance;
use crate::bench::rounds::{Bench, RunError};
use children::environment;
use children::environment::Environment;
use engine::event::Event;

/// Order to record a chapter: its servers, and what to measure.
#[derive(Clone)]
pub struct Order<'a> {
    /// The chapter's compiled servers, and the observer.
    pub bench: Bench<'a>,
    /// The chapter's folder.
    pub folder: &'a Path,
    /// The variant that is compared with the problem.
    pub variant: &'a str,
    /// The command that repeats it.
    pub command: &'a str,
    /// The code that is measured.
    pub inputs: Inputs,
    /// Versions of the tools that built it.
    pub tools: BTreeMap<String, String>,
    /// Figures published elsewhere.
    pub references: Vec<Published>,
    /// `true` if the services' upstream is nginx instead of the embedded one. The baselines are then
    /// measured, too, if Go is installed.
    pub before_nginx: bool,
    /// `true` to take CPU and await profiles of problem and fix.
    pub profiles: bool,
    /// `true` to measure the chapter's table of variants.
    pub matrix: bool,
    /// Programs for a capture's counts. With `Some`, the baselines are measured, too, if the chapter has any.
    pub counts: Option<Counting<'a>>,
}

/// Programs of the chapter for counts that noise cannot touch; `None` for a program that the chapter does not
/// have.
#[derive(Debug, Clone, Copy)]
pub struct Counting<'a> {
    /// The server that counts allocations.
    pub heap: Option<&'a Path>,
}

/// A record with its profiles and times.
#[derive(Debug)]
pub struct Recorded {
    /// Time that it took, in seconds.
    pub seconds: f64,
    /// The record, from which everything shown is derived.
    pub record: Record,
    /// The profiles with their data.
    pub profiles: Vec<ProfileData>,
}

/// Measures until the verdict is decided, and then everything else that was asked for. A capture takes as
/// many triplets as the chapter allows.
///
/// # Errors
///
/// Fails if a server, the generator or another program fails, or on Ctrl-C.
pub fn record(order: &Order<'_>) -> Result<Recorded, RunError> {
    let (started, began) = (provenance::now(), Instant::now());
    let chapter = order.bench.chapter;
    let say = |text: &str| (order.bench.observer)(Event::Said(text));
    let (least, most) = proof::planned_s(chapter);
    say(&format!(
        "chapter {}, {}: {least:.0} s of load if the result is clear early, {most:.0} s if not, more if other programs disturb it",
        chapter.chapter, chapter.title
    ));
    if chapter.comes_at_random() {
        let seed = order.bench.seed;
        say(&format!(
            "requests come at random moments, other ones in each triplet: --seed {seed} repeats them"
        ));
    }
    // That nginx cannot run is said before minutes of load. If it is needed only after them, it stops until then.
    let mut nginx = None;
    if order.before_nginx || order.counts.is_some() {
        nginx = Nginx::start(&order.bench, order.folder)?.filter(|_| order.before_nginx);
    }
    let mut arguments = order.bench.arguments.to_vec();
    if let Some(nginx) = &nginx {
        arguments.extend(nginx.arguments());
    }
    let bench = Bench {
        arguments: &arguments,
        ..order.bench.clone()
    };
    let nothing_yet = Record {
        format: Record::FORMAT,
        command: order.command.to_owned(),
        started,
        inputs: order.inputs.clone(),
        variant: order.variant.to_owned(),
        environment: Environment {
            placement: Some(bench.placement.in_words()),
            ..environment::observe(true, "dev", order.tools.clone())
        },
        chapter: chapter.clone(),
        references: order.references.clone(),
        rounds: Vec::new(),
        profiles: Vec::new(),
    };
    let (proof_began, decided_s) = (Instant::now(), OnceCell::new());
    let mut proof = proof::run(&bench, order.variant, &|proof| {
        let is_decided = verdict::is_decided(&with(&nothing_yet, proof));
        if is_decided {
            decided_s.get_or_init(|| proof_began.elapsed().as_secs_f64());
        }
        // Readers study a capture closely, so it takes all triplets even if fewer decide.
        is_decided && order.counts.is_none()
    })?;
    let decided_s = *decided_s.get_or_init(|| proof_began.elapsed().as_secs_f64());
    say(&decided(
        &with(&nothing_yet, &proof),
        decided_s,
        order.profiles,
    ));
    if order.profiles {
        let chapter = proof.chapter.clone();
        let bench = Bench {
            chapter: &chapter,
            ..bench.clone()
        };
        // Readers study a capture's pictures closely, so nothing else runs beside its profiles.
        proof.profile_both(&bench, order.variant, order.counts.is_none())?;
    }
    if order.matrix {
        proof.rounds.extend(proof::matrix(&bench)?);
    }
    if let Some(counting) = &order.counts {
        if let Some(program) = counting.heap {
            proof.profiles.extend(heap::profiles(&bench, program)?);
        }
        if nginx.is_none() {
            nginx = Nginx::start(&bench, order.folder)?;
        }
    }
    if let Some(nginx) = &nginx {
        if order.counts.is_some() || children::find("go").is_some() {
            let measured = baselines::measure(nginx, &bench, order.folder)?;
            proof.rounds.extend(measured);
        } else {
            say("Go is not installed (https://go.dev/dl): without it no baselines");
        }
    }
    Ok(Recorded {
        seconds: began.elapsed().as_secs_f64(),
        record: with(&nothing_yet, &proof),
        profiles: proof.profiles,
    })
}

/// Makes the record of everything measured so far.
fn with(nothing_yet: &Record, proof: &Proof) -> Record {
    let mut record = nothing_yet.clone();
    record.chapter.clone_from(&proof.chapter);
    record.environment.optimised = proof.optimised;
    record.rounds.clone_from(&proof.rounds);
    for data in &proof.profiles {
        record.profiles.push(data.profile.clone());
    }
    record
}

/// Formats the line for the moment at which the verdict is decided.
fn decided(record: &Record, seconds: f64, is_profiled: bool) -> String {
    let disturbed = match record.rounds_for(Purpose::Disturbed).count() {
        0 => String::new(),
        count => format!(" ({count} more rounds were set aside: the machine was disturbed)"),
    };
    let next = if is_profiled {
        "; now the profiles"
    } else {
        ""
    };
    format!(
        "{} after {} of at most {} triplets and {seconds:.0} s{disturbed}{next}",
        analyse(record).verdict.kind,
        record.triplets(),
        record.chapter.rounds.pairs,
    )
}
