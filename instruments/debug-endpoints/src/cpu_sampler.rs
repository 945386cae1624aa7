//! Samples of the whole process and their symbols, with pprof. Unix only.
//!
//! Chosen knowingly, because each choice hides something else:
//!
//! - **Unwinder**: framehop. Frame pointers lose the leaf frame, and the default unwinder may
//!   deadlock in a signal handler.
//! - **Frequency**: 99 samples a second of CPU time. The timer is the kernel's, so 250 is the
//!   most that a usual kernel gives; a prime-like number does not beat in step with timers.
//! - **Blocklist**: only the unwinding library, whose lock a handler must not take. Many examples
//!   also block `libc`, which would drop every sample inside a system call: in a web service, most.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cpu_time::{ProcessTime, ThreadTime};
use pprof::protos::Message;
use pprof::{Frames, ProfilerGuardBuilder, Report, Symbol, UnresolvedReport};

use crate::cpu_profile::CpuProfile;
use crate::error::EndpointError;
use crate::permit::Permit;

/// CPU time within which the kernel ticks at least once, even at 100 ticks a second.
const A_FEW_TICKS: Duration = Duration::from_millis(40);

/// Has a first sample taken now, by a thread that computes and nothing else.
///
/// pprof builds its unwinder inside the signal handler of the very first sample, and allocates.
/// Under load that handler sooner or later interrupts an allocation, whose lock is then waited for
/// for ever. Called before anything else runs, there is no such lock to interrupt.
pub(crate) fn prime() {
    let Ok(guard) = ProfilerGuardBuilder::default()
        .frequency(250)
        .blocklist(&["libgcc"])
        .build()
    else {
        // The first profile that is asked for will say why.
        return;
    };
    let began = ThreadTime::now();
    let mut number = 0_u64;
    while began.elapsed() < A_FEW_TICKS {
        for _ in 0..10_000 {
            number = std::hint::black_box(number.wrapping_add(1));
        }
    }
    drop(guard);
}

/// Samples for `duration`; `permit` is kept until the last symbol is looked up, also where nobody
/// waits for it any more.
pub(crate) async fn record(
    duration: Duration,
    frequency: u16,
    permit: Permit,
) -> Result<CpuProfile, EndpointError> {
    let guard = ProfilerGuardBuilder::default()
        .frequency(i32::from(frequency))
        .blocklist(&["libgcc"])
        .build()
        .map_err(EndpointError::failed)?;
    let before = ProcessTime::now();
    tokio::time::sleep(duration).await;
    let cpu_time = before.elapsed();
    let addresses = guard
        .report()
        .build_unresolved()
        .map_err(EndpointError::failed)?;
    drop(guard);
    // Symbols take CPU time: on another thread, so that the counters stay in reach.
    let finished = tokio::task::spawn_blocking(move || {
        let profile = finish(addresses, duration, frequency, cpu_time);
        drop(permit);
        profile
    });
    finished.await.map_err(EndpointError::failed)?
}

fn finish(
    addresses: UnresolvedReport,
    duration: Duration,
    frequency: u16,
    cpu_time: Duration,
) -> Result<CpuProfile, EndpointError> {
    let report = resolved(addresses);
    let stacks = folded(&report);
    let busy: u64 = stacks.iter().map(|(_, samples)| samples).sum();
    let cpus = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    let possible = duration.as_secs_f64() * cpus;
    // By the clock of the process, not by counting: samples fall on the kernel's ticks, and work
    // that a timer started on a tick is often done before the next.
    let used = cpu_time.as_secs_f64().min(possible);
    let idle = if busy == 0 {
        possible * f64::from(frequency)
    } else {
        busy as f64 * (possible / used.max(1e-6) - 1.0)
    };
    Ok(CpuProfile {
        pprof: gzipped(
            &report
                .pprof()
                .map_err(EndpointError::failed)?
                .encode_to_vec(),
        )
        .map_err(EndpointError::failed)?,
        // Never negative; less than a whole sample is none.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        idle: idle as u64,
        stacks,
    })
}

