//! All findings together, for people and as data.

use ecosystem::{WaitKind, figures};

use std::fmt;

use serde::Serialize;

use crate::evidence::{Answers, Connections, Evidence, Frame, Line, Place, Requests, Route, View};
use crate::facts::Facts;
use crate::finding::{Finding, Level};
use crate::neighbours::lost_in_words;
use crate::rules::{COMPUTES, TOLD_BY_FAULTS, judge};
use crate::threads::Places;
use crate::thresholds::{FEWEST_ENDED, LEAST_MS, LISTED, MANY_WORKERS, MUCH_OF_ALL, TOLD_OF_ALL};
use crate::waiting::{anchor, is_inside, whereabouts};

/// Most causes that a report names.
const MOST_FINDINGS: usize = 4;
/// Most places that a report lists where requests spend their time.
const MOST_PLACES: usize = 2;

/// Findings of all instruments together.
#[derive(Debug, Serialize)]
pub struct Report {
    seconds: f64,
    /// Outcomes of requests; nothing where they were not observed.
    #[serde(flatten)]
    outcomes: Option<Outcomes>,
    /// CPUs that the process kept busy on average.
    cpus_used: f64,
    cpus: usize,
    /// True if the CPUs are the limit: the process used nearly all of their time.
    is_cpu_limit: bool,
    /// Share of the CPU time that the process wanted and other programs had.
    cpu_lost: f64,
    /// Places where threads compute most, with their share of all computing, if the CPUs are the limit.
    computing: Option<String>,
    /// The functions with most samples in a CPU profile of the same time.
    cpu_profile: Option<String>,
    /// Number of workers of the watched runtimes.
    workers: usize,
    /// Place from which the process was observed; from inside, findings name endpoints.
    #[serde(skip)]
    view: View,
    /// The most likely cause first; empty if nothing was found.
    pub findings: Vec<Finding>,
    /// Limits and full queues that most requests of a route wait for: on purpose, or too small.
    pub bounds: Vec<Finding>,
    /// Other waits that take most of a request's time, in this service or in its database; their cause was not seen.
    pub waits: Vec<Finding>,
    /// Facts about clients, which are no fault of this service.
    pub notes: Vec<Finding>,
    /// Places at which threads run tasks that are no requests.
    #[serde(skip)]
    other_tasks: Option<Places>,
    /// The line of the service at which requests spend much of their time, and what for, if there is one.
    inside: Option<String>,
    /// Places where requests spend their time, which need not be wrong.
    spent: Vec<String>,
    /// Observations that are missing, each with the reason.
    pub not_seen: Vec<String>,
}

/// A report as data, and the same for people.
#[derive(Debug, Serialize)]
pub struct WithText {
    #[serde(flatten)]
    report: Report,
    text: String,
}

/// Outcomes of requests, and their times.
#[derive(Debug, Serialize)]
struct Outcomes {
    /// Requests that were answered in this time.
    finished: u64,
    /// Requests that were given up before they had an answer.
    dropped: u64,
    /// Mean time after which they were given up, in milliseconds.
    #[serde(skip)]
    dropped_after_ms: Option<f64>,
    answers: Answers,
    /// Connections that were upgraded to another protocol since the process began.
    upgraded: u64,
    /// Requests in flight, averaged over time.
    in_flight: f64,
    /// The mean time that a request took in the service.
    latency_ms: Option<f64>,
}

impl Outcomes {
    fn of(requests: &Requests, seconds: f64) -> Self {
        Self {
            finished: requests.finished(),
            dropped: requests.dropped(),
            dropped_after_ms: requests.dropped_after_ms(),
            answers: requests.answers(),
            upgraded: requests.upgraded,
            in_flight: requests.in_flight,
            latency_ms: mean_latency(requests, seconds),
        }
    }
}

impl Outcomes {
    /// Returns whether requests passed the layer.
    fn are_any(&self) -> bool {
        self.finished > 0 || self.dropped > 0 || self.in_flight > 0.0
    }
}

