//! Waits of requests, added up over the routes that meet them at the same line.

use ecosystem::{ONE_OF_SEVERAL, Wait, WaitKind, figures};

use crate::evidence::{Evidence, Place, Requests, Route, innermost_line};
use crate::thresholds::{ABSENT, MUCH_OF_ALL, MUCH_OF_ROUTE, PART_OF_SEVERAL, PASSES_BY, QUEUE};

/// Requests that wait for the same thing at the same line.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Thing that they wait for.
    pub(crate) wait: Wait,
    /// One place for each route, the one with most requests first.
    pub(crate) places: Vec<Place>,
    /// Share of these routes' requests that wait there.
    pub(crate) share: f64,
    /// Share of all requests.
    pub(crate) share_of_all: f64,
    /// Requests there, averaged over time.
    pub(crate) in_flight: f64,
    /// Mean time that a request of these routes spends there, in milliseconds; see [`Route::mean_ms`].
    pub(crate) ms: Option<f64>,
    /// Mean time of a whole request of these routes, in milliseconds.
    pub(crate) latency_ms: Option<f64>,
    /// Requests of these routes that ended.
    pub(crate) ended: u64,
    /// Number of such waits in a row within a request.
    pub(crate) in_a_row: Option<f64>,
}

impl Waiting {
    /// Returns whether much of the time of its routes, or of all requests, goes to this wait.
    pub(crate) fn is_much(&self) -> bool {
        self.share >= MUCH_OF_ROUTE || self.share_of_all >= MUCH_OF_ALL
    }

