//! Connections that are opened for each request, wait to be accepted, are held back, or are shared by many requests.

use ecosystem::{WaitKind, figures};

use crate::evidence::{Connections, Evidence, Peers, Requests};
use crate::finding::{Finding, Level, Words};
use crate::thresholds::{
    ACCEPT_LOOKS, ACCEPT_WEIGHT, CLIENTS_WEIGHT, CLOSED_HERE, CONNECTIONS_WEIGHT, DROPPED,
    HELD_BY_CLIENT_WEIGHT, HELD_LOOKS, HELD_SHARE, MANY_ON_ONE, MANY_STREAMS, MUCH_OF_ROUTE,
    NAGLE_WEIGHT, OPENED, OPENED_PER_OPEN, OPENED_PER_REQUEST, SHARED_CONNECTION_WEIGHT, SHARED_MS,
    STREAMS_WEIGHT, UNREAD_LOOKS, UNREAD_WEIGHT,
};
use crate::waiting::Waiting;

const SEE: &str = "/debug/sockets";

/// Connections with their name: `to 127.0.0.1:5432`, `on port 8080`.
fn named(connections: &Connections) -> Vec<(String, &Peers, bool)> {
    let mut named = Vec::new();
    for peers in &connections.upstreams {
        named.push((format!("to {}", peers.address), peers, true));
    }
    for peers in &connections.listeners {
        named.push((format!("on {}", peers.address), peers, false));
    }
    named
}

/// Connections that are hardly used again.
pub(crate) fn not_used_again(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(connections) = &evidence.connections else {
        return findings;
    };
    let requests = evidence.requests.as_ref();
    let finished = match requests {
        Some(requests) => requests.finished(),
        None => 0,
    };
    for (name, peers, is_upstream) in named(connections) {
        let seen = (peers.opened + peers.ended) as u64;
        let of_namespace = if is_upstream {
            connections.namespace_opened
        } else {
            connections.namespace_accepted
        };
        // Those that are short are seldom seen. The kernel counts all, if not of this process alone.
        let opened = of_namespace.unwrap_or(seen).max(seen);
        let per_request = opened as f64 / finished.max(1) as f64;
        let is_many = seen >= OPENED && seen >= (OPENED_PER_OPEN * peers.most_open) as u64;
        if !is_many || per_request < OPENED_PER_REQUEST {
            continue;
        }
        if let Some(requests) = requests
            && are_given_up(requests, is_upstream)
        {
            continue;
        }
        let is_closed_here = peers.closed_here as f64 >= CLOSED_HERE * seen as f64;
        let seen = format!(
            "At least {seen} were opened in {:.1} s, and no look saw more than {} open. This process closed {} of them first.",
            connections.seconds, peers.most_open, peers.closed_here
        );
        findings.push(if is_upstream {
            upstream(evidence, &name, seen, is_closed_here)
        } else if is_closed_here {
            closed_by_service(&name, seen)
        } else {
            closed_by_clients(&name, seen)
        });
    }
    findings
}

/// Connections to another service, which are closed after a call or a few.
fn upstream(evidence: &Evidence, name: &str, mut seen: String, is_closed_here: bool) -> Finding {
    if let Some(answer) = answer_awaited(evidence) {
        seen = format!("{seen} {answer}");
    }
    let made_at = evidence.client_made_at();
    let headline = match &made_at {
        Some(place) => format!(
            "A client is made for requests at {place}, so connections {name} are hardly used again."
        ),
        None => format!("Connections {name} are hardly used again."),
    };
    let (cause, fix) = if made_at.is_some() {
        (
            "A client has a pool of connections of its own, and takes it along when it is dropped.",
            "Make one client at the start, and share it: a clone has the same pool.",
        )
    } else if is_closed_here {
        (
            "A client is made for each call, or its pool keeps fewer connections than are used at once.",
            "Keep one client, and let its pool keep as many as are used at once.",
        )
    } else {
        (
            "A body is not read to its end, or the other end closes: then its answers say `connection: close`.",
            "Read each answer to its end.",
        )
    };
    let words = Words {
        headline,
        seen,
        cause: cause.to_owned(),
        fix: fix.to_owned(),
    };
    Finding::fault("connections", CONNECTIONS_WEIGHT, SEE, words)
}

