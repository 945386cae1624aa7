//! Waits of requests, added up over the routes that meet them at the same line.

use ecosystem::{Wait, WaitKind, figures};

use crate::evidence::{
    Evidence, Frame, Line, Place, Release, Requests, Route, innermost_line, path,
};
use crate::thresholds::{
    ABSENT, AT_WORK, LEAST_MS, MOST_OF_ROUTE, MUCH_OF_ALL, MUCH_OF_ROUTE, PART_OF_SEVERAL,
    PASSES_BY, QUEUE,
};

/// Requests that wait for the same thing at the same line.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Thing that they wait for.
    pub(crate) wait: Wait,
    /// One place for each route, the one with most requests first.
    pub(crate) places: Vec<Place>,
    /// The first place's route.
    pub(crate) route: Route,
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
    /// Code that ended most of the waits at the first place, if it is known.
    pub(crate) release: Option<Release>,
    /// Share of the waits at the first place that a timer ended.
    pub(crate) ended_by_timer: f64,
    /// Line at which a task that is no request gives back what these wait for, and the share of the waits that ended so.
    /// `None` if requests alone are known to give it back.
    pub(crate) holder: Option<(Line, f64)>,
    /// Place where other requests of the route are, past this wait. A place in a line before it is not past it.
    pub(crate) past: Option<Place>,
}

impl Waiting {
    /// Returns whether much of the time of its routes, or of all requests, goes to this wait.
    pub(crate) fn is_much(&self) -> bool {
        self.share >= MUCH_OF_ROUTE || self.share_of_all >= MUCH_OF_ALL
    }

    /// Returns whether the wait is too short, or met by too few, to be told if its cause was not seen.
    pub(crate) fn is_little(&self) -> bool {
        let is_work = matches!(self.kind(), WaitKind::Running | WaitKind::Ready);
        let is_short = !is_work && self.ms.is_some_and(|ms| ms < LEAST_MS);
        is_short || self.in_flight < AT_WORK
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
        let first = places.first()?;
        let wait = first.wait?;
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
        let route = requests.route(&first.route).cloned().unwrap_or_default();
        let release = requests.releases_of(first).next().cloned();
        let ended_by_timer = requests.ended_by_timer(first);
        let holder = holder(first, requests);
        let past = past(first, wait, requests).next().cloned();
        Some(Self {
            wait,
            route,
            share: here / of_routes.max(f64::MIN_POSITIVE),
            share_of_all: in_flight / requests.in_flight.max(f64::MIN_POSITIVE),
            in_flight,
            ms,
            latency_ms,
            ended,
            in_a_row,
            release,
            ended_by_timer,
            holder,
            past,
            places,
        })
    }

    /// Returns the place with most requests.
    pub(crate) fn place(&self) -> &Place {
        &self.places[0]
    }

    /// Returns the line of the service's own code.
    pub(crate) fn line(&self) -> Option<&Line> {
        self.place().line()
    }

    /// Returns the line, or the last frame if no line is known.
    pub(crate) fn anchor(&self) -> Frame {
        anchor(self.place())
    }

    /// Returns the kind of the wait.
    pub(crate) fn kind(&self) -> WaitKind {
        self.wait.kind
    }

    /// Returns whether most requests of the route pass the line by, which is empty at times. A request is there for `ms`.
    pub(crate) fn comes_in_bursts(&self, ms: f64) -> bool {
        let Some(median) = self.route.median_ms else {
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

    /// Returns where requests of the first place's route are that have passed this wait, the place with most of them first.
    pub(crate) fn all_past<'a>(&self, requests: &'a Requests) -> impl Iterator<Item = &'a Place> {
        past(self.place(), self.wait, requests)
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
        let at = self.line().map(|line| format!(" at {line}"));
        let at = at.unwrap_or_default();
        format!("{}: {time}{}{at}.", self.routes(), self.wait.in_words())
    }

    /// Returns a sentence on the requests at once, and one on the code that let them go.
    pub(crate) fn seen(&self) -> String {
        let at_once = figures::average(self.in_flight);
        let mut seen = vec![format!("{at_once} requests at once.")];
        seen.extend(self.seen_besides());
        seen.join(" ")
    }

    /// Returns sentences on what else was seen than the number of requests at once.
    pub(crate) fn seen_besides(&self) -> Vec<String> {
        let mut seen = Vec::new();
        if self.ended == 0 {
            seen.push("None of these requests has ended meanwhile.".to_owned());
        }
        seen.extend(self.let_go());
        seen
    }

