//! The promises of a chapter's contract, tried on a variant and on the problem beside it.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use loadgen::interrupt::Interrupt;
use measurement::claim::PROBLEM;
use measurement::contract::{Promise, Request, Tried};
use measurement::figures;
use measurement::load::content_type;
use measurement::metrics::Metrics;

use crate::server::{Client, Launch, Server, ServerError};

/// How long one answer may take, unless its promise says so: twice the longest time-out that a
/// chapter's service has.
const TIME_OUT: Duration = Duration::from_secs(10);
/// How long all answers on one connection may take.
const TIME_OUT_OF_ALL: Duration = Duration::from_secs(60);
/// How often it is looked whether somebody pressed Ctrl-C.
const LOOKED_AT: Duration = Duration::from_millis(20);
/// So many characters of a request and of an answer are told.
const QUOTED: usize = 60;
/// Bytes that the answers on one connection may have.
const LARGEST: usize = 16 << 20;

/// Tries the promises on `variant`, all at the same time, since most of them wait. The problem does the
/// same beside it, and what it answers and counts is right; it does not where a fix alone is asked.
///
/// # Errors
///
/// When a server does not start.
pub fn attempt(
    promises: &[Promise],
    program: &Path,
    variant: &str,
    data_seed: u64,
    interrupt: &Interrupt,
) -> Result<Vec<Tried>, ServerError> {
    let seen = |promise: &Promise, variant| {
        let launch = Launch {
            data_seed: promise.data_seed.unwrap_or(data_seed),
            arguments: &promise.arguments,
            workers: promise.workers,
            ..Launch::of(program, variant)
        };
        let mut server = Server::start(&launch, interrupt)?;
        let seen = observe(promise, &mut server, interrupt);
        if interrupt.is_set() {
            return Err(ServerError::Interrupted);
        }
        Ok(seen)
    };
    let tried = |promise: &Promise| {
        let (right, own) = std::thread::scope(|scope| {
            let is_compared = !promise.of_fix;
            let problem = is_compared.then(|| scope.spawn(|| seen(promise, PROBLEM)));
            let own = seen(promise, variant);
            (problem.map(joined).transpose(), own)
        });
        let (right, own) = (right?, own?);
        Ok(Tried {
            name: promise.name.clone(),
            of_fix: promise.of_fix,
            broken: fault(promise, right.as_ref(), &own),
            panic: own.panic,
        })
    };
    std::thread::scope(|scope| {
        let tried = &tried;
        let all: Vec<_> = promises
            .iter()
            .map(|promise| scope.spawn(move || tried(promise)))
            .collect();
        all.into_iter().map(joined).collect()
    })
}

/// What a thread yields; a panic of it is one of this code, and goes on.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let ended = thread.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What a server did.
#[derive(Debug, Default)]
struct Seen {
    /// Each request with what came back, in the order of their numbers; empty where users hung up.
    answers: Vec<(Request, Answer)>,
    /// The users in the order in which they were done, where each waits for its answers.
    finished: Vec<u32>,
    /// CPU time of an answer as a share of what it takes alone, where that is looked at.
    cpu_of_one: Option<f64>,
    metrics: Metrics,
    panic: Option<String>,
    /// Why, as far as is known, if the server ended.
    ended: Option<String>,
}

/// An answer as far as it is compared: words that go with a refusal are everybody's own.
#[derive(Debug, PartialEq)]
enum Answer {
    Success(String),
    /// The status.
    Refusal(String),
    /// Why there was none.
    Missing(String),
}

fn observe(promise: &Promise, server: &mut Server, interrupt: &Interrupt) -> Seen {
    let address = server.service();
    let alone = promise
        .cpu_of_one_at_least
        .and_then(|_| cost_alone(promise, server, interrupt));
    let before = alone.and_then(|_| server.metrics().ok());
    let (answers, finished) = unless_interrupted(server, interrupt, || asked(promise, address));
    // A server that ended has none any more.
    let metrics = server.metrics().unwrap_or_default();
    let cost = before.and_then(|before| cost(&before, &metrics));
    Seen {
        answers,
        finished,
        cpu_of_one: cost.zip(alone).map(|(cost, alone)| cost / alone),
        metrics,
        panic: server.panics().into_iter().next(),
        ended: server.has_ended().then(|| server.why_ended()),
    }
}