impl Report {
    /// Judges the evidence by all rules. This takes a while, because it adds up many stacks.
    pub fn new(evidence: &Evidence) -> Self {
        let facts = Facts::of(evidence);
        let mut all = judge(&facts);
        all.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let (mut findings, mut bounds, mut waits, mut notes) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for finding in all {
            match finding.level {
                Level::Fault => findings.push(finding),
                Level::Bound => bounds.push(finding),
                Level::Wait => waits.push(finding),
                Level::Note => notes.push(finding),
            }
        }
        findings.truncate(MOST_FINDINGS);
        if !findings.is_empty() {
            // A finding already says what the threads do.
            waits.retain(|wait| !TOLD_BY_FAULTS.contains(&wait.kind));
        }
        let outcomes = evidence.requests.as_ref();
        let none = Requests::default();
        let requests = evidence.requests.as_ref().unwrap_or(&none);
        let mut told: Vec<Frame> = Vec::new();
        for finding in bounds.iter().chain(&waits) {
            told.extend(finding.places.iter().cloned());
        }
        let mut inside = None;
        if told.is_empty()
            && let Some(place) = self::inside(requests)
        {
            inside = Some(format!(
                "{}{}",
                whereabouts(place),
                each(place, evidence, requests)
            ));
            told.push(anchor(place));
        }
        let is_cpu_limit = evidence.is_cpu_limit();
        let mut computing = None;
        if is_cpu_limit && let Some(threads) = &evidence.threads {
            computing = threads.computing().as_ref().map(ToString::to_string);
        }
        let mut workers = 0;
        for runtime in &evidence.runtimes {
            workers += runtime.held_worst.len();
        }
        Self {
            seconds: evidence.seconds,
            outcomes: outcomes.map(|requests| Outcomes::of(requests, evidence.seconds)),
            cpus_used: evidence.cpus_used,
            cpus: evidence.cpus,
            is_cpu_limit,
            cpu_lost: evidence.cpu_lost(),
            computing,
            cpu_profile: evidence.cpu_profile.clone(),
            workers,
            view: evidence.view,
            findings,
            bounds,
            waits,
            notes,
            other_tasks: facts.other_tasks.map(|others| others.places),
            inside,
            spent: spent(evidence, requests, told),
            not_seen: evidence.not_seen.clone(),
        }
    }

    /// Returns the report as data, and the same for people.
    pub fn with_text(self) -> WithText {
        let text = self.to_string();
        WithText { report: self, text }
    }

    /// Returns the findings on requests alone, which were watched for `seconds`.
    pub fn of_requests(requests: Requests, seconds: f64) -> Vec<Finding> {
        let report = Self::new(&Evidence {
            seconds,
            requests: Some(requests),
            ..Evidence::default()
        });
        [report.findings, report.bounds, report.waits].concat()
    }

    /// Returns the findings on connections alone, in lines.
    pub fn of_connections(connections: Connections) -> Vec<String> {
        let evidence = Evidence {
            connections: Some(connections),
            ..Evidence::default()
        };
        let mut says = Vec::new();
        for finding in Self::new(&evidence).findings {
            says.push(finding.lines(View::Inside));
        }
        says
    }

    fn head(&self) -> String {
        let Some(outcomes) = &self.outcomes else {
            return format!(
                "In {:.0} s the process used {}.",
                self.seconds,
                self.cpus_in_words()
            );
        };
        if !outcomes.are_any() && outcomes.upgraded == 0 {
            return format!(
                "In {:.0} s no request came through `layer()`; {} used.",
                self.seconds,
                self.cpus_in_words()
            );
        }
        let mut head = format!(
            "In {:.0} s {} requests were answered",
            self.seconds,
            figures::count(outcomes.finished as f64)
        );
        let answers = &outcomes.answers;
        let mut classes = Vec::new();
        for (count, class) in [
            (answers.successful, "2xx"),
            (answers.redirected, "3xx"),
            (answers.client_errors, "4xx"),
            (answers.server_errors, "5xx"),
        ] {
            if count > 0 {
                classes.push(format!("{} {class}", figures::count(count as f64)));
            }
        }
        // If all answers are successes, the classes are no news.
        if classes.len() > 1 || answers.server_errors + answers.client_errors > 0 {
            head = format!("{head} ({})", classes.join(", "));
        }
        if outcomes.dropped > 0 {
            head = format!(
                "{head}, and {} were given up",
                figures::count(outcomes.dropped as f64)
            );
            if let Some(ms) = outcomes.dropped_after_ms {
                head = format!("{head} after {} on average", figures::duration(ms));
            }
        }
        let mut figures = Vec::new();
        if let Some(ms) = outcomes.latency_ms {
            figures.push(format!("{} each in the service", figures::duration(ms)));
        }
        if outcomes.upgraded > 0 {
            figures.push(format!(
                "{} connections were upgraded since the start",
                outcomes.upgraded
            ));
        }
        // By Little's law, rate and latency say how many are in flight.
        if outcomes.latency_ms.is_none() {
            let in_flight = figures::average(outcomes.in_flight);
            figures.push(format!("{in_flight} in flight"));
        }
        figures.push(format!("{} used", self.cpus_in_words()));
        format!("{head}: {}.", figures.join(", "))
    }

