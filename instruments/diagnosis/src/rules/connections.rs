//! Connections that are opened for each request, wait to be accepted, are held back, or are shared by many requests.

use ecosystem::{Wait, WaitKind, figures, is_of_runtime};

use super::table;
use crate::evidence::{Evidence, Frame, Line, Peers, Place, Requests, Step, StepKind};
use crate::facts::{Facts, Side};
use crate::finding::{Advice, Row, Sighting};
use crate::threads::Spot;
use crate::threads::seen::Inside;
use crate::thresholds::{
    ACCEPT_LOOKS, ALONE, CLOSED_HERE, DROPPED, HELD_LOOKS, HELD_SHARE, MANY_ON_ONE, MANY_STREAMS,
    MUCH_OF_ALL, MUCH_OF_ROUTE, OPENED, OPENED_PER_OPEN, OPENED_PER_REQUEST, SHARED_MS,
    TASKS_AT_ONCE, UNACCEPTED, UNREAD_LOOKS,
};
use crate::waiting::{Waiting, whereabouts};

/// Returns connections with their name: `to 127.0.0.1:5432`, `on port 8080`.
fn named(side: Side, address: &str) -> String {
    match side {
        Side::Upstream => format!("to {address}"),
        Side::Clients => format!("on {address}"),
    }
}

/// Connections that are hardly used again.
pub(crate) struct ShortConnections {
    side: Side,
    address: String,
    seconds: f64,
    opened: usize,
    most_open: usize,
    closed_here: usize,
    /// Where threads make clients for these connections.
    made_at: Option<Spot>,
    /// True if requests were seen, and none of them waits for an answer of an HTTP client, which keeps connections if it can. A
    /// protocol of the service's own may have one for each message.
    is_own_protocol: bool,
    /// The line at which most requests wait for an answer, and the time of such a wait in milliseconds.
    awaited: Option<(Line, f64)>,
}

pub(crate) fn not_used_again(facts: &Facts<'_>) -> Vec<ShortConnections> {
    let mut found = Vec::new();
    let Some(connections) = &facts.evidence.connections else {
        return found;
    };
    let finished = facts.requests.map_or(0, Requests::finished);
    let is_own_protocol = facts.requests.is_some_and(|requests| {
        !requests.places.iter().any(|place| {
            let kind = place.kind();
            matches!(kind, Some(WaitKind::Answer | WaitKind::AnswerOrStream))
        })
    });
    for (side, peers) in facts.peers() {
        let seen = peers.opened + peers.ended;
        let of_namespace = match side {
            Side::Upstream => connections.namespace_opened,
            Side::Clients => connections.namespace_accepted,
        };
        // Those that are short are seldom seen. The kernel counts all, if not of this process alone.
        let opened = of_namespace.unwrap_or_default().max(seen as u64);
        let per_request = opened as f64 / finished.max(1) as f64;
        let is_many = seen as u64 >= OPENED && seen >= OPENED_PER_OPEN * peers.most_open;
        let end_with_requests = facts
            .requests
            .is_some_and(|requests| are_given_up(requests, side));
        if !is_many || per_request < OPENED_PER_REQUEST || end_with_requests {
            continue;
        }
        let is_upstream = side == Side::Upstream;
        found.push(ShortConnections {
            side,
            address: peers.address.clone(),
            seconds: connections.seconds,
            opened: seen,
            most_open: peers.most_open,
            closed_here: peers.closed_here,
            made_at: facts.client_made_at.clone().filter(|_| is_upstream),
            is_own_protocol,
            awaited: answer_awaited(facts).filter(|_| is_upstream),
        });
    }
    found
}

/// Returns whether connections end because requests do: a client that leaves closes its connection, and those of the
/// calls for it, and a time limit closes those of calls. Both are told as what they are.
fn are_given_up(requests: &Requests, side: Side) -> bool {
    let finished = requests.finished();
    let are_cut = requests.answers().timed_out as f64 >= DROPPED * finished as f64;
    let is_upstream = side == Side::Upstream;
    finished == 0 || requests.left_share() >= DROPPED || is_upstream && are_cut
}

