//! Loads with phases, and clients that give up and send again. Counts are compared with the server's; a busy machine may
//! make them fewer, never more.

use std::time::Duration;

use engine::outcome::{Outcome, PhaseOutcome};
use engine::traffic::{Arrivals, Clients, Pause, Phase, Retries, Spacing, Traffic};

use crate::server::{Reaction, Server, answer, late, ok};
use crate::{load, once_in_three, send};

const SECOND: Duration = Duration::from_secs(1);

/// Returns an open load of `per_second`, whose clients give up after `ms` milliseconds.
fn impatient(per_second: f64, ms: u64, retries: Retries) -> Traffic {
    Traffic {
        arrivals: Arrivals::Open {
            per_second,
            spacing: Spacing::Even,
        },
        clients: Some(Clients {
            give_up_after: Duration::from_millis(ms),
            retries,
        }),
        warm_up: Duration::ZERO,
        duration: SECOND,
        ..load(50)
    }
}

/// Returns the same load, to which 503 is a refusal.
fn refusable(mut traffic: Traffic) -> Traffic {
    let mut route = traffic.routes[0].clone();
    route.requests[0].expected.allowed = [503].into();
    traffic.routes = [route].into();
    traffic
}

fn refused() -> Reaction {
    Reaction::Answer(answer("503 Service Unavailable", "busy"))
}

/// Returns the counts of a load of one phase, after checks that hold whatever the machine does.
#[track_caller]
fn only_phase(outcome: &Outcome) -> PhaseOutcome {
    let [phase] = &outcome.phases[..] else {
        panic!("{:?}", outcome.phases);
    };
    assert_eq!(outcome.error_count(), 0, "{:?}", outcome.errors);
    assert_eq!(outcome.wrong_answers, 0, "{:?}", outcome.first_wrong_answer);
    let attempts = phase.first_attempts + phase.retries;
    let ended = phase.in_time + phase.given_up + phase.refused;
    assert!(ended <= attempts && attempts <= ended + 50, "{phase:?}");
    phase.clone()
}

#[test]
fn each_phase_sends_its_share_of_the_rate() {
    let phases = [(2.0, 0.5), (0.5, 1.0)].map(|(share, seconds)| Phase { share, seconds });
    let traffic = Traffic {
        phases: phases.into(),
        duration: Duration::from_millis(1500),
        ..impatient(200.0, 500, Retries::NONE)
    };
    once_in_three(|| {
        let server = Server::start(|_, _| ok("6"));
        let outcome = send(server.address, &traffic);
        let [burst, calm] = &outcome.phases[..] else {
            panic!("{:?}", outcome.phases);
        };
        assert!(
            burst.seconds < 0.51 && calm.seconds > 0.99,
            "{burst:?}, {calm:?}"
        );
        // 200 in the first half second, and 100 in the second after it: never more.
        let sent = [burst.first_attempts, calm.first_attempts];
        assert!(sent[0] <= 201 && sent[1] <= 101, "{sent:?}");
        assert!(server.requests() as u64 >= burst.in_time + calm.in_time);
        let in_time_after = calm.in_time_after_s;
        let is_enough = sent[0] > 150 && sent[1] > 75 && in_time_after == Some(0.1);
        (is_enough, (sent, in_time_after))
    });
}

#[test]
fn a_client_that_gives_up_closes_its_connection_and_is_no_error() {
    once_in_three(|| {
        let server = Server::start(|_, _| Reaction::Silence);
        let outcome = send(server.address, &impatient(100.0, 100, Retries::NONE));
        let phase = only_phase(&outcome);
        assert_eq!((phase.in_time, phase.refused, phase.retries), (0, 0, 0));
        assert_eq!(outcome.completed, 0);
        assert_eq!(phase.in_time_after_s, None);
        // One for each user, one that checks whether the server is there, and one for each request after one that was
        // given up.
        let connections = server.connections() as u64;
        assert!(
            connections <= 51 + phase.given_up,
            "{connections}, {phase:?}"
        );
        (connections > 80 && phase.given_up > 70, phase)
    });
}

