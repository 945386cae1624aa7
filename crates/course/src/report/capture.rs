//! Recorded evidence of one chapter, as the folder `flamegraphs/chapterN/`:
//!
//! - The measured data are `capture.json`, the [`Record`], and the stacks of its profiles: `VARIANT.KIND.folded`, and
//!   `VARIANT.heap.json` in dhat's format. The stacks of CPU profiles are [`shortened`]. Profiles in pprof's format
//!   (`VARIANT.cpu.pb.gz`), which have every frame, may stand beside them. Nothing is derived from those.
//! - Everything else is derived from the measured data, byte for byte the same on any machine: Markdown (`table.md`,
//!   `published.md`, `matrix.md`, `values.md`), flamegraphs (`VARIANT.KIND.svg`) and `plots/*.svg`.

mod error;
mod queue;
mod variants;

use std::{collections::BTreeMap, fs, io, path::Path};

pub use self::error::CaptureError;
pub(crate) use self::error::stacks_error;
use self::error::{io_error, not_a_record};
use crate::analysis::heap::{self, HeapProfile};
use crate::analysis::verdict::{Analysis, analyse};
use crate::measurement::{
    claim::PROBLEM,
    record::{Purpose, Record, Round},
    reference::Published,
};
use crate::report::{
    plots::{self, Series},
    table,
};
use drawing::flamegraph::{self, Picture, shortened};
use drawing::folded;
use drawing::profile::Profile;
use statistics::figures;
use statistics::profile::ProfileKind;

/// The record's file in a capture.
pub const RECORD: &str = "capture.json";

/// Frames of the runtime by which still pictures name threads and find handlers: `report::boxes` asks for them.
const LANDMARKS: [&str; 4] = [
    "__libc_start_main",
    "BlockingTask",
    "worker::run",
    "::answer::{{closure}}",
];

/// Texts of files, by their path within a folder, `/` between parts.
pub type Files = BTreeMap<String, String>;

/// A record with the folded stacks of its profiles, by file name.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// The measured data, without stacks.
    pub record: Record,
    /// Folded stacks, by [`Profile::folded_name`].
    pub folded: Files,
    /// Heap profiles in dhat's format, by [`Profile::dhat_name`]. Files of a capture hold their stacks in no other form.
    pub dhat: Files,
}

