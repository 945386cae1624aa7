//! Observations of requests: their outcomes, and the places where they waited.
//!
//! The await profile fills these types, the rules of a diagnosis read them, and files keep them.

use crate::frame::{Frame, Line, innermost_line};
use crate::thresholds::{FEWEST_ENDED, LIVED};
use crate::waits::{Wait, WaitKind};

/// Requests during some time.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Requests {
    /// Requests in flight, averaged over time.
    pub in_flight: f64,
    /// Samples of requests; each is of one that was in flight, chosen at random.
    pub samples: u64,
    /// Connections that were upgraded to another protocol since the process began, such as `WebSockets`.
    pub upgraded: u64,
    /// Routes, and bodies of answers, with most requests in flight first.
    pub routes: Vec<Route>,
    /// Places where requests were, the one with most requests first.
    pub places: Vec<Place>,
    /// Code that released what requests waited for; for each place the largest share first.
    pub releases: Vec<Release>,
    /// Waits of one request that follow each other at different places.
    pub sequences: Vec<Sequence>,
    /// Futures that requests held and did not poll.
    pub unpolled: Vec<Unpolled>,
}

/// 95 % interval of a figure. Of a hundred profiles of the same service under the same load, about
/// 95 have an interval that contains the long-run mean.
///
/// It covers the effects of chance on a profile: which requests were chosen, at which moments, and
/// what the service was doing at the time. It does not cover dependences that last longer than a
/// sixteenth of the profile. A place where *all* samples fell has an interval of width zero.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interval {
    /// Lower end, in the unit of the figure.
    pub low: f64,
    /// Upper end, in the unit of the figure.
    pub high: f64,
}

/// One route.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Route {
    /// Its name. For a response body, or a wait for a service, the name says so.
    pub name: String,
    /// True if this counts parts of requests, such as bodies of answers or waits for a service, and not whole requests.
    pub is_part: bool,
    /// Number of samples that fell on the route.
    pub samples: u64,
    /// Share of all requests in flight that belong to the route, between 0 and 1.
    pub share: f64,
    /// Interval of the share. None if the profile has few moments.
    pub share_interval: Option<Interval>,
    /// Requests in flight, averaged over time.
    pub in_flight: f64,
    /// Requests that had an answer.
    pub finished: u64,
    /// Requests that were dropped before they had an answer, as when their clients leave.
    pub dropped: u64,
    /// Answers by HTTP status. All 0 for what is no HTTP request.
    pub answers: Answers,
    /// Mean time after which requests were dropped, in milliseconds. None if no dropped request was timed.
    pub dropped_after_ms: Option<f64>,
    /// Median time of the requests that were timed in the last minute.
    pub median_ms: Option<f64>,
    /// Longest time of a timed request, finished or dropped. None if no request was timed.
    pub longest_ms: Option<f64>,
    /// Longest time, in seconds, in which requests were in flight and none finished.
    pub standstill: f64,
    /// Mean time of a request by Little's law, whether it finished or was dropped. None if none ended. See
    /// [`mean_ms`](Self::mean_ms) for when to believe it.
    pub latency_ms: Option<f64>,
    /// Interval of that mean time. None if the profile has few moments, or few requests of this route.
    pub latency_interval_ms: Option<Interval>,
    /// Mean time of the requests that both began and finished during the profile. The first
    /// requests of the route and every sixteenth request are timed. The mean is too small if
    /// requests take about as long as the profile.
    pub measured_latency_ms: Option<f64>,
}

impl Route {
    /// Returns the number of requests that ended: those with an answer, and those that were dropped before.
    pub fn ended(&self) -> u64 {
        self.finished + self.dropped
    }

    /// Returns the mean time of a request over `seconds`, in milliseconds, by [Little's law]: requests in flight are a
    /// rate times a time. The law needs as many requests to end as begin. So this is `None` if none finished, or if the
    /// result is longer than any request lived. It is also `None` if few ended and the result is longer than the
    /// observation.
    ///
    /// [Little's law]: https://doi.org/10.1287/opre.9.3.383
    pub fn mean_ms(&self, seconds: f64) -> Option<f64> {
        let ended = self.ended();
        let ms = self.in_flight * seconds * 1e3 / ended.max(1) as f64;
        let is_seen = ms <= seconds * 1e3 || ended >= FEWEST_ENDED;
        let has_lived = self.longest_ms.is_none_or(|longest| ms <= LIVED * longest);
        (self.finished > 0 && is_seen && has_lived).then_some(ms)
    }
}

