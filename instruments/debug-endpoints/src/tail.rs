//! Tail profiles: what the slowest requests of each route waited for, beside the rest.

#[cfg(feature = "flamegraph")]
use await_profile::{FlamegraphError, FlamegraphOptions};
use await_profile::{Frames, Percentile, Profile, Tail, TailFinding};
use diagnosis::lost_in_words;
use serde::Serialize;

use crate::error::EndpointError;
use crate::missing_names;

/// Returns the percentile that a request asks for with `tail=`.
pub(crate) fn percentile(text: &str) -> Result<Percentile, EndpointError> {
    text.parse()
        .map_err(|error| EndpointError::BadRequest(format!("{error}")))
}

/// A tail as data, and the same for people.
#[derive(Debug, Serialize)]
pub(crate) struct WithText {
    #[serde(flatten)]
    tail: Tail,
    /// Share of the CPU time that the process wanted and other programs had; `None` if the system does not tell.
    cpu_lost: Option<f64>,
    pub(crate) text: String,
}

/// Returns the tail of a profile that was taken as one.
pub(crate) fn of(profile: &Profile) -> Result<Tail, EndpointError> {
    profile.tail().ok_or_else(|| {
        EndpointError::NoRequests(
            "the last await profile was no tail profile; ask for /debug/await?tail=99".to_owned(),
        )
    })
}

/// Returns the tail with its text, which says whether other programs had the CPU.
pub(crate) fn with_text(
    profile: &Profile,
    cpu_lost: Option<f64>,
) -> Result<WithText, EndpointError> {
    let tail = of(profile)?;
    let mut text = tail.to_string();
    if let Some(lost) = cpu_lost.and_then(lost_in_words) {
        text = format!("{lost}\n{text}");
    }
    if let Some(note) = missing_names::in_waits(profile) {
        text = format!("{}\nNot seen: {note}\n", text.trim_end());
    }
    Ok(WithText {
        tail,
        cpu_lost,
        text,
    })
}

/// Returns the folded stacks of the slowest requests.
///
/// # Errors
///
/// Returns an error that says why there are none: no route has a tail that can be told.
pub(crate) fn folded(profile: &Profile, frames: Frames) -> Result<String, EndpointError> {
    let tail = of(profile)?;
    let folded = profile.tail_folded(frames);
    if folded.is_empty() {
        return Err(EndpointError::NoRequests(
            tail.to_string().trim_end().to_owned(),
        ));
    }
    Ok(folded)
}

/// Returns which requests and routes the stacks leave out, and whether names are missing.
pub(crate) fn left_out(profile: &Profile) -> Result<String, EndpointError> {
    let tail = of(profile)?;
    let mut untold = 0;
    for route in &tail.routes {
        if !matches!(route.finding, TailFinding::Tail | TailFinding::NoTail) {
            untold += 1;
        }
    }
    let mut notes = tail.left_out();
    if untold > 0 {
        notes = format!("{notes} Routes with too few requests or samples: {untold}.");
    }
    if let Some(note) = missing_names::in_waits(profile) {
        notes = format!("{notes} Not seen: {note}");
    }
    Ok(notes)
}

#[cfg(feature = "flamegraph")]
pub(crate) fn drawn(profile: &Profile, frames: Frames) -> Result<String, EndpointError> {
    let tail = of(profile)?;
    let title = "What the slowest requests wait for, compared with the rest";
    let options = FlamegraphOptions::default().title(title).frames(frames);
    profile
        .tail_flamegraph(&options)
        .map_err(|error| match error {
            FlamegraphError::Empty => {
                EndpointError::NoRequests(tail.to_string().trim_end().to_owned())
            }
            other => EndpointError::failed(other),
        })
}

#[cfg(not(feature = "flamegraph"))]
pub(crate) fn drawn(_: &Profile, _: Frames) -> Result<String, EndpointError> {
    Err(EndpointError::Unsupported(
        "this build draws no pictures: build debug-endpoints with its feature `flamegraph`, or ask for format=folded",
    ))
}