/// CPU time of an answer to somebody who asks alone. Whoever else uses the machine can only raise it,
/// so the lowest of some counts.
fn cost_alone(promise: &Promise, server: &Server, interrupt: &Interrupt) -> Option<f64> {
    const TRIES: u32 = 8;

    let client = Client::of(server.service(), TIME_OUT);
    let request = promise.requests.first()?;
    let one = |number| {
        let before = server.metrics().ok()?;
        let (_, answer) = answered(&client, request.numbered(number), 0);
        let is_answered = matches!(answer, Answer::Success(_)) && !interrupt.is_set();
        cost(&before, &server.metrics().ok()?).filter(|_| is_answered)
    };
    (0..TRIES).map_while(one).reduce(f64::min)
}

/// Seconds of CPU time for each request between two moments.
fn cost(before: &Metrics, after: &Metrics) -> Option<f64> {
    let between = |name| Some(after.get(name)? - before.get(name)?);
    Some(between("process_cpu_seconds")? / between("http_requests_total")?)
}

/// Ends the server on Ctrl-C, so that nobody waits for its answers any more.
fn unless_interrupted<T>(
    server: &mut Server,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T,
) -> T {
    /// Tells the other thread of the end, also of a panic.
    struct Done<'a>(&'a AtomicBool);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                if interrupt.is_set() {
                    server.kill();
                    return;
                }
                std::thread::sleep(LOOKED_AT);
            }
        });
        let _done = Done(&is_done);
        work()
    })
}

/// Each request with what came back, and the users in the order in which they were done.
fn asked(promise: &Promise, address: SocketAddr) -> (Vec<(Request, Answer)>, Vec<u32>) {
    let finished = Mutex::new(Vec::new());
    let time_out = promise.time_out_s.map_or(TIME_OUT, Duration::from_secs);
    let numbered = |number| promise.requests.iter().map(move |one| one.numbered(number));
    let mut answers = match promise.hang_up_after_ms {
        Some(after) => {
            let later_by = promise.later_by_ms.unwrap_or_default();
            for time in 0..u64::from(promise.times) {
                let after = Duration::from_millis(after + time * later_by);
                hang_up(promise, address, after);
            }
            Vec::new()
        }
        None if promise.times == 1 => side_by_side(promise.users, |user| {
            let later = u64::from(user) * promise.apart_ms.unwrap_or_default();
            std::thread::sleep(Duration::from_millis(later));
            let client = Client::of(address, time_out);
            let requests = numbered(user).enumerate();
            let paused = requests.map(|(place, one)| {
                if let Some(pause) = promise.pause_ms.filter(|_| place > 0) {
                    std::thread::sleep(Duration::from_millis(pause));
                }
                answered(&client, one, place)
            });
            let answers = paused.collect();
            let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            finished.push(user);
            answers
        }),
        None => side_by_side(promise.users, |user| {
            let own = user * promise.times..(user + 1) * promise.times;
            let is_alone = promise.users == 1;
            pipelined(address, own.flat_map(numbered).collect(), is_alone)
        }),
    };
    let client = Client::of(address, time_out);
    let then = promise.then.iter();
    answers.extend(then.map(|request| answered(&client, request.clone(), 0)));
    let finished = finished.into_inner();
    (answers, finished.unwrap_or_else(PoisonError::into_inner))
}