    /// Returns the line at which requests that got past give back by hand what these wait for, as far as the code that ended
    /// most of these waits shows: it is further on in a function of the request, and drops no guard.
    pub(crate) fn given_back_by_hand(&self) -> Option<&Line> {
        let release = self.release.as_ref()?;
        let by = innermost_line(&release.by)?;
        let is_guard = release.is_by_drop == Some(true) || by.function.ends_with("::drop");
        let mut back = release.by.iter().filter_map(Frame::line);
        let is_of_request = back.any(|back| {
            let mut own = self.place().frames.iter().filter_map(Frame::line);
            own.any(|own| back.is_in_function_of(own) && back.line > own.line)
        });
        let is_most = release.share >= MOST_OF_ROUTE;
        (is_of_request && is_most && !is_guard && !release.is_of_task).then_some(by)
    }

    /// Returns a sentence on the code that let them go, if it is known.
    pub(crate) fn let_go(&self) -> Option<String> {
        // A library that ends a wait does so for somebody else.
        let release = self.release.as_ref()?;
        let by = innermost_line(&release.by)?;
        let share = release.share * 100.0;
        Some(format!("{share:.0} % of these waits ended at {by}."))
    }
}

/// Returns the line of a place, or its last frame if no line is known.
pub(crate) fn anchor(place: &Place) -> Frame {
    match (place.line(), place.frames.last()) {
        (Some(line), _) => Frame::Own(line.clone()),
        (None, Some(last)) => last.clone(),
        (None, None) => Frame::State(String::new()),
    }
}

/// Returns the lines of the service where requests are, and what they wait for there:
/// `shop::load (src/load.rs:9) > shop::read (src/read.rs:3), waiting for a lock`.
pub(crate) fn whereabouts(place: &Place) -> String {
    let mut lines = Vec::new();
    for line in place.frames.iter().filter_map(Frame::line) {
        lines.push(line.to_string());
    }
    match place.wait {
        _ if lines.is_empty() => path(&place.frames),
        Some(wait) => format!("{}, {}", lines.join(" > "), wait.in_words()),
        None => lines.join(" > "),
    }
}

fn holder(here: &Place, requests: &Requests) -> Option<(Line, f64)> {
    for release in requests.releases_of(here) {
        // Requests that the profiler does not see end waits, too.
        let mut lines = release.by.iter().filter_map(Frame::line);
        if release.is_of_task
            && !lines.any(|line| is_of_requests(line, requests))
            && let Some(line) = innermost_line(&release.by)
        {
            return Some((line.clone(), release.share));
        }
    }
    None
}

fn past<'a>(here: &Place, wait: Wait, requests: &'a Requests) -> impl Iterator<Item = &'a Place> {
    requests.places.iter().filter(move |place| {
        let is_here = place.wait.is_some_and(|other| other.what == wait.what);
        let is_of_route = place.route == here.route && place.frames.len() > 1;
        is_of_route && !is_here && !is_before(place, here)
    })
}

/// Returns whether a request was seen in the function of this line.
fn is_of_requests(line: &Line, requests: &Requests) -> bool {
    requests.places.iter().any(|place| {
        let mut lines = place.frames.iter().filter_map(Frame::line);
        lines.any(|other| other.is_in_function_of(line))
    })
}

/// Returns whether requests wait for the same thing at both places, at one line if they have one. Work has no line of
/// its own.
fn is_same(first: &Place, place: &Place) -> bool {
    let is_work = matches!(place.kind(), Some(WaitKind::Running | WaitKind::Ready));
    let is_line = is_work || first.line().is_some() && first.line() == place.line();
    first.wait == place.wait
        && (is_line || first.route == place.route && first.frames == place.frames)
}

/// Returns whether a request waits for this until another gives it back.
pub(crate) fn is_of_holders(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::Limit | WaitKind::Lock | WaitKind::Pool)
}

/// Returns whether such a wait goes on in this service, or in its database.
pub(crate) fn is_inside(kind: WaitKind) -> bool {
    use WaitKind::{Answer, AnswerOrStream, Body, Client, Network, NewConnection};
    !matches!(
        kind,
        Answer | AnswerOrStream | Body | Client | NewConnection | Network
    )
}

/// Returns whether requests pass `place` before `here`: both are in one function, whose line at `place` comes first.
fn is_before(place: &Place, here: &Place) -> bool {
    for (frame, own) in std::iter::zip(&place.frames, &here.frames) {
        if frame != own {
            let (Some(other), Some(own)) = (frame.line(), own.line()) else {
                return false;
            };
            return other.is_in_function_of(own) && other.line < own.line;
        }
    }
    false
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
    let own = &place.frames[..=place.parting()?];
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
            waiting.past.is_some()
        };
        assert!(!past("shop::read (src/read.rs:6)"));
        assert!(past("shop::read (src/read.rs:8)"));
        // In another function, nobody knows.
        assert!(past("shop::query (src/read.rs:6)"));
    }
}