    /// Returns all waits, those with most requests first.
    pub(crate) fn all(evidence: &Evidence) -> Vec<Self> {
        let Some(requests) = &evidence.requests else {
            return Vec::new();
        };
        let mut groups: Vec<Vec<Place>> = Vec::new();
        for place in together(&requests.places) {
            if place.wait.is_none() {
                continue;
            }
            match groups.iter_mut().find(|group| is_same(&group[0], &place)) {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }
        let mut all = Vec::new();
        for places in groups {
            all.extend(Self::of(places, requests, evidence.seconds));
        }
        all.sort_by(|a: &Self, b| b.in_flight.total_cmp(&a.in_flight));
        all
    }

    fn of(places: Vec<Place>, requests: &Requests, seconds: f64) -> Option<Self> {
        // Routes that hardly wait there are left out if others wait much: they would dilute the share.
        let mut judged: Vec<(&Place, &Route)> = Vec::new();
        for place in &places {
            if let Some(route) = requests.route(&place.route) {
                judged.push((place, route));
            }
        }
        let is_much =
            |(place, route): &(&Place, &Route)| place.in_flight >= MUCH_OF_ROUTE * route.in_flight;
        if judged.iter().any(is_much) {
            judged.retain(is_much);
        }
        let (mut here, mut of_routes, mut ended) = (0.0, 0.0, 0);
        let mut is_timed = true;
        let mut seen: Vec<&str> = Vec::new();
        for (place, route) in &judged {
            here += place.in_flight;
            if !seen.contains(&route.name.as_str()) {
                seen.push(&route.name);
                of_routes += route.in_flight;
                ended += route.ended();
                is_timed &= route.mean_ms(seconds).is_some();
            }
        }
        let (mut ms, mut latency_ms) = (None, None);
        if is_timed {
            ms = Some(here * seconds * 1e3 / ended as f64);
            latency_ms = Some(of_routes * seconds * 1e3 / ended as f64);
        }
        let in_flight: f64 = places.iter().map(|place| place.in_flight).sum();
        let mut in_a_row: Option<f64> = None;
        for place in &places {
            if let Some(times) = place.in_a_row {
                in_a_row = Some(in_a_row.unwrap_or_default().max(times));
            }
        }
        Some(Self {
            wait: places.first()?.wait?,
            share: here / of_routes.max(f64::MIN_POSITIVE),
            share_of_all: in_flight / requests.in_flight.max(f64::MIN_POSITIVE),
            in_flight,
            ms,
            latency_ms,
            ended,
            in_a_row,
            places,
        })
    }

    /// Returns the place with most requests.
    pub(crate) fn place(&self) -> &Place {
        &self.places[0]
    }

    /// Returns the kind of the wait.
    pub(crate) fn kind(&self) -> WaitKind {
        self.wait.kind
    }

    /// Returns the median time of a request of the first route, in milliseconds.
    pub(crate) fn median_ms(&self, requests: &Requests) -> Option<f64> {
        requests.route(&self.place().route)?.median_ms
    }

    /// Returns whether most requests of the route pass the line by, which is empty at times. A request is there for `ms`.
    pub(crate) fn comes_in_bursts(&self, requests: &Requests, ms: f64) -> bool {
        let Some(median) = self.median_ms(requests) else {
            return false;
        };
        median <= PASSES_BY * ms && self.place().absent >= ABSENT
    }

    /// Returns whether requests wait for each other there, on average.
    pub(crate) fn is_queue(&self) -> bool {
        self.in_flight >= QUEUE
    }

    /// Returns whether each of these waits in a row is a call of its own.
    pub(crate) fn is_asked_anew(&self) -> bool {
        self.places.iter().any(|place| place.is_asked_anew)
    }

    /// Returns whether a request waits until another gives something back.
    pub(crate) fn is_of_holders(&self) -> bool {
        is_of_holders(self.kind())
    }

    /// Returns the routes by name: `GET /a`, or `GET /a and 2 other routes`.
    pub(crate) fn routes(&self) -> String {
        let first = &self.place().route;
        let mut others: Vec<&str> = Vec::new();
        for place in &self.places {
            if place.route != *first && !others.contains(&place.route.as_str()) {
                others.push(&place.route);
            }
        }
        match others.as_slice() {
            [] => first.clone(),
            [other] => format!("{first} and {other}"),
            others => format!("{first} and {} other routes", others.len()),
        }
    }

    /// Returns time, wait and line: `GET /a: 45.0 of 51.2 ms waiting for a lock at read (shop.rs:7).`
    pub(crate) fn headline(&self) -> String {
        let time = match (self.ms, self.latency_ms) {
            (Some(ms), Some(latency)) => format!("{} ", figures::of(ms, latency)),
            _ => String::new(),
        };
        let at = self.place().line();
        let at = at.map(|line| format!(" at {line}")).unwrap_or_default();
        format!("{}: {time}{}{at}.", self.routes(), self.wait.in_words())
    }

    /// Returns a sentence on the requests at once, and one on the code that let them go.
    pub(crate) fn seen(&self, requests: &Requests) -> String {
        let mut seen = format!("{} requests at once.", figures::average(self.in_flight));
        if self.ended == 0 {
            seen += " None of these requests has ended meanwhile.";
        }
        if let Some(release) = requests.release_of(self.place()) {
            let mut frames = release.by.iter();
            // The end of a runtime's task is no news.
            if frames.any(|by| !by.starts_with('(') && !by.starts_with("tokio::runtime")) {
                let (share, by) = (release.share * 100.0, release.by.join(", "));
                seen = format!("{seen} {share:.0} % of these waits ended at {by}.");
            }
        }
        seen
    }

    /// Returns the line at which a task that is no request gives back what these wait for, and the share of the waits that
    /// ended so. `None` if requests alone are known to give it back.
    pub(crate) fn holder<'a>(&self, requests: &'a Requests) -> Option<(&'a str, f64)> {
        let here = self.place();
        for release in &requests.releases {
            if release.route != here.route || release.frames != here.frames {
                continue;
            }
            // Requests that the profiler does not see end waits, too.
            let is_of_requests = release
                .by
                .iter()
                .any(|frame| is_of_requests(frame, requests));
            if release.is_of_task
                && !is_of_requests
                && let Some(line) = innermost_line(&release.by)
            {
                return Some((line, release.share));
            }
        }
        None
    }

