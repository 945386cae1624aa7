//! A load tool as a child process: pinned, watched, bounded in time, and never left behind.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use tempfile::TempDir;

use crate::limits::FileLimit;
use crate::{Interrupt, Running, Starting, Tail, find, last_lines, processes, program};

/// Interval between looks at the child.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time that a child may run on after its load, before it is stopped.
const GRACE: Duration = Duration::from_secs(30);
/// Largest summary that is read, in bytes. A usual one has some KiB; a longer one is cut, and then cannot be parsed.
const LARGEST_SUMMARY: u64 = 16 << 20;

/// Settings of a tool's run, apart from the load itself.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'s> {
    /// The tool's executable: a path, or a name to look for in `PATH`.
    pub program: &'s Path,
    /// The chapter's script for this tool.
    pub script: &'s Path,
    /// The CPUs that the tool may use (Linux only; elsewhere, and if empty: all).
    pub cpus: &'s [usize],
    /// Latency of an answer without other users, for scripts that compare with it. Without it scripts measure it
    /// themselves, which is wrong if other users are there already.
    pub alone: Option<Duration>,
    /// Ends the run early when set.
    pub interrupt: &'s Interrupt,
}

/// Reason why a run yielded nothing.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The tool or its script is missing, cannot send the load, cannot be run, or leaves no summary that can be read.
    /// The text says which, and what to do.
    #[error("{0}")]
    Failed(String),
    /// Too few file descriptors for the users' connections.
    #[error(transparent)]
    Files(#[from] FileLimit),
    /// The interrupt flag was set.
    #[error("the load was interrupted")]
    Interrupted,
}

impl DriverError {
    /// Returns a function for `map_err`: the tool could not be started or watched.
    pub fn run<E: Display>(tool: &str) -> impl Fn(E) -> Self {
        move |reason| Self::Failed(format!("cannot run {tool}: {reason}"))
    }

    /// Creates the error for a load that the tool's scripts cannot send.
    pub fn load(tool: &str, what: &str) -> Self {
        Self::Failed(format!(
            "{tool} cannot send this load: {what}; use the embedded generator"
        ))
    }

    /// Returns a function for `map_err`: the summary is not what this version of the tool is known to write.
    pub fn summary<E: Display>(tool: &str) -> impl Fn(E) -> Self {
        move |reason| {
            Self::Failed(format!(
                "{tool}'s summary cannot be read: {reason}; another version of it may write another: {}",
                program::to_install(tool)
            ))
        }
    }
}

/// One run of a tool, before it starts.
#[derive(Debug)]
pub struct Task<'s> {
    /// Name of the tool.
    pub tool: &'static str,
    /// Settings of the run.
    pub settings: Settings<'s>,
    /// Time that the load takes by itself, ramp and warm-up included.
    pub whole: Duration,
    /// Recorded part of that time, at the end of the load.
    pub recorded: Duration,
    /// Largest number of CPUs that the tool can use, however many it is given.
    pub most_cpus: usize,
    scratch: TempDir,
}

/// Result of a run that ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// Text that the tool wrote to [`Task::summary_path`].
    pub summary: String,
    /// Exit code; `None` after a signal.
    pub exit_code: Option<i32>,
    /// CPU time over the recorded part, as a share (0 to 1) of what the tool could use; `None` where the system does not
    /// tell.
    pub cpu_share: Option<f64>,
    /// Time that its threads were ready to run but did not run, as a share of the same. They wait for each other, too,
    /// but neither Go nor Python has more of them ready than CPUs.
    pub waited_share: Option<f64>,
}

impl<'s> Task<'s> {
    /// Creates a run that has not started.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool or its script is not there.
    pub fn new(
        tool: &'static str,
        settings: Settings<'s>,
        whole: Duration,
        recorded: Duration,
        most_cpus: usize,
    ) -> Result<Self, DriverError> {
        if find(settings.program).is_none() {
            return Err(DriverError::Failed(format!(
                "{tool} is not at `{}`; {}",
                settings.program.display(),
                program::to_install(tool)
            )));
        }
        if !settings.script.is_file() {
            return Err(DriverError::Failed(format!(
                "there is no {tool} script at `{}`; run this in the folder that has it",
                settings.script.display()
            )));
        }
        let scratch = tempfile::Builder::new()
            .prefix("workshop-")
            .tempdir()
            .map_err(DriverError::run(tool))?;
        Ok(Self {
            tool,
            settings,
            whole,
            recorded,
            most_cpus,
            scratch,
        })
    }

    /// Returns the path to which the tool has to write its summary.
    pub fn summary_path(&self) -> PathBuf {
        self.scratch.path().join("summary.json")
    }

