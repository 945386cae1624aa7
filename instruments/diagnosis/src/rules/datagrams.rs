//! The kernel drops datagrams, because a socket's buffer is full: whoever reads it does something else first, or nobody does.

use ecosystem::{WaitKind, figures};

use super::table;
use crate::evidence::{Datagrams, Frame, Place, Requests, StepKind};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::followed::thing;
use crate::threads::seen::{place, receives, receives_datagrams};
use crate::threads::{Stack, State};
use crate::thresholds::{ELSEWHERE, FEWEST_SAMPLES, LOST_DATAGRAMS, LOST_SHARE, UNREAD_SHARE};
use crate::waiting::whereabouts;

/// Sockets that lost datagrams.
pub(crate) struct Lost {
    datagrams: Datagrams,
    seconds: f64,
    /// Smallest share of all that came to the network namespace that this can be, if that is known.
    share: Option<f64>,
    reader: Option<Reader>,
}

/// Whoever receives datagrams.
#[derive(Clone, Debug)]
struct Reader {
    /// Line at which it receives, if that is known.
    receives_at: Option<Frame>,
    /// The other place where it is most of the time, if that is much of it.
    elsewhere: Option<Elsewhere>,
}

#[derive(Clone, Debug)]
struct Elsewhere {
    /// Share of the time, from 0 to 1.
    share: f64,
    /// The place in words, with what it waits for.
    at: String,
    places: Vec<Frame>,
    is_computing: bool,
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<Lost> {
    let mut found = Vec::new();
    let Some(connections) = &facts.evidence.connections else {
        return found;
    };
    let reader = reader(facts);
    for datagrams in &connections.datagrams {
        let dropped = datagrams.dropped;
        let came = connections.namespace_datagrams.map(|read| read + dropped);
        let share = came.map(|came| dropped as f64 / came.max(1) as f64);
        if dropped >= LOST_DATAGRAMS && share.is_none_or(|share| share >= LOST_SHARE) {
            found.push(Lost {
                datagrams: datagrams.clone(),
                seconds: connections.seconds,
                share,
                reader: reader.clone(),
            });
        }
    }
    found
}

/// Returns whoever receives datagrams, by the first instrument that saw it elsewhere, or by the first that saw it.
///
/// Nothing says which socket a reader reads. If there are several, the one that is elsewhere for the longest time is told.
fn reader(facts: &Facts<'_>) -> Option<Reader> {
    let readers = [
        facts
            .requests
            .and_then(|requests| by_waits(facts, requests)),
        by_tasks(facts),
        by_threads(facts),
    ];
    let mut readers: Vec<Reader> = readers.into_iter().flatten().collect();
    readers.sort_by_key(|reader| reader.elsewhere.is_none());
    let first = readers.into_iter().next();
    first.or_else(|| the_one_watched(facts))
}

impl Reader {
    /// Returns this one or the other, whichever is elsewhere for the longer time.
    fn more_than(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.share() >= self.share() => other,
            _ => self,
        }
    }

    fn share(&self) -> f64 {
        self.elsewhere
            .as_ref()
            .map_or(0.0, |elsewhere| elsewhere.share)
    }
}

impl Elsewhere {
    /// Returns the one with the largest share, if that is much.
    fn most(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let most = all.into_iter().max_by(|a, b| a.share.total_cmp(&b.share));
        most.filter(|most| most.share >= ELSEWHERE)
    }
}

/// Returns the watched task that receives datagrams, by the waits of the await profile.
fn by_waits(facts: &Facts<'_>, requests: &Requests) -> Option<Reader> {
    let mut found: Option<Reader> = None;
    for here in &requests.places {
        let mut frames = here.frames.iter().filter_map(Frame::function);
        let receives = frames.any(receives_datagrams);
        // A request that asks another service by UDP ends.
        let route = requests.route(&here.route);
        let Some(route) = route.filter(|route| receives && route.ended() == 0) else {
            continue;
        };
        let Some(at) = here.frames.iter().rposition(|frame| frame.line().is_some()) else {
            continue;
        };
        let others = requests.places.iter().filter(|other| {
            other.route == here.route && !other.frames.starts_with(&here.frames[..=at])
        });
        let reader = Reader {
            receives_at: Some(here.frames[at].clone()),
            elsewhere: elsewhere(facts, &here.frames[..=at], others, route.in_flight),
        };
        found = Some(reader.more_than(found));
    }
    found
}

