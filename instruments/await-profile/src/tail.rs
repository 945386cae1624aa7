//! The slowest requests of each route, beside the rest of the route.
//!
//! A sample falls on a request in flight, and a slow request is in flight for longer. So even the slowest 1 % have many
//! samples. A tail profile knows the time of each request that began and ended during it, and so which sample belongs to
//! one of the slowest.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ecosystem::{Frame as Seen, Interval, PathMeaning, Wait, innermost_line, path};

use crate::collected::Sample;
use crate::fold::{READY, Weights};
use crate::frame::{Frame, seen};
use crate::frame_kind::FrameKind;
use crate::interval::share_interval;
use crate::percentile::Percentile;
use crate::profile::{Profile, readable};
use crate::stack::Frames;
use crate::tail_routes;
use crate::tail_times::{Cut, Histogram, TailTimes, Total};
use crate::waits_table::wait_of;

/// Fewest requests that make a tail.
const FEWEST_SLOWEST: f64 = 10.0;
/// Fewest samples of the slowest requests, and of the rest. With 20 samples, one of them is five points of a share.
const FEWEST_SAMPLES: u64 = 20;
/// Smallest ratio of the slowest requests' mean time to that of the rest, for there to be a tail.
const LEAST_RATIO: f64 = 1.25;
/// Most places of a route that a tail tells.
const MOST_PLACES: usize = 10;
/// Most routes with too few requests that are told one by one.
const MOST_WITH_TOO_FEW: usize = 3;
/// Smallest part of the slowest requests' extra time at which a second place is named.
const LEAST_OF_EXTRA: f64 = 0.2;

/// Delay between the wake of a request and its poll at which it counts as ready, whatever it waited for. While a worker
/// thread computes, a timer or a socket may be due and have nobody to say so.
const STALLED: Duration = Duration::from_millis(10);

/// Time of the slowest requests of each route, beside the rest of the route.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Tail {
    /// Percentile of a route's latencies above which its requests are the slowest.
    pub percentile: Percentile,
    /// Duration of sampling.
    pub seconds: f64,
    /// Fewest requests of a route for a tail.
    pub requests_needed: u64,
    /// Fewest samples of a route's slowest requests, and of the rest.
    pub samples_needed: u64,
    /// Figures by route, the route whose slowest requests lost most time first.
    pub routes: Vec<TailRoute>,
    /// Number of requests left out because they began before the profile.
    pub began_before: u64,
    /// Number of requests left out because they had not ended when the profile ended.
    pub unfinished: u64,
    /// Number of requests left out because their times found no room in memory.
    pub lost: u64,
}

/// The slowest requests of one route, and the rest.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TailRoute {
    /// Label of the route.
    pub route: String,
    /// Latency at the percentile, to 0.8 %.
    pub percentile_ms: f64,
    /// Mean latency of all requests.
    pub mean_ms: f64,
    /// The requests above the percentile.
    pub slowest: TailGroup,
    /// All others.
    pub rest: TailGroup,
    /// State of the tail: none, too few requests or samples, or found.
    pub finding: TailFinding,
    /// Places where the slowest requests spend more time than the rest, the largest difference first.
    pub places: Vec<TailPlace>,
    /// The finding in a few lines.
    pub says: String,
}

/// Some requests of a route.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TailGroup {
    /// Number of requests that began and ended during the profile.
    pub requests: u64,
    /// Mean latency of these requests.
    pub mean_ms: f64,
    /// Number of samples that fell on these requests.
    pub samples: u64,
}

/// Answer to whether a route has a tail that the profile can explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum TailFinding {
    /// Fewer requests ended than [`Tail::requests_needed`].
    TooFewRequests,
    /// Fewer samples fell on the slowest requests, or on the rest, than [`Tail::samples_needed`].
    TooFewSamples,
    /// The slowest requests take about as long as the rest.
    NoTail,
    /// The slowest requests take longer, at [`TailRoute::places`].
    Tail,
}

