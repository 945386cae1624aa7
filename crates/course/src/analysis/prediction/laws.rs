//! Predictions of the laws, each with a sentence that explains it.

use std::slice;

use super::Prediction;
use crate::measurement::chapter_file::Scenario;
use engine::traffic::Phase;
use statistics::figures;

/// Predicts by Little's law, for users who think for `think` seconds.
pub(super) fn little(call_ms: f64, in_flight: u32, users: u32, think: f64) -> Prediction {
    let call = call_ms / 1e3;
    let free = f64::from(users) / (think + call);
    let limited = (f64::from(in_flight) / call).min(free);
    let ratio = free / limited;
    let calls = match in_flight {
        1 => "one call".to_owned(),
        more => format!("{more} calls"),
    };
    Prediction {
        problem: Some(limited),
        solution: Some(free),
        ratio,
        sentence: format!(
            "With {calls} of {} ms in flight at a time, at most {} requests per second are \
             answered; with none held back, {} get up to {}: {} times as many.",
            figures::count(call_ms),
            figures::count(limited.round()),
            figures::things(users.into(), "user"),
            figures::count(free.round()),
            figures::ratio(ratio)
        ),
    }
}

/// Predicts by the barrier of a few writes, where a fair lock is held for long.
pub(super) fn barrier(hold_ms: f64, users: u32, think: f64, write_share: f64) -> Prediction {
    let hold = hold_ms / 1e3;
    let free = f64::from(users) / (think + (1.0 - write_share) * hold);
    // Without a write there is no barrier: 1/0 is no limit.
    let barrier = 1.0 / (write_share * hold);
    let limited = barrier.min(free);
    let ratio = free / limited;
    let sentence = if write_share == 0.0 {
        format!(
            "Without writes no reader waits for another: {} get up to {} requests per second \
             whether guards are held or not.",
            figures::things(users.into(), "user"),
            figures::count(free.round()),
        )
    } else {
        format!(
            "With {} of writes, each a barrier of {} ms, at most {} requests per second pass; \
             with guards that end early, {} get up to {}: {} times as many.",
            figures::percent(write_share),
            figures::count(hold_ms),
            figures::count(limited.round()),
            figures::things(users.into(), "user"),
            figures::count(free.round()),
            figures::ratio(ratio)
        )
    };
    Prediction {
        problem: Some(limited),
        solution: Some(free),
        ratio,
        sentence,
    }
}

/// Predicts by Amdahl's law; `gain` is how many times as many requests as the problem the probe answers.
/// `None` if the part that the probe leaves out seems to cost nothing, or more than everything. No law
/// explains such a machine.
pub(super) fn amdahl(removes: &str, left: f64, gain: f64) -> Option<Prediction> {
    let share = (1.0 - 1.0 / gain) / (1.0 - left);
    let ratio = 1.0 / (1.0 - share);
    if !(0.0..1.0).contains(&share) {
        return None;
    }
    let sentence = format!(
        "With {} of the work of {} left, the service answers {} times as many requests. This work \
         therefore takes {} of a request's time; without it, the service would answer \
         1 / (1 - {share:.4}) = {} times as many.",
        figures::percent(left),
        removes,
        figures::ratio(gain),
        figures::share(share),
        figures::ratio(ratio)
    );
    Some(Prediction::of_gain(ratio, sentence))
}

/// Returns the change of [`amdahl`]'s prediction in per cent, for a change of the probe's gain by 1 %.
pub(super) fn amdahl_slope(left: f64, gain: f64, ratio: f64) -> f64 {
    ratio / (gain * (1.0 - left))
}

/// Predicts by the utilisation law, and by the queue before a busy CPU.
pub(super) fn utilisation(work_ms: f64, users: u32) -> Prediction {
    let ratio = f64::from(users);
    Prediction::of_gain(
        ratio,
        format!(
            "A CPU gives at most {} requests per second of {} each, wherever it works; but \
             with {} another request waits up to {} behind their work, or up to {} beside it: \
             {} times less.",
            figures::count((1e3 / work_ms).round()),
            figures::milliseconds(work_ms),
            figures::things(users.into(), "user"),
            figures::milliseconds(ratio * work_ms),
            figures::milliseconds(work_ms),
            figures::ratio(ratio)
        ),
    )
}