/// Returns where the task that receives at the last of these frames is otherwise. Places within one of its lines count together.
fn elsewhere<'a>(
    facts: &Facts<'_>,
    receives: &[Frame],
    others: impl Iterator<Item = &'a Place>,
    in_flight: f64,
) -> Option<Elsewhere> {
    let depth = receives.len();
    let mut sums: Vec<(&Place, f64)> = Vec::new();
    for place in others {
        let mut same = sums.iter_mut();
        let same = same.find(|(other, _)| {
            place.frames.len() > depth && other.frames.get(..depth) == place.frames.get(..depth)
        });
        match same {
            // The place with most requests comes first.
            Some((_, sum)) => *sum += place.in_flight,
            None => sums.push((place, place.in_flight)),
        }
    }
    let mut all = Vec::new();
    for (place, sum) in sums {
        let share = sum / in_flight.max(f64::MIN_POSITIVE);
        if place.kind() == Some(WaitKind::Running) {
            let function = receives
                .last()
                .and_then(Frame::function)
                .unwrap_or_default();
            let inside = facts.inside(function);
            all.extend(inside.map(|inside| Elsewhere {
                share: share * facts.evidence.cpu_share(),
                at: inside.most.to_string(),
                places: vec![inside.most.function()],
                is_computing: true,
            }));
        } else if place.line().is_some() {
            all.push(Elsewhere {
                share,
                at: whereabouts(place),
                places: lines(place),
                is_computing: false,
            });
        }
    }
    Elsewhere::most(all)
}

fn lines(place: &Place) -> Vec<Frame> {
    let frames = place.frames.iter().filter(|frame| frame.line().is_some());
    frames.cloned().collect()
}

/// Returns the task whose code receives datagrams, by the snapshots of all tasks.
fn by_tasks(facts: &Facts<'_>) -> Option<Reader> {
    let mut found: Option<Reader> = None;
    let receivers = &facts.evidence.tasks.as_ref()?.receivers;
    for first in receivers {
        let alike = receivers.iter();
        let alike = alike.filter(|other| other.receives_at == first.receives_at);
        let (mut all, mut elsewhere) = (0, Vec::new());
        for receiver in alike {
            all += receiver.seen;
            let step = &receiver.step;
            // One that was woken waits for a thread, and does nothing else.
            let is_ready = step.kind == StepKind::Of(WaitKind::Ready);
            if receiver.is_receiving || is_ready || step.at.is_none() {
                continue;
            }
            let is_computing = step.kind == StepKind::Of(WaitKind::Running);
            let at = if is_computing {
                step.place().to_owned()
            } else {
                format!("{}, waiting for {}", step.place(), thing(step))
            };
            let place = match step.frame() {
                // As the findings on computing name theirs.
                Frame::Own(line) if is_computing => Frame::Function(line.function),
                frame => frame,
            };
            elsewhere.push((receiver.seen, at, place, is_computing));
        }
        let shares = elsewhere.into_iter();
        let elsewhere = Elsewhere::most(shares.map(|(seen, at, place, is_computing)| Elsewhere {
            share: seen as f64 / all as f64,
            at,
            places: vec![place],
            is_computing,
        }));
        let Ok(receives_at) = first.receives_at.parse();
        let reader = Reader {
            receives_at: Some(receives_at),
            elsewhere,
        };
        found = Some(reader.more_than(found));
    }
    found
}

