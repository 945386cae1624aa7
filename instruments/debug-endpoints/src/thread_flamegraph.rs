//! Flamegraphs of thread profiles.

use crate::error::EndpointError;
#[cfg(feature = "flamegraph")]
use crate::sampled_picture;
use crate::stacks::threads::ThreadProfile;

/// Returns the number of samples in folded stacks.
pub(crate) fn samples(folded: &str) -> u64 {
    let counts = folded.lines().filter_map(|line| line.rsplit_once(' '));
    counts
        .filter_map(|(_, count)| count.parse::<u64>().ok())
        .sum()
}

/// Returns an SVG that can be zoomed and searched.
#[cfg(feature = "flamegraph")]
pub(crate) fn draw(
    profile: &ThreadProfile,
    idle: bool,
    all: bool,
) -> Result<String, EndpointError> {
    let mut captions = Vec::new();
    captions.extend(profile.note.clone());
    if !idle {
        captions.push(
            "Threads that have nothing to do are left out: &idle=true draws them.".to_owned(),
        );
    }
    let drawing = await_profile::drawing::Drawing {
        title: "Threads: where they are blocked, and where they run".to_owned(),
        captions,
        theme: await_profile::drawing::Theme::Wait,
        ..Default::default()
    };
    let folded = profile.folded(idle, all);
    // The endpoints' own threads are in no profile of threads.
    sampled_picture::draw(drawing, &folded, samples(&folded), 0)
}

#[cfg(not(feature = "flamegraph"))]
pub(crate) fn draw(_: &ThreadProfile, _: bool, _: bool) -> Result<String, EndpointError> {
    Err(EndpointError::Unsupported("this build draws no pictures"))
}
