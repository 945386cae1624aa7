//! All tasks of this process: where each waits, what it holds, and who waits for whom. Linux only.

mod page;

use std::time::Duration;

use diagnosis::evidence::Tasks;
use diagnosis::printable;
use serde::Deserialize;
use task_reader::{Binary, Error, Index, Reader, Report, SNAPSHOTS};
use tokio::sync::Mutex;

use crate::answer::Answer;
use crate::error::EndpointError;
use crate::memory_left;
use crate::own_thread::OwnThread;
use crate::permit;

static THREAD: OwnThread = OwnThread::new("tasks");

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Time of the snapshots in a look.
const OF_LOOK: Duration = Duration::from_secs(1);

/// Most resources and holders that a look names.
const MOST_LINES: usize = 3;

/// Parameters of a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    /// Part of a function's name that the shown tasks have in their stacks.
    of: Option<String>,
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Json,
    Html,
    Svg,
}

/// Returns one snapshot of all tasks, in the form that was asked for.
pub(crate) async fn answer(request: Request) -> Result<Answer, EndpointError> {
    let snapshot = read(|reader, pid, _| reader.snapshot(pid));
    let report = snapshot.await?;
    THREAD
        .run(move |_| shown(&Report::new(&report, request.of.as_deref()), request.format))
        .await?
}

/// Takes ten snapshots within a second, and returns who waits for whom and what tasks wait in a circle: in lines for people,
/// and as evidence. Nothing in a build without types, or if somebody else looks at tasks: `/debug/tasks` says why.
pub(crate) async fn watch() -> Option<(Vec<String>, Tasks)> {
    let pause = OF_LOOK / SNAPSHOTS;
    let seen = read(move |reader, pid, is_awaited| reader.watch(pid, pause, is_awaited));
    let (snapshot, tasks) = seen.await.ok()?;
    Some((Report::new(&snapshot, None).lines(MOST_LINES), tasks))
}

/// Reads the tasks on a thread of its own: the runtime may be what is stuck. The index of the program's types takes most of the
/// memory, and is built again for each request.
async fn read<Seen: Send + 'static>(
    look: impl FnOnce(&Reader<'_, '_>, u32, &dyn Fn() -> bool) -> Result<Seen, Error> + Send + 'static,
) -> Result<Seen, EndpointError> {
    memory_left::is_enough_for_tasks()?;
    let permit = permit::take(&ONE_AT_A_TIME, "look at tasks")?;
    let seen = THREAD.run(move |is_awaited| {
        let pid = std::process::id();
        let read = Binary::of_process(pid).and_then(|binary| {
            let index = Index::new(&binary)?;
            look(&Reader::new(&index), pid, is_awaited)
        });
        drop(permit);
        read
    });
    seen.await?.map_err(|error| match error {
        Error::NoTypes { .. }
        | Error::NoRuntime(_)
        | Error::InLibrary(_)
        | Error::Copies
        | Error::Unreadable { .. } => EndpointError::WithoutTypes(sentence(&error)),
        _ => EndpointError::Unavailable(sentence(&error)),
    })
}

/// Returns an error as text for a terminal: it may have a file's name.
fn sentence(error: &Error) -> String {
    printable(&error.to_string())
}

fn shown(report: &Report, format: Option<Format>) -> Result<Answer, EndpointError> {
    Ok(match format {
        None => Answer::text(printable(&report.to_string())),
        Some(Format::Json) => Answer::json(report)?,
        Some(Format::Html) => page::answer(report),
        Some(Format::Svg) => Answer::svg(report.picture()),
    })
}