/// Returns the function that receives datagrams and computes or is blocked otherwise, by the stacks of threads.
fn by_threads(facts: &Facts<'_>) -> Option<Reader> {
    let evidence = facts.evidence;
    let all = evidence.stacks();
    let (threads, cpu) = (evidence.threads.as_deref(), evidence.cpu.as_deref());
    let sampled: Vec<&Stack> = threads.map_or(Vec::new(), |threads| threads.stacks().collect());
    let used: Vec<&Stack> = cpu.map_or(Vec::new(), |cpu| cpu.stacks().collect());
    let moments = threads.map_or(0, |threads| threads.moments).max(1) as f64;
    let seconds = evidence.seconds.max(f64::MIN_POSITIVE);
    let each_of_cpu = cpu.map_or(0.0, |cpu| cpu.period_s / seconds);
    let mut found: Option<Reader> = None;
    for (stacks, each) in [(sampled, 1.0 / moments), (used, each_of_cpu)] {
        let Some(seen) = receives(&all, &stacks) else {
            continue;
        };
        let most = seen.elsewhere.most;
        let spot = place(most);
        let elsewhere = Elsewhere {
            share: (seen.elsewhere.samples as f64 * each).min(1.0),
            at: spot.to_string(),
            places: vec![spot.function()],
            is_computing: most.state == State::Running,
        };
        let is_told = seen.elsewhere.samples >= FEWEST_SAMPLES;
        let reader = Reader {
            receives_at: Some(seen.at),
            elsewhere: Elsewhere::most(Some(elsewhere).filter(|_| is_told)),
        };
        found = Some(reader.more_than(found));
    }
    found
}

/// Returns where the one watched task that never ends is most, if there is one such task: a reader whose socket is never empty
/// is not seen to wait for it.
fn the_one_watched(facts: &Facts<'_>) -> Option<Reader> {
    let route = facts.watched_alone()?;
    let mut places = facts.requests?.places.iter();
    let most = places.find(|place| place.route == route.name && place.line().is_some())?;
    Some(Reader {
        receives_at: None,
        elsewhere: Elsewhere::most([Elsewhere {
            share: most.in_flight / route.in_flight,
            at: whereabouts(most),
            places: lines(most),
            is_computing: false,
        }]),
    })
}

impl Lost {
    fn elsewhere(&self) -> Option<&Elsewhere> {
        self.reader.as_ref()?.elsewhere.as_ref()
    }

    /// Returns whether nobody was seen to read.
    fn is_unread(&self) -> bool {
        self.reader.is_none() && !self.datagrams.is_read
    }
}