    /// Formats the CPUs used and those usable: `0.24 of 1 CPU`.
    fn cpus_in_words(&self) -> String {
        let plural = if self.cpus == 1 { "" } else { "s" };
        format!("{:.2} of {} CPU{plural}", self.cpus_used, self.cpus)
    }

    /// Returns the sentence for a report without a fault.
    fn all_clear(&self) -> String {
        let Some(outcomes) = &self.outcomes else {
            return "No fault stands out in what was seen.".to_owned();
        };
        let asked = outcomes.are_any();
        if !asked && outcomes.upgraded > 0 {
            let mut says = "No request came by. The await profile does not see the tasks of connections that were \
                            upgraded, such as WebSockets."
                .to_owned();
            if let Some(places) = &self.other_tasks {
                says = format!("{says} Threads run tasks that are no requests at {places}.");
            }
            return format!(
                "{says} To see what such a task waits for, put its future into `debug_endpoints::watch`: \
                 `upgrade.on_upgrade(|socket| debug_endpoints::watch(\"sockets\", serve(socket)))`."
            );
        }
        if !asked {
            return "No fault stands out in what was seen, and requests were not: none came, or they do not pass the layer, as \
                    those of actix."
                .to_owned();
        }
        if !self.bounds.is_empty() {
            return "Requests wait at a bound: too small, on purpose, or held for too long."
                .to_owned();
        }
        if self.is_cpu_limit {
            return "No wait holds requests up: they take turns on the CPU.".to_owned();
        }
        if !self.waits.is_empty() {
            return "No fault stands out. Much time goes to this:".to_owned();
        }
        if let Some(line) = &self.inside {
            return format!("No fault stands out. Most of a request's time is spent at {line}.");
        }
        "Nothing in this service holds requests up. If clients wait longer, look outside of it: at the services that it calls, \
         the network, a proxy."
            .to_owned()
    }

    fn cpu(&self) -> String {
        let mut says = "The CPU is a limit.".to_owned();
        let mut findings = self.findings.iter();
        let is_told = findings.any(|finding| COMPUTES.contains(&finding.kind));
        if let Some(places) = self.computing.as_ref().filter(|_| !is_told) {
            says = format!("{says} Of what threads compute, {places}.");
        }
        match &self.cpu_profile {
            Some(top) => {
                says = format!(
                    "{says} By a CPU profile of these seconds (/debug/pprof/last?format=svg): {top}."
                );
            }
            None if self.view == View::Inside => {
                says += " All of it is in /debug/pprof/flamegraph.";
            }
            None => {}
        }
        if self.workers >= MANY_WORKERS * self.cpus {
            let cpus = match self.cpus {
                1 => "1 CPU".to_owned(),
                cpus => format!("{cpus} CPUs"),
            };
            says = format!(
                "{says} {} workers share {cpus}: more than it can run, each with an arena of the allocator; as many as \
                 there are CPUs is the default.",
                self.workers
            );
        }
        says
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.head())?;
        if let Some(lost) = lost_in_words(self.cpu_lost) {
            writeln!(f, "{lost}")?;
        }
        for (at, finding) in self.findings.iter().enumerate() {
            writeln!(f, "{}. {}", at + 1, finding.lines(self.view))?;
        }
        if self.findings.is_empty() {
            writeln!(f, "{}", self.all_clear())?;
        }
        if self.is_cpu_limit {
            writeln!(f, "{}", self.cpu())?;
        }
        for bound in &self.bounds {
            writeln!(f, "Bound: {}", bound.lines(self.view))?;
        }
        for wait in &self.waits {
            writeln!(f, "Wait: {}", wait.lines(self.view))?;
        }
        for note in &self.notes {
            writeln!(f, "Note: {} {}", note.headline, note.fix)?;
        }
        // A fault says where requests are.
        if self.findings.is_empty() {
            for spent in &self.spent {
                writeln!(f, "{spent}.")?;
            }
        }
        for not_seen in &self.not_seen {
            // One line each; the data has the rest.
            let first = not_seen
                .split_once(". ")
                .map_or(&**not_seen, |(first, _)| first);
            writeln!(f, "Not seen: {first}")?;
        }
        Ok(())
    }
}