/// Numbers of answers by the class of their HTTP status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Answers {
    /// Status 101: the connection goes on as another protocol, such as a WebSocket.
    pub upgraded: u64,
    /// Statuses 2xx.
    pub successful: u64,
    /// Statuses 3xx.
    pub redirected: u64,
    /// Statuses 4xx.
    pub client_errors: u64,
    /// Statuses 5xx.
    pub server_errors: u64,
    /// Statuses 408 and 504: a time limit was over. These count as errors too.
    pub timed_out: u64,
    /// Statuses 429 and 503: there was no room. These count as errors too.
    pub refused: u64,
}

impl Answers {
    /// Counts an answer with this status.
    pub fn count(&mut self, status: u16) {
        match status {
            101 => self.upgraded += 1,
            200..=299 => self.successful += 1,
            300..=399 => self.redirected += 1,
            400..=499 => self.client_errors += 1,
            500..=599 => self.server_errors += 1,
            _ => {}
        }
        match status {
            408 | 504 => self.timed_out += 1,
            429 | 503 => self.refused += 1,
            _ => {}
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Self) {
        self.upgraded += other.upgraded;
        self.successful += other.successful;
        self.redirected += other.redirected;
        self.client_errors += other.client_errors;
        self.server_errors += other.server_errors;
        self.timed_out += other.timed_out;
        self.refused += other.refused;
    }
}

/// A place where requests wait.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Place {
    /// The route.
    pub route: String,
    /// Frames from the handler inwards; the last is what is waited for.
    pub frames: Vec<Frame>,
    /// The well-known wait. None if it is not one.
    pub wait: Option<Wait>,
    /// Share of all requests in flight that wait there, between 0 and 1.
    pub share: f64,
    /// Interval of the share. None if the profile has few moments.
    pub share_interval: Option<Interval>,
    /// Requests there, averaged over time.
    pub in_flight: f64,
    /// Milliseconds that a request of this route spends there on average, by Little's law. None if no
    /// request of the route ended.
    pub ms_per_request: Option<f64>,
    /// Interval of these milliseconds. None if the profile has few moments, or few requests of this
    /// route.
    pub ms_per_request_interval: Option<Interval>,
    /// Number of waits that follow each other at that line, as in a loop that asks for one row after the other.
    /// None if few waits were seen to end.
    pub in_a_row: Option<f64>,
    /// True if the request waited for something else between most of two such waits, so that each is a call of its own.
    pub is_asked_anew: bool,
    /// Share of the time in which no request was there, in steps of 16 samples, between 0 and 1.
    pub absent: f64,
}

impl Place {
    /// Returns the innermost line of the service's own code.
    pub fn line(&self) -> Option<&Line> {
        innermost_line(&self.frames)
    }

    /// Returns whether the request waits for something else at the same time.
    pub fn is_one_of_several(&self) -> bool {
        self.parting().is_some()
    }

    /// Returns the position of the frame at which waits for several things at once part.
    pub fn parting(&self) -> Option<usize> {
        let mut frames = self.frames.iter();
        frames.position(|frame| matches!(frame, Frame::Several(_)))
    }

    /// Returns the kind of the wait, if it is well known.
    pub fn kind(&self) -> Option<WaitKind> {
        self.wait.map(|wait| wait.kind)
    }
}

/// Code that wakes requests out of a wait, because it released what they waited for.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Release {
    /// The route of the requests that waited.
    pub route: String,
    /// Frames of the place where they waited, from the handler inwards.
    pub frames: Vec<Frame>,
    /// Frames of the code that woke them, outermost first. It dropped the guard, sent the message, or
    /// released the permit.
    pub by: Vec<Frame>,
    /// Share of the waits there that this code ended, among those whose end was seen, weighted by
    /// how long they lasted; between 0 and 1.
    pub share: f64,
    /// Number of samples behind this share.
    pub samples: u64,
    /// True if tasks ran this code each time, and no request.
    pub is_of_task: bool,
    /// True if dropping a value ended one of these waits, such as a guard. The optimizer may leave no trace of it. `None` in
    /// evidence from before it was noted.
    pub is_by_drop: Option<bool>,
    /// Number of tasks that ran this code then; 0 if that is not known.
    pub tasks: usize,
    /// Number of wakes behind this share: several samples may fall on one wait.
    pub wakes: usize,
    /// Time between two of these wakes, in milliseconds, than which a tenth of the times are shorter; `None` if there are
    /// few.
    pub short_gap_ms: Option<f64>,
}