fn answer_awaited(facts: &Facts<'_>) -> Option<(Line, f64)> {
    let answer = facts.waits_of(WaitKind::Answer).next()?;
    if answer.share < MUCH_OF_ROUTE {
        return None;
    }
    Some((answer.line()?.clone(), answer.ms?))
}

impl Sighting for ShortConnections {
    fn row(&self) -> &'static Row {
        let is_closed_here = self.closed_here as f64 >= CLOSED_HERE * self.opened as f64;
        match self.side {
            Side::Upstream if self.made_at.is_some() => table::CLIENT_FOR_CALL,
            Side::Upstream if self.is_own_protocol => table::ONE_FOR_EACH_MESSAGE,
            Side::Upstream if is_closed_here => table::CLOSED_BEFORE_USE,
            Side::Upstream => table::CLOSED_BY_OTHERS,
            Side::Clients if is_closed_here => table::CLOSED_BY_SERVICE,
            Side::Clients => table::CLOSED_BY_CLIENTS,
        }
    }

    fn headline(&self) -> String {
        let name = named(self.side, &self.address);
        let is_closed_here = self.closed_here as f64 >= CLOSED_HERE * self.opened as f64;
        match &self.made_at {
            Some(spot) => format!(
                "A client is made for requests at {spot}, so connections {name} are hardly used again."
            ),
            None if is_closed_here && self.side == Side::Clients => {
                format!("This service closes connections {name} after a request or a few.")
            }
            None => format!("Connections {name} are hardly used again."),
        }
    }

    fn seen(&self) -> String {
        let seen = format!(
            "At least {} were opened in {:.1} s, and no look saw more than {} open. This process closed {} of them first.",
            self.opened, self.seconds, self.most_open, self.closed_here
        );
        match &self.awaited {
            Some((line, ms)) => {
                let time = figures::duration(*ms);
                format!("{seen} Requests wait for an answer at {line}, {time} each.")
            }
            None => seen,
        }
    }
}

/// Small pieces that Nagle's algorithm holds back for long.
pub(crate) struct HeldBack {
    side: Side,
    peers: Peers,
    /// Share of the looks that found something queued.
    share: f64,
    /// A task that serves such a connection.
    served: Option<Step>,
}

pub(crate) fn nagle(facts: &Facts<'_>) -> Vec<HeldBack> {
    let mut found = Vec::new();
    for (side, peers) in facts.peers() {
        let share = f64::from(peers.held_looks) / f64::from(peers.queued_looks.max(1));
        if peers.held_looks >= HELD_LOOKS && share >= HELD_SHARE {
            found.push(HeldBack {
                served: served(facts.evidence, side, peers).cloned(),
                side,
                peers: peers.clone(),
                share,
            });
        }
    }
    found
}

/// Returns where a task is that serves a client's connection, between two requests: at a line of the service, many tasks wait for
/// sockets, by no other library than the runtime.
fn served<'a>(evidence: &'a Evidence, side: Side, peers: &Peers) -> Option<&'a Step> {
    let tasks = evidence.tasks.as_ref().filter(|_| side == Side::Clients)?;
    // The task that accepts is one.
    let at_once = (MUCH_OF_ALL * peers.open as f64).max(TASKS_AT_ONCE);
    let least = at_once * f64::from(tasks.snapshots);
    // The most frequent way comes first.
    let way = tasks.ways.iter().find(|way| {
        let first = way.first();
        first.is_some_and(|step| step.kind == StepKind::Of(WaitKind::Network))
    })?;
    let step = way.first().filter(|step| step.at.is_some())?;
    let mut through = step.through.iter();
    let is_bare = through.all(|function| is_of_runtime(function));
    (is_bare && way.seen >= least).then_some(step)
}

impl Sighting for HeldBack {
    fn row(&self) -> &'static Row {
        table::NAGLE
    }

    fn places(&self) -> Vec<Frame> {
        self.served.iter().map(Step::frame).collect()
    }

    fn headline(&self) -> String {
        let served = self.served.as_ref();
        let served = served.map(|step| format!(": they are served at {}", step.place()));
        format!(
            "{} of {} connections {} hold small pieces back, by Nagle's algorithm{}.",
            self.peers.without_nodelay,
            self.peers.most_open,
            named(self.side, &self.peers.address),
            served.unwrap_or_default()
        )
    }

    fn seen(&self) -> String {
        format!(
            "In {:.0} % of the looks with something queued, a small piece had waited for 10 ms or more.",
            100.0 * self.share
        )
    }
}