/// All users at once, each on a connection of its own; what they brought back, by number.
fn side_by_side<T: Send>(users: u32, one_user: impl Fn(u32) -> Vec<T> + Sync) -> Vec<T> {
    let together = Barrier::new(users as usize);
    std::thread::scope(|scope| {
        let user = |user: u32| {
            let (together, one_user) = (&together, &one_user);
            scope.spawn(move || {
                together.wait();
                one_user(user)
            })
        };
        let users: Vec<_> = (0..users).map(user).collect();
        users.into_iter().flat_map(joined).collect()
    })
}

/// Sends all requests on one connection, and then reads the answers; without `bodies` their statuses.
fn pipelined(address: SocketAddr, requests: Vec<Request>, bodies: bool) -> Vec<(Request, Answer)> {
    let last = requests.len().saturating_sub(1);
    let exchanged = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIME_OUT))?;
        let wire = requests.iter().enumerate();
        let wire = wire.map(|(place, one)| text(one, address, place, place == last));
        stream.write_all(wire.collect::<String>().as_bytes())?;
        let began = Instant::now();
        let mut answers = Vec::new();
        let mut piece = [0; 8192];
        // A server that sends something before every time-out would go on for ever.
        while began.elapsed() < TIME_OUT_OF_ALL && answers.len() <= LARGEST {
            match stream.read(&mut piece)? {
                0 => return Ok(answers),
                count => answers.extend_from_slice(&piece[..count]),
            }
        }
        let what = if answers.len() > LARGEST {
            format!("answered more than {} MiB", LARGEST >> 20)
        } else {
            format!("answered for over {} s", TIME_OUT_OF_ALL.as_secs())
        };
        Err(std::io::Error::other(what))
    };
    let exchanged = exchanged();
    let answers = exchanged.as_deref().unwrap_or_default();
    let answers = String::from_utf8_lossy(answers);
    let mut answers = answers.split("HTTP/1.1 ").skip(1);
    let missing = match &exchanged {
        Ok(_) => "the connection was closed".to_owned(),
        Err(error) => error.to_string(),
    };
    let answer = |answer: &str| match answer.get(..3) {
        Some(code) if code.starts_with('2') => {
            let body = answer.split_once("\r\n\r\n").filter(|_| bodies);
            Answer::Success(body.map_or_else(String::new, |(_, body)| body.to_owned()))
        }
        code => Answer::Refusal(code.unwrap_or_default().to_owned()),
    };
    let mut next = || {
        let answer = answers.next().map(answer);
        answer.unwrap_or_else(|| Answer::Missing(missing.clone()))
    };
    requests.into_iter().map(|one| (one, next())).collect()
}

/// Every user sends its requests, each on a connection of its own, and closes them.
fn hang_up(promise: &Promise, address: SocketAddr, after: Duration) {
    let send = |request: Request| {
        let mut stream = TcpStream::connect(address).ok()?;
        let request = text(&request, address, 0, false);
        stream.write_all(request.as_bytes()).ok()?;
        Some(stream)
    };
    // A server that takes no connection is noticed by what is asked next.
    let open: Vec<TcpStream> = (0..promise.users)
        .flat_map(|user| promise.requests.iter().map(move |one| one.numbered(user)))
        .filter_map(send)
        .collect();
    std::thread::sleep(after);
    drop(open);
}

/// The user agent of a request: each on a connection has another one, as where a proxy sends them.
fn visitor(place: usize) -> String {
    format!("visitor-{place}")
}

/// A request on the wire.
fn text(request: &Request, host: SocketAddr, place: usize, is_last: bool) -> String {
    let body = request.body.as_deref().unwrap_or_default();
    let close = if is_last { "connection: close\r\n" } else { "" };
    format!(
        "{} {} HTTP/1.1\r\nhost: {host}\r\nuser-agent: {}\r\n{close}content-type: {}\r\ncontent-length: {}\r\n\r\n{body}",
        request.method,
        request.path,
        visitor(place),
        content_type(body),
        body.len()
    )
}

