//! Flamegraphs of thread profiles.

use crate::error::EndpointError;
use crate::threads::ThreadProfile;

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
        unit: "samples".to_owned(),
        theme: await_profile::drawing::Theme::Wait,
        ..Default::default()
    };
    drawing
        .draw(&profile.folded(idle, all))
        .map_err(EndpointError::failed)
}

#[cfg(not(feature = "flamegraph"))]
pub(crate) fn draw(_: &ThreadProfile, _: bool, _: bool) -> Result<String, EndpointError> {
    Err(EndpointError::Unsupported("this build draws no pictures"))
}