/// Connections that nobody accepts.
pub(crate) struct NotAccepted {
    side: Side,
    peers: Peers,
    /// Place of the task that may be the one which accepts.
    at: Option<Place>,
}

pub(crate) fn not_accepted(facts: &Facts<'_>) -> Vec<NotAccepted> {
    let mut found = Vec::new();
    let connections = facts.evidence.connections.as_ref();
    let looks = connections.map_or(0, |connections| connections.looks);
    for (side, peers) in facts.peers() {
        let waits = f64::from(peers.unaccepted_looks) > UNACCEPTED * f64::from(looks);
        if looks >= ACCEPT_LOOKS && waits {
            let peers = peers.clone();
            let at = accepts(facts).cloned();
            found.push(NotAccepted { side, peers, at });
        }
    }
    found
}

/// Returns where the one watched task is that never ends, if it waits elsewhere than at a listener.
fn accepts<'a>(facts: &Facts<'a>) -> Option<&'a Place> {
    let route = facts.watched_alone()?;
    let mut places = facts.requests?.places.iter();
    places.find(|place| {
        let is_elsewhere = !place.wait.as_ref().is_some_and(Wait::is_of_listener);
        let is_there = place.in_flight >= ALONE && place.line().is_some();
        place.route == route.name && is_there && is_elsewhere
    })
}

impl Sighting for NotAccepted {
    fn row(&self) -> &'static Row {
        table::NOT_ACCEPTED
    }

    fn headline(&self) -> String {
        format!(
            "Connections {} wait to be accepted, up to {} at a time.",
            named(self.side, &self.peers.address),
            self.peers.most_unaccepted
        )
    }

    fn seen(&self) -> String {
        match &self.at {
            Some(place) => format!(
                "The watched task `{}` is at {}.",
                place.route,
                whereabouts(place)
            ),
            None => String::new(),
        }
    }
}

/// Received data that nobody reads.
pub(crate) struct NotRead {
    side: Side,
    peers: Peers,
    /// Where tasks that are no requests run, if a client takes its data too slowly.
    others: Option<Inside>,
}

pub(crate) fn not_read(facts: &Facts<'_>) -> Vec<NotRead> {
    let mut found = Vec::new();
    for (side, peers) in facts.peers() {
        if peers.unread > 0 {
            found.push(NotRead {
                side,
                peers: peers.clone(),
                others: facts.other_tasks.clone().filter(|_| peers.untaken > 0),
            });
        }
    }
    found
}

impl Sighting for NotRead {
    fn row(&self) -> &'static Row {
        if self.peers.untaken > 0 {
            table::HELD_BY_CLIENT
        } else {
            table::NOT_READ
        }
    }

    fn headline(&self) -> String {
        let headline = format!(
            "Nobody reads what came in on {} of {} connections {}",
            self.peers.unread,
            self.peers.open.max(self.peers.unread),
            named(self.side, &self.peers.address)
        );
        let clients = match self.peers.untaken {
            0 => return format!("{headline}."),
            1 => "1 client takes its data".to_owned(),
            clients => format!("{clients} clients take their data"),
        };
        let see = self.others.as_ref();
        let see = see.map(|others| format!(": see {}", others.most));
        let see = see.unwrap_or_default();
        format!("{headline}, while {clients} too slowly{see}.")
    }

    fn seen(&self) -> String {
        let mut seen = format!(
            "Up to {} bytes wait on one of them, and none was read in the last {UNREAD_LOOKS} looks or more.",
            self.peers.most_unread
        );
        if self.peers.untaken == 0 {
            return seen;
        }
        seen = format!(
            "{seen} At all of these looks, up to {} bytes waited for a client to take them.",
            self.peers.most_untaken
        );
        match &self.others {
            Some(others) => format!("{seen} Tasks that are no requests run {}.", others.places),
            None => format!(
                "{seen} The task's line would be seen if its future were in `debug_endpoints::watch`."
            ),
        }
    }
}