/// Names every address once. pprof's own `build` looks each frame of each stack up anew, which
/// takes a saturated server a minute for a few hundred stacks.
///
/// pprof counts a stack by its functions and keeps the addresses of its first sample. So what is
/// inlined into a function is told by that one sample; what is called is told by all.
fn resolved(addresses: UnresolvedReport) -> Report {
    let mut known: HashMap<usize, Vec<Symbol>> = HashMap::new();
    let mut data = HashMap::new();
    for (stack, samples) in addresses.data {
        let frames = stack
            .frames
            .iter()
            .enumerate()
            .map(|(depth, frame)| {
                // Names are looked up for the byte before, which is the call's where a caller is to
                // return to. The innermost frame is at the instruction itself.
                let address = frame.ip + usize::from(depth == 0);
                known
                    .entry(address)
                    .or_insert_with(|| symbols(address))
                    .clone()
            })
            .filter(|symbols| !symbols.is_empty())
            .collect();
        let name = stack.thread_name.get(..stack.thread_name_length);
        let frames = Frames {
            frames,
            thread_name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
            thread_id: stack.thread_id,
            sample_timestamp: stack.sample_timestamp,
        };
        *data.entry(frames).or_insert(0) += samples;
    }
    Report {
        data,
        timing: addresses.timing,
    }
}

/// The functions at an address, innermost first: several where one is inlined into another.
fn symbols(address: usize) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    backtrace::resolve(address as *mut c_void, |symbol| {
        symbols.push(Symbol {
            name: symbol.name().map(|name| name.as_bytes().to_vec()),
            addr: symbol.addr(),
            lineno: symbol.lineno(),
            filename: symbol.filename().map(portable),
        });
    });
    symbols
}

fn folded(report: &Report) -> Vec<(String, u64)> {
    let mut stacks = BTreeMap::<String, u64>::new();
    for (frames, samples) in &report.data {
        let names: Vec<String> = frames
            .frames
            .iter()
            .rev()
            .flat_map(|frame| frame.iter().rev())
            .map(|symbol| symbol.name().replace(';', ","))
            .collect();
        let stack = format!("{};{}", frames.thread_name_or_id(), names.join(";"));
        *stacks.entry(stack).or_default() += u64::try_from(*samples).unwrap_or_default();
    }
    stacks.into_iter().collect()
}

/// A source file as a reader on another machine can find it: relative to the registry or toolchain
/// that it comes from, to the workspace of this crate, or to the folder that its own crate is in.
fn portable(file: &Path) -> PathBuf {
    let this_crate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parts: Vec<_> = file.components().collect();
    let after = |marker: &str, skip: usize| {
        let at = parts.iter().position(|part| part.as_os_str() == marker)?;
        parts.get(at + 1 + skip..).map(|rest| rest.iter().collect())
    };
    // …/registry/src/<index>/<crate>/… and /rustc/<commit>/library/…
    if let Some(known) = after("registry", 2).or_else(|| after("rustc", 1)) {
        return known;
    }
    let workspace = this_crate.ancestors().nth(2);
    if let Some(Ok(inside)) = workspace.map(|root| file.strip_prefix(root)) {
        return inside.to_owned();
    }
    // …/<crate>/src/…
    let source = parts.iter().rposition(|part| part.as_os_str() == "src");
    let within = source.and_then(|at| parts.get(at.checked_sub(1)?..));
    match within {
        Some(within) => within.iter().collect(),
        None => file.file_name().map(PathBuf::from).unwrap_or_default(),
    }
}

fn gzipped(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(bytes)?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_source_names_the_machine_that_it_was_built_on() {
        let cases = [
            (
                "/home/me/.cargo/registry/src/index-1/tokio-1.0.0/src/lib.rs",
                "tokio-1.0.0/src/lib.rs",
            ),
            (
                "/rustc/0123abc/library/core/src/ptr.rs",
                "library/core/src/ptr.rs",
            ),
            ("/home/me/shop/src/pay/card.rs", "shop/src/pay/card.rs"),
            ("/somewhere/else/x.c", "x.c"),
        ];
        for (file, expected) in cases {
            assert_eq!(portable(Path::new(file)), Path::new(expected));
        }
        let this = portable(Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/lib.rs"
        )));
        assert!(
            this.is_relative() && this.ends_with("debug-endpoints/src/lib.rs"),
            "{this:?}"
        );
    }
}