impl Capture {
    /// Reads the measured data from a capture's folder.
    ///
    /// # Errors
    ///
    /// Fails if the record is missing or is not a record of this version, or if stacks are missing.
    pub fn read(folder: &Path) -> Result<Self, CaptureError> {
        let path = folder.join(RECORD);
        let record = parse(&read(&path)?, &path)?;
        Self::of(record, |name| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => CaptureError::NoStacks { path },
                _ => CaptureError::Io { path, error },
            })
        })
    }

    /// Makes a capture of a record and the texts of its profiles' files.
    fn of(
        record: Record,
        text_of: impl Fn(&str) -> Result<String, CaptureError>,
    ) -> Result<Self, CaptureError> {
        let (mut folded, mut dhat) = (Files::new(), Files::new());
        for profile in &record.profiles {
            let name = profile.folded_name();
            if profile.kind == ProfileKind::Heap {
                let file = profile.dhat_name();
                let json = text_of(&file)?;
                let heap = HeapProfile::read(json.as_bytes())
                    .map_err(|error| not_a_record(Path::new(&file), &error))?;
                folded.insert(name, heap.folded);
                dhat.insert(file, json);
            } else {
                let text = text_of(&name)?;
                folded.insert(name, text);
            }
        }
        Ok(Self {
            record,
            folded,
            dhat,
        })
    }

    /// Writes the measured data and everything derived from it into `folder`. Writes nothing unless all of it
    /// can be derived.
    ///
    /// # Errors
    ///
    /// Fails if the record holds a figure that is not a number, if a profile cannot be drawn, or if the
    /// folder cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), CaptureError> {
        let path = folder.join(RECORD);
        let mut json = serde_json::to_string_pretty(&self.record)
            .map_err(|error| not_a_record(&path, &error))?;
        json.push('\n');
        // Derive from the text of the file, not from memory: a reader of the file must get the same bytes.
        let mut files = self.stack_files()?;
        let as_read = Self::of(parse(&json, &path)?, |name| match files.get(name) {
            Some(text) => Ok(text.clone()),
            None => Err(CaptureError::NoStacks {
                path: folder.join(name),
            }),
        })?;
        files.extend(as_read.derived()?);
        files.insert(RECORD.to_owned(), json);
        write_all(folder, &files)
    }

    /// Returns the files with the profiles' stacks, without what nothing shows: most of the runtime's frames, which are
    /// nine tenths of a CPU profile's stacks, and recursion.
    fn stack_files(&self) -> Result<Files, CaptureError> {
        let mut kept = LANDMARKS.to_vec();
        kept.extend(self.record.chapter.law.frames().iter().map(String::as_str));
        let mut files = Files::new();
        for (name, json) in &self.dhat {
            let merged = heap::without_recursion(json.as_bytes())
                .map_err(|error| not_a_record(Path::new(name), &error))?;
            files.insert(name.clone(), merged);
        }
        for profile in &self.record.profiles {
            let stacks = self.stacks(profile);
            let kept = match profile.kind {
                ProfileKind::Heap => continue,
                ProfileKind::Await => stacks.to_owned(),
                ProfileKind::Cpu => {
                    shortened(stacks, &kept).map_err(|error| stacks_error(profile, error.into()))?
                }
            };
            files.insert(profile.folded_name(), kept);
        }
        Ok(files)
    }

    /// Judges the record.
    pub fn analysis(&self) -> Analysis {
        analyse(&self.record)
    }

    /// Derives every other file.
    ///
    /// # Errors
    ///
    /// Fails if a profile cannot be drawn.
    pub fn derived(&self) -> Result<Files, CaptureError> {
        let record = &self.record;
        let analysis = self.analysis();
        let mut files = Files::new();
        for (name, text) in [
            ("table.md", table::table(record, &analysis)),
            ("published.md", table::published(record)),
            ("matrix.md", table::matrix(record)),
            ("values.md", table::values(record, &analysis, &self.folded)),
        ] {
            files.insert(name.to_owned(), text);
        }
        for (name, svg) in self.plots() {
            files.insert(format!("plots/{name}.svg"), svg);
        }
        for profile in &record.profiles {
            // No page shows those of heap profiles.
            if profile.kind != ProfileKind::Heap {
                let name = format!("{}.svg", profile.name());
                files.insert(name, self.flamegraph(profile)?);
            }
        }
        // A chapter without a table has no file of it.
        files.retain(|_, text| !text.is_empty());
        Ok(files)
    }

    /// Draws the plots, by name; leaves out those without anything to show.
    pub fn plots(&self) -> Vec<(&'static str, String)> {
        let scenario = self.record.chapter.effect_scenario();
        let users = figures::things(scenario.users.into(), "user");
        let rounds: Vec<&Round> = self.record.effect_rounds();
        let own = self.record.chapter.claims.effect().scenario();
        let latency = format!("Latency of every round, {users}");
        let pings = format!("Latency of a ping in every round, {users}");
        let throughput = format!("Throughput of every round, {users}");
        let mut drawn = vec![
            (
                "latency",
                plots::by_percentile(&latency, &rounds, plots::Of::Users),
            ),
            (
                "pings",
                plots::by_percentile(&pings, &rounds, plots::Of::Bystanders),
            ),
            (
                "throughput",
                plots::throughput_of_rounds(&throughput, &self.record.rounds, own),
            ),
            ("connections-problem", connections(&self.record, PROBLEM)),
            (
                "connections-solution",
                connections(&self.record, &self.record.variant),
            ),
        ];
        let [problem, fix] = queue::plots(&self.record);
        drawn.extend([("queue-problem", problem), ("queue-solution", fix)]);
        drawn.extend(variants::plots(&self.record));
        let mut plots = Vec::new();
        for (name, svg) in drawn {
            plots.extend(svg.map(|svg| (name, svg)));
        }
        plots
    }

    /// Draws a profile's flamegraph.
    fn flamegraph(&self, profile: &Profile) -> Result<String, CaptureError> {
        let picture = Picture::of(profile, &self.record.chapter.package);
        flamegraph::draw(self.stacks(profile), &picture)
            .map_err(|error| stacks_error(profile, error))
    }

    /// Draws the flamegraphs and their differences, by name such as `problem.cpu` or `diff.cpu`.
    ///
    /// # Errors
    ///
    /// Fails if folded stacks have a line without a count.
    pub fn flamegraphs(&self) -> Result<Vec<(String, String)>, CaptureError> {
        let mut drawn = Vec::new();
        let package = &self.record.chapter.package;
        for profile in &self.record.profiles {
            drawn.push((profile.name(), self.flamegraph(profile)?));
        }
        for kind in [ProfileKind::Cpu, ProfileKind::Await] {
            let (Some(before), Some(after)) = (
                self.profile(PROBLEM, kind),
                self.profile(&self.record.variant, kind),
            ) else {
                continue;
            };
            let picture = Picture::of_change(before, after, package);
            let svg = flamegraph::draw_difference(
                (&self.comparable_stacks(after), after.idle()),
                (&self.comparable_stacks(before), before.idle()),
                &picture,
            )
            .map_err(|error| stacks_error(after, error))?;
            drawn.push((format!("diff.{}", kind.key()), svg));
        }
        Ok(drawn)
    }

    /// Returns the profile of a variant, if one was taken.
    pub fn profile(&self, variant: &str, kind: ProfileKind) -> Option<&Profile> {
        self.record
            .profiles
            .iter()
            .find(|profile| profile.variant == variant && profile.kind == kind)
    }

    /// Checks that the record's shares of frames agree with the stacks beside it.
    fn verify_shares(&self, folder: &Path) -> Result<(), CaptureError> {
        let frames = self.record.chapter.law.frames();
        for profile in &self.record.profiles {
            let Some(share) = profile.frames_share else {
                continue;
            };
            let there = folded::share_with(self.stacks(profile), frames)
                .map_err(|error| stacks_error(profile, error.into()))?;
            if there.is_none_or(|there| (there - share).abs() > 1e-9) {
                return Err(CaptureError::Stale {
                    path: folder.join(RECORD),
                    difference: "differs from",
                });
            }
        }
        Ok(())
    }

    /// Replaces the variant's module in the stacks, so that the same function has one name in all variants:
    /// `chapter1::problem::read` and `chapter1::solution::read` become equal.
    fn comparable_stacks(&self, profile: &Profile) -> String {
        let package = &self.record.chapter.package;
        let module = format!("{package}::{}::", profile.variant);
        self.stacks(profile)
            .replace(&module, &format!("{package}::VARIANT::"))
    }

    pub(crate) fn stacks(&self, profile: &Profile) -> &str {
        match self.folded.get(&profile.folded_name()) {
            Some(stacks) => stacks,
            None => "",
        }
    }
}

