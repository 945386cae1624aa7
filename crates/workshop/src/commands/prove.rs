//! `cargo workshop prove [N…]`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use course::analysis::baseline::{Baseline, baselines};
use course::analysis::verdict::VerdictKind;
use course::bench::proof::planned_s;
use course::measurement::claim::{EXERCISE, PROBLEM, SOLUTION};
use course::measurement::law::Law;
use course::measurement::record::Record;
use course::report::html;
use course::report::summary::Summary;
use serde::Serialize;
use statistics::figures;

use super::numa;
use crate::chapters::{Chapter, Workshop};
use crate::cli::{Format, Prove, UpstreamOf};
use crate::exercise::Exercise;
use crate::measured::{Measured, Order, measure};
use crate::prediction::Prediction;
use crate::progress_file::{self, OwnProof, Progress, Proof};
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files, json};

/// Object that `--format json` prints for a chapter.
#[derive(Debug, Serialize)]
struct Proved {
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    baselines: Vec<Baseline>,
    /// The reader's last prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    your_prediction: Option<Prediction>,
}

impl Proved {
    fn exit(&self) -> Exit {
        match self.summary.verdict {
            VerdictKind::Invalid => Exit::Invalid,
            VerdictKind::Proved => Exit::Good,
            _ => Exit::Bad,
        }
    }
}

/// Proves the chapters one after the other; the worst one decides the exit code.
pub(crate) fn run(options: &Prove) -> Result<Exit, CliError> {
    if options.variant == PROBLEM {
        return Err(CliError::usage(
            "--variant names what is compared with the problem: exercise, solution, or another variant",
        ));
    }
    if let Some(nodes) = options.regions {
        return numa::prove(options, nodes);
    }
    let workshop = Workshop::find()?;
    let chapters = workshop.chosen(&options.chapters)?;
    if options.chapters.is_empty() && !options.all {
        return Err(CliError::usage(how_long(&chapters)?));
    }
    let folder = match &options.report {
        Some(folder) => folder.clone(),
        None => workshop.state().join("reports"),
    };
    files::writable(&folder)?;
    let interrupt = ctrl_c::watch();
    let mut all = Vec::new();
    for chapter in &chapters {
        let order = Order {
            command: command(options, chapter.number),
            variant: options.variant.clone(),
            seed: options.seed,
            triplets: options.triplets,
            profiles: !options.extent.no_profiles,
            matrix: options.extent.matrix,
            counts: false,
            upstream: options.upstream,
            database: options.database.clone(),
        };
        let exercise = Exercise::digest_now(chapter);
        let measured = measure(&workshop, chapter, &order, &interrupt)?;
        let folder = folder.join(chapter.package());
        let report = write(&folder, &measured)?;
        let analysis = measured.capture.analysis();
        let kind = analysis.verdict.kind;
        if options.variant == EXERCISE && Exercise::digest_now(chapter) != exercise {
            eprintln!(
                "note: exercise.rs changed during the proof, which may have measured either version, so the result is not kept: prove it again"
            );
        } else if options.variant == EXERCISE || options.variant == SOLUTION {
            progress_file::remember(&workshop, chapter.number, |done| {
                if options.variant == SOLUTION {
                    done.proof = Some(Proof { kind });
                } else {
                    done.own_proof = Some(OwnProof {
                        kind,
                        gain: analysis.effect().and_then(|effect| effect.ratio),
                        exercise,
                    });
                }
            });
        }
        let record = &measured.capture.record;
        let proved = Proved {
            summary: Summary::new(
                record,
                &analysis,
                measured.seconds,
                Some(workshop.shown(&report)),
            ),
            baselines: baselines(record),
            your_prediction: predicted(&workshop, chapter.number),
        };
        let mut table = proved.summary.table();
        if options.details {
            table += &proved.summary.details();
        }
        table += &baseline_lines(&proved.baselines);
        if let Some(yours) = &proved.your_prediction {
            table += &yours.compared(&analysis);
        }
        table += &elsewhere(record);
        match options.output.format {
            Format::Human => println!("{}", table.trim_end()),
            Format::Json => eprintln!("{}", table.trim_end()),
        }
        all.push(proved);
    }
    if options.output.format == Format::Json {
        match &all[..] {
            [one] => json::print_as("proof", one)?,
            several => json::print_all("proof", several)?,
        }
    }
    Ok(all.iter().map(Proved::exit).max().unwrap_or(Exit::Good))
}

