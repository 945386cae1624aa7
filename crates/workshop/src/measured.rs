//! One chapter measured on this machine: servers, rounds, profiles, and the
//! record that everything shown is derived from.

mod baselines;
mod counts;
pub(crate) mod outside;

use std::collections::BTreeMap;
use std::time::Instant;

use analysis::verdict::{self, analyse};
use bench::environment;
use bench::placement::Placement;
use bench::profiling::ProfileData;
use bench::proof::{self, Proof};
use bench::provenance;
use bench::rounds::Bench;
use loadgen::interrupt::Interrupt;
use measurement::chapter_file::ChapterFile;
use measurement::environment::Environment;
use measurement::record::{Purpose, Record, Round};
use measurement::reference;
use report::capture::Capture;

use self::outside::Nginx;
use crate::chapters::{CAPTURES, Chapter, Workshop};
use crate::cli::UpstreamOf;
use crate::compile;
use crate::exit::CliError;
use crate::terminal::Terminal;
use crate::tools;

#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The variant that is compared with the problem.
    pub(crate) variant: String,
    /// The command that repeats it.
    pub(crate) command: String,
    /// Pairs of rounds that the effect is measured with; as many as the chapter says if `None`.
    pub(crate) pairs: Option<u32>,
    /// What else is measured, after the verdict.
    pub(crate) also: Vec<Also>,
    /// Where the services' upstream is, unless it is the embedded one. Beside nginx the baselines
    /// are measured, too.
    pub(crate) upstream: UpstreamOf,
    /// Where chapter 9's services keep their orders, unless each has a file of its own.
    pub(crate) database: Option<String>,
}

/// What is not needed for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Also {
    /// Profiles of problem and fix.
    Profiles,
    /// The chapter's table of variants.
    Matrix,
    /// Heap profiles, instructions and baselines, where the chapter has them.
    Counts,
}