/// Draws the connections of a variant that were accepted and finished since the load began.
fn connections(record: &Record, variant: &str) -> Option<String> {
    record.chapter.connections()?;
    let (mut accepted, mut finished) = (Vec::new(), Vec::new());
    for round in record.rounds_for(Purpose::Series) {
        if round.variant == variant {
            for at in &round.series {
                accepted.push((at.s, at.accepted as f64));
                finished.push((at.s, at.finished as f64));
            }
        }
    }
    let lines = [("taken up", accepted), ("finished", finished)].map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    });
    plots::time_series(
        &format!("Connections of the {variant}"),
        "connections since the start",
        &lines,
    )
}

/// Derives a capture's tables, plots and flamegraphs again from its record. Figures published elsewhere were not
/// measured here, so they are those of today.
///
/// # Errors
///
/// Fails like [`Capture::read`] and [`Capture::derived`], or if the folder cannot be written.
pub fn derive(folder: &Path, published: Vec<Published>) -> Result<(), CaptureError> {
    let mut capture = Capture::read(folder)?;
    capture.record.references = published;
    write_all(folder, &capture.derived()?)
}

/// Derives a capture again in memory and compares it with the folder.
///
/// # Errors
///
/// Names the first file that is missing, differs, or is left over.
pub fn verify(folder: &Path, published: Vec<Published>) -> Result<(), CaptureError> {
    let mut capture = Capture::read(folder)?;
    capture.record.references = published;
    capture.verify_shares(folder)?;
    compare(folder, &capture.derived()?)
}

/// Writes derived files into their folder.
///
/// # Errors
///
/// Fails if the folder cannot be written.
pub fn write_all(folder: &Path, files: &Files) -> Result<(), CaptureError> {
    for (name, text) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| io_error(parent, error))?;
        }
        fs::write(&path, text).map_err(|error| io_error(&path, error))?;
    }
    Ok(())
}

/// Compares derived files with the files in their folder.
///
/// # Errors
///
/// Names the first file that is missing, differs, or is left over.
pub fn compare(folder: &Path, derived: &Files) -> Result<(), CaptureError> {
    let stale = |name: &str, difference| CaptureError::Stale {
        path: folder.join(name),
        difference,
    };
    for (name, text) in derived {
        match fs::read(folder.join(name)) {
            Ok(there) if there == text.as_bytes() => (),
            Ok(_) => return Err(stale(name, "differs from")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(stale(name, "missing from"));
            }
            Err(error) => return Err(io_error(&folder.join(name), error)),
        }
    }
    for prefix in ["", "plots/"] {
        let entries = fs::read_dir(folder.join(prefix)).into_iter().flatten();
        let mut left_over = Vec::new();
        for entry in entries.flatten() {
            let name = format!("{prefix}{}", entry.file_name().display());
            let kind = Path::new(&name).extension();
            let is_ours = kind.is_some_and(|kind| kind == "svg" || kind == "md");
            if is_ours && !derived.contains_key(&name) {
                left_over.push(name);
            }
        }
        if let Some(first) = left_over.iter().min() {
            return Err(stale(first, "left over, no part of"));
        }
    }
    Ok(())
}

fn parse(json: &str, path: &Path) -> Result<Record, CaptureError> {
    let record = Record::parse(json).map_err(|error| not_a_record(path, &error))?;
    if record.format != Record::FORMAT {
        return Err(CaptureError::NotARecord {
            path: path.to_owned(),
            what: format!("its format is {}, not {}", record.format, Record::FORMAT),
        });
    }
    Ok(record)
}

fn read(path: &Path) -> Result<String, CaptureError> {
    fs::read_to_string(path).map_err(|error| io_error(path, error))
}
