//! Compiles a chapter, measures it with `course::bench::recording`, and shows the progress on the terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use children::Interrupt;
use course::bench::profiling::ProfileData;
use course::bench::proof::planned_s;
use course::bench::provenance;
use course::bench::recording::{self, Counting};
use course::bench::rounds::Bench;
use course::measurement::chapter_file::ChapterFile;
use course::measurement::record::Inputs;
use course::measurement::reference;
use course::report::capture::Capture;
use engine::traffic::fresh_seed;
use statistics::profile::ProfileKind;

use crate::chapters::{Chapter, Workshop};
use crate::cli::UpstreamOf;
use crate::compile::{self, Build};
use crate::exit;
use terminal::exit::CliError;
use terminal::progress::Terminal;

#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The variant that is compared with the problem.
    pub(crate) variant: String,
    /// The command that repeats it, but for the seed.
    pub(crate) command: String,
    /// Seed of the loads' random moments; a fresh one if `None`.
    pub(crate) seed: Option<u32>,
    /// Pairs of rounds that the effect is measured with; as many as the chapter says if `None`.
    pub(crate) triplets: Option<u32>,
    /// Takes profiles of problem and fix.
    pub(crate) profiles: bool,
    /// Measures the chapter's table of variants.
    pub(crate) matrix: bool,
    /// Takes heap profiles and baselines, if the chapter has them.
    pub(crate) counts: bool,
    /// The services' upstream.
    pub(crate) upstream: UpstreamOf,
    /// Database of chapter 9's services, unless each has a file of its own.
    pub(crate) database: Option<String>,
}

impl Order {
    /// The solution, until it is decided and no longer.
    pub(crate) fn of_solution(command: String) -> Self {
        Self {
            variant: course::measurement::claim::SOLUTION.to_owned(),
            command,
            seed: None,
            triplets: None,
            profiles: false,
            matrix: false,
            counts: false,
            upstream: UpstreamOf::Embedded,
            database: None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Measured {
    /// Seconds after compiling.
    pub(crate) seconds: f64,
    /// Record and stacks.
    pub(crate) capture: Capture,
    /// CPU profiles with every frame, in pprof's format, by file name.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Measured {
    /// Keeps a profile's stacks, and those of its other formats that say more.
    fn keep(&mut self, data: ProfileData) {
        let profile = &data.profile;
        for (format, bytes) in data.formats {
            match (profile.kind, format) {
                (ProfileKind::Cpu, "pb.gz") => {
                    self.files
                        .push((format!("{}.pb.gz", profile.name()), bytes));
                }
                (ProfileKind::Heap, "json") => {
                    let json = String::from_utf8_lossy(&bytes).into_owned();
                    self.capture.dhat.insert(profile.dhat_name(), json);
                }
                _ => {}
            }
        }
        self.capture
            .folded
            .insert(profile.folded_name(), data.folded);
    }
}

pub(crate) fn measure(
    workshop: &Workshop,
    chapter: &Chapter,
    order: &Order,
    interrupt: &Interrupt,
) -> Result<Measured, CliError> {
    let file = claims(chapter, order)?;
    let references = published(workshop, &file)?;
    let build = Build {
        workshop,
        chapter,
        interrupt,
    };
    let (least, most) = planned_s(&file);
    compile::announce(&format!(
        "{least:.0} to {most:.0} s of load, and the verdict"
    ));
    let mut heap = None;
    if order.counts && file.heap_profiles().is_some() {
        heap = build.programs(&["heap".to_owned()])?.counted;
    }
    let mut programs = build.programs(&file.claims.root_cause().features)?;
    let database = order.database.as_deref().unwrap_or_default();
    if database.starts_with("postgres") {
        programs.served = build.server("postgres")?;
    }
    let mut arguments = Vec::new();
    if let Some(url) = &order.database {
        arguments.extend(["--database".to_owned(), url.clone()]);
    }
    let seed = order.seed.unwrap_or_else(fresh_seed);
    let mut command = order.command.clone();
    if file.comes_at_random() {
        // Writing to a String cannot fail.
        let _ = write!(command, " --seed {seed}");
    }
    let rustc = provenance::rustc_version(workshop.root());
    let terminal = Terminal::new();
    let counting = Counting {
        heap: heap.as_deref(),
    };
    let recorded = recording::record(&recording::Order {
        bench: Bench {
            counted: programs.counted.as_deref(),
            arguments: &arguments,
            seed: seed.into(),
            ..Bench::new(&programs.served, &file, interrupt, &|event| {
                terminal.show(event);
            })
        },
        folder: &chapter.folder,
        variant: &order.variant,
        command: &command,
        inputs: Inputs::Digest(inputs(workshop, chapter, &order.variant)?),
        tools: BTreeMap::from_iter(rustc.map(|version| ("rustc".to_owned(), version))),
        references,
        before_nginx: order.upstream == UpstreamOf::Nginx,
        profiles: order.profiles,
        matrix: order.matrix,
        counts: order.counts.then_some(counting),
    });
    let recorded = recorded.map_err(|error| exit::of_run(&error, interrupt))?;
    drop(terminal);
    let mut measured = Measured {
        seconds: recorded.seconds,
        files: Vec::new(),
        capture: Capture {
            record: recorded.record,
            folded: BTreeMap::new(),
            dhat: BTreeMap::new(),
        },
    };
    for data in recorded.profiles {
        measured.keep(data);
    }
    Ok(measured)
}

/// Computes the digest of what decides a chapter's figures, with this variant as the fix.
pub(crate) fn inputs(
    workshop: &Workshop,
    chapter: &Chapter,
    variant: &str,
) -> Result<String, CliError> {
    provenance::of_chapter(workshop.root(), &chapter.folder, variant).map_err(CliError::bad)
}

/// The chapter's file with the claims that can be shown before this upstream, and with as many triplets as were asked for.
fn claims(chapter: &Chapter, order: &Order) -> Result<ChapterFile, CliError> {
    let file = chapter.file()?;
    let number = file.chapter;
    if order.database.is_some() && !file.takes_database {
        return Err(CliError::usage(format!(
            "chapter {number} has no database to choose: leave out --database"
        )));
    }
    let mut file = match order.upstream {
        UpstreamOf::Embedded => file,
        UpstreamOf::Nginx if file.baselines().is_none() => {
            return Err(CliError::usage(format!(
                "chapter {number} calls no upstream: leave out --upstream"
            )));
        }
        UpstreamOf::Nginx => file.with_another_upstream(),
    };
    if let Some(triplets) = order.triplets {
        let least = file.conditions.pairs_at_least;
        if triplets < least {
            return Err(CliError::usage(format!(
                "--triplets {triplets} is too few for an interval in chapter {number}: at least {least}"
            )));
        }
        file.rounds.pairs = triplets;
    }
    Ok(file)
}

/// Looks up a chapter's figures that were published elsewhere.
pub(crate) fn published(
    workshop: &Workshop,
    file: &ChapterFile,
) -> Result<Vec<reference::Published>, CliError> {
    let name = "reference/seed-figures.toml";
    let text = std::fs::read_to_string(workshop.root().join(name)).map_err(|e| {
        CliError::usage(format!("{name} cannot be read ({e}); restore it with git"))
    })?;
    reference::look_up(&text, name, &file.reference).map_err(CliError::usage)
}
