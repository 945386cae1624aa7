//! Places of the requests of the last five minutes, as bands over time.

use std::collections::HashMap;

use await_profile::{RecentWait, RecentWaits, WaitKind};
use serde::Serialize;

/// Time that the bands show, and length of an interval, in seconds.
const SECONDS: u16 = 300;
const STEP: u16 = 5;

/// Number of the last intervals over which requests are averaged as those of now.
const NOW: usize = 6;

/// Most bands with a place of their own; all further places are added up.
const MOST_BANDS: usize = 7;

/// Requests in flight by place.
#[derive(Debug, Serialize)]
pub(crate) struct Recent {
    /// Seconds that the bands show.
    seconds: u16,
    /// Seconds of an interval.
    step: u16,
    /// Seconds for which samples have been taken, ten each.
    counted_for: f64,
    /// Number of samples in the bands. There is none for a moment at which no request was in flight.
    samples: u64,
    /// Samples without a place, because its name is being looked up or their request was not polled since.
    open: usize,
    /// Places, the one with the most requests first; the last may stand for all others.
    bands: Vec<Band>,
}

/// Requests at one place.
#[derive(Debug, Serialize)]
struct Band {
    /// Route; `None` for all other places.
    route: Option<String>,
    /// Kind of the wait, as in the metrics.
    wait: Option<&'static str>,
    /// Function with its file and line; `None` for requests that do not wait, or whose wait is not known.
    place: Option<String>,
    /// Mean number of requests over the last 30 seconds, and number of samples behind it.
    now: f64,
    samples_now: u64,
    /// Number of samples.
    samples: u64,
    /// Mean number of requests in each interval, the oldest first.
    requests: Vec<f64>,
}

/// Sums of a band while it is added up, by interval; the latest is the first.
struct Sums {
    seconds: Vec<f64>,
    samples: Vec<f64>,
}

impl Sums {
    fn new() -> Self {
        let none = vec![0.0; usize::from(SECONDS / STEP)];
        Self {
            seconds: none.clone(),
            samples: none,
        }
    }

    fn add(&mut self, other: &Self) {
        for (all, more) in self.seconds.iter_mut().zip(&other.seconds) {
            *all += more;
        }
        for (all, more) in self.samples.iter_mut().zip(&other.samples) {
            *all += more;
        }
    }
}

impl Recent {
    pub(crate) fn new(recent: &RecentWaits) -> Self {
        let mut places = HashMap::<_, Sums>::new();
        for wait in &recent.waits {
            let Some(interval) = interval(wait) else {
                continue;
            };
            let place = (&wait.route, wait.wait, &wait.place);
            let sums = places.entry(place).or_insert_with(Sums::new);
            sums.seconds[interval] += wait.seconds;
            sums.samples[interval] += wait.samples;
        }
        let mut places: Vec<_> = places.into_iter().collect();
        let weight = |sums: &Sums| sums.seconds.iter().sum::<f64>();
        places.sort_by(|(a, of_a), (b, of_b)| {
            let by_weight = weight(of_b).total_cmp(&weight(of_a));
            by_weight.then_with(|| (a.0, a.2).cmp(&(b.0, b.2)))
        });
        let (mut bands, mut others) = (Vec::new(), None::<Sums>);
        for ((route, wait, place), sums) in places {
            if bands.len() < MOST_BANDS {
                let wait = wait.map_or("other", WaitKind::name);
                let place = place.as_ref().map(ToString::to_string);
                bands.push(Band::new(Some(route.to_string()), Some(wait), place, &sums));
            } else {
                others.get_or_insert_with(Sums::new).add(&sums);
            }
        }
        if let Some(others) = others {
            bands.push(Band::new(None, None, None, &others));
        }
        Self {
            seconds: SECONDS,
            step: STEP,
            counted_for: recent.counted_for.as_secs_f64(),
            samples: bands.iter().map(|band| band.samples).sum(),
            open: recent.open,
            bands,
        }
    }
}

/// Returns the number of the interval in which a sample was taken, 0 for the latest, or `None` if it is too old.
fn interval(wait: &RecentWait) -> Option<usize> {
    let interval = wait.ago.as_secs() / u64::from(STEP);
    usize::try_from(interval)
        .ok()
        .filter(|interval| *interval < usize::from(SECONDS / STEP))
}

impl Band {
    fn new(
        route: Option<String>,
        wait: Option<&'static str>,
        place: Option<String>,
        sums: &Sums,
    ) -> Self {
        let step = f64::from(STEP);
        let newest = sums.seconds.iter().take(NOW).sum::<f64>();
        Self {
            route,
            wait,
            place,
            now: newest / (NOW as f64 * step),
            samples_now: whole(sums.samples.iter().take(NOW)),
            samples: whole(sums.samples.iter()),
            requests: sums.seconds.iter().rev().map(|sum| sum / step).collect(),
        }
    }
}

/// Returns the sum of parts of samples as a whole number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // They are no negative numbers, and few.
fn whole<'a>(parts: impl Iterator<Item = &'a f64>) -> u64 {
    parts.sum::<f64>().round() as u64
}