/// Connections of clients that this service closes.
fn closed_by_service(name: &str, seen: String) -> Finding {
    let words = Words {
        headline: format!("This service closes connections {name} after a request or a few."),
        seen,
        cause: "The code that serves a connection ends, or answers `connection: close`.".to_owned(),
        fix: "Serve each connection until its client closes it.".to_owned(),
    };
    Finding::fault("connections_closed", CLIENTS_WEIGHT, SEE, words)
}

/// Connections that clients open for a request or a few: no fault of this service.
fn closed_by_clients(name: &str, seen: String) -> Finding {
    let words = Words {
        headline: format!("Connections {name} are hardly used again."),
        seen,
        fix: "Let clients and proxies keep connections alive.".to_owned(),
        ..Words::default()
    };
    Finding::of(
        Level::Note,
        "clients_connections",
        CLIENTS_WEIGHT,
        SEE,
        words,
    )
}

/// Returns whether connections end because requests do: a client that leaves closes its connection, and those of the
/// calls for it, and a time limit closes those of calls. Both are told as what they are.
fn are_given_up(requests: &Requests, is_upstream: bool) -> bool {
    let finished = requests.finished();
    let are_cut = requests.answers().timed_out as f64 >= DROPPED * finished as f64;
    finished == 0 || requests.left_share() >= DROPPED || is_upstream && are_cut
}

/// The line at which most requests wait for an answer, and for how long.
fn answer_awaited(evidence: &Evidence) -> Option<String> {
    let mut waits = Waiting::all(evidence).into_iter();
    let answer = waits.find(|waiting| waiting.kind() == WaitKind::Answer)?;
    if answer.share < MUCH_OF_ROUTE {
        return None;
    }
    let line = answer.place().line()?;
    let ms = answer.ms?;
    Some(format!(
        "Requests wait for an answer at {line}, {} each.",
        figures::duration(ms)
    ))
}

/// Small pieces that Nagle's algorithm holds back for long.
pub(crate) fn nagle(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(connections) = &evidence.connections else {
        return findings;
    };
    for (name, peers, _) in named(connections) {
        let share = f64::from(peers.held_looks) / f64::from(peers.queued_looks.max(1));
        if peers.held_looks < HELD_LOOKS || share < HELD_SHARE {
            continue;
        }
        let words = Words {
            headline: format!(
                "{} of {} connections {name} hold small pieces back, by Nagle's algorithm.",
                peers.without_nodelay, peers.most_open
            ),
            seen: format!(
                "In {:.0} % of the looks at which something was queued, a small piece had waited for an acknowledgement \
                 for 10 ms or more.",
                100.0 * share
            ),
            cause: "An answer is written in pieces without TCP_NODELAY, and the other end delays its acknowledgement \
                    by 40 ms."
                .to_owned(),
            fix: "Set TCP_NODELAY, or write each answer in one piece.".to_owned(),
        };
        findings.push(Finding::fault("nagle", NAGLE_WEIGHT, SEE, words));
    }
    findings
}

/// Connections that nobody accepts.
pub(crate) fn not_accepted(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(connections) = &evidence.connections else {
        return findings;
    };
    for (name, peers, _) in named(connections) {
        if connections.looks < ACCEPT_LOOKS || peers.unaccepted_looks * 2 <= connections.looks {
            continue;
        }
        let words = Words {
            headline: format!(
                "Connections {name} wait to be accepted, up to {} at a time.",
                peers.most_unaccepted
            ),
            cause: "The task that accepts awaits something else between two accepts.".to_owned(),
            fix: "Spawn what is done with a connection, and accept the next one at once."
                .to_owned(),
            ..Words::default()
        };
        findings.push(Finding::fault("accept_queue", ACCEPT_WEIGHT, SEE, words));
    }
    findings
}

/// Received data that nobody reads.
pub(crate) fn not_read(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(connections) = &evidence.connections else {
        return findings;
    };
    for (name, peers, _) in named(connections) {
        if peers.unread == 0 {
            continue;
        }
        let headline = format!(
            "Nobody reads what came in on {} of {} connections {name}",
            peers.unread,
            peers.open.max(peers.unread)
        );
        let waits = format!(
            "Up to {} bytes wait on one of them, and none was read in the last {UNREAD_LOOKS} looks or more.",
            peers.most_unread
        );
        let (weight, words) = if peers.untaken > 0 {
            (
                HELD_BY_CLIENT_WEIGHT,
                held_by_client(evidence, peers, &headline, &waits),
            )
        } else {
            let words = Words {
                headline: format!("{headline}."),
                seen: waits,
                cause: "The task or thread that reads does something else first.".to_owned(),
                fix: "Read in a task of its own, or close what nobody will read.".to_owned(),
            };
            (UNREAD_WEIGHT, words)
        };
        findings.push(Finding::fault("unread", weight, SEE, words));
    }
    findings
}