    /// Runs the tool with `arguments` to its end. If it fails, the output of programs `beside` it may say why.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be run, does not end, or leaves no result; or on Ctrl-C.
    pub fn run(
        &self,
        beside: &[Tail],
        arguments: impl FnOnce(&mut Command),
    ) -> Result<Ended, DriverError> {
        let mut command = Command::new(self.settings.program);
        arguments(&mut command);
        let mut child = Starting::of(&command)
            .on(self.settings.cpus)
            .stderr(Stdio::piped())
            .start()
            .map_err(DriverError::run(self.tool))?;
        let said = Tail::of(child.stderr());
        let (status, cpu) = self.watch(&mut child)?;
        let Ok(summary) = self.summary() else {
            let mut others = beside.iter().map(Tail::text);
            let words = match others.find(|text| !text.trim().is_empty()) {
                Some(words) => words,
                None => said.at_the_end(),
            };
            return Err(DriverError::Failed(format!(
                "{} ended without a result ({status}); it said: {}",
                self.tool,
                last_lines(&words).as_deref().unwrap_or("nothing")
            )));
        };
        let (cpu_share, waited_share) = cpu.shares(self.recorded, self.cpus_usable());
        Ok(Ended {
            summary,
            exit_code: status.code(),
            cpu_share,
            waited_share,
        })
    }

    fn summary(&self) -> std::io::Result<String> {
        let mut summary = String::new();
        let file = File::open(self.summary_path())?;
        file.take(LARGEST_SUMMARY).read_to_string(&mut summary)?;
        Ok(summary)
    }

    fn watch(&self, child: &mut Running) -> Result<(ExitStatus, CpuTime), DriverError> {
        let allowed = self.whole + GRACE;
        let start = Instant::now();
        let mut cpu = CpuTime::of(child.id());
        loop {
            if self.settings.interrupt.is_set() {
                return Err(DriverError::Interrupted);
            }
            if let Some(status) = child.try_wait().map_err(DriverError::run(self.tool))? {
                return Ok((status, cpu));
            }
            if start.elapsed() > allowed {
                return Err(DriverError::Failed(format!(
                    "{} was still running {} s after its load should have ended, and was stopped; try \
                     fewer users",
                    self.tool,
                    GRACE.as_secs()
                )));
            }
            cpu.sample();
            std::thread::sleep(LOOK);
        }
    }

    fn cpus_usable(&self) -> usize {
        let given = match self.settings.cpus.len() {
            0 => match std::thread::available_parallelism() {
                Ok(all) => all.get(),
                Err(_) => 1,
            },
            given => given,
        };
        given.min(self.most_cpus)
    }
}

/// Samples of the child's CPU time so far.
struct CpuTime {
    system: System,
    pid: Pid,
    samples: Vec<Sample>,
}

struct Sample {
    at: Instant,
    used: Duration,
    waited: Option<Duration>,
}

impl CpuTime {
    fn of(process: u32) -> Self {
        Self {
            system: System::new(),
            pid: Pid::from_u32(process),
            samples: Vec::new(),
        }
    }

    fn sample(&mut self) {
        let system = &mut self.system;
        system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&[self.pid]),
            false,
            ProcessRefreshKind::nothing().with_cpu().without_tasks(),
        );
        if let Some(process) = system.process(self.pid) {
            let mut waited = processes::all_waited_for_cpu(self.pid.as_u32());
            if let Some(before) = self.samples.last() {
                // Threads that have ended are not counted any more: at the very end, all but one.
                waited = waited.max(before.waited);
            }
            self.samples.push(Sample {
                at: Instant::now(),
                used: Duration::from_millis(process.accumulated_cpu_time()),
                waited,
            });
        }
    }

    /// Returns the time used and the time waited over the last `span` of the child's life, as shares of the time of
    /// `cpus` CPUs. The load was recorded in that span.
    fn shares(&self, span: Duration, cpus: usize) -> (Option<f64>, Option<f64>) {
        let (mut used, mut waited) = (None, None);
        let Some(end) = self.samples.last() else {
            return (used, waited);
        };
        let mut before = self.samples.iter().rev();
        if let Some(start) = before.find(|sample| sample.at + span <= end.at) {
            let all = (end.at - start.at).as_secs_f64() * cpus as f64;
            used = Some(end.used.saturating_sub(start.used).as_secs_f64() / all);
            if let (Some(from), Some(to)) = (start.waited, end.waited) {
                waited = Some(to.saturating_sub(from).as_secs_f64() / all);
            }
        }
        (used, waited)
    }
}