/// A place where the slowest requests of a route spend more time than the rest.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TailPlace {
    /// The wait, and the line of your own code that waits.
    pub place: String,
    /// Frames of the path there on which the slowest requests spend most time, from the route inwards.
    pub frames: Vec<Seen>,
    /// Kind of this wait. None if it is not a well-known one.
    pub wait: Option<Wait>,
    /// Share of the slowest requests' time, between 0 and 1.
    pub slowest_share: f64,
    /// Interval of that share. None if the slowest requests came in few moments of the profile.
    pub slowest_interval: Option<Interval>,
    /// Share of the other requests' time, between 0 and 1.
    pub rest_share: f64,
    /// Interval of that share. None if the profile has few moments.
    pub rest_interval: Option<Interval>,
    /// Milliseconds that a slow request spends there on average, beyond those of another request.
    pub extra_ms: f64,
    /// Frames of the code that most often ended these waits of the slowest requests, other than the line that waits: in
    /// a queue, one waiter wakes the next. Empty if it is not known.
    pub let_go_by: Vec<Seen>,
    /// Share of the waits that it ended, among those that other code than this line was seen to end.
    pub let_go_share: Option<f64>,
    /// If the requests here are ready and wait for a worker thread: the route that was most often being polled then.
    pub meanwhile: Option<String>,
    /// Share of the samples here at which that route was being polled, weighted by time.
    pub meanwhile_share: Option<f64>,
}

/// Index of the slowest requests in a pair, and of the rest.
const SLOWEST: usize = 0;
const REST: usize = 1;

/// Boundaries of a tail profile, by route.
struct Cuts<'a> {
    times: &'a TailTimes,
    /// Names of routes that are raw paths of one handler.
    folded: HashMap<Arc<str>, String>,
    routes: HashMap<String, Cut>,
}

impl<'a> Cuts<'a> {
    fn of(times: &'a TailTimes) -> Self {
        let folded = tail_routes::folded(&times.routes, requests_needed(times.percentile));
        let mut sums: HashMap<String, Histogram> = HashMap::new();
        for (route, histogram) in &times.routes {
            let name = folded.get(route).cloned();
            let name = name.unwrap_or_else(|| route.to_string());
            sums.entry(name).or_default().add_all(histogram);
        }
        let mut routes = HashMap::new();
        for (name, histogram) in sums {
            if let Some(cut) = histogram.cut(times.percentile) {
                routes.insert(name, cut);
            }
        }
        Cuts {
            times,
            folded,
            routes,
        }
    }

    /// Returns the route of a sample, under the name that it has here.
    fn name_of<'b>(&'b self, sample: &'b Sample) -> &'b str {
        match self.folded.get(&sample.route) {
            Some(name) => name,
            None => &sample.route,
        }
    }

    /// Returns whether the sample's request is one of the slowest, as an index of a pair. None if its time is not known.
    fn group_of(&self, sample: &Sample) -> Option<usize> {
        let took = self.times.sampled[sample.request? as usize]?;
        let cut = self.routes.get(self.name_of(sample))?;
        Some(if took >= cut.from { SLOWEST } else { REST })
    }
}

/// Returns the fewest requests of a route for a tail.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most a hundred thousand"
)]
fn requests_needed(percentile: Percentile) -> u64 {
    (FEWEST_SLOWEST / percentile.beyond()).round() as u64
}

/// Sums over the samples of one route, as pairs of the slowest and the rest.
#[derive(Default)]
struct RouteSums {
    samples: [u64; 2],
    /// Requests in flight at the samples' moments, by run.
    all: [Vec<f64>; 2],
    places: BTreeMap<String, PlaceSums>,
}

#[derive(Default)]
struct PlaceSums {
    at: [Vec<f64>; 2],
    /// Weights of the paths there, of the slowest requests.
    paths: BTreeMap<Vec<Frame>, f64>,
    /// Weights of the code that ended the waits there, of the slowest requests.
    let_go: BTreeMap<Vec<Seen>, f64>,
    /// Weights of the routes that were being polled meanwhile.
    meanwhile: BTreeMap<String, f64>,
}

