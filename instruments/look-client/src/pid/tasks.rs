//! Tasks of the process, if its program describes those of tokio.

use std::fs;
use std::time::Duration;

use diagnosis::{Process, evidence};
use serde::Serialize;
use task_reader::{Binary, Error, Index, Reader, Report};

/// Beginning of the names of tokio's own threads.
const TOKIO: &[u8] = b"tokio";

/// Time between two snapshots.
const PAUSE: Duration = Duration::from_millis(100);

/// Tasks of the process, or why there are none.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tasks {
    Seen(Box<Report>),
    /// Tasks of saved evidence, which has sums alone.
    Saved(Box<evidence::Tasks>),
    /// The reason, as a sentence.
    NotSeen(String),
}

impl Tasks {
    /// Reads the tasks, for people and as evidence; nothing if the process seems to have no tokio.
    pub(crate) fn of(process: Process) -> (Option<Self>, Option<evidence::Tasks>) {
        match read(process.pid()) {
            Ok((report, tasks)) => (Some(Self::Seen(Box::new(report))), Some(tasks)),
            Err(Error::NoRuntime(_)) => (None, None),
            Err(_) if !has_tokios_threads(process) => (None, None),
            Err(error) => (Some(Self::NotSeen(error.to_string())), None),
        }
    }
}

fn read(pid: u32) -> Result<(Report, evidence::Tasks), Error> {
    let binary = Binary::of_process(pid)?;
    let index = Index::new(&binary)?;
    let (snapshot, tasks) = Reader::new(&index).watch(pid, PAUSE, &|| true)?;
    Ok((Report::new(&snapshot, None), tasks))
}

fn has_tokios_threads(process: Process) -> bool {
    let threads = fs::read_dir(process.path("task"));
    let mut names = threads
        .into_iter()
        .flatten()
        .flatten()
        .map(|thread| fs::read(thread.path().join("comm")));
    names.any(|name| name.is_ok_and(|name| name.starts_with(TOKIO)))
}

impl Tasks {
    /// Returns who waits for whom as a picture.
    pub(crate) fn picture(&self) -> Result<String, String> {
        match self {
            Self::Seen(report) => Ok(report.picture()),
            Self::Saved(_) => Err("saved evidence has no picture".to_owned()),
            Self::NotSeen(reason) => Err(reason.clone()),
        }
    }
}

impl std::fmt::Display for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Seen(report) => write!(f, "{report}"),
            Self::Saved(tasks) => write!(f, "{tasks}"),
            Self::NotSeen(reason) => writeln!(f, "Tasks: not seen. {reason}."),
        }
    }
}
