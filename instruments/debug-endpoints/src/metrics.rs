//! Metrics of runtimes and process, as text for Prometheus.

use std::fmt::Write;

use await_profile::{RouteLatency, WaitCounts, WaitKind};
use tokio::runtime::RuntimeMetrics;

use crate::allocator::Allocator;
use crate::descriptors;
use crate::own_status::{own_status, status_field};
use crate::runtimes::{self, Watched};

/// Last line of a text in the format of `OpenMetrics`.
const END: &str = "# EOF\n";

/// A gauge or a counter that is read when somebody asks.
struct Figure {
    /// Its name, which ends with its unit.
    name: &'static str,
    help: &'static str,
    /// True if it only grows, as seconds of CPU time do.
    is_counter: bool,
    /// Values, each with the name of its runtime if several are watched.
    values: Vec<(Option<String>, f64)>,
}

impl Figure {
    fn of_process(name: &'static str, help: &'static str, value: f64) -> Self {
        Self {
            name,
            help,
            is_counter: false,
            values: vec![(None, value)],
        }
    }

    fn counter(self) -> Self {
        Self {
            is_counter: true,
            ..self
        }
    }

    /// Returns its type. `OpenMetrics` wants names of counters to end with `_total`, and dashboards know these names
    /// without.
    fn kind(&self, is_open_metrics: bool) -> &'static str {
        match (self.is_counter, is_open_metrics) {
            (false, _) => "gauge",
            (true, false) => "counter",
            (true, true) => "unknown",
        }
    }
}

/// Returns the media type, and the service's own text followed by ours. `requests` is the part on requests, `incidents` are
/// numbers of incidents by kind.
pub(crate) fn text(
    own: &str,
    runtimes: &[Watched],
    requests: &Requests,
    incidents: Option<&[(&'static str, u64)]>,
) -> (&'static str, String) {
    let (own, is_open_metrics) = match own.strip_suffix(END) {
        Some(own) => (own, true),
        None => (own, false),
    };
    let mut text = own.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut ours = of_runtimes(runtimes);
    ours.push(Figure::of_process(
        "requests_in_flight",
        "Requests in flight that passed the layer, and bodies of answers that are being sent",
        requests.in_flight as f64,
    ));
    ours.extend(of_process());
    for figure in ours {
        let kind = figure.kind(is_open_metrics);
        let Figure {
            name, help, values, ..
        } = figure;
        // The service may have a gauge of the same name, and no name may be there twice.
        if values.is_empty() || own.contains(&format!("# TYPE {name} ")) {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
        for (runtime, value) in values {
            let _ = match runtime {
                Some(runtime) => writeln!(text, "{name}{{runtime=\"{runtime}\"}} {value}"),
                None => writeln!(text, "{name} {value}"),
            };
        }
    }
    if !own.contains(LATENCY_TYPE) {
        text.push_str(&latencies(&requests.latencies));
    }
    // OpenMetrics declares a counter without the end of its name.
    let total = if is_open_metrics { "" } else { "_total" };
    if let Some(counts) = &requests.waits {
        text.push_str(&waits(counts, total));
    }
    if let Some(incidents) = incidents {
        let help = "Incidents, of which /debug/incidents has the last";
        text.push_str(&declared("process_incidents", total, help));
        for (kind, count) in incidents {
            let _ = writeln!(text, "process_incidents_total{{kind=\"{kind}\"}} {count}");
        }
    }
    if is_open_metrics {
        text.push_str(END);
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        return (kind, text);
    }
    ("text/plain; version=0.0.4; charset=utf-8", text)
}

/// Requests that passed the layer.
pub(crate) struct Requests {
    pub(crate) in_flight: usize,
    pub(crate) latencies: Vec<RouteLatency>,
    /// Counts of waits, if the service has them counted.
    pub(crate) waits: Option<WaitCounts>,
}

/// Returns the lines that declare a counter.
fn declared(name: &str, total: &str, help: &str) -> String {
    format!("# HELP {name}{total} {help}.\n# TYPE {name}{total} counter\n")
}

/// Returns the counted waits: at most 33 routes of 22 kinds, and the delays of polls.
fn waits(counts: &WaitCounts, total: &str) -> String {
    let samples = "Samples behind route_wait_seconds_total";
    let mut text = declared("route_wait_samples", total, samples);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "route_wait_samples_total {}", counts.samples());
    let all = counts.all();
    if !all.is_empty() {
        text.push_str(&declared(
            "route_wait_seconds",
            total,
            "Time that requests spent in each kind of wait (running and ready are no waits), estimated from ten samples \
             a second: a share p of the time in n samples has a standard error of sqrt((1 - p) / (p n)) of itself",
        ));
    }
    for one in all {
        let wait = one.wait.map_or("other", WaitKind::name);
        let _ = writeln!(
            text,
            "route_wait_seconds_total{{route=\"{}\",wait=\"{wait}\"}} {}",
            escaped(&one.route),
            one.seconds
        );
    }
    if let Some(delays) = counts.poll_delays() {
        text.push_str(
            "# HELP request_poll_delay_seconds Time from waking a sampled request to its next poll, which is how late the \
             runtime is; quantiles of the last 30 to 60 seconds.\n# TYPE request_poll_delay_seconds summary\n",
        );
        for (quantile, time) in [("0.5", delays.p50), ("0.99", delays.p99)] {
            let seconds = time.map_or(f64::NAN, |time| time.as_secs_f64());
            let _ = writeln!(
                text,
                "request_poll_delay_seconds{{quantile=\"{quantile}\"}} {seconds}"
            );
        }
        let _ = writeln!(
            text,
            "request_poll_delay_seconds_sum {}\nrequest_poll_delay_seconds_count {}",
            delays.sum.as_secs_f64(),
            delays.timed
        );
    }
    text
}

/// Line that declares the latencies.
const LATENCY_TYPE: &str = "# TYPE route_latency_seconds summary\n";

/// Returns the latencies by route: at most 33 routes of four lines.
fn latencies(routes: &[RouteLatency]) -> String {
    if routes.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "# HELP route_latency_seconds Time from a request's first poll to its answer, of one request in sixteen; \
         quantiles of the last 30 to 60 seconds.\n{LATENCY_TYPE}"
    );
    for latency in routes {
        let route = escaped(&latency.route);
        for (quantile, time) in [("0.5", latency.p50), ("0.99", latency.p99)] {
            let seconds = time.map_or(f64::NAN, |time| time.as_secs_f64());
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "route_latency_seconds{{route=\"{route}\",quantile=\"{quantile}\"}} {seconds}"
            );
        }
        let (sum, timed) = (latency.sum.as_secs_f64(), latency.timed);
        let _ = writeln!(
            text,
            "route_latency_seconds_sum{{route=\"{route}\"}} {sum}\n\
             route_latency_seconds_count{{route=\"{route}\"}} {timed}"
        );
    }
    text
}