impl Profile {
    /// Returns the waits of each route's slowest requests, beside those of the rest. None if this is no tail profile:
    /// see [`ProfileOptions::tail`](crate::ProfileOptions::tail).
    pub fn tail(&self) -> Option<Tail> {
        let times = self.collected.tail.as_ref()?;
        let cuts = Cuts::of(times);
        let mut sums = self.tail_sums(&cuts);
        let mut tail = Tail {
            percentile: times.percentile,
            seconds: self.collected.elapsed.as_secs_f64(),
            requests_needed: requests_needed(times.percentile),
            samples_needed: FEWEST_SAMPLES,
            routes: Vec::new(),
            began_before: times.left_out.earlier,
            unfinished: times.left_out.unfinished,
            lost: times.left_out.lost,
        };
        for (name, cut) in &cuts.routes {
            let route = tail.route(name, cut, sums.remove(name.as_str()).unwrap_or_default());
            tail.routes.push(route);
        }
        // Routes that lost equally much time go by name, so that each call returns the same.
        tail.routes.sort_by(|a, b| {
            let by_time = b.lost_ms().total_cmp(&a.lost_ms());
            by_time.then_with(|| a.route.cmp(&b.route))
        });
        Some(tail)
    }

    /// Returns the stacks of the slowest requests of each route as text, as [`folded`](Self::folded) does for all.
    /// Empty if this is no tail profile, or if no route has enough requests and samples.
    pub fn tail_folded(&self, frames: Frames) -> String {
        let [slowest, _] = self.tail_weights(frames);
        slowest.folded()
    }

    fn tail_sums<'a>(&'a self, cuts: &'a Cuts<'_>) -> HashMap<&'a str, RouteSums> {
        let runs = &self.collected.runs;
        let mut routes: HashMap<&str, RouteSums> = HashMap::new();
        for sample in &self.collected.samples {
            if let Some(group) = cuts.group_of(sample) {
                let route = routes.entry(cuts.name_of(sample)).or_default();
                route.samples[group] += 1;
                runs.add(
                    &mut route.all[group],
                    sample.moment,
                    f64::from(sample.in_flight),
                );
            }
        }
        for (sample, stack, part) in self.tail_stacks(Frames::Own) {
            let Some(group) = cuts.group_of(sample) else {
                continue;
            };
            let route = routes.entry(cuts.name_of(sample)).or_default();
            let place = route.places.entry(place_of(&seen(&stack))).or_default();
            let here = f64::from(sample.in_flight) * part;
            runs.add(&mut place.at[group], sample.moment, here);
            if group == REST {
                continue;
            }
            if let (Some(route), Some(leaf)) = (&sample.meanwhile, stack.last())
                && leaf.path == READY
            {
                *place.meanwhile.entry(route.to_string()).or_default() += here;
            }
            // Of several waits at once, it is not known which of them ended.
            if let (Some(release), true) = (sample.release, part > 0.999) {
                let by = seen(self.releases[release as usize].frames(Frames::Own));
                let own = seen(&stack);
                // In a queue for a lock, most waits are ended by the one before, at the same line.
                let is_same_line = match innermost_line(&own) {
                    Some(line) => by.iter().any(|by| by.line() == Some(line)),
                    None => false,
                };
                if !is_same_line {
                    *place.let_go.entry(by).or_default() += here;
                }
            }
            *place.paths.entry(stack).or_default() += here;
        }
        routes
    }

    /// Returns the stacks of each sample as [`stacks`](Self::stacks) does, except that a request which no thread polled
    /// for long counts as ready.
    fn tail_stacks(&self, frames: Frames) -> impl Iterator<Item = (&Sample, Vec<Frame>, f64)> {
        self.stacks(frames).map(|(sample, mut stack, part)| {
            if sample.delay >= STALLED {
                stack.truncate(1);
                stack.push(Frame::text(READY, FrameKind::Remark));
            }
            (sample, stack, part)
        })
    }

    /// Returns the weights of the slowest requests, and of the rest, for the routes that have enough of both.
    fn tail_weights(&self, frames: Frames) -> [Weights; 2] {
        let mut weights = [Weights::default(), Weights::default()];
        let (Some(times), Some(tail)) = (&self.collected.tail, self.tail()) else {
            return weights;
        };
        let mut routes = Vec::new();
        for route in &tail.routes {
            if let TailFinding::Tail | TailFinding::NoTail = route.finding {
                routes.push(&*route.route);
            }
        }
        let cuts = Cuts::of(times);
        for (sample, stack, part) in self.tail_stacks(frames) {
            match cuts.group_of(sample) {
                Some(group) if routes.contains(&cuts.name_of(sample)) => {
                    weights[group].add(stack, self.weight_of(sample) * part);
                }
                _ => {}
            }
        }
        weights
    }
}

