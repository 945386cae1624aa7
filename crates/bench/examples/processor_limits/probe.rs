//! A process of its own that counts, under a limit that was set for it.

use std::error::Error;
use std::io::{BufRead, Read, Write};
use std::process::{Child, Command, Stdio};

use bench::counters::{Counts, Usable};
use loadgen::cpus;
use serde::{Deserialize, Serialize};

use crate::cgroup::Group;

/// The argument that makes this program the process that counts.
pub(crate) const COUNT: &str = "count";

/// What a process found.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Said {
    /// What it may use, before it pinned anything.
    pub(crate) usable: Usable,
    pub(crate) counts: Counts,
}

/// What the process does: it asks for the counts,
pub(crate) const ASK: &str = "ask";
/// pins its main thread before that,
pub(crate) const PIN_THEN_ASK: &str = "pin-then-ask";
/// or asks, pins itself, and asks again.
pub(crate) const ASK_THEN_PIN: &str = "ask-then-pin";

/// What limits it from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Under<'a> {
    Nothing,
    /// It may run on these CPUs.
    Affinity(&'a [usize]),
    /// It is a member of this group.
    Group(&'a Group),
}

/// Starts a process under a limit and returns what it counts.
pub(crate) fn run(order: &str, under: Under<'_>) -> Result<Said, String> {
    let answer = answer(&[COUNT, order], under)?;
    serde_json::from_str(&answer).map_err(|error| format!("it counted nothing: {error}"))
}

/// Starts this program again under a limit and returns what it prints.
pub(crate) fn answer(arguments: &[&str], under: Under<'_>) -> Result<String, String> {
    let mut child = start(arguments, under).map_err(|error| error.to_string())?;
    if let Under::Group(group) = under {
        group.add(child.id())?;
    }
    // It waits for this line, so that it does nothing before the limit holds.
    let mut stdin = child.stdin.take().ok_or("it has no standard input")?;
    stdin
        .write_all(b"begin\n")
        .map_err(|error| error.to_string())?;
    let mut text = String::new();
    let mut stdout = child.stdout.take().ok_or("it has no standard output")?;
    let read = stdout.read_to_string(&mut text);
    child.wait().map_err(|error| error.to_string())?;
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

fn start(arguments: &[&str], under: Under<'_>) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(arguments)
        .env_remove("TOKIO_WORKER_THREADS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let Under::Affinity(only) = under else {
        return command.spawn();
    };
    // A child may run where the thread may that starts it: pin one for this.
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            cpus::pin_current_thread(only).map_err(std::io::Error::other)?;
            command.spawn()
        });
        pinned
            .join()
            .unwrap_or_else(|_| Err(std::io::Error::other("the starting thread panicked")))
    })
}

/// Waits until whoever started this process has set its limit.
pub(crate) fn wait_for_limit() -> std::io::Result<()> {
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .map(drop)
}

/// The process that counts.
pub(crate) fn count(order: &str) -> Result<(), Box<dyn Error>> {
    wait_for_limit()?;
    let usable = Usable::here();
    if order == ASK_THEN_PIN {
        Counts::now();
    }
    if order != ASK {
        cpus::pin_current_thread(&cpus::available()[..1])?;
    }
    let counts = Counts::now();
    println!("{}", serde_json::to_string(&Said { usable, counts })?);
    Ok(())
}
