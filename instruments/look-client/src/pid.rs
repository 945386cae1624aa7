//! A look at any process from outside: its threads, sockets, memory and descriptors, judged by the rules of `look`.

mod names;
mod report;
mod sockets;
mod target;
mod tasks;
mod watch;

use std::path::Path;
use std::time::Duration;

use diagnosis::Evidence;
use ecosystem::printable;
use terminal::exit::{CliError, Exit};
use terminal::json;
use terminal::output::Format;

use self::report::Outside;
use self::target::Target;
use self::tasks::Tasks;
use crate::Which;

/// Looks at the process for this time.
///
/// # Errors
///
/// Fails if there is no such process, several have the name, or nobody can look at it.
pub(crate) fn look(
    which: Which<'_>,
    time: Duration,
) -> Result<(Evidence, Option<Tasks>), CliError> {
    let target = match which {
        Which::Pid(pid) => Target::by_pid(pid)?,
        Which::Name(name) => Target::by_name(name)?,
    };
    let mut seen = watch::watch(&target, time);
    // After the look at threads: only one process can stop a thread.
    let tasks;
    (tasks, seen.tasks) = Tasks::of(target.process);
    Ok((seen, tasks))
}

/// Writes a picture of who waits for whom.
///
/// # Errors
///
/// Fails if the tasks were not read, or the file cannot be written.
pub(crate) fn draw(tasks: Option<&Tasks>, file: &Path) -> Result<(), CliError> {
    let picture = match tasks {
        Some(tasks) => tasks.picture(),
        None => Err("its program does not use tokio".to_owned()),
    };
    let picture =
        picture.map_err(|why| CliError::invalid(format!("no picture of tasks: {why}")))?;
    std::fs::write(file, picture)
        .map_err(|error| CliError::usage(format!("--svg {}: {error}", file.display())))
}

/// Prints the report on saved evidence of a process that was seen from outside.
pub(crate) fn print_saved(seen: &Evidence, format: Format) -> Result<Exit, CliError> {
    let tasks = seen.tasks.clone();
    print(
        seen,
        tasks.map(|tasks| Tasks::Saved(Box::new(tasks))),
        format,
    )
}

/// Prints the report on a process that was seen from outside, with its tasks if they were read.
pub(crate) fn print(
    seen: &Evidence,
    tasks: Option<Tasks>,
    format: Format,
) -> Result<Exit, CliError> {
    let outside = Outside::new(seen, tasks);
    match format {
        Format::Json => json::print_as("process", &outside)?,
        // A program must not control the reader's terminal by its names.
        Format::Human => println!("{}", printable(outside.to_string().trim_end())),
    }
    Ok(Exit::Good)
}