/// Many requests at once on few connections, which answer in turn.
pub(crate) struct SharedConnections {
    waiting: Waiting,
    row: &'static Row,
    /// Connections to other services that were open at once.
    open: usize,
}

pub(crate) fn shared(facts: &Facts<'_>) -> Vec<SharedConnections> {
    let mut found = Vec::new();
    let mut upstreams = facts.evidence.upstreams().iter();
    if upstreams.all(|peers| peers.most_open == 0) {
        return found;
    }
    let open = facts.evidence.open_upstreams();
    for waiting in &facts.waits {
        let is_long = waiting.ms.is_none_or(|ms| ms >= SHARED_MS);
        let (row, least) = match waiting.kind() {
            WaitKind::Database if !waiting.wait.is_transaction() && is_long => {
                (table::SHARED_CONNECTION, MANY_ON_ONE)
            }
            WaitKind::AnswerOrStream => (table::SHARED_STREAMS, MANY_STREAMS),
            _ => continue,
        };
        let on_each = waiting.in_flight / open as f64;
        if on_each >= least && waiting.share >= MUCH_OF_ROUTE {
            found.push(SharedConnections {
                waiting: waiting.clone(),
                row,
                open,
            });
        }
    }
    found
}

impl Sighting for SharedConnections {
    fn row(&self) -> &'static Row {
        self.row
    }

    fn advice(&self) -> Option<Advice> {
        (self.waiting.kind() == WaitKind::AnswerOrStream).then_some(Advice {
            cause: self.waiting.wait.cause,
            fix: self.waiting.wait.fix,
        })
    }

    fn share(&self) -> f64 {
        match self.waiting.kind() {
            WaitKind::AnswerOrStream => self.waiting.share / 2.0,
            _ => 0.0,
        }
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.waiting.anchor()]
    }

    fn headline(&self) -> String {
        let open = match self.open {
            1 => "1 connection".to_owned(),
            open => format!("{open} connections"),
        };
        format!(
            "{} {} requests at once share {open}.",
            self.waiting.headline(),
            figures::average(self.waiting.in_flight)
        )
    }

    fn seen(&self) -> String {
        self.waiting.seen_besides().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Connections, Tasks, Way};
    use crate::finding::{Finding, Level};
    use crate::rules::told;
    use crate::testing::{both_sides, evidence, place, route};

    fn not_used_again(evidence: &Evidence) -> Vec<Finding> {
        told(super::not_used_again(&Facts::of(evidence)))
    }

    fn nagle(evidence: &Evidence) -> Vec<Finding> {
        told(super::nagle(&Facts::of(evidence)))
    }

    fn not_accepted(evidence: &Evidence) -> Vec<Finding> {
        told(super::not_accepted(&Facts::of(evidence)))
    }

    fn not_read(evidence: &Evidence) -> Vec<Finding> {
        told(super::not_read(&Facts::of(evidence)))
    }

    fn shared(evidence: &Evidence) -> Vec<Finding> {
        told(super::shared(&Facts::of(evidence)))
    }

    fn with(mut evidence: Evidence, upstreams: Vec<Peers>, listeners: Vec<Peers>) -> Evidence {
        evidence.connections = Some(Connections {
            seconds: 10.0,
            looks: 100,
            upstreams,
            listeners,
            ..Connections::default()
        });
        evidence
    }

    fn peers(opened: usize, most_open: usize) -> Peers {
        Peers {
            address: "127.0.0.1:5432".to_owned(),
            opened,
            most_open,
            ..Peers::default()
        }
    }

    fn of_requests(finished: u64) -> Evidence {
        evidence(&[route("GET /a", 1.0, finished)], &[])
    }

    /// Reported of an accept loop that reads a header of each client: the line stood below the finding, without a number.
    #[test]
    fn a_watched_accept_loop_is_told_with_its_line() {
        let seen = |share: f64, leaf: &str| {
            let mut evidence = crate::testing::evidence(
                &[route("accept loop", 1.0, 0), route("session", 0.1, 201)],
                &[place(
                    "accept loop",
                    &["shop::welcome (src/edge.rs:36)", leaf],
                    share,
                )],
            );
            let listener = Peers {
                unaccepted_looks: ACCEPT_LOOKS,
                ..Peers::default()
            };
            evidence.connections = Some(Connections {
                looks: ACCEPT_LOOKS,
                listeners: vec![listener],
                ..Connections::default()
            });
            not_accepted(&evidence).remove(0).seen
        };
        assert!(seen(1.0, "tokio::net").contains("shop::welcome (src/edge.rs:36)"));
        assert_eq!(seen(ALONE * 0.99, "tokio::net"), "");
        assert_eq!(seen(1.0, "tokio::net::TcpListener"), "", "it accepts");
    }

    #[test]
    fn connections_are_told_on_the_right_side_of_each_threshold() {
        let told = |opened, most_open, finished| {
            let evidence = with(
                of_requests(finished),
                vec![peers(opened, most_open)],
                vec![],
            );
            !not_used_again(&evidence).is_empty()
        };
        assert!(!told(19, 1, 20) && told(20, 1, 20));
        assert!(!told(299, 1, 1000) && told(300, 1, 1000));
        assert!(!told(59, 20, 60) && told(60, 20, 60));
    }

    #[test]
    fn clients_that_give_up_close_their_connections() {
        let told = |dropped, finished| {
            let mut evidence = with(of_requests(finished), vec![], vec![peers(400, 8)]);
            evidence.requests.as_mut().unwrap().routes[0].dropped = dropped;
            !not_used_again(&evidence).is_empty()
        };
        assert!(told(0, 400));
        assert!(told(9, 91) && !told(10, 90));
        assert!(!told(0, 0), "nothing finishes");
        let calls = |dropped: u64, timed_out: u64| {
            let mut evidence = with(of_requests(100 - dropped), vec![peers(400, 8)], vec![]);
            let route = &mut evidence.requests.as_mut().unwrap().routes[0];
            route.dropped = dropped;
            route.answers.timed_out = timed_out;
            !not_used_again(&evidence).is_empty()
        };
        assert!(calls(9, 0) && !calls(10, 0), "calls for clients who left");
        assert!(calls(0, 9) && !calls(0, 10), "calls that a limit cut");
    }

    /// Reported of a service that closed 78 of 78 connections itself: its clients were accused.
    #[test]
    fn the_side_that_closes_connections_is_the_one_that_is_told() {
        let found = |closed_here, is_upstream, wait| {
            let peers = Peers {
                closed_here,
                ..peers(100, 8)
            };
            let (upstreams, listeners) = if is_upstream {
                (vec![peers], vec![])
            } else {
                (vec![], vec![peers])
            };
            let wait = place("GET /a", &[wait], 0.1);
            let evidence = evidence(&[route("GET /a", 1.0, 100)], &[wait]);
            not_used_again(&with(evidence, upstreams, listeners)).remove(0)
        };
        let answer = "(waiting for the answer)";
        let told = |closed_here| {
            let found = found(closed_here, false, answer);
            (found.kind, found.level)
        };
        assert_eq!(told(50), ("connections_closed", Level::Note));
        assert_eq!(told(49), ("clients_connections", Level::Note));
        assert!(
            found(49, true, answer)
                .cause
                .contains("The other end closes")
        );
        assert!(found(50, true, answer).cause.contains("A client is made"));
        // A protocol of the service's own may have a connection for each message.
        let own = found(50, true, "(waiting for the other end of a socket)");
        assert_eq!((own.kind, own.level), ("upstream_connections", Level::Note));
    }

    #[test]
    fn the_line_of_the_calls_is_told_if_requests_wait_there() {
        let told = |share| {
            let line = "shop::price (src/price.rs:19)";
            let answer = place("GET /a", &[line, "(waiting for the answer)"], share);
            let evidence = evidence(&[route("GET /a", 1.0, 100)], &[answer]);
            let found = not_used_again(&with(evidence, vec![peers(400, 8)], vec![])).remove(0);
            found.seen.contains("src/price.rs:19")
        };
        assert!(!told(MUCH_OF_ROUTE * 0.99) && told(MUCH_OF_ROUTE));
    }

    #[test]
    fn a_delay_by_nagle_is_told_on_the_right_side_of_each_threshold() {
        let told = |held, queued| {
            let peers = Peers {
                held_looks: held,
                queued_looks: queued,
                ..Peers::default()
            };
            !nagle(&with(Evidence::default(), vec![peers], vec![])).is_empty()
        };
        assert!(!told(4, 10) && told(5, 10));
        assert!(!told(9, 100) && told(10, 100));
    }

    #[test]
    fn connections_that_hold_pieces_back_are_told_with_the_task_that_serves_them() {
        let headline = |at_once: f64, at: Option<&str>, through: &str| {
            let peers = Peers {
                held_looks: 90,
                queued_looks: 100,
                open: 10,
                ..Peers::default()
            };
            let mut evidence = with(Evidence::default(), vec![], vec![peers]);
            let step = Step {
                at: at.map(str::to_owned),
                kind: StepKind::Of(WaitKind::Network),
                through: vec![through.to_owned()],
                ..Step::default()
            };
            evidence.tasks = Some(Tasks {
                snapshots: 10,
                ways: vec![Way {
                    seen: at_once * 10.0,
                    steps: vec![step],
                    ..Way::default()
                }],
                ..Tasks::default()
            });
            nagle(&evidence).remove(0).headline
        };
        let (line, reads) = (Some("kv::key (src/kv.rs:35)"), "tokio::io::util::read_line");
        let told = headline(MUCH_OF_ALL * 10.0, line, reads);
        assert!(
            told.ends_with(": they are served at kv::key (src/kv.rs:35)."),
            "{told}"
        );
        assert!(!headline(MUCH_OF_ALL * 10.0 - 0.1, line, reads).contains("served"));
        assert!(
            !headline(10.0, None, reads).contains("served"),
            "a framework's"
        );
        let asks = "sqlx_postgres::connection";
        assert!(
            !headline(10.0, line, asks).contains("served"),
            "a database's"
        );
    }

    #[test]
    fn a_queue_of_connections_is_told_if_it_is_there_in_many_looks() {
        let told = |unaccepted_looks, looks| {
            let peers = Peers {
                unaccepted_looks,
                most_unaccepted: 4,
                ..Peers::default()
            };
            let mut evidence = with(Evidence::default(), vec![], vec![peers]);
            evidence.connections.as_mut().unwrap().looks = looks;
            !not_accepted(&evidence).is_empty()
        };
        assert!(!told(20, 100) && told(21, 100));
        assert!(!told(9, 9) && told(10, 10));
    }

    #[test]
    fn data_that_nobody_reads_is_told_from_the_first_connection() {
        let told = |unread| {
            let peers = Peers {
                address: "port 8080".to_owned(),
                open: 3,
                unread,
                most_unread: 4096,
                ..Peers::default()
            };
            let found = not_read(&with(Evidence::default(), vec![], vec![peers]));
            found.into_iter().next().map(|finding| finding.headline)
        };
        assert_eq!(told(0), None);
        let says = told(1).unwrap();
        assert!(says.contains("1 of 3 connections on port 8080"), "{says}");
    }

    #[test]
    fn many_requests_on_one_connection_are_told_on_the_right_side_of_each_threshold() {
        let line = "shop::next (src/next.rs:4)";
        let of = |leaf: &'static str, in_flight: f64, share: f64, ms: f64| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let finished = (in_flight * 10_000.0 / ms).round() as u64;
            let evidence = evidence(
                &[route("GET /next", in_flight / share, finished)],
                &[place("GET /next", &[line, leaf], in_flight)],
            );
            with(evidence, vec![peers(0, 1)], vec![])
        };
        both_sides(shared, MANY_ON_ONE, |many| of("redis", many, 0.9, 50.0));
        both_sides(shared, SHARED_MS, |ms| of("redis", 100.0, 0.9, ms));
        both_sides(shared, MUCH_OF_ROUTE, |share| of("redis", 8.0, share, 50.0));
        let stream = "(waiting for the answer, or for a stream of the HTTP/2 connection)";
        both_sides(shared, MANY_STREAMS, |many| of(stream, many, 0.9, 0.5));
    }
}
