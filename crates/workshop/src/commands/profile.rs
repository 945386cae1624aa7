//! `cargo workshop profile N --kind cpu|heap|await`.

use std::path::{Path, PathBuf};

use course::bench::profiling::ProfileData;
use course::bench::rounds::Bench;
use serde::Serialize;
use statistics::profile::ProfileKind;

use crate::chapters::Workshop;
use crate::cli::{Format, Kind, Profile};
use crate::compile::Build;
use crate::exit;
use terminal::exit::{CliError, Exit};
use terminal::progress::Terminal;
use terminal::{ctrl_c, files, json};

/// Object that `--format json` prints.
#[derive(Debug, Serialize)]
struct Report {
    chapter: u32,
    variant: String,
    kind: ProfileKind,
    seconds: f64,
    samples: u64,
    /// Its widest box, in words.
    most: String,
    files: Vec<PathBuf>,
}

pub(crate) fn run(options: &Profile) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(options.chapter)?;
    let file = chapter.file()?;
    let folder = options.into.clone().unwrap_or_else(|| {
        workshop
            .state()
            .join(format!("profiles/chapter{}", chapter.number))
    });
    files::writable(&folder)?;
    let interrupt = ctrl_c::watch();
    let (kind, features) = match options.kind {
        Kind::Cpu => (ProfileKind::Cpu, ""),
        Kind::Await => (ProfileKind::Await, ""),
        Kind::Heap => (ProfileKind::Heap, "heap"),
    };
    let program = Build {
        workshop: &workshop,
        chapter: &chapter,
        interrupt: &interrupt,
    }
    .server(features)?;
    let terminal = Terminal::new();
    terminal.say(&format!(
        "{} profile of the {} for {} s, under the load of the chapter's {} scenario",
        kind.key(),
        options.variant,
        options.seconds,
        file.profile_scenario(kind)
    ));
    let data = Bench::new(&program, &file, &interrupt, &|event| terminal.show(event))
        .profile(&options.variant, kind, options.seconds)
        .map_err(|error| exit::of_run(&error, &interrupt))?;
    drop(terminal);
    let report = Report {
        chapter: chapter.number,
        variant: options.variant.clone(),
        kind,
        seconds: options.seconds,
        samples: data.profile.samples,
        most: data.most(),
        files: write(&folder, &data)?,
    };
    print(&report, options.output.format)?;
    Ok(Exit::Good)
}

fn print(report: &Report, format: Format) -> Result<(), CliError> {
    if format == Format::Json {
        return json::print_as("profile", report);
    }
    println!("{}", report.most);
    for file in &report.files {
        let what = match file.extension().and_then(|e| e.to_str()) {
            Some("svg") => "open in a browser: zooms and searches",
            Some("gz") => "go tool pprof -http=: FILE",
            Some("json") => "open with dhat's viewer, dh_view.html",
            _ => "folded stacks: inferno-flamegraph, inferno-diff-folded",
        };
        println!("{}  ({what})", file.display());
    }
    Ok(())
}

fn write(folder: &Path, data: &ProfileData) -> Result<Vec<PathBuf>, CliError> {
    let stem = data.profile.name();
    let mut files = vec![("folded", data.folded.as_bytes())];
    files.extend(data.formats.iter().map(|(e, bytes)| (*e, bytes.as_slice())));
    files
        .into_iter()
        .map(|(extension, bytes)| {
            let file = folder.join(format!("{stem}.{extension}"));
            files::replace(&file, bytes)?;
            Ok(file)
        })
        .collect()
}