/// Lists the seconds that each chapter's proof takes.
fn how_long(chapters: &[Chapter]) -> Result<String, CliError> {
    let (mut list, mut in_all) = (String::new(), (0.0, 0.0));
    for chapter in chapters {
        let file = chapter.file()?;
        let (least, most) = planned_s(&file);
        let profiles = 2.0 * (file.rounds.cpu_profile_s + file.rounds.await_profile_s);
        in_all = (in_all.0 + least + profiles, in_all.1 + most + profiles);
        let _ = writeln!(
            list,
            "  cargo workshop prove {}   {least:>3.0} to {most:>3.0} s, and {profiles:>3.0} s for profiles: {}",
            chapter.number, file.title
        );
    }
    Ok(format!(
        "name the chapters to prove, or --all, which takes {:.0} to {:.0} minutes after compiling:\n{}",
        in_all.0 / 60.0,
        in_all.1 / 60.0,
        list.trim_end()
    ))
}

/// The reader's last prediction. A progress file that cannot be read is no reason to lose a proof.
fn predicted(workshop: &Workshop, number: u32) -> Option<Prediction> {
    let progress = Progress::read(workshop).ok()?;
    progress.chapter(number).predictions.pop()
}

fn command(options: &Prove, number: u32) -> String {
    let mut command = format!("cargo workshop prove {number}");
    if options.variant != SOLUTION {
        let _ = write!(command, " --variant {}", options.variant);
    }
    if let Some(triplets) = options.triplets {
        let _ = write!(command, " --triplets {triplets}");
    }
    for (is_asked, flag) in [
        (options.upstream == UpstreamOf::Nginx, " --upstream nginx"),
        // Without its address: there may be a password in it.
        (options.database.is_some(), " --database …"),
        (options.extent.no_profiles, " --no-profiles"),
        (options.extent.matrix, " --matrix"),
    ] {
        if is_asked {
            command += flag;
        }
    }
    command
}

/// Report, record and profiles; yields the report's path.
fn write(folder: &Path, measured: &Measured) -> Result<PathBuf, CliError> {
    let page =
        html::page(&measured.capture).map_err(CliError::because("the report cannot be drawn"))?;
    measured.capture.write(folder).map_err(CliError::bad)?;
    for (name, bytes) in &measured.files {
        files::replace(&folder.join(name), bytes)?;
    }
    let report = folder.join("report.html");
    files::replace(&report, page)?;
    Ok(report)
}

/// Hint at the emulated machine, for a claim about NUMA nodes on a machine that has one.
fn elsewhere(record: &Record) -> String {
    let has_one = record.environment.numa_nodes < 2;
    if has_one && matches!(record.chapter.law, Law::Locality { .. }) {
        let number = record.chapter.chapter;
        format!(
            "an emulated machine has several NUMA nodes: cargo workshop prove {number} --numa-nodes 4\n"
        )
    } else {
        String::new()
    }
}

fn baseline_lines(baselines: &[Baseline]) -> String {
    let mut lines = String::new();
    for one in baselines {
        let share = match one.of_the_solutions {
            Some(share) => format!("{:.0} %", share * 100.0),
            None => "-".to_owned(),
        };
        let rate = match one.requests_per_second {
            Some(rate) => figures::count(rate),
            None => "-".to_owned(),
        };
        let _ = writeln!(
            lines,
            "{:<22} {rate:>8} requests/s, {share} of the solution's, before the same nginx",
            one.service
        );
    }
    lines
}