fn answered(client: &Client, request: Request, place: usize) -> (Request, Answer) {
    let (path, body) = (&request.path, request.body.as_deref());
    let sent = client.send(&request.method, path, body, &visitor(place));
    let answer = match sent {
        Ok((status, body)) if status.is_success() => {
            Answer::Success(String::from_utf8_lossy(&body).into_owned())
        }
        Ok((status, _)) => Answer::Refusal(status.to_string()),
        Err(why) => Answer::Missing(why),
    };
    (request, answer)
}

/// The first thing that is not as it should be, in a phrase: as with the problem where that was asked,
/// too.
fn fault(promise: &Promise, right: Option<&Seen>, own: &Seen) -> Option<String> {
    if let Some(why) = &own.ended {
        return Some(format!("the server ended{why}"));
    }
    let limits = [
        (
            &promise.reaches,
            "at least",
            "needed",
            f64::ge as fn(&f64, &f64) -> bool,
        ),
        (&promise.at_most, "at most", "allowed", f64::le),
    ];
    let beyond = || {
        limits.iter().find_map(|(limits, bound, word, keeps)| {
            limits.iter().find_map(|(name, limit)| {
                let own = own.metrics.get(name);
                let kept = own.is_some_and(|own| keeps(&own, limit));
                let is = value(own);
                (!kept).then(|| format!("`{name}` is {is}, but {bound} {limit} is {word}"))
            })
        })
    };
    let too_late = || {
        let allowed = promise.overtaken_at_most?;
        let overtaken = most_overtaken(&own.finished);
        (overtaken > allowed).then(|| {
            format!(
                "{overtaken} users who came later were answered before another one, but at most \
                 {allowed} are allowed"
            )
        })
    };
    let shared = || {
        let needed = promise.cpu_of_one_at_least?;
        let share = own.cpu_of_one.unwrap_or_default();
        (share < needed).then(|| {
            format!(
                "an answer to one of many takes {} of the CPU time that one alone takes, but at least \
                 {} is needed",
                figures::percent(share),
                figures::percent(needed)
            )
        })
    };
    match right {
        Some(right) => difference(promise, right, own),
        None => unanswered(own),
    }
    .or_else(beyond)
    .or_else(too_late)
    .or_else(shared)
}

/// By how many who began later the unluckiest user was overtaken. Users began in the order of their
/// numbers.
fn most_overtaken(finished: &[u32]) -> usize {
    let overtaken = finished.iter().enumerate().map(|(place, user)| {
        let before = finished[..place].iter();
        before.filter(|other| *other > user).count()
    });
    overtaken.max().unwrap_or_default()
}

/// The first request that was not answered with success.
fn unanswered(own: &Seen) -> Option<String> {
    let mut answers = own.answers.iter();
    let (request, answer) = answers.find(|(_, answer)| !matches!(answer, Answer::Success(_)))?;
    let request = shortened(&request.to_string());
    Some(format!("`{request}` {}", as_verb(answer)))
}

/// The first thing that is not as with the problem.
fn difference(promise: &Promise, right: &Seen, own: &Seen) -> Option<String> {
    let mut both = right.answers.iter().zip(&own.answers);
    if let Some(((request, right), (_, own))) = both.find(|(right, own)| right.1 != own.1) {
        let (right, own) = told(right, own);
        let request = shortened(&request.to_string());
        return Some(format!("`{request}` {own}, where the problem {right}"));
    }
    let compared = |names: &[String], is_kept: fn(Option<f64>, Option<f64>) -> bool| {
        names.iter().find_map(|name| {
            let (right, own) = (right.metrics.get(name), own.metrics.get(name));
            let (is, has) = (value(own), value(right));
            let kept = is_kept(right, own);
            (!kept).then(|| format!("`{name}` is {is}, where the problem has {has}"))
        })
    };
    compared(&promise.counts, |right, own| own == right).or_else(|| {
        compared(&promise.at_least, |right, own| {
            own >= right.map(|r| 0.9 * r)
        })
    })
}

