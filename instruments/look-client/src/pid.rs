//! A look at any process from outside: its threads, sockets, memory and descriptors, judged by the rules of `look`.

mod names;
mod report;
mod target;
mod tasks;
mod watch;

use std::time::Duration;

use diagnosis::Evidence;
use ecosystem::printable;
use terminal::exit::{CliError, Exit};
use terminal::json;
use terminal::output::Format;

use self::report::Outside;
use self::target::Target;
use self::tasks::Tasks;
use crate::{Look, Which, saved};

/// Looks at the process, and prints the report.
///
/// # Errors
///
/// Fails if there is no such process, several have the name, or nobody can look at it.
pub(crate) fn run(which: Which<'_>, options: &Look) -> Result<Exit, CliError> {
    let target = match which {
        Which::Pid(pid) => Target::by_pid(pid)?,
        Which::Name(name) => Target::by_name(name)?,
    };
    let seen = watch::watch(&target, Duration::from_secs_f64(options.seconds));
    // After the look at threads: only one process can stop a thread.
    let tasks = Tasks::of(target.process);
    saved::keep(&seen, options)?;
    print(&seen, tasks, options.output.format)
}

/// Prints the report on a process that was seen from outside, with its tasks if they were read.
pub(crate) fn print(
    seen: &Evidence,
    tasks: Option<Tasks>,
    format: Format,
) -> Result<Exit, CliError> {
    let outside = Outside::new(seen, tasks);
    match format {
        Format::Json => json::print(&outside)?,
        // A program must not control the reader's terminal by its names.
        Format::Human => println!("{}", printable(outside.to_string().trim_end())),
    }
    Ok(Exit::Good)
}