impl TailGroup {
    fn of(total: Total, samples: u64) -> Self {
        TailGroup {
            requests: total.requests,
            mean_ms: total.mean() * 1e3,
            samples,
        }
    }
}

impl Tail {
    fn route(&self, name: &str, cut: &Cut, mut sums: RouteSums) -> TailRoute {
        let all = cut.slowest.requests + cut.rest.requests;
        let mut route = TailRoute {
            route: name.to_owned(),
            percentile_ms: cut.percentile.as_secs_f64() * 1e3,
            mean_ms: (cut.slowest.seconds + cut.rest.seconds) * 1e3 / all.max(1) as f64,
            slowest: TailGroup::of(cut.slowest, sums.samples[SLOWEST]),
            rest: TailGroup::of(cut.rest, sums.samples[REST]),
            finding: TailFinding::Tail,
            places: Vec::new(),
            says: String::new(),
        };
        route.finding = if all < self.requests_needed {
            TailFinding::TooFewRequests
        } else if cut.slowest.mean() < LEAST_RATIO * cut.rest.mean() || cut.rest.requests == 0 {
            TailFinding::NoTail
        } else if sums.samples.iter().min() < Some(&self.samples_needed) {
            TailFinding::TooFewSamples
        } else {
            TailFinding::Tail
        };
        if route.finding == TailFinding::Tail {
            let places = std::mem::take(&mut sums.places);
            route.places = places_of(places, &sums.all, cut);
        }
        route.says = self.says(&route);
        route
    }

    fn says(&self, route: &TailRoute) -> String {
        let TailRoute { slowest, rest, .. } = route;
        let (name, beyond) = (&route.route, self.percentile.slowest());
        let head = format!(
            "{name}: {} {}, mean {}.",
            self.percentile,
            millis(route.percentile_ms),
            millis(route.mean_ms)
        );
        match route.finding {
            TailFinding::TooFewRequests => format!(
                "{name}: too few requests for a tail: {} began and ended in this time, and {} are needed. Look longer, \
                 or put more load on it.",
                slowest.requests + rest.requests,
                self.requests_needed
            ),
            TailFinding::TooFewSamples => format!(
                "{head} Too few samples to say why: {} of {beyond} and {} of the rest, and {} of each are needed. Look \
                 longer, or ask for more captures a second.",
                slowest.samples, rest.samples, self.samples_needed
            ),
            TailFinding::NoTail => format!(
                "{head} There is no tail to explain: {beyond} take {} on average, and the rest {}.",
                millis(slowest.mean_ms),
                millis(rest.mean_ms)
            ),
            TailFinding::Tail => {
                let mut lines = vec![head];
                route.tell_places(&beyond, &mut lines);
                lines.join("\n")
            }
        }
    }
}

impl TailRoute {
    fn extra_ms(&self) -> f64 {
        self.slowest.mean_ms - self.rest.mean_ms
    }