/// Which items, with commas between them, `list` has and `other` has not, in a few words.
fn missing(list: &str, other: &str) -> Option<String> {
    let others: HashSet<&str> = other.split(',').collect();
    let missing = list.split(',').filter(|item| !others.contains(item));
    let missing: Vec<&str> = missing.collect();
    match *missing.as_slice() {
        _ if !list.contains(',') => None,
        [] => None,
        [one] => Some(format!("`{one}`")),
        [one, ..] => Some(format!("{} items, `{one}` for one", missing.len())),
    }
}

fn value(of: Option<f64>) -> String {
    of.map_or_else(|| "not told".to_owned(), |value| value.to_string())
}

/// The beginning of a long text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Both answers as verbs. Of long lists that differ in what they hold, that is told.
fn told(right: &Answer, own: &Answer) -> (String, String) {
    if let (Answer::Success(right), Answer::Success(own)) = (right, own)
        && right.len().max(own.len()) > QUOTED
    {
        let lacks = missing(right, own).map(|lacks| format!("lacks {lacks}"));
        let lacks =
            lacks.or_else(|| missing(own, right).map(|more| format!("has {more} too many")));
        if let Some(lacks) = lacks {
            let many = right.split(',').count();
            return (format!("answers {many} items"), lacks);
        }
    }
    (as_verb(right), as_verb(own))
}

fn as_verb(answer: &Answer) -> String {
    match answer {
        // Its body was not read.
        Answer::Success(body) if body.is_empty() => "answers".to_owned(),
        Answer::Success(body) => format!("answers {:?}", shortened(body)),
        Answer::Refusal(status) => format!("answers {status}"),
        Answer::Missing(why) => format!("gives no answer ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many topics, those that are not there are told, and not how long the lists are.
    #[test]
    fn a_list_is_told_by_what_it_lacks() {
        let list = |topics: std::ops::Range<u32>| {
            let topics: Vec<String> = topics.map(|n| format!("topic{n}")).collect();
            Answer::Success(topics.join(","))
        };
        for (own, said) in [
            (list(0..29), "lacks `topic29`"),
            (list(5..30), "lacks 5 items, `topic0` for one"),
            (list(0..31), "has `topic30` too many"),
        ] {
            let told = told(&list(0..30), &own);
            assert_eq!(told, ("answers 30 items".to_owned(), said.to_owned()));
        }
        let short = told(&list(0..2), &Answer::Refusal("404".to_owned()));
        assert_eq!(short.0, "answers \"topic0,topic1\"");
        assert_eq!(short.1, "answers 404");
    }

    #[test]
    fn the_last_of_a_stack_is_overtaken_by_all_who_came_later() {
        assert_eq!(most_overtaken(&[0, 1, 2, 3]), 0);
        assert_eq!(most_overtaken(&[0, 2, 1, 3]), 1);
        assert_eq!(most_overtaken(&[0, 4, 3, 2, 1]), 3);
        assert_eq!(most_overtaken(&[]), 0);
    }

    /// The answers to one user are those of its requests, in their order.
    #[test]
    fn answers_on_one_connection_are_told_apart() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            let ok = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{body}");
            let refused = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
            stream.write_all((ok("a") + refused + &ok("b")).as_bytes())?;
            // All requests, the last of which closes.
            let mut buffer = [0; 4096];
            stream.read(&mut buffer)
        });
        let request = Request::try_from("GET /".to_owned()).expect("a request");
        let answers = pipelined(address, vec![request; 4], true);
        server.join().expect("no panic").expect("it could answer");
        let answers: Vec<Answer> = answers.into_iter().map(|(_, answer)| answer).collect();
        let success = |body: &str| Answer::Success(body.to_owned());
        assert_eq!(answers[0], success("a"));
        assert_eq!(answers[1], Answer::Refusal("404".to_owned()));
        assert_eq!(answers[2], success("b"));
        assert!(matches!(answers[3], Answer::Missing(_)));
    }
}
