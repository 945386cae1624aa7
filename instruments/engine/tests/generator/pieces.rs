//! Times within answers that come in pieces.

use std::time::Duration;

use children::Interrupt;
use engine::load::{GroupOutcome, Piece, Settings, run};
use engine::traffic::{Request, Route, Traffic};

use crate::once_in_three;
use crate::server::{Reaction, Server};

/// Pauses of the server before the first event, and before each further one.
const FIRST: Duration = Duration::from_millis(60);
const NEXT: Duration = Duration::from_millis(20);
/// Further events of an answer.
const FURTHER: u32 = 4;
const USERS: u32 = 3;

/// Returns an answer whose head comes at once, and whose events come after pauses. The last one is preceded by a comment.
fn events() -> Reaction {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut parts = vec![
        (Duration::ZERO, head.into()),
        (FIRST, chunk("data: first\n\n")),
    ];
    for _ in 1..FURTHER {
        parts.push((NEXT, chunk("data: next\n\n")));
    }
    parts.push((NEXT / 2, chunk(": still there\n\n")));
    parts.push((NEXT / 2, chunk("data: last\n\n")));
    parts.push((Duration::ZERO, b"0\r\n\r\n".to_vec()));
    Reaction::Parts(parts)
}

fn streamed(duration: Duration) -> GroupOutcome {
    let server = Server::start(|_, _| events());
    let load = Traffic {
        has_pieces: true,
        duration,
        ..Traffic::closed([Route::of(Request::get("/events"), 1.0)], USERS)
    };
    let interrupt = Interrupt::new();
    let outcome = run(server.address, &load, &Settings::of(&interrupt)).unwrap();
    assert!(outcome.users.errors.is_empty(), "{outcome:?}");
    outcome.users
}

/// A pause may last longer than it should, and a client may notice an event late. So a time from the due moment has a
/// lower bound, and one between two events has none of its own: an event that is seen late is nearer to the next. The sum
/// of all has.
#[test]
fn the_first_byte_is_that_of_the_body_and_all_events_are_counted() {
    let outcome = streamed(Duration::from_millis(900));
    let [route] = &outcome.routes[..] else {
        panic!("{outcome:?}");
    };
    let pieces = route.pieces.as_ref().unwrap();
    let (whole, users) = (route.latency.count(), u64::from(USERS));
    assert!(pieces.first_byte.count() >= whole, "{outcome:?}");
    // Users whose answer had begun when the load ended.
    assert!(pieces.first_byte.count() <= whole + users, "{outcome:?}");
    let further = u64::from(FURTHER);
    assert!(pieces.between.count() >= further * whole, "{outcome:?}");
    assert!(
        pieces.between.count() <= further * (whole + users),
        "{outcome:?}"
    );
    if whole == 0 {
        // The machine gave no answer a whole second; nothing more can be said.
        return;
    }
    assert_eq!(pieces.kind, Piece::Event);
    let first = pieces.first_byte.summary();
    // The histogram has three digits.
    let pause_ms = FIRST.as_secs_f64() * 1e3 * 0.999;
    assert!(first.min_ms >= pause_ms, "{first:?}");
    assert!(route.latency.summary().min_ms >= pause_ms + 4.0 * 20.0 * 0.999);
}

/// The load ends within the first answer of each user, long after its second event, unless the machine stands still
/// between the two.
#[test]
fn what_is_under_way_at_the_end_counts_as_far_as_it_came() {
    let load = Traffic {
        has_pieces: true,
        duration: Duration::from_millis(500),
        ..Traffic::closed([Route::of(Request::get("/"), 1.0)], USERS)
    };
    let interrupt = Interrupt::new();
    once_in_three(|| {
        let server = Server::start(|_, _| {
            let mut parts = vec![(
                Duration::ZERO,
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n".to_vec(),
            )];
            parts.push((Duration::ZERO, b"1\r\nb\r\n".to_vec()));
            parts.push((Duration::from_secs(3600), b"0\r\n\r\n".to_vec()));
            Reaction::Parts(parts)
        });
        let outcome = run(server.address, &load, &Settings::of(&interrupt)).unwrap();
        assert_eq!(outcome.users.completed, 0);
        let pieces = outcome.users.routes[0].pieces.as_ref().unwrap();
        assert_eq!(pieces.kind, Piece::Chunk);
        // The pause after the second chunk is known to be longer than the rest of the load.
        let longest = pieces.between.at(1.0);
        let is_known = longest.is_some_and(|longest| longest.is_lower_bound);
        (is_known && pieces.first_byte.count() > 0, outcome)
    });
}