    /// Returns the frames of a place where other requests of the route are, past this wait. A place in a line before it
    /// is not past it.
    pub(crate) fn past<'a>(&self, requests: &'a Requests) -> Option<&'a Place> {
        let here = self.place();
        for place in &requests.places {
            let is_here = place.what() == Some(self.wait.what);
            let is_of_route = place.route == here.route && place.frames.len() > 1;
            if is_of_route && !is_here && !is_before(place, here) {
                return Some(place);
            }
        }
        None
    }
}

/// Returns whether a request was seen in the function of this frame.
fn is_of_requests(frame: &str, requests: &Requests) -> bool {
    let Some((function, file, _)) = parts(frame) else {
        return false;
    };
    for place in &requests.places {
        for other in &place.frames {
            if parts(other).is_some_and(|other| (other.0, other.1) == (function, file)) {
                return true;
            }
        }
    }
    false
}

/// Returns whether requests wait for the same thing at both places, at one line if they have one. Work has no line of
/// its own.
fn is_same(first: &Place, place: &Place) -> bool {
    let is_work = matches!(place.kind(), Some(WaitKind::Running | WaitKind::Ready));
    let is_line = is_work || first.line().is_some() && first.line() == place.line();
    first.kind() == place.kind()
        && first.what() == place.what()
        && (is_line || first.route == place.route && first.frames == place.frames)
}

/// Returns whether a request waits for this until another gives it back.
pub(crate) fn is_of_holders(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::Limit | WaitKind::Lock | WaitKind::Pool)
}

/// Returns whether requests pass `place` before `here`: both are in one function, whose line at `place` comes first.
fn is_before(place: &Place, here: &Place) -> bool {
    for (frame, own) in std::iter::zip(&place.frames, &here.frames) {
        if frame != own {
            let (Some(other), Some(own)) = (parts(frame), parts(own)) else {
                return false;
            };
            return (other.0, other.1) == (own.0, own.1) && other.2 < own.2;
        }
    }
    false
}

/// Returns function, file and line of a frame of the reader's.
pub(crate) fn parts(frame: &str) -> Option<(&str, &str, u32)> {
    let (function, place) = frame.strip_suffix(')')?.rsplit_once(" (")?;
    let (file, line) = place.rsplit_once(':')?;
    Some((function, file, line.parse().ok()?))
}