    /// Returns the time that all slowest requests together lost, in milliseconds; 0 without a tail.
    fn lost_ms(&self) -> f64 {
        match self.finding {
            TailFinding::Tail => self.extra_ms() * self.slowest.requests as f64,
            _ => 0.0,
        }
    }

    fn tell_places(&self, beyond: &str, lines: &mut Vec<String>) {
        let Some((first, others)) = self.places.split_first() else {
            return;
        };
        let first_line = format!(
            " {} of the time of {beyond} is {}; of the rest, {}.",
            with_interval(first.slowest_share, first.slowest_interval),
            first.place,
            with_interval(first.rest_share, first.rest_interval)
        );
        lines[0].push_str(&first_line);
        if let Some(other) = others.first()
            && other.extra_ms >= LEAST_OF_EXTRA * self.extra_ms()
        {
            lines.push(format!(
                "{} is {}; of the rest, {}.",
                with_interval(other.slowest_share, other.slowest_interval),
                other.place,
                with_interval(other.rest_share, other.rest_interval)
            ));
        }
        if let (Some(route), Some(share)) = (&first.meanwhile, first.meanwhile_share) {
            lines.push(format!(
                "Meanwhile a worker thread ran {route}, in {} of these samples.",
                percent(share)
            ));
        }
        match (first.let_go_share, first.wait) {
            (Some(share), _) => lines.push(format!(
                "These waits end at {}: {} of the ends that were seen, without waiters that wake each other.",
                path(&first.let_go_by),
                percent(share)
            )),
            (None, Some(wait)) => lines.push(wait.advice()),
            (None, None) => {}
        }
        if first.slowest_interval.is_none() {
            lines.push(format!(
                "All of {beyond} came in few moments of this profile: look longer to see whether it is always so."
            ));
        }
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.routes.is_empty() {
            writeln!(
                f,
                "No request began and ended in these {:.1} s. Put load on the service, or look longer.",
                self.seconds
            )?;
        }
        let too_few = self.with_too_few_requests();
        for route in &self.routes {
            if too_few.len() <= MOST_WITH_TOO_FEW || !too_few.contains(&route.route.as_str()) {
                writeln!(f, "{}", route.says.replace('\n', "\n  "))?;
            }
        }
        if too_few.len() > MOST_WITH_TOO_FEW {
            writeln!(
                f,
                "{} routes, such as {}, have too few requests for a tail. If these are paths, give all requests of a handler \
                 one name.",
                too_few.len(),
                too_few[0]
            )?;
        }
        writeln!(f, "Seen for {:.1} s. {}", self.seconds, self.left_out())
    }
}

impl Tail {
    fn with_too_few_requests(&self) -> Vec<&str> {
        let mut routes = Vec::new();
        for route in &self.routes {
            if route.finding == TailFinding::TooFewRequests {
                routes.push(route.route.as_str());
            }
        }
        routes
    }

    /// Returns a sentence on the requests that are left out.
    pub fn left_out(&self) -> String {
        let lost = match self.lost {
            0 => String::new(),
            lost => format!(", and {lost} whose times found no room"),
        };
        let plural = if self.began_before == 1 { "" } else { "s" };
        format!(
            "Left out: {} request{plural} that began before, {} that had not ended{lost}.",
            self.began_before, self.unfinished
        )
    }
}

/// Returns the primitive that is waited for, and the innermost of the reader's lines.
fn place_of(frames: &[Seen]) -> String {
    let Some(leaf) = frames.last() else {
        return String::new();
    };
    match innermost_line(frames) {
        Some(line) if leaf.line() != Some(line) => format!("{leaf} at {line}"),
        _ => leaf.to_string(),
    }
}

/// Returns whether the code that ends a wait says who held what was waited for. It says nothing new that a runtime's task
/// has ended.
fn is_telling(by: &[Seen]) -> bool {
    let are_functions = by.iter().all(|by| by.function().is_some());
    let mut functions = by.iter().filter_map(Seen::function);
    are_functions && functions.any(|by| !PathMeaning::Runtime.fits(by))
}