/// Returns a label's value, escaped.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', " ")
}

/// Returns the sum of `value` over all workers of a runtime.
fn of_all(runtime: &RuntimeMetrics, value: impl Fn(usize) -> f64) -> f64 {
    (0..runtime.num_workers()).map(value).sum()
}

fn of_runtimes(runtimes: &[Watched]) -> Vec<Figure> {
    let gauge = |name, help, value: fn(&RuntimeMetrics) -> f64| {
        let mut values = Vec::new();
        for one in runtimes {
            let label = match runtimes.len() {
                1 => None,
                _ => Some(escaped(&one.name)),
            };
            values.push((label, value(&one.handle.metrics())));
        }
        Figure {
            name,
            help,
            is_counter: false,
            values,
        }
    };
    let mut gauges = vec![
        gauge("tokio_workers", "Worker threads", |runtime| {
            runtime.num_workers() as f64
        }),
        gauge(
            "tokio_alive_tasks",
            "Tasks spawned and not ended",
            |runtime| runtime.num_alive_tasks() as f64,
        ),
        gauge(
            "tokio_global_queue_depth",
            "Tasks waiting in the injection queue",
            |runtime| runtime.global_queue_depth() as f64,
        ),
        gauge(
            "tokio_worker_parks",
            "Times that workers went to sleep for want of work, all workers",
            |runtime| of_all(runtime, |worker| runtime.worker_park_count(worker) as f64),
        )
        .counter(),
        gauge(
            "tokio_worker_busy_seconds",
            "Time that workers were not parked, all workers",
            |runtime| {
                of_all(runtime, |worker| {
                    runtime.worker_total_busy_duration(worker).as_secs_f64()
                })
            },
        )
        .counter(),
    ];
    #[cfg(tokio_unstable)]
    gauges.extend([
        gauge(
            "tokio_blocking_threads",
            "Threads of the blocking pool",
            |runtime| runtime.num_blocking_threads() as f64,
        ),
        gauge(
            "tokio_blocking_threads_idle",
            "Threads of the blocking pool without a job",
            |runtime| runtime.num_idle_blocking_threads() as f64,
        ),
        gauge(
            "tokio_blocking_queue_depth",
            "Jobs waiting for a thread of the blocking pool",
            |runtime| runtime.blocking_queue_depth() as f64,
        ),
    ]);
    gauges.push(Figure::of_process(
        "tokio_runtimes_watched",
        "Runtimes that these figures and the heartbeat are of",
        runtimes.len() as f64,
    ));
    if let Some(more) = runtimes::event_loops_not_watched(runtimes.len()) {
        gauges.push(Figure::of_process(
            "process_event_loops_not_watched",
            "Event loops, such as further tokio runtimes have, that belong to none of these; at least so many",
            more as f64,
        ));
    }
    gauges
}

