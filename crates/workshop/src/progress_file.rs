//! The learner's progress and predictions: `.workshop/progress.json`.
//!
//! A damaged file is set aside. If a result cannot be written, the command prints a note, because the result itself is
//! on the screen. If a prediction cannot be written, the command fails.

use std::collections::BTreeMap;
use std::path::PathBuf;

use course::analysis::grade::GradeKind;
use course::analysis::verdict::VerdictKind;
use serde::{Deserialize, Serialize};

use crate::chapters::Workshop;
use crate::prediction::Prediction;
use terminal::exit::CliError;
use terminal::files;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    #[serde(skip)]
    file: PathBuf,
    chapters: BTreeMap<u32, ChapterProgress>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ChapterProgress {
    pub(crate) hints: usize,
    pub(crate) check: Option<Check>,
    pub(crate) proof: Option<Proof>,
    pub(crate) own_proof: Option<OwnProof>,
    /// The reader's predictions in the order in which they were made, at most [`MOST_PREDICTIONS`].
    pub(crate) predictions: Vec<Prediction>,
}

/// Predictions of a chapter that are kept. One more takes the place of the last.
const MOST_PREDICTIONS: usize = 20;

impl ChapterProgress {
    /// Returns whether the last check of the exercise was passed.
    pub(crate) fn is_passed(&self) -> bool {
        let check = self.check.as_ref();
        check.is_some_and(|check| check.kind == GradeKind::Passed)
    }

    /// Adds a prediction; those made before stay.
    pub(crate) fn predict(&mut self, prediction: Prediction) {
        self.predictions.truncate(MOST_PREDICTIONS - 1);
        self.predictions.push(prediction);
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Check {
    pub(crate) kind: GradeKind,
    /// SHA-256 of the exercise that was checked: an edit since makes it stale.
    pub(crate) exercise: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) kind: VerdictKind,
}

/// A proof of the learner's own fix.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OwnProof {
    pub(crate) kind: VerdictKind,
    /// Ratio to the problem, larger is better; `None` where nothing was measured.
    pub(crate) gain: Option<f64>,
    /// SHA-256 of the exercise that was proved.
    pub(crate) exercise: String,
}

/// Changes the saved progress of a chapter, or prints on standard error why it cannot.
pub(crate) fn remember(
    workshop: &Workshop,
    number: u32,
    change: impl FnOnce(&mut ChapterProgress),
) {
    if let Err(error) = save(workshop, number, change) {
        eprintln!("note: progress is not remembered: {error}");
    }
}

/// Changes the saved progress of a chapter.
///
/// # Errors
///
/// Returns an error if the file cannot be read or written, or if another command holds it for too long.
pub(crate) fn save(
    workshop: &Workshop,
    number: u32,
    change: impl FnOnce(&mut ChapterProgress),
) -> Result<(), CliError> {
    let state = workshop.state();
    let _turn = files::lock(&state).map_err(CliError::because(state.display()))?;
    let mut progress = Progress::read(workshop)?;
    change(progress.chapters.entry(number).or_default());
    let text = serde_json::to_string_pretty(&progress).map_err(CliError::bad)?;
    files::replace(&progress.file, text + "\n")
}

impl Progress {
    /// Reads the file; a missing one is an empty one, a damaged one is set aside.
    pub(crate) fn read(workshop: &Workshop) -> Result<Self, CliError> {
        let file = workshop.state().join("progress.json");
        let empty = Self {
            file: file.clone(),
            chapters: BTreeMap::new(),
        };
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(empty);
            }
            Err(error) => {
                return Err(CliError::bad(format!(
                    "{} cannot be read ({error}); mend its permissions or delete it",
                    file.display()
                )));
            }
        };
        match serde_json::from_slice::<Self>(&bytes) {
            Ok(read) => Ok(Self { file, ..read }),
            Err(damage) => {
                let aside = files::free(&workshop.state(), "progress", "json.damaged");
                let what = format!("{} is damaged ({damage})", file.display());
                match std::fs::rename(&file, &aside) {
                    Ok(()) => eprintln!(
                        "note: {what}; it is set aside as {} and progress starts anew",
                        aside.display()
                    ),
                    Err(error) => eprintln!("note: {what} and cannot be set aside: {error}"),
                }
                Ok(empty)
            }
        }
    }

    pub(crate) fn chapter(&self, number: u32) -> ChapterProgress {
        self.chapters.get(&number).cloned().unwrap_or_default()
    }
}