/// Returns the mean time of a request with its body, in milliseconds, over the routes for which it is known.
fn mean_latency(requests: &Requests, seconds: f64) -> Option<f64> {
    let (mut sum, mut ended) = (0.0, 0);
    for route in requests.whole() {
        let body = match requests.route(&format!("{}{}", ecosystem::BODY_OF, route.name)) {
            Some(body) => body.mean_ms(seconds),
            None => Some(0.0),
        };
        if let (Some(head), Some(body)) = (route.mean_ms(seconds), body) {
            sum += (head + body) * route.ended() as f64;
            ended += route.ended();
        }
    }
    if ended == 0 {
        return None;
    }
    // Where routes are many, few of their requests have a mean of their own: those that are left out may be the slow ones.
    let all: u64 = requests.whole().map(Route::ended).sum();
    let mean = requests.in_flight * seconds * 1e3 / all as f64;
    if (ended as f64) < TOLD_OF_ALL * all as f64 && all >= FEWEST_ENDED {
        return Some(mean);
    }
    Some(sum / ended as f64)
}

/// Returns the place at the line with most requests of all routes, if it has a large share and the wait there is inside the
/// service.
fn inside(requests: &Requests) -> Option<&Place> {
    let mut lines: Vec<(&Line, &Place, f64)> = Vec::new();
    for place in &requests.places {
        let Some(line) = place.line() else { continue };
        if place.kind().is_some_and(|kind| !is_inside(kind)) || runs_along(place) {
            continue;
        }
        match lines.iter_mut().find(|(other, ..)| *other == line) {
            Some((.., sum)) => *sum += place.in_flight,
            None => lines.push((line, place, place.in_flight)),
        }
    }
    let (_, place, in_flight) = lines.into_iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    (in_flight >= MUCH_OF_ALL * requests.in_flight).then_some(place)
}

/// Returns whether a timer runs beside another wait, which says more.
fn runs_along(place: &Place) -> bool {
    place.kind() == Some(WaitKind::Timer) && place.is_one_of_several()
}

/// Returns the time of each request at a place, as the end of a sentence; nothing if it is not known.
fn each(place: &Place, evidence: &Evidence, requests: &Requests) -> String {
    match ms_at(place, evidence, requests) {
        Some(ms) => format!(", {} each", figures::duration(ms)),
        None => String::new(),
    }
}

/// Returns the mean time of a request at a place, in milliseconds.
fn ms_at(place: &Place, evidence: &Evidence, requests: &Requests) -> Option<f64> {
    let route = requests.route(&place.route)?;
    let latency = route.mean_ms(evidence.seconds)?;
    Some(latency * place.in_flight / route.in_flight.max(f64::MIN_POSITIVE))
}