fn of_process() -> Vec<Figure> {
    let cpu_time = cpu_time::ProcessTime::now().as_duration().as_secs_f64();
    let mut gauges = vec![
        Figure::of_process(
            "process_cpu_seconds",
            "CPU time of the whole process",
            cpu_time,
        )
        .counter(),
    ];
    let status = own_status().unwrap_or_default();
    for (field, unit, name, help) in OF_STATUS {
        if let Some(number) = status_field(&status, field) {
            gauges.push(Figure::of_process(name, help, number * unit));
        }
    }
    if let Ok(open) = descriptors::open() {
        let help = "File descriptors that are open";
        gauges.push(Figure::of_process("process_open_fds", help, open as f64));
    }
    if let Some(limit) = descriptors::limit() {
        let help = "File descriptors that may be open";
        gauges.push(Figure::of_process("process_max_fds", help, limit as f64));
    }
    // Glibc is not asked: it holds the locks of its arenas while it counts.
    if let Some(allocator @ Allocator::Jemalloc) = Allocator::of_this_process()
        && let Some(bytes) = allocator.live()
    {
        let help = "Memory that is allocated and not freed";
        gauges.push(Figure::of_process(
            "process_live_memory_bytes",
            help,
            bytes as f64,
        ));
    }
    gauges
}

/// Fields of `/proc/self/status` that are gauges, each with the size of its unit, its name and its help.
const OF_STATUS: [(&str, f64, &str, &str); 3] = [
    (
        "Threads:",
        1.0,
        "process_threads",
        "Threads of the whole process",
    ),
    (
        "VmRSS:",
        1024.0,
        "process_resident_memory_bytes",
        "Memory that the process has resident",
    ),
    (
        "VmHWM:",
        1024.0,
        "process_memory_peak_bytes",
        "Most memory that the process had resident",
    ),
];

/// Prepares the metrics while file descriptors are left and the heap is small. Both may change before somebody asks.
pub(crate) fn prepare() {
    own_status();
    descriptors::limit();
    Allocator::of_this_process();
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_REQUESTS: Requests = Requests {
        in_flight: 0,
        latencies: Vec::new(),
        waits: None,
    };

    #[test]
    fn what_the_service_counts_itself_is_not_there_twice_and_the_end_stays_the_end() {
        let own = "# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total 1\n# EOF\n";
        let (kind, text) = text(own, &[], &NO_REQUESTS, Some(&[("late", 2)]));
        assert!(kind.starts_with("application/openmetrics-text"));
        assert_eq!(text.matches("# TYPE process_cpu_seconds ").count(), 1);
        assert!(
            text.contains("# TYPE process_incidents counter\n"),
            "{text}"
        );
        assert!(
            text.contains("process_incidents_total{kind=\"late\"} 2\n"),
            "{text}"
        );
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn what_only_grows_is_a_counter_and_what_also_falls_is_a_gauge() {
        let (_, plain) = text("", &[], &NO_REQUESTS, None);
        for line in [
            "# TYPE process_cpu_seconds counter\n",
            "# TYPE requests_in_flight gauge\n",
        ] {
            assert!(plain.contains(line), "no {line} in {plain}");
        }
        assert!(!plain.contains("process_cpu_seconds gauge"));
        let (_, open) = text("# EOF\n", &[], &NO_REQUESTS, None);
        assert!(
            open.contains("# TYPE process_cpu_seconds unknown\nprocess_cpu_seconds "),
            "{open}"
        );
    }

    #[test]
    fn plain_text_stays_plain_and_ours_begins_on_a_line_of_its_own() {
        let (kind, text) = text("queries_total 3", &[], &NO_REQUESTS, None);
        assert!(kind.starts_with("text/plain"));
        assert!(text.starts_with("queries_total 3\n# HELP "), "{text}");
        assert!(!text.contains("# EOF"));
    }
}
