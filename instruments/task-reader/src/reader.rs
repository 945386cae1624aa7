//! Takes snapshots of processes.

use std::time::Duration;

use diagnosis::threads::StillThread;

use crate::Error;
use crate::graph;
use crate::index::Index;
use crate::memory::Memory;
use crate::model::{Snapshot, Standstill, State, Task};
use crate::process::Process;
use crate::runtime::{self, Lists, Runtime};
use crate::shadowed::Bodies;
use crate::task_type::TaskTypes;
use crate::tell;
use crate::types::Types;
use crate::value::Reading;
use crate::walk::Walker;

/// Most stops of a snapshot: a list may be locked at one moment, and memory may come into question that was not copied.
const MOST_STOPS: u32 = 5;

/// Reads the tasks of processes that run one program. What it has learnt of types serves later snapshots.
pub struct Reader<'i, 'a> {
    types: Types<'i, 'a>,
    task_types: TaskTypes,
    bodies: Bodies,
}

impl std::fmt::Debug for Reader<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("index", self.types.index)
            .finish_non_exhaustive()
    }
}

impl<'i, 'a> Reader<'i, 'a> {
    /// Makes a reader for processes of the program with this index.
    pub fn new(index: &'i Index<'a>) -> Self {
        let types = Types::new(index);
        let task_types = TaskTypes::of(&types);
        Self {
            types,
            task_types,
            bodies: Bodies::default(),
        }
    }

    /// Reads all tasks of a process.
    ///
    /// The process stands still while its memory is copied, two times or more: once for a moment to find its threads, and
    /// then for each attempt. In the calling process, the calling thread is left out: it waits for a child process, which stops
    /// the others, and its tasks are at most 10,000.
    ///
    /// # Errors
    ///
    /// Fails if the process may not be read or ends meanwhile, or if this version of tokio has other fields.
    pub fn snapshot(&self, pid: u32) -> Result<Snapshot, Error> {
        let process = Process::new(pid);
        let bias = self.types.index.binary.bias(process)?;
        let memory = Memory::of(process)?;
        let reading = Reading {
            types: &self.types,
            memory: &memory,
            bias,
        };
        let walker = Walker::new(&reading, &self.bodies);
        let mut standstill = Standstill::default();
        let first = process.stand_still(&mut [])?;
        standstill.add(first.took);
        // This walk reads what changes meanwhile: it only finds out what to copy.
        drop(self.attempt(&walker, process, &first.threads)?);
        let (mut attempt, mut moving) = (None, 0);
        while standstill.stops < MOST_STOPS {
            let mut pieces = memory.wanted();
            let still = process.stand_still(&mut pieces)?;
            memory.replace(pieces);
            standstill.add(still.took);
            standstill.bytes = memory.kept();
            moving = still.moving;
            let read = self.attempt(&walker, process, &still.threads)?;
            let is_complete = !read.lists.is_locked && !memory.has_missing();
            attempt = Some(read);
            if is_complete {
                break;
            }
        }
        let Some(Attempt {
            runtimes,
            lists,
            mut tasks,
        }) = attempt
        else {
            return Err(Error::NoProcess(pid));
        };
        let mut not_seen = not_seen(&lists, &tasks, &memory, moving);
        if runtimes.is_empty() {
            not_seen
                .push("any task: no thread of the process is in a runtime of tokio.".to_owned());
        }
        let resources = graph::resources(&mut tasks);
        let circles = graph::circles(&tasks, &resources);
        Ok(Snapshot {
            pid,
            snapshots: 1,
            over: Duration::ZERO,
            runtimes: runtimes.iter().map(|runtime| runtime.flavor).collect(),
            tasks,
            resources,
            circles,
            not_seen,
            standstill,
        })
    }

    fn attempt(
        &self,
        walker: &Walker<'_, '_, '_, '_>,
        process: Process,
        threads: &[StillThread],
    ) -> Result<Attempt, Error> {
        let (runtimes, contexts) = runtime::runtimes(walker.reading, threads)?;
        let lists = runtime::tasks(walker.reading, &runtimes, process)?;
        let mut tasks: Vec<Task> = Vec::new();
        let polled = runtime::polled(walker.reading, &contexts);
        for listed in &lists.tasks {
            let mut task = tell::task(walker, &self.task_types, *listed);
            if task.state == State::Running {
                let thread = polled.iter().find(|(id, _)| *id == task.id);
                task.thread = thread.map(|(_, tid)| *tid);
            }
            tasks.push(task);
        }
        Ok(Attempt {
            runtimes,
            lists,
            tasks,
        })
    }
}

/// One walk over all tasks.
struct Attempt {
    runtimes: Vec<Runtime>,
    lists: Lists,
    tasks: Vec<Task>,
}

impl Standstill {
    fn add(&mut self, took: Duration) {
        self.longest = self.longest.max(took);
        self.stops += 1;
    }
}

/// Says what a snapshot does not show.
fn not_seen(lists: &Lists, tasks: &[Task], memory: &Memory, moving: usize) -> Vec<String> {
    let mut not_seen = vec![
        "futures that `block_on` polls, such as that of `main`, and those of a `LocalSet`: they are in no list of tasks."
            .to_owned(),
    ];
    let running = tasks
        .iter()
        .filter(|task| task.state == State::Running)
        .count();
    if running > 0 {
        not_seen.push(format!(
            "where {running} tasks are that a thread polled at this moment, and what they hold."
        ));
    }
    if lists.is_locked {
        not_seen.push("all tasks: a list was being changed at each of several looks.".to_owned());
    }
    if lists.is_cut {
        not_seen.push(format!("tasks beyond the first {}.", lists.most));
    }
    if memory.is_full() {
        let mib = memory.kept() >> 20;
        not_seen.push(format!("tasks in memory beyond the first {mib} MiB."));
    } else if memory.has_missing() {
        not_seen.push("parts of tasks that began or moved on between several looks.".to_owned());
    }
    if moving > 0 {
        not_seen.push(format!(
            "what {moving} threads changed meanwhile, which did not stop."
        ));
    }
    not_seen
}