/// Two waits of one request, one after the other at different places.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Sequence {
    /// The route.
    pub route: String,
    /// Frames of the first wait, from the handler inwards.
    pub frames: Vec<Frame>,
    /// Frames of the other place at which the request waited next.
    pub next: Vec<Frame>,
    /// Share of the waits at `frames` after which the request waited at `next`, among those whose end was seen, between 0
    /// and 1.
    pub share: f64,
    /// Number of samples behind this share.
    pub samples: u64,
}

/// Futures that requests hold and did not poll while they awaited something else.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Unpolled {
    /// The route.
    pub route: String,
    /// Frames of the place where those futures wait, or where their set is polled, from the handler inwards.
    pub frames: Vec<Frame>,
    /// Frames of the wait that the request awaited instead.
    pub instead: Vec<Frame>,
    /// Code that woke one of them in vain, outermost frame first. Empty if no such wake was seen.
    pub woken_by: Vec<Frame>,
    /// Number of sampled requests in which this was seen.
    pub requests: u64,
    /// Number of sampled requests of this route that were polled once more with capture after their sample.
    pub of_requests: u64,
    /// Longest time for which such a future was not polled, in milliseconds. None if no end was seen.
    pub longest_ms: Option<f64>,
}

impl Requests {
    /// Returns the routes that count whole requests, and not parts of them.
    pub fn whole(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(|route| !route.is_part)
    }

    /// Returns the number of requests that had an answer.
    pub fn finished(&self) -> u64 {
        self.whole().map(|route| route.finished).sum()
    }

    /// Returns the number of requests that were dropped before they had an answer.
    pub fn dropped(&self) -> u64 {
        self.whole().map(|route| route.dropped).sum()
    }

    /// Returns the number of requests that were cut before their work was done: dropped, or answered by a time limit.
    pub fn cut(&self) -> u64 {
        self.dropped() + self.answers().timed_out
    }

    /// Returns the share of requests whose clients left, before the answer or during its body.
    pub fn left_share(&self) -> f64 {
        let left: u64 = self.routes.iter().map(|route| route.dropped).sum();
        left as f64 / (self.dropped() + self.finished()).max(1) as f64
    }

    /// Returns the mean time after which requests were dropped, in milliseconds, of the route with most of them.
    pub fn dropped_after_ms(&self) -> Option<f64> {
        let most = self.whole().max_by_key(|route| route.dropped)?;
        most.dropped_after_ms
    }

    /// Returns the answers of all routes.
    pub fn answers(&self) -> Answers {
        let mut all = Answers::default();
        for route in self.whole() {
            all.add(route.answers);
        }
        all
    }

    /// Returns the route of this name.
    pub fn route(&self, name: &str) -> Option<&Route> {
        self.routes.iter().find(|route| route.name == name)
    }

    /// Returns the code that ended waits at a place, the largest share first.
    pub fn releases_of<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'a Release> {
        self.releases
            .iter()
            .filter(move |release| release.route == place.route && release.frames == place.frames)
    }

    /// Returns the share of the waits at a place that a timer ended.
    pub fn ended_by_timer(&self, place: &Place) -> f64 {
        let mut share = 0.0;
        for release in self.releases_of(place) {
            if release.by == [Frame::Timer] {
                share += release.share;
            }
        }
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_counts_for_its_class() {
        let mut answers = Answers::default();
        for status in [101, 200, 204, 302, 404, 408, 429, 500, 503, 504, 999] {
            answers.count(status);
        }
        let expected = Answers {
            upgraded: 1,
            successful: 2,
            redirected: 1,
            client_errors: 3,
            server_errors: 3,
            timed_out: 2,
            refused: 2,
        };
        assert_eq!(answers, expected);
    }
}
