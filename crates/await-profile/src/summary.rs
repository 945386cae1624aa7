//! The figures of a profile.

use hdrhistogram::Histogram;

use crate::profile::{Profile, millis};
use crate::sampler::SeenAs;

/// The figures of a profile. Times are in the unit that their name ends in.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Summary {
    /// How long was sampled.
    pub seconds: f64,
    /// Requests that were to be looked at a second.
    pub budget_per_second: u32,
    /// Moments a second at which a look was taken, whether or not anything was in
    /// flight.
    pub true_rate_per_second: f64,
    /// What the samples found.
    pub samples: Samples,
    /// Requests in flight, averaged over time.
    pub mean_in_flight: f64,
    /// Requests finished during the profile.
    pub finished: u64,
    /// Mean time of a request by Little's law; none if none finished.
    pub mean_latency_ms: Option<f64>,
    /// Requests that had begun before the profile and first became known during
    /// it. None while the profiler was armed before they began.
    pub late_requests: u64,
    /// How long those had been in flight unseen, all together.
    pub unseen_request_seconds: f64,
    /// From asking a waiting request to its poll.
    pub scheduling_delay_us: Quantiles,
    /// Of one capture of a call stack.
    pub capture_cost_us: Quantiles,
    /// The one with most requests in flight first.
    pub routes: Vec<RouteSummary>,
}

/// How many samples found what. Their sum is all moments that were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Samples {
    /// A request waiting, and where.
    pub waiting: u64,
    /// A request woken and not yet polled.
    pub ready: u64,
    /// A request being polled.
    pub running: u64,
    /// A request waiting, which something else woke before it could be asked where.
    pub woken_first: u64,
    /// A request waiting, which ended before it could be asked where.
    pub finished_first: u64,
    /// A request pending that kept no waker when polled.
    pub unregistered: u64,
    /// A response body whose next piece the server had not asked for.
    pub unasked: u64,
    /// A request waiting, which its executor did not poll before the profile ended.
    pub unanswered: u64,
    /// Nothing in flight.
    pub idle: u64,
    /// Moments passed over because the sampler itself got no processor. Not
    /// sampled, so not part of the sum.
    pub missed: u64,
}

impl Samples {
    /// All samples that fell on a request.
    pub fn of_requests(&self) -> u64 {
        self.waiting
            + self.ready
            + self.running
            + self.woken_first
            + self.finished_first
            + self.unregistered
            + self.unasked
            + self.unanswered
    }
}

/// Figures of one route.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RouteSummary {
    /// Its label.
    pub route: String,
    /// Samples that fell on it.
    pub samples: u64,
    /// Its share of all requests in flight, between 0 and 1.
    pub share: f64,
    /// Requests in flight, averaged over time.
    pub mean_in_flight: f64,
    /// Requests finished during the profile.
    pub finished: u64,
    /// Requests dropped before they finished, as when a client goes away.
    pub dropped: u64,
    /// Mean time of a request by Little's law.
    pub latency_ms: Option<f64>,
    /// Mean time of the requests that both began and finished during the profile,
    /// measured on every sixteenth.
    /// Too small where requests take about as long as the profile.
    pub measured_latency_ms: Option<f64>,
}

/// A distribution in brief.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Quantiles {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

impl Quantiles {
    fn micros(nanos: &Histogram<u64>) -> Self {
        let micros = |value: u64| value as f64 / 1e3;
        Quantiles {
            count: nanos.len(),
            mean: nanos.mean() / 1e3,
            p50: micros(nanos.value_at_quantile(0.5)),
            p90: micros(nanos.value_at_quantile(0.9)),
            p99: micros(nanos.value_at_quantile(0.99)),
            max: micros(nanos.max()),
        }
    }
}

impl Summary {
    pub(crate) fn of(profile: &Profile) -> Self {
        let mut samples = Samples {
            idle: profile.idle,
            missed: profile.missed,
            ..Samples::default()
        };
        for sample in &profile.samples {
            *match sample.seen {
                SeenAs::Waiting(_) => &mut samples.waiting,
                SeenAs::Ready => &mut samples.ready,
                SeenAs::Running => &mut samples.running,
                SeenAs::WokenFirst => &mut samples.woken_first,
                SeenAs::Finished => &mut samples.finished_first,
                SeenAs::Unregistered => &mut samples.unregistered,
                SeenAs::Unasked => &mut samples.unasked,
                SeenAs::Unanswered => &mut samples.unanswered,
            } += 1;
        }
        let seconds = profile.elapsed.as_secs_f64();
        Summary {
            seconds,
            budget_per_second: profile.budget,
            true_rate_per_second: (samples.of_requests() + samples.idle) as f64
                / seconds.max(f64::MIN_POSITIVE),
            samples,
            mean_in_flight: profile.mean_in_flight(),
            finished: profile.finished(),
            mean_latency_ms: profile.mean_latency().map(millis),
            late_requests: profile.late,
            unseen_request_seconds: profile.late_time.as_secs_f64(),
            scheduling_delay_us: Quantiles::micros(profile.scheduling_delay()),
            capture_cost_us: Quantiles::micros(profile.capture_cost()),
            routes: profile.routes(),
        }
    }
}