#[derive(Debug)]
pub(crate) struct Measured {
    /// How long it took after compiling, in seconds.
    pub(crate) seconds: f64,
    /// How long it took until the verdict, without profiles and what else was asked for, in seconds.
    pub(crate) decided_s: f64,
    /// Record and folded stacks.
    pub(crate) capture: Capture,
    /// Profiles for other people's viewers, in pprof's or dhat's format, by file name.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

pub(crate) fn measure(
    workshop: &Workshop,
    chapter: &Chapter,
    order: &Order,
    interrupt: &Interrupt,
) -> Result<Measured, CliError> {
    let file = claims(chapter, order)?;
    if order.database.is_some() && !file.takes_database {
        return Err(CliError::usage(format!(
            "chapter {} has no database to choose: leave out --database",
            file.chapter
        )));
    }
    let references = published(workshop, &file)?;
    let digest = provenance::digest(&chapter.file_text()?);
    let programs = compile::programs(
        workshop,
        chapter,
        &file.claims.root_cause().features,
        interrupt,
    )?;
    let (started, began) = (provenance::now(), Instant::now());
    let terminal = Terminal::new();
    let (least, most) = proof::planned_s(&file);
    terminal.say(&format!(
        "chapter {}, {}: {least:.0} to {most:.0} s of load, until it is decided",
        file.chapter, file.title
    ));
    let placement = Placement::of_chapter(&file);
    let (nginx, mut arguments) = match order.upstream {
        UpstreamOf::Embedded => (None, Vec::new()),
        UpstreamOf::Nginx => {
            let nginx = Nginx::start(chapter, &file, &placement.server)?;
            let arguments = vec![
                "--upstream".to_owned(),
                nginx.baselines.nginx_upstream.clone(),
            ];
            (Some(nginx), arguments)
        }
    };
    if let Some(database) = &order.database {
        arguments.extend(["--database".to_owned(), database.clone()]);
    }
    let bench = Bench {
        program: &programs.served,
        counted: programs.counted.as_deref(),
        arguments: &arguments,
        chapter: &file,
        placement: &placement,
        interrupt,
        observer: &|event| terminal.show(event),
    };
    let nothing_yet = Record {
        format: Record::FORMAT,
        command: order.command.clone(),
        started,
        commit: provenance::checked_out(workshop.root(), CAPTURES),
        variant: order.variant.clone(),
        environment: Environment {
            placement: Some(placement.in_words()),
            ..environment::observe(true, "dev", versions(workshop))
        },
        chapter_file_digest: digest,
        chapter: file.clone(),
        references,
        rounds: Vec::new(),
        profiles: Vec::new(),
        instructions: Vec::new(),
    };
    let so_far = |proof: &Proof| with(&nothing_yet, proof);
    let (mut proof, decided_s) = prove(&bench, order, &so_far, &terminal)?;
    proof.rounds.extend(further_rounds(
        chapter,
        order,
        &bench,
        nginx.as_ref(),
        &terminal,
    )?);
    let mut instructions = Vec::new();
    if order.also.contains(&Also::Counts) {
        proof
            .profiles
            .extend(counts::heap_profiles(workshop, chapter, &bench)?);
        instructions = counts::instructions(workshop, chapter, &file, &terminal, interrupt)?;
        proof.rounds.extend(baselines::measure(chapter, &bench)?);
    }
    drop(terminal);
    let record = Record {
        instructions,
        ..so_far(&proof)
    };
    let profiles = proof.profiles;
    Ok(Measured {
        seconds: began.elapsed().as_secs_f64(),
        decided_s,
        files: profiles.iter().filter_map(viewer_file).collect(),
        capture: Capture {
            record,
            folded: profiles
                .into_iter()
                .map(|data| (data.profile.folded_name(), data.folded))
                .collect(),
        },
    })
}

/// What the chapter claims, as far as it can be shown before this upstream, with as many pairs as were
/// asked for.
fn claims(chapter: &Chapter, order: &Order) -> Result<ChapterFile, CliError> {
    let mut file = match order.upstream {
        UpstreamOf::Embedded => chapter.file()?,
        UpstreamOf::Nginx => chapter.file()?.with_another_upstream(),
    };
    if let Some(pairs) = order.pairs {
        let least = file.conditions.pairs_at_least;
        if pairs < least {
            return Err(CliError::usage(format!(
                "--pairs {pairs} is too few for an interval in chapter {}: at least {least}",
                file.chapter
            )));
        }
        file.rounds.pairs = pairs;
    }
    Ok(file)
}

/// The record of what was measured so far.
fn with(nothing_yet: &Record, proof: &Proof) -> Record {
    let mut record = nothing_yet.clone();
    record.environment.optimised = proof.optimised;
    record.rounds.clone_from(&proof.rounds);
    let profiles = proof.profiles.iter().map(|data| data.profile.clone());
    record.profiles = profiles.collect();
    record
}

/// Measures until it is decided and says so; then takes the profiles, if any. Also the seconds until then.
fn prove(
    bench: &Bench<'_>,
    order: &Order,
    so_far: &dyn Fn(&Proof) -> Record,
    terminal: &Terminal,
) -> Result<(Proof, f64), CliError> {
    let failed = |error| CliError::of_run(&error, bench.interrupt);
    let began = Instant::now();
    let is_decided = |proof: &Proof| verdict::is_decided(&so_far(proof));
    let mut proof = proof::run(bench, &order.variant, &is_decided).map_err(failed)?;
    let decided_s = began.elapsed().as_secs_f64();
    let record = so_far(&proof);
    let disturbed = match record.rounds_for(Purpose::Disturbed).count() / 3 {
        0 => String::new(),
        count => format!(" ({count} more were set aside: the machine was disturbed)"),
    };
    let takes_profiles = order.also.contains(&Also::Profiles);
    let next = if takes_profiles {
        "; now the profiles"
    } else {
        ""
    };
    terminal.say(&format!(
        "{} after {} of at most {} triplets and {decided_s:.0} s{disturbed}{next}",
        analyse(&record).verdict.kind,
        record.effect_rounds().len() / 2,
        bench.chapter.rounds.pairs,
    ));
    if takes_profiles {
        proof.profile_both(bench, &order.variant).map_err(failed)?;
    }
    Ok((proof, decided_s))
}

/// What was asked for beside the proof: the table of variants, baselines.
fn further_rounds(
    chapter: &Chapter,
    order: &Order,
    bench: &Bench<'_>,
    nginx: Option<&Nginx>,
    terminal: &Terminal,
) -> Result<Vec<Round>, CliError> {
    let failed = |error| CliError::of_run(&error, bench.interrupt);
    let mut rounds = Vec::new();
    if order.also.contains(&Also::Matrix) {
        rounds.extend(proof::matrix(bench).map_err(failed)?);
    }
    if let Some(nginx) = nginx {
        if tools::go().is_some() {
            rounds.extend(baselines::before(nginx, chapter, bench)?);
        } else {
            terminal.say("Go is not installed (https://go.dev/dl): without it no baselines");
        }
    }
    Ok(rounds)
}

fn viewer_file(data: &ProfileData) -> Option<(String, Vec<u8>)> {
    let (format, bytes) = data
        .formats
        .iter()
        .find(|(format, _)| matches!(*format, "pb.gz" | "json"))?;
    let profile = &data.profile;
    let name = format!("{}.{}.{format}", profile.variant, profile.kind.key());
    Some((name, bytes.clone()))
}

fn published(
    workshop: &Workshop,
    file: &ChapterFile,
) -> Result<Vec<reference::Published>, CliError> {
    let name = "reference/seed-figures.toml";
    let text = std::fs::read_to_string(workshop.root().join(name)).map_err(|e| {
        CliError::usage(format!("{name} cannot be read ({e}); restore it with git"))
    })?;
    reference::look_up(&text, name, &file.reference).map_err(CliError::usage)
}

fn versions(workshop: &Workshop) -> BTreeMap<String, String> {
    let rustc = provenance::rustc_version(workshop.root());
    BTreeMap::from_iter(rustc.map(|version| ("rustc".to_owned(), version)))
}