/// Words for connections that nobody reads while the other end of another one takes nothing.
fn held_by_client(evidence: &Evidence, peers: &Peers, headline: &str, waits: &str) -> Words {
    let clients = match peers.untaken {
        1 => "1 client takes its data".to_owned(),
        clients => format!("{clients} clients take their data"),
    };
    let mut seen = format!(
        "{waits} At all of these looks, up to {} bytes waited for a client to take them.",
        peers.most_untaken
    );
    let mut headline = format!("{headline}, while {clients} too slowly");
    let mut fix = "Do not wait for a client: give each a bounded channel, use `try_send`, and close those that are too slow. \
                   Hold no lock while you send."
        .to_owned();
    if let Some(others) = evidence.other_tasks() {
        headline = format!("{headline}: see {}", others.most);
        seen = format!("{seen} Tasks that are no requests run {}.", others.places);
    } else {
        fix += " To see the line, put the task into `debug_endpoints::watch`.";
    }
    Words {
        headline: format!("{headline}."),
        seen,
        cause: "A task sends to all clients in turn and waits for the slowest. The others wait for that task, \
                or for a lock that it holds meanwhile."
            .to_owned(),
        fix,
    }
}

/// Many requests at once on few connections, which answer in turn.
pub(crate) fn shared(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (Some(requests), Some(connections)) = (&evidence.requests, &evidence.connections) else {
        return findings;
    };
    if connections
        .upstreams
        .iter()
        .all(|peers| peers.most_open == 0)
    {
        return findings;
    }
    let open = evidence.open_upstreams();
    for waiting in Waiting::all(evidence) {
        let on_each = waiting.in_flight / open as f64;
        let (least, kind, weight) = match waiting.kind() {
            WaitKind::Database if !waiting.wait.is_transaction() => {
                (MANY_ON_ONE, "shared_connection", SHARED_CONNECTION_WEIGHT)
            }
            WaitKind::AnswerOrStream => (
                MANY_STREAMS,
                "answer_or_stream",
                STREAMS_WEIGHT + waiting.share / 2.0,
            ),
            _ => continue,
        };
        let is_felt = kind != "shared_connection" || waiting.ms.is_none_or(|ms| ms >= SHARED_MS);
        if on_each < least || waiting.share < MUCH_OF_ROUTE || !is_felt {
            continue;
        }
        let (cause, fix) = if kind == "shared_connection" {
            (
                "One connection answers in turn: a slow command, or one that blocks, holds up all behind it.",
                "Use a pool of connections, and give commands that block a connection of their own.",
            )
        } else {
            (waiting.wait.cause, waiting.wait.fix)
        };
        let words = Words {
            headline: format!(
                "{} {} requests at once share {}.",
                waiting.headline(),
                figures::average(waiting.in_flight),
                match open {
                    1 => "1 connection".to_owned(),
                    open => format!("{open} connections"),
                }
            ),
            seen: waiting.seen(requests),
            cause: cause.to_owned(),
            fix: fix.to_owned(),
        };
        let found = Finding::fault(kind, weight, "/debug/await", words);
        findings.push(found.at(waiting.place().anchor()));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{both_sides, evidence, place, route};

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
        let found = |closed_here, is_upstream| {
            let peers = Peers {
                closed_here,
                ..peers(100, 8)
            };
            let (upstreams, listeners) = if is_upstream {
                (vec![peers], vec![])
            } else {
                (vec![], vec![peers])
            };
            not_used_again(&with(of_requests(100), upstreams, listeners)).remove(0)
        };
        let told = |closed_here| {
            let found = found(closed_here, false);
            (found.kind, found.level)
        };
        assert_eq!(told(50), ("connections_closed", Level::Fault));
        assert_eq!(told(49), ("clients_connections", Level::Note));
        assert!(found(49, true).cause.contains("the other end closes"));
        assert!(found(50, true).cause.contains("A client is made"));
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
    fn a_queue_of_connections_is_told_if_it_is_there_most_of_the_time() {
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
        assert!(!told(50, 100) && told(51, 100));
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