fn places_of(
    places: BTreeMap<String, PlaceSums>,
    all: &[Vec<f64>; 2],
    cut: &Cut,
) -> Vec<TailPlace> {
    let mut told = Vec::new();
    for (place, mut sums) in places {
        let [slowest, rest] = [SLOWEST, REST].map(|group| {
            sums.at[group].resize(all[group].len(), 0.0);
            let total: f64 = all[group].iter().sum();
            let share = sums.at[group].iter().sum::<f64>() / total;
            (share, share_interval(&sums.at[group], &all[group]))
        });
        let path = match heaviest(sums.paths) {
            Some((path, _)) => path,
            None => Vec::new(),
        };
        let mut one = TailPlace {
            place,
            frames: seen(&path),
            wait: wait_of(&path),
            slowest_share: slowest.0,
            slowest_interval: slowest.1,
            rest_share: rest.0,
            rest_interval: rest.1,
            extra_ms: (slowest.0 * cut.slowest.mean() - rest.0 * cut.rest.mean()) * 1e3,
            let_go_by: Vec::new(),
            let_go_share: None,
            meanwhile: None,
            meanwhile_share: None,
        };
        let seen: f64 = sums.let_go.values().sum();
        if let Some((by, weight)) = heaviest(sums.let_go)
            && is_telling(&by)
        {
            one.let_go_by = by;
            one.let_go_share = Some(weight / seen);
        }
        if let Some((route, weight)) = heaviest(sums.meanwhile) {
            let here: f64 = sums.at[SLOWEST].iter().sum();
            one.meanwhile = Some(route);
            one.meanwhile_share = Some(weight / here);
        }
        told.push(one);
    }
    told.retain(|place| place.extra_ms > 0.0);
    told.sort_by(|a, b| b.extra_ms.total_cmp(&a.extra_ms));
    told.truncate(MOST_PLACES);
    told
}

fn heaviest<K>(weights: BTreeMap<K, f64>) -> Option<(K, f64)> {
    weights.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

fn millis(millis: f64) -> String {
    readable(Duration::from_secs_f64(millis / 1e3))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns a share in percent, followed by its interval if there is one.
fn with_interval(share: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(Interval { low, high }) => {
            format!(
                "{} ({:.0} to {:.0})",
                percent(share),
                low * 100.0,
                high * 100.0
            )
        }
        None => percent(share),
    }
}

#[cfg(feature = "flamegraph")]
mod picture {
    use crate::drawing::Drawing;
    use crate::error::FlamegraphError;
    use crate::flamegraph::FlamegraphOptions;
    use crate::profile::Profile;

    impl Profile {
        /// Draws the stacks of the slowest requests of each route as SVG, compared with the rest of the route. The width
        /// of a frame is its share of the slowest requests' time. A red frame has a larger share of it than of the
        /// other requests' time, a blue one a smaller share.
        ///
        /// # Errors
        ///
        /// Returns an error if this is no tail profile, if no route has enough requests and samples, or if inferno
        /// cannot draw it.
        pub fn tail_flamegraph(
            &self,
            options: &FlamegraphOptions,
        ) -> Result<String, FlamegraphError> {
            let tail = self.tail().ok_or(FlamegraphError::Empty)?;
            let [slowest, mut rest] = self.tail_weights(options.frames);
            // Each route's rest is as wide as its slowest, so that a busy route does not color the others.
            rest.scale_routes(&slowest);
            if slowest.folded().is_empty() {
                return Err(FlamegraphError::Empty);
            }
            let beyond = tail.percentile.slowest();
            let drawing = Drawing {
                title: options.title.clone(),
                captions: vec![
                    format!(
                        "width: share of the time of {beyond} of each route | red: a larger share than of the rest of the \
                         route | blue: a smaller one"
                    ),
                    tail.left_out(),
                ],
                unit: "request-microseconds".to_owned(),
                ..Drawing::default()
            };
            drawing.draw_difference(&rest.folded(), &slowest.folded())
        }
    }
}
