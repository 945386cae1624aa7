//! Record of one generator thread: answers only within the span, but every fault.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use hdrhistogram::CreationError;
use hyper::Request;
use hyper::body::Bytes;

use super::failure::Failure;
use super::latencies::Latencies;
use super::pieces::{Arrived, Piece, Pieces};
use super::rate::Completions;
use super::tally::{End, Tally};

/// Figures of one thread, or of all threads after [`Record::merge`].
#[derive(Debug)]
pub(super) struct Record {
    start: Instant,
    end: Instant,
    /// Moment until which answers count that were due before `end`.
    closes: Instant,
    /// Number of requests under way that were due before `end`.
    pub(super) under_way: u64,
    pub(super) routes: Vec<RouteLatencies>,
    pub(super) completions: Completions,
    pub(super) per_second: Vec<u64>,
    failures: HashMap<Failure, u64>,
    pub(super) wrong_answers: u64,
    /// The first wrong answer, shortened, and the request that it answered.
    pub(super) first_wrong: Option<(String, String)>,
    /// Requests by phase, if the load has phases or clients that give up.
    pub(super) tally: Option<Tally>,
}

/// Latencies of one route.
#[derive(Debug)]
pub struct RouteLatencies {
    /// Right answers in all, warm-up included.
    pub right_in_all: u64,
    /// Latencies; in an open loop from the scheduled moment.
    pub latency: Latencies,
    /// Latencies from the moment each request was really sent; open loop only.
    pub service: Option<Latencies>,
    /// Times within the answers, if the load asks for them.
    pub pieces: Option<Pieces>,
    /// Time of the last right answer in seconds since the span began; `None` if none came in the span, or if it is not
    /// known.
    pub last_answer_s: Option<f64>,
}

impl Record {
    /// Creates a record for the requests of the span from `start` to `end`, with this number of routes. Answers count
    /// until `closes`, which is `end` unless the load goes on for them.
    /// `has_pieces` adds the times within answers.
    pub(super) fn new(
        start: Instant,
        end: Instant,
        closes: Instant,
        time_out: Duration,
        open_loop: bool,
        has_pieces: bool,
        routes: usize,
    ) -> Result<Self, CreationError> {
        // In an open loop a request can be overdue for as long as the whole load.
        let longest = (time_out + (end - start)).max(Duration::from_secs(120)) * 2;
        let span = end - start;
        let watched = closes - start;
        let empty = Latencies::new(watched, longest)?;
        let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
        let mut latencies = Vec::new();
        for _ in 0..routes {
            latencies.push(RouteLatencies {
                right_in_all: 0,
                latency: empty.clone(),
                service: if open_loop { Some(empty.clone()) } else { None },
                pieces: has_pieces.then(|| Pieces {
                    kind: Piece::Chunk,
                    first_byte: empty.clone(),
                    between: empty.clone(),
                }),
                last_answer_s: None,
            });
        }
        Ok(Self {
            start,
            end,
            closes,
            under_way: 0,
            routes: latencies,
            completions: Completions::default(),
            per_second: vec![0; usize::try_from(seconds).unwrap_or(0)],
            failures: HashMap::new(),
            wrong_answers: 0,
            first_wrong: None,
            tally: None,
        })
    }

    /// Records a right answer of `route` now, wanted at `due` and asked for at `sent`.
    pub(super) fn right(&mut self, route: usize, due: Instant, sent: Instant) {
        self.routes[route].right_in_all += 1;
        self.count(|tally| tally.ended(due, End::InTime));
        let (now, start) = (Instant::now(), self.start);
        if now < start {
            let before = (start - now).as_secs_f64();
            return self.completions.note_before(-before);
        }
        if now >= self.closes || due >= self.end {
            return self.unanswered(route, due, Some(sent));
        }
        if now < self.end {
            self.completed(now - start);
        }
        let route = &mut self.routes[route];
        route.last_answer_s = Some((now - start).as_secs_f64());
        route
            .latency
            .answer(now - due, start.saturating_duration_since(due));
        if let Some(service) = &mut route.service {
            service.answer(now - sent, start.saturating_duration_since(sent));
        }
    }

    /// Records a request of `route` that was wanted at `due` and had no answer when the record closed. `sent` says when
    /// it was asked for, if it was. Requests that were wanted after the span are none of its own.
    pub(super) fn unanswered(&mut self, route: usize, due: Instant, sent: Option<Instant>) {
        if due >= self.end {
            return;
        }
        let closes = self.closes;
        let route = &mut self.routes[route];
        route.latency.wait(closes.saturating_duration_since(due));
        if let (Some(service), Some(sent)) = (&mut route.service, sent) {
            service.wait(closes.saturating_duration_since(sent));
        }
    }

