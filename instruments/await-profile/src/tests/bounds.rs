//! Profiles that reach the limits of what they keep.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{permit, sampler};
use crate::collected::MAX_STACKS;
use crate::lock::lock;
use crate::{AwaitProfiler, Frames, Profile, ProfileOptions};

/// Keeps a waker, and waits for ever.
fn waits() -> impl Future<Output = ()> {
    let mut kept = Vec::new();
    std::future::poll_fn(move |cx| {
        kept.push(cx.waker().clone());
        Poll::Pending
    })
}

#[test]
fn a_profile_ends_once_it_has_all_its_samples() {
    let profiler = AwaitProfiler::new().armed();
    let permit = permit(&profiler);
    let mut request = pin!(profiler.wrap("GET /", waits()));
    let poll = request
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll.is_pending());
    let mut sampler = sampler(&permit, 1);
    sampler.most_samples = 100;
    let an_hour = ProfileOptions::lasting(Duration::from_secs(3600)).captures_per_second(10_000);
    sampler.sample_for(&an_hour, &|| false);
    let taken = sampler.collected.samples.len();
    // All samples that are due at one wake-up are taken together.
    assert!((100..200).contains(&taken), "{taken}");
}

#[test]
#[cfg_attr(miri, ignore = "looks ten thousand names up")]
fn a_wait_for_whose_stack_there_is_no_room_is_drawn_as_not_captured() {
    let profiler = AwaitProfiler::new().armed();
    let permit = permit(&profiler);
    let mut request = pin!(profiler.wrap("GET /", waits()));
    let mut poll = || {
        let context = &mut Context::from_waker(Waker::noop());
        assert!(request.as_mut().poll(context).is_pending());
    };
    poll();
    let mut sampler = sampler(&permit, 1);
    for address in 0..MAX_STACKS {
        sampler.collected.waits.intern(Box::new([address]));
    }
    // The profile does not see the first poll of a request that began before it.
    poll();
    sampler.begin();
    sampler.sample_once();
    poll();
    sampler.gather();
    sampler.end(Duration::from_secs(1));
    let symbols = &mut lock(&profiler.shared.symbols);
    let profile = Profile::new(sampler.finish(), &ProfileOptions::default(), symbols);
    let folded = profile.folded(Frames::Own);
    assert_eq!(folded, "GET /;(not captured) 1000000\n");
}
