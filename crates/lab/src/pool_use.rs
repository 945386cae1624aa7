//! Use of a service's connection pool: how many connections are lent, for how long, and how many are lent
//! while a request waits for the upstream.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use crate::metric::Metric;

/// Counts the connections that a pool lends to requests. Clones are cheap and share their counters.
///
/// Call it from the pool's own hooks, so that no connection is lent uncounted.
#[derive(Debug, Clone, Default)]
pub struct PoolUse(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    lent: AtomicU64,
    in_use: AtomicI64,
    /// Sum of the times of all returns, less those of all loans, in nanoseconds since the first call. Connections that
    /// are lent now lack their return.
    held: AtomicI64,
    /// Answers of the upstream, and the sum of the connections that were in use when each was sent.
    answers: AtomicU64,
    in_use_at_answers: AtomicU64,
}

/// Nanoseconds since the first call: enough for three centuries.
fn now() -> i64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    i64::try_from(BEGAN.elapsed().as_nanos()).unwrap_or(i64::MAX)
}

impl PoolUse {
    /// Notes that the pool lends a connection.
    pub fn lend(&self) {
        let counts = &self.0;
        counts.lent.fetch_add(1, Relaxed);
        counts.held.fetch_sub(now(), Relaxed);
        counts.in_use.fetch_add(1, Relaxed);
    }

    /// Notes that a lent connection has come back.
    pub fn take_back(&self) {
        let counts = &self.0;
        counts.held.fetch_add(now(), Relaxed);
        counts.in_use.fetch_sub(1, Relaxed);
    }

    /// Notes that the upstream is about to answer a request. Counts the connections in use now: with
    /// one user, each of them lay idle while the request waited for the upstream.
    pub(crate) fn note_answer(&self) {
        let counts = &self.0;
        let in_use = u64::try_from(counts.in_use.load(Relaxed)).unwrap_or_default();
        counts.answers.fetch_add(1, Relaxed);
        counts.in_use_at_answers.fetch_add(in_use, Relaxed);
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let counts = &self.0;
        let lent = counts.lent.load(Relaxed);
        let answers = counts.answers.load(Relaxed);
        let in_use = counts.in_use.load(Relaxed);
        let held = counts.held.load(Relaxed) + in_use * now();
        let whole = |count: i64| u64::try_from(count).unwrap_or_default();
        let mean = |sum: u64, of: u64| sum as f64 / of.max(1) as f64;
        vec![
            Metric::count(
                "pool_connections_in_use",
                "Connections that are lent now",
                whole(in_use),
            ),
            Metric::gauge(
                "pool_connection_held_seconds",
                "How long a connection is lent, on average",
                mean(whole(held), lent) / 1e9,
            ),
            Metric::gauge(
                "pool_connections_in_use_at_answer",
                "Connections that are lent when the upstream answers, on average",
                mean(counts.in_use_at_answers.load(Relaxed), answers),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_while_the_upstream_answers_is_counted() {
        let pool = PoolUse::default();
        pool.lend();
        pool.note_answer();
        pool.lend();
        pool.note_answer();
        pool.take_back();
        pool.take_back();
        pool.note_answer();
        let counts = &pool.0;
        assert_eq!(counts.lent.load(Relaxed), 2);
        assert_eq!(counts.in_use.load(Relaxed), 0);
        assert_eq!(counts.answers.load(Relaxed), 3);
        assert_eq!(counts.in_use_at_answers.load(Relaxed), 3);
    }

    #[test]
    fn a_connection_that_is_still_lent_is_held_until_now() {
        let pool = PoolUse::default();
        pool.lend();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let counts = &pool.0;
        let so_far = counts.held.load(Relaxed) + now();
        assert!(so_far >= 20_000_000, "{so_far} ns");
        pool.take_back();
        assert!(counts.held.load(Relaxed) >= so_far);
    }
}