    /// Records what arrived of an answer of `route`, which was wanted at `due`. `is_whole` is not set if the load ended
    /// within it: then the next piece is known to take longer.
    pub(super) fn arrived(
        &mut self,
        route: usize,
        due: Instant,
        arrived: &Arrived,
        is_whole: bool,
    ) {
        let (start, end) = (self.start, self.end);
        let Some(pieces) = &mut self.routes[route].pieces else {
            return;
        };
        // A time counts if it ends within the span; it may begin before.
        let note = |times: &mut Latencies, from: Instant, to: Option<Instant>| match to {
            Some(to) if to < start => {}
            Some(to) if to < end => {
                times.answer(to - from, start.saturating_duration_since(from));
            }
            _ if from < end => times.wait(end - from),
            _ => {}
        };
        if arrived.first_byte.is_some() || !is_whole {
            note(&mut pieces.first_byte, due, arrived.first_byte);
        }
        for two in arrived.pieces.windows(2) {
            note(&mut pieces.between, two[0], Some(two[1]));
        }
        if let Some(last) = arrived.pieces.last()
            && !is_whole
        {
            note(&mut pieces.between, *last, None);
        }
        if arrived.first_byte.is_some() {
            pieces.kind = arrived.kind;
        }
    }

    /// Counts a right answer at this moment of the span.
    fn completed(&mut self, moment: Duration) {
        self.completions.note(moment.as_secs_f64());
        let second = usize::try_from(moment.as_secs()).unwrap_or(usize::MAX);
        if let Some(count) = self.per_second.get_mut(second) {
            *count += 1;
        }
    }

    /// Notes that a request was sent which was wanted at `due`.
    pub(super) fn begin(&mut self, due: Instant) {
        self.under_way += u64::from(due < self.end);
    }

    /// Notes that it is no longer under way.
    pub(super) fn end(&mut self, due: Instant) {
        self.under_way -= u64::from(due < self.end);
    }

    /// Records an answer with the expected status and a wrong body.
    pub(super) fn wrong(&mut self, request: &Request<Bytes>, body: &[u8]) {
        self.wrong_answers += 1;
        let path = request.uri().path_and_query();
        let path = path.map_or("/", |path| path.as_str());
        self.first_wrong
            .get_or_insert_with(|| (shortened(body), format!("{} {path}", request.method())));
    }

    /// Records a request without an answer, or with another status.
    pub(super) fn failed(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    /// Counts something by the phase of the load, if it is counted.
    pub(super) fn count(&mut self, one: impl FnOnce(&mut Tally)) {
        if let Some(tally) = &mut self.tally {
            one(tally);
        }
    }

    /// Returns the number of failed requests so far.
    pub(super) fn failure_count(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Adds the figures of another thread over the same span.
    pub(super) fn merge(&mut self, other: Self) {
        for (mine, others) in self.routes.iter_mut().zip(&other.routes) {
            mine.right_in_all += others.right_in_all;
            mine.latency.add(&others.latency);
            if let (Some(mine), Some(others)) = (&mut mine.service, &others.service) {
                mine.add(others);
            }
            if let (Some(mine), Some(others)) = (&mut mine.pieces, &others.pieces) {
                mine.merge(others);
            }
            if let Some(last) = others.last_answer_s {
                mine.last_answer_s = Some(mine.last_answer_s.unwrap_or(0.0).max(last));
            }
        }
        self.completions.merge(&other.completions);
        for (mine, others) in self.per_second.iter_mut().zip(other.per_second) {
            *mine += others;
        }
        for (failure, count) in other.failures {
            *self.failures.entry(failure).or_default() += count;
        }
        if let (Some(mine), Some(others)) = (&mut self.tally, &other.tally) {
            mine.merge(others);
        }
        self.wrong_answers += other.wrong_answers;
        self.first_wrong = self.first_wrong.take().or(other.first_wrong);
    }

    /// Returns the number of right answers of all routes, including those before and after the span.
    pub(super) fn right_in_all(&self) -> u64 {
        self.routes.iter().map(|route| route.right_in_all).sum()
    }

    pub(super) fn errors(&self) -> BTreeMap<String, u64> {
        self.failures
            .iter()
            .map(|(failure, count)| (failure.to_string(), *count))
            .collect()
    }

    /// Returns the median and the 99th percentile of all answers so far, in nanoseconds.
    pub(super) fn so_far(&self) -> Option<(u64, u64)> {
        let joined;
        let all = if let [one] = &self.routes[..] {
            &one.latency
        } else {
            joined = all(&self.routes)?;
            &joined
        };
        if all.count() == 0 {
            return None;
        }
        Some((all.so_far(0.5), all.so_far(0.99)))
    }
}

/// Returns the latencies of all routes together; `None` without a route.
pub(super) fn all(routes: &[RouteLatencies]) -> Option<Latencies> {
    let (first, others) = routes.split_first()?;
    let mut all = first.latency.clone();
    for other in others {
        all.add(&other.latency);
    }
    Some(all)
}

fn shortened(body: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(MOST)]).into_owned();
    if body.len() > MOST {
        format!("{text}… ({} bytes)", body.len())
    } else {
        text
    }
}