impl Sighting for Lost {
    fn row(&self) -> &'static Row {
        match self.elsewhere() {
            Some(elsewhere) if elsewhere.is_computing => table::READER_COMPUTES,
            Some(_) => table::READER_ELSEWHERE,
            None if self.is_unread() => table::NO_READER,
            None if self.datagrams.unread_share >= UNREAD_SHARE => table::READER_LATE,
            None => table::BURSTS,
        }
    }

    fn places(&self) -> Vec<Frame> {
        let mut places = Vec::new();
        if let Some(reader) = &self.reader {
            places.extend(reader.receives_at.clone());
        }
        if let Some(elsewhere) = self.elsewhere() {
            places.extend(elsewhere.places.clone());
        }
        places
    }

    fn headline(&self) -> String {
        let datagrams = &self.datagrams;
        let side = if datagrams.is_connected { "to" } else { "on" };
        let sockets = match (datagrams.lossy, datagrams.sockets) {
            (1, 1) => "The socket".to_owned(),
            (lossy, sockets) if lossy == sockets => format!("{sockets} sockets"),
            (lossy, sockets) => format!("{lossy} of {sockets} sockets"),
        };
        let lost = format!(
            "{sockets} {side} {} lost {} datagrams",
            datagrams.address,
            figures::count(datagrams.dropped as f64)
        );
        match self.elsewhere() {
            Some(elsewhere) => {
                let share = elsewhere.share * 100.0;
                let verb = if elsewhere.is_computing {
                    "computes"
                } else {
                    "is"
                };
                format!(
                    "{lost}: {share:.0} % of the time its reader {verb} at {}.",
                    elsewhere.at
                )
            }
            None if self.is_unread() => format!("{lost}: nobody reads it."),
            None => format!("{lost}."),
        }
    }

    fn seen(&self) -> String {
        let datagrams = &self.datagrams;
        let of_all = match self.share {
            Some(share) => format!(
                ", at least {:.0} % of what came to this network namespace",
                share * 100.0
            ),
            None => String::new(),
        };
        let mut seen = format!(
            "In {:.1} s{of_all}. Some waited at {:.0} % of the looks, up to {}",
            self.seconds,
            datagrams.unread_share * 100.0,
            figures::bytes(f64::from(datagrams.most_unread))
        );
        if let Some(buffer) = datagrams.buffer {
            seen = format!(
                "{seen} in a buffer of {}",
                figures::bytes(f64::from(buffer))
            );
        }
        let reader = self.reader.as_ref();
        match reader.and_then(|reader| reader.receives_at.as_ref()) {
            Some(at) => format!("{seen}. It receives at {at}."),
            None => seen + ".",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::{Connections, Evidence, Receiver, Step, Tasks};
    use crate::finding::{Finding, Level};
    use crate::rules::{judge, told};
    use crate::testing::{cpu_samples, evidence, of_threads, place, route};
    use crate::threads::Thread;
    use crate::threads::testing::{WORKER, in_call, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    const COLLECT: &str = "shop::collect (src/statsd.rs:49)";
    const FLUSH: &str = "shop::collect (src/statsd.rs:63)";
    const INSERT: &str = "shop::Database::insert (src/statsd.rs:28)";
    const RECV: &str = "tokio::net::UdpSocket::recv";

    fn lost(mut evidence: Evidence) -> Evidence {
        let datagrams = Datagrams {
            address: "port 8125".to_owned(),
            sockets: 1,
            lossy: 1,
            dropped: 18_716,
            unread_share: 0.6,
            most_unread: 212_992,
            is_read: true,
            ..Datagrams::default()
        };
        evidence.connections = Some(Connections {
            seconds: 10.0,
            looks: 400,
            datagrams: vec![datagrams],
            ..Connections::default()
        });
        evidence
    }

    /// Returns a watched task that receives for this share of the time, and awaits the database in between.
    fn watched(receives: f64) -> Evidence {
        let one_of = "(one of 2 waits at once)";
        let at = |frames: &[&str], share: f64| place("collector", frames, share);
        let insert = [FLUSH, INSERT, "tokio::net::TcpStream::poll_read"];
        lost(evidence(
            &[route("collector", 1.0, 0)],
            &[
                at(&insert, 1.0 - receives),
                at(&[COLLECT, one_of, RECV], receives / 2.0),
                at(
                    &[COLLECT, one_of, "tokio::time::Interval::tick"],
                    receives / 2.0,
                ),
            ],
        ))
    }

    fn datagrams(evidence: &mut Evidence) -> &mut Datagrams {
        &mut evidence.connections.as_mut().unwrap().datagrams[0]
    }

    /// Reported of a collector of measurements, whose timer was said to be what takes the time.
    #[test]
    fn a_watched_reader_is_told_with_what_it_awaits() {
        let found = judge(&Facts::of(&watched(0.53)));
        assert_eq!(found.len(), 1, "its timer is explained: {found:?}");
        assert_eq!((found[0].kind, found[0].level), ("datagrams", Level::Fault));
        assert_eq!(
            found[0].headline,
            format!(
                "The socket on port 8125 lost 18,716 datagrams: 47 % of the time its reader is at {FLUSH} > {INSERT}, waiting for \
                 the other end of a socket."
            )
        );
        assert!(
            found[0]
                .seen
                .ends_with(&format!("It receives at {COLLECT}.")),
            "{found:?}"
        );
        // At its own place nearly all the time, it is as fast as it can be.
        let level = |elsewhere: f64| {
            let mut evidence = watched(1.0 - elsewhere);
            datagrams(&mut evidence).unread_share = 0.01;
            look(&evidence).remove(0).level
        };
        assert_eq!(level(ELSEWHERE + 0.001), Level::Fault);
        assert_eq!(level(ELSEWHERE - 0.001), Level::Bound, "bursts");
    }

    #[test]
    fn few_lost_datagrams_are_none() {
        let told = |dropped, others| {
            let mut evidence = watched(0.5);
            datagrams(&mut evidence).dropped = dropped;
            evidence.connections.as_mut().unwrap().namespace_datagrams = others;
            !look(&evidence).is_empty()
        };
        assert!(told(LOST_DATAGRAMS, None) && !told(LOST_DATAGRAMS - 1, None));
        assert!(told(1000, Some(99_000)) && !told(1000, Some(99_001)), "1 %");
    }

    #[test]
    fn a_task_that_awaits_something_for_each_datagram_is_known_by_its_code() {
        let receiver = |is_receiving, at: &str, kind, seen| Receiver {
            receives_at: COLLECT.to_owned(),
            is_receiving,
            step: Step {
                at: Some(at.to_owned()),
                kind: StepKind::Of(kind),
                waits_for: "a lock".to_owned(),
                ..Step::default()
            },
            seen,
        };
        let mut seen = lost(evidence(&[], &[]));
        seen.tasks = Some(Tasks {
            snapshots: 10,
            receivers: vec![
                receiver(false, FLUSH, WaitKind::Lock, 9),
                receiver(false, COLLECT, WaitKind::Ready, 1),
            ],
            ..Tasks::default()
        });
        let headline = &look(&seen)[0].headline;
        let end = format!("90 % of the time its reader is at {FLUSH}, waiting for a lock.");
        assert!(headline.ends_with(&end), "{headline}");
        // It was woken each time, and waits for a thread.
        seen.tasks.as_mut().unwrap().receivers = vec![receiver(false, FLUSH, WaitKind::Ready, 10)];
        datagrams(&mut seen).unread_share = 0.0;
        assert_eq!(look(&seen)[0].level, Level::Bound);
        // A request that asks by UDP is no reader of this socket.
        let asks = [
            place("GET /name", &["shop::ask (src/dns.rs:4)", RECV], 0.1),
            place("GET /name", &[INSERT, "sqlx_postgres"], 0.9),
        ];
        let requests = evidence(&[route("GET /name", 1.0, 100)], &asks);
        assert!(!look(&lost(requests))[0].headline.contains("its reader"));
    }

    #[test]
    fn a_reader_that_computes_is_told_once() {
        let receives = [
            WORKER,
            "shop::collect",
            "<tokio::net::udp::UdpSocket>::recv_from",
        ];
        let parse = [
            WORKER,
            "shop::collect",
            "shop::parse",
            "serde_json::from_slice",
        ];
        let mut seen = lost(of_threads(vec![], 0.2));
        let stacks = vec![runs(40, &receives), runs(800, &parse)];
        seen.cpu = Some(Arc::new(cpu_samples(stacks)));
        let worker = Thread::of("tokio worker", vec![runs(80, &parse), runs(20, &receives)]);
        seen.threads = of_threads(vec![worker], 0.2).threads;
        let found = judge(&Facts::of(&seen));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]
                .headline
                .contains("80 % of the time its reader computes at shop::parse"),
            "{found:?}"
        );
    }

    #[test]
    fn a_thread_that_is_blocked_between_two_datagrams_is_told() {
        let receives = ["shop::listen", "std::net::udp::UdpSocket::recv_from"];
        let write = in_call(30, "write", &["shop::listen", "std::fs::File::write"]);
        let thread = Thread::of("listener", vec![in_call(70, "recvfrom", &receives), write]);
        let mut seen = lost(evidence(&[], &[]));
        seen.threads = of_threads(vec![thread], 0.0).threads;
        let found = look(&seen).remove(0);
        assert!(
            found
                .headline
                .contains("30 % of the time its reader is at shop::listen"),
            "{found:?}"
        );
    }

    #[test]
    fn a_socket_that_nobody_reads_is_told_as_that() {
        let mut seen = lost(evidence(&[], &[]));
        let cause = |seen: &Evidence| look(seen).remove(0).cause;
        assert!(cause(&seen).starts_with("Its reader takes fewer"));
        datagrams(&mut seen).is_read = false;
        assert!(cause(&seen).starts_with("No task or thread"));
        datagrams(&mut seen).is_read = true;
        datagrams(&mut seen).unread_share = UNREAD_SHARE * 0.99;
        assert!(cause(&seen).contains("bursts"));
    }

    #[test]
    fn sockets_are_told_by_their_number_and_side() {
        let mut seen = lost(evidence(&[], &[]));
        *datagrams(&mut seen) = Datagrams {
            address: "10.0.0.7:53".to_owned(),
            is_connected: true,
            sockets: 4,
            ..datagrams(&mut seen).clone()
        };
        assert!(
            look(&seen)[0]
                .headline
                .starts_with("1 of 4 sockets to 10.0.0.7:53 lost")
        );
    }
}
