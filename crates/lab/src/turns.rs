//! Whether requests are answered in the order in which they came.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::metric::Metric;

/// Sees requests come and go.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    /// Numbers of the requests that wait for their answers, the lowest first.
    waiting: Vec<u64>,
    overtaken: u64,
}

/// A request's place in the order. It goes when its client hangs up.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    /// A request came.
    pub(crate) fn take(&self) -> Turn<'_> {
        let mut queue = self.queue();
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push(number);
        Turn {
            turns: self,
            number,
        }
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        vec![Metric::count(
            "requests_overtaken_total",
            "Pairs of requests of which the later one was answered while the earlier one waited",
            self.queue().overtaken,
        )]
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// It was answered.
    pub(crate) fn answered(self) {
        let mut queue = self.turns.queue();
        let earlier = queue.waiting.partition_point(|other| *other < self.number);
        queue.overtaken += earlier as u64;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = &mut self.turns.queue().waiting;
        if let Ok(place) = waiting.binary_search(&self.number) {
            waiting.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_overtakes_in_all_pairs_and_a_queue_in_none() {
        let overtaken = |order: [usize; 4], hung_up: Option<usize>| {
            let turns = Turns::default();
            let mut waiting = [(); 4].map(|()| Some(turns.take()));
            if let Some(user) = hung_up {
                waiting[user] = None;
            }
            for user in order {
                if let Some(turn) = waiting[user].take() {
                    turn.answered();
                }
            }
            let queue = turns.queue();
            assert!(queue.waiting.is_empty());
            queue.overtaken
        };
        assert_eq!(overtaken([0, 1, 2, 3], None), 0);
        assert_eq!(overtaken([0, 2, 1, 3], None), 1);
        assert_eq!(overtaken([3, 2, 1, 0], None), 6);
        assert_eq!(overtaken([3, 2, 1, 0], Some(0)), 3);
    }
}
