//! Samples of the whole process, with pprof. Unix only.
//!
//! Chosen knowingly, because each choice hides something else:
//!
//! - **Unwinder**: framehop. Frame pointers lose the leaf frame, and the default unwinder may
//!   deadlock in a signal handler.
//! - **Frequency**: 99 samples a second of CPU time. The timer is the kernel's, so 250 is the
//!   most that a usual kernel gives; a prime-like number does not beat in step with timers.
//! - **Blocklist**: only the unwinding library, whose lock a handler must not take. Many examples
//!   also block `libc`, which would drop every sample inside a system call: in a web service, most.
//!
//! Nothing of it is touched before somebody asks: pprof's tables and its unwinder's take tens of megabytes.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use cpu_time::ProcessTime;
use pprof::{ProfilerGuard, ProfilerGuardBuilder};
use tempfile::NamedTempFile;

use crate::cpu_names;
use crate::cpu_profile::CpuProfile;
use crate::error::EndpointError;
use crate::own_thread::OwnThread;
use crate::permit::Permit;
use crate::sigprof::{self, Disposition};

/// No timer is started by it, since the system refuses negative times.
const NO_TIMER: i32 = -1;

static THREAD: OwnThread = OwnThread::new("cpu-profiles");

/// Samples for `duration`; `permit` is kept until the last symbol is looked up, also where nobody
/// waits for it any more.
pub(crate) async fn record(
    duration: Duration,
    frequency: u32,
    permit: Permit,
) -> Result<CpuProfile, EndpointError> {
    let sampling = THREAD
        .run(move |_| Sampling::begin(frequency, permit))
        .await??;
    let before = ProcessTime::now();
    tokio::time::sleep(duration).await;
    let cpu_time = before.elapsed();
    let finished = THREAD.run(move |_| {
        let (addresses, _permit) = sampling.end()?;
        Ok(cpu_names::profile(addresses, duration, frequency, cpu_time))
    });
    finished.await?
}

/// A running profiler; it stops when this is dropped.
struct Sampling {
    running: Option<Running>,
    permit: Option<Permit>,
}

/// A profiler, and what is to be done on its signal once it has stopped.
type Running = (ProfilerGuard<'static>, Option<Disposition>);

/// A profiler that could not be stopped, because the folder that it needs for it was gone.
static STUCK: Mutex<Option<Running>> = Mutex::new(None);

impl Sampling {
    fn begin(frequency: u32, permit: Permit) -> Result<Self, EndpointError> {
        // pprof keeps what overflows its tables in a file. Where it cannot make one it fails for good.
        can_make_files()?;
        let stuck = STUCK.lock().unwrap_or_else(PoisonError::into_inner).take();
        let before = match stuck {
            Some((guard, before)) => {
                drop(guard);
                before
            }
            None => Disposition::now(),
        };
        // The file of the last time was removed. Starting and stopping makes a new one.
        let fresh = profiler(NO_TIMER)?;
        prime();
        let before = stop((fresh, before))?;
        let guard = profiler(i32::try_from(frequency).unwrap_or(i32::MAX))?;
        Ok(Self {
            running: Some((guard, before)),
            permit: Some(permit),
        })
    }

    /// What was sampled, and the permit.
    fn end(mut self) -> Result<(pprof::UnresolvedReport, Option<Permit>), EndpointError> {
        let running = self.running.as_ref();
        let report = running.map(|(guard, _)| guard.report().build_unresolved());
        let permit = self.permit.take();
        drop(self);
        let report = report.ok_or_else(|| EndpointError::failed("it was stopped"))?;
        Ok((report.map_err(EndpointError::failed)?, permit))
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        // Stopping makes another file, which would outlive the process: nobody closes what is static. pprof tells
        // its name to nobody, but it is surely among those that appear meanwhile.
        for _ in 0..5 {
            let folder = tempfile::env::temp_dir();
            let earlier = empty_files(&folder).unwrap_or_default();
            let Ok(before) = stop(running) else { return };
            let later = empty_files(&folder).unwrap_or_default();
            let mut new = later.difference(&earlier);
            match (new.next(), new.next()) {
                // No matter if it is gone already.
                (Some(ours), None) => drop(std::fs::remove_file(ours)),
                // Others make such files, too, just now: which one is ours cannot be told. Again.
                (Some(_), Some(_)) => {
                    let Ok(guard) = profiler(NO_TIMER) else {
                        return;
                    };
                    running = (guard, before);
                    continue;
                }
                (None, _) => {}
            }
            return;
        }
        drop(stop(running));
    }
}

/// Stops a profiler, for which it needs another file.
fn stop((guard, before): Running) -> Result<Option<Disposition>, EndpointError> {
    let possible = can_make_files();
    if possible.is_ok() {
        drop(guard);
        return Ok(before);
    }
    *STUCK.lock().unwrap_or_else(PoisonError::into_inner) = Some((guard, before));
    possible.map(|()| None)
}

fn can_make_files() -> Result<(), EndpointError> {
    let made = NamedTempFile::new().map(drop);
    made.map_err(|error| {
        EndpointError::Unavailable(format!(
            "a CPU profile needs a file in the folder for temporary files, and none can be made in {} ({error}): \
             make it writable, or start the service with TMPDIR set to a folder that is, and ask again",
            tempfile::env::temp_dir().display()
        ))
    })
}

fn profiler(frequency: i32) -> Result<ProfilerGuard<'static>, EndpointError> {
    let builder = ProfilerGuardBuilder::default().frequency(frequency);
    let built = builder.blocklist(&["libgcc"]).build();
    built.map_err(|error| match error {
        pprof::Error::Running => EndpointError::Unavailable(
            "the CPU profiler is in use or could not be stopped: if nothing else in this process takes profiles with \
             pprof, start the service anew"
                .to_owned(),
        ),
        other => EndpointError::failed(other),
    })
}

/// Has the very first sample taken of this thread, which holds no lock, while a profiler without a timer runs.
///
/// pprof builds its unwinder inside the signal handler of that sample, and allocates. If the handler interrupted an
/// allocation, as sooner or later it would under load, it would wait for ever for the lock of that.
fn prime() {
    static ONCE: Once = Once::new();
    ONCE.call_once(sigprof::raise);
}

/// Files in `folder` that look like one of pprof's with nothing in it.
fn empty_files(folder: &Path) -> io::Result<HashSet<PathBuf>> {
    let is_one = |file: &std::fs::DirEntry| {
        let name = file.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(".tmp"));
        let is_name = name.is_some_and(|rest| rest.len() == 6);
        is_name
            && file
                .metadata()
                .is_ok_and(|file| file.is_file() && file.len() == 0)
    };
    let files = std::fs::read_dir(folder)?.flatten().filter(is_one);
    Ok(files.map(|file| file.path()).collect())
}