/// Returns the places, merging those where the same requests wait for several things at once, such as for a lock and
/// for the end of a time limit. The place that says most stands for all of them, unless few of the requests were there.
fn together(places: &[Place]) -> Vec<Place> {
    let mut groups: Vec<Vec<&Place>> = Vec::new();
    for place in places {
        match group_of(&mut groups, place) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    let mut all = Vec::new();
    for group in groups {
        let mut most = 0.0_f64;
        for place in &group {
            most = most.max(place.in_flight);
        }
        let least = PART_OF_SEVERAL * most;
        let often = group.iter().filter(|place| place.in_flight >= least);
        // Unknown waits come last.
        let telling = often.min_by_key(|place| (place.wait.is_none(), place.kind()));
        let mut place = (*telling.unwrap_or(&group[0])).clone();
        place.in_flight = group.iter().map(|place| place.in_flight).sum();
        all.push(place);
    }
    all
}

/// Returns the group of places at which the same requests wait as at `place`, for several things at once.
fn group_of<'a, 'b>(
    groups: &'b mut [Vec<&'a Place>],
    place: &Place,
) -> Option<&'b mut Vec<&'a Place>> {
    let mut frames = place.frames.iter();
    let parting = frames.position(|frame| frame.starts_with(ONE_OF_SEVERAL))?;
    let own = &place.frames[..=parting];
    let mut groups = groups.iter_mut();
    groups.find(|group| group[0].route == place.route && group[0].frames.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{evidence, place, route};

    #[test]
    fn the_same_wait_adds_up_over_routes() {
        let line = "shop::login (src/login.rs:15)";
        let at =
            |path: &str, in_flight| place(path, &[line, "tokio::sync::Mutex::lock"], in_flight);
        let evidence = evidence(
            &[
                route("GET /login/1", 2.0, 100),
                route("GET /login/2", 2.0, 100),
            ],
            &[at("GET /login/1", 1.5), at("GET /login/2", 1.5)],
        );
        let all = Waiting::all(&evidence);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!((all[0].share_of_all - 0.75).abs() < 1e-9, "{all:?}");
        assert_eq!(all[0].routes(), "GET /login/1 and GET /login/2");
        // 3 in flight for 10 s, of 200 requests.
        assert!((all[0].ms.unwrap() - 150.0).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn requests_that_run_add_up_over_routes_without_a_line() {
        let names = ["GET /a", "GET /b", "GET /c"];
        let places = names.map(|name| place(name, &["(running)"], 0.05));
        let routes = names.map(|name| route(name, 0.06, 100));
        let all = Waiting::all(&evidence(&routes, &places));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!((all[0].in_flight - 0.15).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn a_route_that_hardly_waits_there_hides_no_other() {
        let line = "shop::load (src/load.rs:3)";
        let at =
            |path: &str, in_flight| place(path, &[line, "tokio::sync::Mutex::lock"], in_flight);
        let evidence = evidence(
            &[route("GET /a", 2.0, 100), route("GET /b", 50.0, 100)],
            &[at("GET /a", 1.9), at("GET /b", 0.5)],
        );
        assert!(Waiting::all(&evidence)[0].share > 0.9);
    }

    #[test]
    fn waits_of_one_request_for_several_things_are_one() {
        let own = "shop::read (src/read.rs:3)";
        let lock = place(
            "GET /a",
            &[own, "(one of 2 waits at once)", "tokio::sync::Mutex::lock"],
            1.0,
        );
        let timer = place(
            "GET /a",
            &[own, "(one of 2 waits at once)", "tokio::time::Sleep"],
            1.0,
        );
        let evidence = evidence(&[route("GET /a", 2.0, 9)], &[timer, lock]);
        let all = Waiting::all(&evidence);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].kind(), all[0].in_flight), (WaitKind::Lock, 2.0));
    }

    #[test]
    fn a_rare_wait_does_not_stand_for_those_at_once() {
        let kind = |rare| {
            let of = |line: &str, leaf: &str, in_flight| {
                place(
                    "GET /a",
                    &["(one of 2 waits at once)", line, leaf],
                    in_flight,
                )
            };
            let places = [
                of(
                    "shop::read (src/read.rs:3)",
                    "(waiting for the answer)",
                    1.0,
                ),
                of(
                    "shop::read (src/read.rs:4)",
                    "(waiting for the answer)",
                    1.0,
                ),
                of(
                    "shop::read (src/read.rs:4)",
                    "(waiting for a connection)",
                    rare,
                ),
            ];
            let all = Waiting::all(&evidence(&[route("GET /a", 2.0, 9)], &places));
            assert_eq!(all.len(), 1, "{all:?}");
            all[0].kind()
        };
        assert_eq!(kind(PART_OF_SEVERAL * 0.99), WaitKind::Answer);
        assert_eq!(kind(PART_OF_SEVERAL), WaitKind::NewConnection);
    }

    #[test]
    fn a_place_in_an_earlier_line_is_not_past_a_wait() {
        let lock = ["shop::read (src/read.rs:7)", "tokio::sync::Mutex::lock"];
        let past = |line: &str| {
            let places = [
                place("GET /a", &lock, 2.0),
                place("GET /a", &[line, "tokio::time::Sleep"], 1.0),
            ];
            let evidence = evidence(&[route("GET /a", 3.0, 9)], &places);
            let waiting = Waiting::all(&evidence).remove(0);
            waiting.past(evidence.requests.as_ref().unwrap()).is_some()
        };
        assert!(!past("shop::read (src/read.rs:6)"));
        assert!(past("shop::read (src/read.rs:8)"));
        // In another function, nobody knows.
        assert!(past("shop::query (src/read.rs:6)"));
    }
}
