//! Requests that end during a tail profile, until the sampler takes them.

use std::mem;
use std::time::{Duration, Instant};

use crate::slot::Slot;

/// Most requests of a shard that wait for the sampler, at 32 bytes each. The sampler takes them every 20 ms, so this
/// is room for 800,000 a second. Further ones are counted, and their times are lost.
const MOST_WAITING: usize = 16_384;

/// Request of a tail profile, unique among those in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestId {
    pub(crate) shard: usize,
    pub(crate) number: u32,
}

/// Request that began and ended during a tail profile.
pub(crate) struct EndedRequest {
    pub(crate) number: u32,
    /// Index into the shard's routes.
    pub(crate) route: usize,
    pub(crate) took: Duration,
}

/// Numbers of requests that a tail profile leaves out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    /// They began before the profile.
    pub(crate) earlier: u64,
    /// They had not ended when the profile ended.
    pub(crate) unfinished: u64,
    /// Their times found no room.
    pub(crate) lost: u64,
}

/// Requests of one shard that ended since the tail profile began.
pub(crate) struct Ended {
    since: Instant,
    waiting: Vec<EndedRequest>,
    left_out: LeftOut,
}

impl Ended {
    pub(crate) fn new(since: Instant) -> Self {
        Ended {
            since,
            waiting: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    /// Returns whether the request began during this profile, so that its time is known.
    fn is_followed(&self, slot: &Slot) -> bool {
        match slot.began() {
            Some(began) => slot.number != 0 && began >= self.since,
            None => false,
        }
    }

    /// Keeps a request that has ended for the sampler.
    pub(crate) fn add(&mut self, slot: &Slot, took: Option<Duration>) {
        let (Some(took), true) = (took, self.is_followed(slot)) else {
            self.left_out.earlier += 1;
            return;
        };
        if self.waiting.len() == MOST_WAITING {
            self.left_out.lost += 1;
            return;
        }
        self.waiting.push(EndedRequest {
            number: slot.number,
            route: slot.route,
            took,
        });
    }

    /// Moves the requests of a route, whose label is given up, to the other routes at index 0.
    pub(crate) fn give_up(&mut self, route: usize) {
        for request in &mut self.waiting {
            if request.route == route {
                request.route = 0;
            }
        }
    }

    pub(crate) fn take(&mut self) -> Vec<EndedRequest> {
        mem::take(&mut self.waiting)
    }

    /// Returns the numbers of requests that are left out, if `in_flight` are those that have not ended.
    pub(crate) fn left_out<'a>(&self, in_flight: impl Iterator<Item = &'a Slot>) -> LeftOut {
        let mut left_out = self.left_out;
        for slot in in_flight {
            if self.is_followed(slot) {
                left_out.unfinished += 1;
            } else {
                left_out.earlier += 1;
            }
        }
        left_out
    }
}
