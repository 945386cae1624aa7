//! Findings of a profile in sentences.

use ecosystem::thresholds::{
    FEWEST_ENDED, IN_A_ROW, IN_A_ROW_MS, LISTED, LIVED, PART_OF_SEVERAL, UNPOLLED_REQUESTS,
};
use ecosystem::{ONE_OF_SEVERAL, PathMeaning, Wait, WaitKind};

use crate::fold::Share;
use crate::profile::Profile;
use crate::summary::{Remark, RouteSummary, Summary};
use crate::unpolled::Unpolled;

/// Smallest share for waits for a new connection. A client that keeps its connections has next to none.
const LEAST_OF_CONNECTIONS: f64 = 0.02;
/// Most places that get a remark.
const MOST_PLACES: usize = 6;

impl Profile {
    /// Returns the findings of this profile in sentences: first futures that nobody polls, then the places
    /// where most requests wait. A remark says what the wait means, what to do, and what releases it.
    pub fn remarks(&self) -> Vec<Remark> {
        self.summary().remarks
    }
}

impl Summary {
    /// Returns the remarks about these figures.
    pub(crate) fn remarked(&self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        for unpolled in &self.unpolled {
            if unpolled.requests >= UNPOLLED_REQUESTS {
                remarks.push(of_unpolled(unpolled));
            }
        }
        let mut places = together(&self.places);
        places.retain(has_many);
        for place in places.iter().take(MOST_PLACES) {
            remarks.extend(of_place(place, self));
        }
        remarks
    }
}

/// Returns whether enough requests are at a place for a remark.
fn has_many(place: &Share) -> bool {
    match place.wait {
        Some(wait) if wait.kind == WaitKind::NewConnection => place.share >= LEAST_OF_CONNECTIONS,
        _ => place.share >= LISTED,
    }
}

/// Merges places where the same requests wait for several things at once, such as a lock and the end of a time
/// limit. Each request is at all of those places for the whole wait. The most telling place stands for all, unless few of
/// the requests were there.
fn together(places: &[Share]) -> Vec<Share> {
    let mut groups: Vec<Vec<&Share>> = Vec::new();
    for place in places {
        let parting = place
            .frames
            .iter()
            .position(|frame| frame.starts_with(ONE_OF_SEVERAL));
        if let Some(end) = parting
            && let Some(group) = groups
                .iter_mut()
                .find(|group| group[0].frames.starts_with(&place.frames[..=end]))
        {
            group.push(place);
        } else {
            groups.push(vec![place]);
        }
    }
    groups.iter().map(|group| merged(group)).collect()
}

/// Merges places of one group, the one with most requests first.
fn merged(group: &[&Share]) -> Share {
    let [place] = group else {
        let least = PART_OF_SEVERAL * group[0].share;
        let often = group.iter().filter(|place| place.share >= least);
        // Unknown waits come last.
        let telling =
            often.min_by_key(|place| (place.wait.is_none(), place.wait.map(|wait| wait.kind)));
        return Share {
            share: group.iter().map(|place| place.share).sum(),
            mean_in_flight: group.iter().map(|place| place.mean_in_flight).sum(),
            ms_per_request: group.iter().map(|place| place.ms_per_request).sum(),
            share_interval: None,
            ms_per_request_interval: None,
            ..(*telling.unwrap_or(&group[0])).clone()
        };
    };
    (*place).clone()
}

/// Returns the mean time of a route's requests, unless they are older than the profile, or than any that was timed.
fn latency(route: &RouteSummary, seconds: f64) -> Option<f64> {
    let ms = route.latency_ms?;
    if let Some(longest) = route.longest_ms
        && ms > LIVED * longest
    {
        return None;
    }
    if ms > seconds * 1e3 && route.finished + route.dropped < FEWEST_ENDED {
        return None;
    }
    Some(ms)
}

fn of_place(place: &Share, all: &Summary) -> Option<Remark> {
    let (routes, releases, seconds) = (&all.routes, &all.releases, all.seconds);
    let wait = place.wait?;
    let route = place.frames.first()?;
    let summary = routes.iter().find(|summary| summary.route == *route)?;
    let time = match (place.ms_per_request, latency(summary, seconds)) {
        (Some(spent), Some(latency)) => format!("{spent:.1} of {latency:.1} ms "),
        _ => String::new(),
    };
    let what = wait.in_words();
    // Releases are sorted: the first one that matches has the largest share.
    let release = match releases.iter().find(|one| one.frames == place.frames) {
        Some(release) if is_telling(&release.by) => format!(
            " {:.0} % of these waits ended at {}.",
            release.share * 100.0,
            release.by.join(", ")
        ),
        _ => String::new(),
    };
    let in_a_row = calls_in_a_row(place, wait);
    let times = match in_a_row {
        Some(times) => format!(
            " About {times:.0} such waits follow each other in a request: ask once for all of them, or for several at \
             the same time if they do not need each other's answers."
        ),
        None => String::new(),
    };
    let at = match line_of(&place.frames) {
        Some(line) => format!(" at {line}"),
        None => String::new(),
    };
    Some(Remark {
        route: route.clone(),
        wait: Some(wait),
        share: place.share / summary.share,
        mean_in_flight: Some(place.mean_in_flight),
        in_a_row,
        says: format!(
            "{route}: {time}{what}{at}, {:.1} requests at once.{times} {}{release}",
            place.mean_in_flight,
            wait.advice()
        ),
    })
}

/// Returns the number of long waits that follow each other there, if they are for something that could be asked at once.
fn calls_in_a_row(place: &Share, wait: Wait) -> Option<f64> {
    let times = place.in_a_row?;
    let each = place.ms_per_request.unwrap_or_default() / times;
    if wait.is_asked_for() && times >= IN_A_ROW && each >= IN_A_ROW_MS {
        return Some(times);
    }
    None
}

/// Returns whether the code that ends a wait says who held what was waited for.
pub(crate) fn is_telling(by: &[String]) -> bool {
    let is_remark = by.iter().any(|by| by.starts_with('('));
    // It says nothing new that a runtime's task has ended.
    !is_remark && by.iter().any(|by| !PathMeaning::Runtime.fits(by))
}

fn of_unpolled(unpolled: &Unpolled) -> Remark {
    let woken = match unpolled.woken_by.as_slice() {
        [] => String::new(),
        by => format!("were woken by {} and ", by.join(", ")),
    };
    let time = match unpolled.longest_ms {
        Some(ms) => format!(" for up to {ms:.1} ms"),
        None => String::new(),
    };
    let says = format!(
        "{}: futures that {} polls {woken}were not polled{time}, while the request awaited {}; seen of {} in {} \
         requests. They keep what they hold, and others wait for that. Put the work in between into those \
         futures, or let them end first.",
        unpolled.frames[0],
        line_of(&unpolled.frames).unwrap_or("an unknown place"),
        unpolled.instead[1..].join(", "),
        unpolled.requests,
        unpolled.of_requests,
    );
    Remark {
        route: unpolled.frames[0].clone(),
        wait: None,
        share: unpolled.requests as f64 / unpolled.of_requests.max(1) as f64,
        mean_in_flight: None,
        in_a_row: None,
        says,
    }
}

/// Returns the innermost of the reader's lines. Only the reader's functions have a line in their frame.
pub(crate) fn line_of(frames: &[String]) -> Option<&str> {
    let mut lines = frames.iter().rev().map(String::as_str);
    lines.find(|frame| frame.ends_with(')') && !frame.starts_with('('))
}