/// Returns a sentence for each of the places with most requests that is not yet told, one for each line. Short waits are no news,
/// nor that some requests run or are ready.
fn spent(evidence: &Evidence, requests: &Requests, mut told: Vec<Frame>) -> Vec<String> {
    let mut spent = Vec::new();
    let mut are_threads_told = false;
    let all = requests.in_flight.max(f64::MIN_POSITIVE);
    for place in &requests.places {
        let share = place.in_flight / all;
        if share < LISTED || spent.len() == MOST_PLACES {
            break;
        }
        let ms = ms_at(place, evidence, requests);
        let at = anchor(place);
        let is_state = place.line().is_none() && share < MUCH_OF_ALL;
        if is_state || ms.is_some_and(|ms| ms < LEAST_MS) || told.contains(&at) {
            continue;
        }
        told.push(at);
        let mut says = format!(
            "{:.0} % of the requests in flight are in {} > {}{}",
            share * 100.0,
            place.route,
            whereabouts(place),
            each(place, evidence, requests)
        );
        // A state has no line; the threads tell more.
        if place.line().is_none()
            && !are_threads_told
            && let Some(threads) = &evidence.threads
            && let Some(places) = threads.at_work()
        {
            says = format!("{says}. Threads that run requests are at {places}");
            are_threads_told = true;
        }
        spent.push(says);
    }
    spent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{evidence, frames, place, route};
    use crate::thresholds::CPU_LOST;

    const LINE: &str = "bin::render (src/render.rs:40)";

    #[test]
    fn nobody_is_sent_outside_while_most_time_is_at_one_line_inside() {
        let at = |share: f64| {
            // Four kinds of waits at one line, none of which is much.
            let leaves = [
                "tokio::time::Sleep",
                "tokio::sync::oneshot::Receiver",
                "tokio::task::JoinHandle",
                "tokio::sync::Notified",
            ];
            let places = leaves.map(|leaf| place("GET /", &[LINE, leaf], share / 4.0));
            Report::new(&evidence(&[route("GET /", 1.0, 9)], &places)).to_string()
        };
        let inside = at(MUCH_OF_ALL * 1.01);
        assert!(
            inside.contains("spent at bin::render (src/render.rs:40)"),
            "{inside}"
        );
        assert!(at(MUCH_OF_ALL * 0.99).contains("look outside of it"));
        let beside = ["(one of 2 waits at once)", LINE, "tokio::time::Sleep"];
        let beside = place("GET /", &beside, 1.0);
        let limited = Report::new(&evidence(&[route("GET /", 1.0, 9)], &[beside]));
        assert_eq!(limited.inside, None);
        let answer = place("GET /", &[LINE, "(waiting for the answer)"], 1.0);
        let outside = Report::new(&evidence(&[route("GET /", 1.0, 9)], &[answer])).to_string();
        assert!(outside.contains("look outside of it"), "{outside}");
    }

    /// Reported of a service whose paths were its routes: 8 in flight and 208 answers a second were 2.18 ms each.
    #[test]
    fn the_mean_fits_the_requests_in_flight_if_few_routes_have_one() {
        let head = |timed: u64| {
            let mut fast = route("GET /1", 0.1, timed);
            fast.longest_ms = Some(5.0);
            let mut slow = route("GET /2", 7.9, 2000 - timed);
            // Longer than any request lived: requests that began before are in flight.
            slow.longest_ms = Some(10.0);
            Report::new(&evidence(&[fast, slow], &[])).to_string()
        };
        assert!(
            head(1000).contains(" 40.0 ms each in the service"),
            "{}",
            head(1000)
        );
        assert!(head(1900).contains("answered: 0.5"), "{}", head(1900));
    }

    #[test]
    fn the_head_says_how_requests_ended() {
        let mut one = route("GET /", 10.8, 5);
        (one.dropped, one.dropped_after_ms) = (638, Some(250.0));
        one.answers = Answers {
            successful: 4,
            server_errors: 1,
            ..Answers::default()
        };
        let text = Report::new(&evidence(&[one], &[])).to_string();
        assert!(
            text.starts_with(
                "In 10 s 5 requests were answered (4 2xx, 1 5xx), and 638 were given up after 250 ms on average: \
                 168 ms each in the service, "
            ),
            "{text}"
        );
    }

    #[test]
    fn a_report_from_outside_counts_no_requests_and_names_no_endpoints() {
        let descriptors = crate::evidence::Descriptors {
            limit: 10,
            most_open: 10,
            ..crate::evidence::Descriptors::default()
        };
        let mut evidence = Evidence {
            seconds: 10.0,
            cpus: 2,
            cpus_used: 0.5,
            view: View::Outside,
            ..Evidence::default()
        };
        let clear = Report::new(&evidence).to_string();
        assert!(
            clear.starts_with("In 10 s the process used 0.50 of 2 CPUs.\nNo fault stands out"),
            "{clear}"
        );
        evidence.descriptors = Some(descriptors);
        evidence.cpus_used = 2.0;
        let text = Report::new(&evidence).to_string();
        assert!(text.contains("1. 10 of 10 file descriptors"), "{text}");
        assert!(
            !text.contains("/debug/") && !text.contains("request"),
            "{text}"
        );
        evidence.view = View::Inside;
        assert!(
            Report::new(&evidence)
                .to_string()
                .contains("[/debug/memory]")
        );
    }

    #[test]
    fn upgraded_connections_are_no_reason_to_ask_for_load() {
        let mut evidence = evidence(&[], &[]);
        evidence.requests.as_mut().unwrap().upgraded = 6;
        let text = Report::new(&evidence).to_string();
        assert!(
            text.contains("6 connections were upgraded") && !text.contains("put load"),
            "{text}"
        );
    }

    #[test]
    fn a_wait_is_told_once() {
        let bounds = |gap_ms| {
            let waits = [LINE, "tokio::sync::mpsc::Sender::send"];
            let mut evidence =
                evidence(&[route("GET /", 8.0, 1000)], &[place("GET /", &waits, 8.0)]);
            evidence.requests.as_mut().unwrap().releases = vec![crate::evidence::Release {
                route: "GET /".to_owned(),
                frames: frames(&waits),
                by: frames(&["shop::write (src/audit.rs:33)"]),
                share: 1.0,
                tasks: 1,
                wakes: 1000,
                short_gap_ms: Some(gap_ms),
                ..crate::evidence::Release::default()
            }];
            let report = Report::new(&evidence);
            (report.findings.len(), report.bounds.len())
        };
        assert_eq!(bounds(9.0), (1, 0), "one message at a time");
        assert_eq!(bounds(0.0), (0, 1));
    }

    #[test]
    fn a_place_is_listed_from_a_share_of_all_requests() {
        let listed = |share| {
            let places = [place("GET /", &[LINE, "tokio::time::Sleep"], share)];
            !Report::new(&evidence(&[route("GET /", 1.0, 9)], &places))
                .spent
                .is_empty()
        };
        assert!(!listed(LISTED * 0.99) && listed(LISTED));
    }

    #[test]
    fn the_cpu_is_a_limit_from_a_share_of_its_time() {
        let at = |used| {
            let mut evidence = evidence(&[route("GET /", 1.0, 9)], &[]);
            evidence.cpus_used = used;
            evidence.runtimes = vec![crate::evidence::Runtime {
                held_worst: vec![0.0; 8],
                ..crate::evidence::Runtime::default()
            }];
            Report::new(&evidence).to_string()
        };
        assert!(!at(1.79).contains("The CPU is a limit"));
        assert!(
            at(1.8).contains("The CPU is a limit") && at(1.8).contains("8 workers share 2 CPUs")
        );
    }

    #[test]
    fn a_crowded_machine_is_named_from_a_share_of_the_time() {
        let at = |others: f64, delayed_s: f64| {
            let mut worker = crate::threads::Thread::of("tokio worker", Vec::new());
            worker.delayed_s = delayed_s;
            let mut evidence = crate::testing::of_threads(vec![worker], 0.0);
            evidence.cpus_used = 0.8;
            evidence.cpus_of_others = Some(others);
            Report::new(&evidence).to_string()
        };
        let waited = 0.3 * crate::testing::of_threads(Vec::new(), 0.0).seconds;
        let crowded = at(1.5, waited);
        assert!(
            crowded.contains("Other programs had 27 % of the CPU time"),
            "{crowded}"
        );
        // Threads wait for each other, or others run while none waits.
        assert!(!at(0.1, waited).contains("Other programs"));
        assert!(!at(1.5, waited / 3.0).contains("Other programs"));
        let least = CPU_LOST * 0.8 / (1.0 - CPU_LOST);
        assert!(at(least * 1.01, 9.0 * waited).contains("Other programs had 20 %"));
        assert!(!at(least * 0.99, 9.0 * waited).contains("Other programs"));
    }
}