/// Predicts by the fluid model of a queue, whose `permits` are each held for `hold_s`. `None` without clients that give
/// up, or if no request is answered in time.
pub(super) fn overload(permits: u32, hold_s: f64, scenario: &Scenario) -> Option<Prediction> {
    let capacity = f64::from(permits) / hold_s;
    // Who finds a longer queue than this leaves before the answer.
    let longest = capacity * (scenario.give_up_after_s? - hold_s).max(0.0);
    let whole = Phase {
        share: 1.0,
        seconds: scenario.whole_s(),
    };
    let phases = match &scenario.phases[..] {
        [] => slice::from_ref(&whole),
        phases => phases,
    };
    let (mut unbounded, mut bounded) = (Queue::default(), Queue::default());
    let (mut in_time, mut at_best) = (0.0, 0.0);
    let (mut grown, mut late_s) = (0.0_f64, 0.0);
    for phase in phases {
        let rate = scenario.per_second * phase.share;
        let late = unbounded.pass(rate, capacity, phase.seconds, longest);
        in_time += rate * (phase.seconds - late);
        grown = grown.max(unbounded.length);
        late_s = late;
        // What a bounded queue refuses is never in it.
        let late = bounded.pass(rate, capacity, phase.seconds, longest);
        at_best += rate * (phase.seconds - late) + capacity * late;
        bounded.length = bounded.length.min(longest);
    }
    if in_time.is_nan() || in_time <= 0.0 {
        return None;
    }
    let ratio = at_best / in_time;
    let rates: Vec<String> = phases
        .iter()
        .map(|phase| figures::count((scenario.per_second * phase.share).round()))
        .collect();
    let sentence = format!(
        "{permits} permits, each held for {}, let {} requests per second pass, and {} come. The queue grows to {}, and {} of \
         the last phase pass before answers are in time again; with a bounded queue {} times as many are.",
        figures::milliseconds(1e3 * hold_s),
        figures::count(capacity.round()),
        rates.join(", then "),
        figures::count(grown.round()),
        figures::milliseconds(1e3 * late_s),
        figures::ratio(ratio)
    );
    Some(Prediction::of_gain(ratio, sentence))
}

/// A queue as a fluid.
#[derive(Default)]
struct Queue {
    length: f64,
}

impl Queue {
    /// Lets requests come at `rate` for some `seconds`, and returns for how long the queue was over `longest`.
    fn pass(&mut self, rate: f64, capacity: f64, seconds: f64, longest: f64) -> f64 {
        let growth = rate - capacity;
        let end = (self.length + growth * seconds).max(0.0);
        let until = (longest - self.length) / growth;
        let late = match (self.length > longest, end > longest) {
            (true, true) => seconds,
            (false, false) => 0.0,
            (true, false) => until,
            (false, true) => seconds - until,
        };
        self.length = end;
        late
    }
}

/// Predicts by own time and wait: the latency of the problem's bystanders alone and beside the load, in ms.
pub(super) fn wait(users: u32, (alone, beside): (f64, f64)) -> Prediction {
    let ratio = beside / alone;
    Prediction::of_gain(
        ratio,
        format!(
            "A bystander takes {} when nothing else runs, and {} beside {}. The difference is waiting; \
             without it, a bystander takes {} times less.",
            figures::milliseconds(alone),
            figures::milliseconds(beside),
            figures::things(users.into(), "user"),
            figures::ratio(ratio)
        ),
    )
}

/// Predicts that throughput grows with workers until CPUs or memory run out. The inputs are requests per
/// second of the problem alone, and of one problem per CPU, all together.
pub(super) fn workers((alone, side_by_side): (f64, f64)) -> Prediction {
    let ratio = side_by_side / alone;
    Prediction::of_gain(
        ratio,
        format!(
            "One problem on one CPU answers {} requests per second. One on each CPU, side by side, \
             answer {} together: {} times as many.",
            figures::count(alone.round()),
            figures::count(side_by_side.round()),
            figures::ratio(ratio)
        ),
    )
}

/// Predicts by the locality mix, with Amdahl's law on top of it.
pub(super) fn locality(memory_bound: f64, across: f64, regions: u32) -> Prediction {
    let regions = regions.max(1);
    let n = f64::from(regions);
    let mean = (1.0 + (n - 1.0) * across) / n;
    let rest = 1.0 - memory_bound;
    let ratio = 1.0 / (rest + memory_bound / mean);
    let sentence = if regions == 1 {
        "With one NUMA node every access is nearby, before and after: no gain.".to_owned()
    } else {
        format!(
            "In {regions} NUMA nodes {} of the accesses go across, so that the mean one takes \
             {mean:.2} times as long as one nearby; with {} of the time spent on memory, 1 / \
             ({rest:.2} + {:.2} / {mean:.2}) = {} times as many answers.",
            figures::percent((n - 1.0) / n),
            figures::percent(memory_bound),
            memory_bound,
            figures::ratio(ratio)
        )
    };
    Prediction::of_gain(ratio, sentence)
}
