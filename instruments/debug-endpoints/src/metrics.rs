//! What the runtime and the system keep, as text for Prometheus.

use std::fmt::Write;
#[cfg(target_os = "linux")]
use std::{fs::File, os::unix::fs::FileExt, sync::OnceLock};

use tokio::runtime::Handle;

/// Ends a text in the format of `OpenMetrics`.
const END: &str = "# EOF\n";

/// A gauge that is read when it is asked for: its name, with its unit at the end, its help and its value.
type Gauge = (&'static str, &'static str, f64);

/// The service's own text, and ours after it; and the media type of both.
pub(crate) fn text(own: &str, runtime: Option<&Handle>) -> (&'static str, String) {
    let (own, is_open_metrics) = match own.strip_suffix(END) {
        Some(own) => (own, true),
        None => (own, false),
    };
    let mut text = own.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut ours = runtime.map(of_runtime).unwrap_or_default();
    ours.extend(of_process());
    for (name, help, value) in ours {
        // The service may count the same by the same name, and nothing may be there twice.
        if !own.contains(&format!("# TYPE {name} ")) {
            // Into a string, which cannot fail.
            let _ = writeln!(
                text,
                "# HELP {name} {help}.\n# TYPE {name} gauge\n{name} {value}"
            );
        }
    }
    if is_open_metrics {
        text.push_str(END);
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        return (kind, text);
    }
    ("text/plain; version=0.0.4; charset=utf-8", text)
}

#[allow(clippy::cast_precision_loss)] // Counts far below 2^53.
fn of_runtime(runtime: &Handle) -> Vec<Gauge> {
    let runtime = runtime.metrics();
    let workers = runtime.num_workers();
    let parks: u64 = (0..workers).map(|w| runtime.worker_park_count(w)).sum();
    vec![
        ("tokio_workers", "Worker threads", workers as f64),
        (
            "tokio_alive_tasks",
            "Tasks spawned and not ended",
            runtime.num_alive_tasks() as f64,
        ),
        (
            "tokio_global_queue_depth",
            "Tasks waiting in the injection queue",
            runtime.global_queue_depth() as f64,
        ),
        (
            "tokio_worker_parks",
            "Times that workers went to sleep for want of work, all workers",
            parks as f64,
        ),
        (
            "tokio_worker_busy_seconds",
            "Time that workers were not parked, all workers",
            (0..workers)
                .map(|w| runtime.worker_total_busy_duration(w).as_secs_f64())
                .sum(),
        ),
    ]
}

fn of_process() -> Vec<Gauge> {
    let cpu_time = cpu_time::ProcessTime::now().as_duration().as_secs_f64();
    #[allow(unused_mut)] // Elsewhere than on Linux.
    let mut gauges = vec![(
        "process_cpu_seconds",
        "CPU time of the whole process",
        cpu_time,
    )];
    #[cfg(target_os = "linux")]
    {
        let status = own_status().unwrap_or_default();
        let mut told = |field, factor, name, help| {
            let number = status_field(&status, field);
            gauges.extend(number.map(|number| (name, help, number * factor)));
        };
        let threads = "Threads of the whole process";
        told("Threads:", 1.0, "process_threads", threads);
        let resident = "Memory that the process has resident";
        told("VmRSS:", 1024.0, "process_resident_memory_bytes", resident);
        let most = "Most memory that the process had resident";
        told("VmHWM:", 1024.0, "process_memory_peak_bytes", most);
    }
    gauges
}

/// The text of `/proc/self/status`, from a file that stays open: a service that is out of file descriptors
/// is one to ask.
#[cfg(target_os = "linux")]
fn own_status() -> Option<String> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let file = FILE.get_or_init(|| File::open("/proc/self/status").ok());
    // The kernel writes it anew for whoever reads at its beginning, some 1,500 bytes.
    let mut text = vec![0; 8192];
    let length = file.as_ref()?.read_at(&mut text, 0).ok()?;
    text.truncate(length);
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Opens now what may not be opened any more when somebody asks.
pub(crate) fn prepare() {
    #[cfg(target_os = "linux")]
    own_status();
}

/// The number after `name` in the text of `/proc/self/status`.
#[cfg(target_os = "linux")]
fn status_field(status: &str, name: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_service_counts_itself_is_not_there_twice_and_the_end_stays_the_end() {
        let own = "# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total 1\n# EOF\n";
        let (kind, text) = text(own, None);
        assert!(kind.starts_with("application/openmetrics-text"));
        assert_eq!(text.matches("# TYPE process_cpu_seconds ").count(), 1);
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn plain_text_stays_plain_and_ours_begins_on_a_line_of_its_own() {
        let (kind, text) = text("queries_total 3", None);
        assert!(kind.starts_with("text/plain"));
        assert!(
            text.starts_with("queries_total 3\n# HELP process_cpu_seconds "),
            "{text}"
        );
        assert!(!text.contains("# EOF"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_threads_and_memory() {
        let status = own_status().expect("this is Linux");
        assert!(status_field(&status, "Threads:").is_some_and(|threads| threads >= 1.0));
        assert!(status_field(&status, "VmHWM:").is_some_and(|kib| kib > 100.0));
        assert_eq!(status_field(&status, "NoSuch:"), None);
    }
}
