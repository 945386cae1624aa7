//! Takes snapshots of processes.

use std::collections::HashMap;
use std::time::Duration;

use diagnosis::threads::StillThread;

use crate::Error;
use crate::calls::{self, Calls};
use crate::drops::Drops;
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
        let drops = Drops::default();
        let mut standstill = Standstill::default();
        let first = process.stand_still(&mut [])?;
        standstill.add(first.took);
        // This walk reads what changes meanwhile: it only finds out what to copy.
        let outline = self.attempt(&walker, &drops, process, &first.threads)?;
        ask_for_next_holders(&memory, &outline.tasks);
        drops.begin(&outline.tasks);
        drop(outline);
        let (mut attempt, mut moving) = (None, 0);
        while standstill.stops < MOST_STOPS {
            let mut pieces = memory.wanted();
            let still = process.stand_still(&mut pieces)?;
            memory.replace(pieces);
            standstill.add(still.took);
            standstill.bytes = memory.kept();
            moving = still.moving;
            let read = self.attempt(&walker, &drops, process, &still.threads)?;
            let is_complete = !read.lists.is_locked && !memory.has_missing();
            drops.begin(&read.tasks);
            attempt = Some(read);
            if is_complete {
                break;
            }
        }
        let Some(Attempt {
            runtimes,
            lists,
            mut tasks,
            threads,
            blocked_on,
        }) = attempt
        else {
            return Err(Error::NoProcess(pid));
        };
        self.add_calls(pid, bias, &memory, &threads, &mut tasks);
        let mut not_seen = not_seen(&lists, &tasks, &memory, moving, blocked_on);
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
        drops: &Drops,
        process: Process,
        threads: &[StillThread],
    ) -> Result<Attempt, Error> {
        let (runtimes, contexts) = runtime::runtimes(walker.reading, threads)?;
        let lists = runtime::tasks(walker.reading, &runtimes, process)?;
        let mut tasks: Vec<Task> = Vec::new();
        let polled = runtime::polled(walker.reading, &contexts);
        for listed in &lists.tasks {
            let mut task = tell::task(walker, &self.task_types, drops, *listed);
            if task.state == State::Running {
                let thread = polled.iter().find(|(id, _)| *id == task.id);
                task.thread = thread.map(|(_, tid)| *tid);
                let thread = threads
                    .iter()
                    .find(|thread| Some(thread.tid) == task.thread);
                if let Some(thread) = thread {
                    calls::ask(walker.reading.memory, thread);
                }
            }
            tasks.push(task);
        }
        Ok(Attempt {
            runtimes,
            lists,
            tasks,
            threads: threads.to_vec(),
            blocked_on: runtime::blocked_on(walker.reading, &contexts),
        })
    }

    /// Adds what the threads do that poll the running tasks.
    fn add_calls(
        &self,
        pid: u32,
        bias: u64,
        memory: &Memory,
        threads: &[StillThread],
        tasks: &mut [Task],
    ) {
        let mut calls = None;
        for task in tasks.iter_mut().filter(|task| task.state == State::Running) {
            let thread = threads
                .iter()
                .find(|thread| Some(thread.tid) == task.thread);
            let Some(thread) = thread else { continue };
            let calls = calls.get_or_insert_with(|| Calls::new(self.types.index.binary, pid, bias));
            task.frames = calls.of_task(memory, thread);
            if task.frames.is_empty() {
                task.not_seen.push("the stack of its thread".to_owned());
            }
        }
    }
}

/// Asks for all memory of the tasks that wait for what others hold or wait for, too. By the time of the copy, one of them may
/// hold it, and whether it does can only be said if all of its memory is known.
fn ask_for_next_holders(memory: &Memory, tasks: &[Task]) {
    let mut concerned: HashMap<u64, usize> = HashMap::new();
    for task in tasks {
        let waits = task.waits.iter().filter_map(|wait| wait.address);
        for address in waits.chain(task.holds.iter().map(|hold| hold.address)) {
            *concerned.entry(address).or_default() += 1;
        }
    }
    for task in tasks {
        let mut waits = task.waits.iter().filter_map(|wait| wait.address);
        if waits.any(|address| concerned.get(&address).is_some_and(|tasks| *tasks > 1)) {
            for range in &task.memory {
                if memory.is_half_full() {
                    return;
                }
                memory.ask(range);
            }
        }
    }
}

/// One walk over all tasks.
struct Attempt {
    runtimes: Vec<Runtime>,
    lists: Lists,
    tasks: Vec<Task>,
    threads: Vec<StillThread>,
    /// Number of threads in `block_on`, if it is known.
    blocked_on: Option<usize>,
}

impl Standstill {
    fn add(&mut self, took: Duration) {
        self.longest = self.longest.max(took);
        self.stops += 1;
    }
}

/// Says what a snapshot does not show.
fn not_seen(
    lists: &Lists,
    tasks: &[Task],
    memory: &Memory,
    moving: usize,
    blocked_on: Option<usize>,
) -> Vec<String> {
    let threads = match blocked_on {
        Some(1) => " of 1 thread".to_owned(),
        Some(threads) => format!(" of {threads} threads"),
        None => String::new(),
    };
    let mut not_seen = Vec::new();
    if blocked_on != Some(0) {
        not_seen.push(format!(
            "the futures{threads} in `block_on`, such as that of `main`, and tasks of a `LocalSet`: they are in no list."
        ));
    }
    let running = tasks.iter().filter(|task| task.state == State::Running);
    match running.count() {
        0 => {}
        1 => not_seen.push("what 1 running task holds.".to_owned()),
        running => not_seen.push(format!("what {running} running tasks hold.")),
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
