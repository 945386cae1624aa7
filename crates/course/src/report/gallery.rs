//! Still pictures for the front page, the gallery and the chapters, drawn from recorded stacks. They leave
//! out the names that give a chapter away.

use statistics::profile::ProfileKind;

use crate::report::boxes::boxes;
use crate::report::capture::{Capture, CaptureError, stacks_error};

/// Draws a profile of a capture as a picture, with its boxes as a Markdown list; `None` if it was not taken.
/// A line leads to each box whose name begins with an entry of `pointed`. A name that begins with the first
/// of a pair in `renamed` begins with the second instead. Adjacent frames that then have the same name become
/// one box.
///
/// # Errors
///
/// Fails if a line of its stacks has no count.
pub fn draw(
    capture: &Capture,
    variant: &str,
    kind: ProfileKind,
    pointed: &[&str],
    renamed: &[(&str, &str)],
) -> Result<Option<(String, String)>, CaptureError> {
    let Some(profile) = capture.profile(variant, kind) else {
        return Ok(None);
    };
    let (title, boxes) = boxes(capture.stacks(profile), profile, renamed)
        .map_err(|error| stacks_error(profile, error.into()))?;
    let svg = boxes.svg(&title, |frame| colour(frame, kind), pointed);
    Ok(Some((svg, boxes.list())))
}

/// Chooses a box's colour: dark for the service's own code, grey for the runtime.
fn colour(name: &str, kind: ProfileKind) -> &'static str {
    let is_runtime = name.ends_with(" thread") || name.starts_with("tokio") && !name.contains(':');
    match (name.starts_with("app::"), kind) {
        _ if name == "idle" => "#e4e7ea",
        _ if is_runtime => "#cdd3d8",
        (true, ProfileKind::Await) => "#7cc4c8",
        (false, ProfileKind::Await) => "#c3e6e6",
        (true, _) => "#f2a65a",
        (false, _) => "#f8d9a8",
    }
}
