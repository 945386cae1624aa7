//! Still pictures for the front page, the gallery and the chapters, drawn from recorded stacks. They leave
//! out the names that give a chapter away.

use std::collections::BTreeMap;

use statistics::profile::ProfileKind;

use crate::report::boxes::boxes;
use crate::report::capture::{Capture, CaptureError, stacks_error};

/// Draws a profile of a capture as a picture, with its boxes as a Markdown list; `None` if it was not taken.
/// A number points at each box whose name begins with an entry of `pointed`. A name that begins with a key of `renamed`
/// begins with its value instead. Adjacent frames that then have the same name become
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
    renamed: &BTreeMap<String, String>,
) -> Result<Option<(String, String)>, CaptureError> {
    let Some(profile) = capture.profile(variant, kind) else {
        return Ok(None);
    };
    let (title, boxes) = boxes(capture.stacks(profile), profile, renamed)
        .map_err(|error| stacks_error(profile, error.into()))?;
    let svg = boxes
        .draw(&title, |frame| colour(frame, kind), pointed)
        .map_err(|error| stacks_error(profile, error))?;
    Ok(Some((svg, boxes.list())))
}

/// Chooses a box's colour: dark for the service's own code, grey for the runtime.
fn colour(name: &str, kind: ProfileKind) -> [u8; 3] {
    let is_runtime = name.ends_with(" thread") || name.starts_with("tokio") && !name.contains(':');
    match (name.starts_with("app::"), kind) {
        _ if name == "idle" => [0xe4, 0xe7, 0xea],
        _ if is_runtime => [0xcd, 0xd3, 0xd8],
        (true, ProfileKind::Await) => [0x7c, 0xc4, 0xc8],
        (false, ProfileKind::Await) => [0xc3, 0xe6, 0xe6],
        (true, _) => [0xf2, 0xa6, 0x5a],
        (false, _) => [0xf8, 0xd9, 0xa8],
    }
}