#[test]
fn goodput_is_what_is_answered_before_its_client_has_left() {
    // Every other answer is late.
    let react = |number: usize, _: &str| late(if number.is_multiple_of(2) { 0 } else { 400 }, "6");
    once_in_three(|| {
        let server = Server::start(react);
        let outcome = send(server.address, &impatient(100.0, 200, Retries::NONE));
        let phase = only_phase(&outcome);
        // What was due within the span and answered just after it is in time, and completed by nobody's clock.
        assert!(outcome.completed <= phase.in_time, "{phase:?}");
        // A generator that stands still takes late answers for those that came while it did.
        let is_in_time = phase.goodput() <= 60.0 && outcome.latency.max_ms < 400.0;
        let is_enough = phase.in_time > 25 && phase.given_up > 25;
        (is_in_time && is_enough, (phase, outcome.latency))
    });
}

#[test]
fn a_refused_request_is_sent_again_and_counted_apart() {
    // The first two attempts of three are refused, on whichever connection.
    let react = |number: usize, _: &str| {
        if number % 3 == 2 { ok("6") } else { refused() }
    };
    let retries = Retries {
        attempts: 5,
        ..Retries::NONE
    };
    once_in_three(|| {
        let server = Server::start(react);
        let outcome = send(server.address, &refusable(impatient(100.0, 500, retries)));
        let phase = only_phase(&outcome);
        assert!(phase.first_attempts <= 101, "{phase:?}");
        assert!(phase.in_time <= phase.first_attempts);
        let requests = server.requests() as u64;
        assert!(
            phase.first_attempts + phase.retries >= requests,
            "{phase:?}"
        );
        let is_enough = phase.in_time > 75 && phase.retries > phase.first_attempts;
        (is_enough, phase)
    });
}

#[test]
fn a_request_is_given_up_for_good_after_its_last_attempt() {
    let retries = Retries {
        attempts: 3,
        ..Retries::NONE
    };
    once_in_three(|| {
        let server = Server::start(|_, _| refused());
        let outcome = send(server.address, &refusable(impatient(50.0, 500, retries)));
        let phase = only_phase(&outcome);
        assert!(phase.retries <= 2 * phase.first_attempts, "{phase:?}");
        (phase.refused > 100, phase)
    });
}

#[test]
fn a_budget_bounds_the_retries_of_all_clients() {
    let retries = Retries {
        attempts: 10,
        budget: Some(0.1),
        ..Retries::NONE
    };
    once_in_three(|| {
        let server = Server::start(|_, _| refused());
        let outcome = send(server.address, &refusable(impatient(200.0, 500, retries)));
        let phase = only_phase(&outcome);
        assert!(phase.retries * 10 <= phase.first_attempts, "{phase:?}");
        (phase.first_attempts > 150 && phase.retries > 10, phase)
    });
}

#[test]
fn backoff_spreads_the_attempts_and_ends_with_the_load() {
    let retries = Retries {
        attempts: 100,
        pause: Pause::Backoff {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(60),
        },
        budget: None,
    };
    once_in_three(|| {
        let server = Server::start(|_, _| refused());
        let outcome = send(server.address, &refusable(impatient(20.0, 500, retries)));
        let phase = only_phase(&outcome);
        // Pauses of 100, 200, 400 ms on average: hardly more than three attempts within the second.
        assert!(phase.retries <= 6 * phase.first_attempts, "{phase:?}");
        (phase.retries > 5, phase)
    });
}

#[test]
fn a_load_with_too_few_users_says_what_it_could_not_send() {
    let traffic = Traffic {
        users: 2,
        ..impatient(200.0, 100, Retries::NONE)
    };
    once_in_three(|| {
        let server = Server::start(|_, _| Reaction::Silence);
        let phase = only_phase(&send(server.address, &traffic));
        // A user is busy for at least half of 100 ms with each.
        assert!(phase.first_attempts <= 42, "{phase:?}");
        assert!(server.connections() <= 45, "{}", server.connections());
        (phase.unsent > 100, phase)
    });
}

#[test]
fn users_of_a_closed_loop_give_up_as_well() {
    let traffic = Traffic {
        clients: impatient(1.0, 50, Retries::NONE).clients,
        ..load(2)
    };
    once_in_three(|| {
        let server = Server::start(|_, _| Reaction::Silence);
        let phase = only_phase(&send(server.address, &traffic));
        assert_eq!(phase.unsent, 0);
        // A request that is given up before a busy server has read it may never be seen there.
        let requests = server.requests() as u64;
        (
            0 < phase.given_up && phase.given_up <= requests,
            (phase, requests),
        )
    });
}
