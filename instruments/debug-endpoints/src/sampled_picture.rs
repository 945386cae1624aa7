//! Pictures of samples. With few samples, boxes have their numbers and no percentages.

#[cfg(feature = "flamegraph")]
use await_profile::drawing::Drawing;

#[cfg(feature = "flamegraph")]
use crate::error::EndpointError;

/// Fewest samples of which shares are told in per cent. With fewer, a share of a quarter is off by more than five points
/// in one profile of twenty.
pub(crate) const FEWEST_FOR_SHARES: u64 = 300;

/// Draws folded stacks with the number of samples in the first caption. `own` of them are the work of these endpoints.
#[cfg(feature = "flamegraph")]
pub(crate) fn draw(
    mut drawing: Drawing,
    folded: &str,
    samples: u64,
    own: u64,
) -> Result<String, EndpointError> {
    let is_few = samples < FEWEST_FOR_SHARES;
    let mut captions = vec![format!("{samples} samples.")];
    if own > 0 {
        captions.push(format!(
            "The endpoints' own work is in the box {OWN}: {own} samples."
        ));
    }
    if is_few {
        captions.push(format!(
            "Fewer than {FEWEST_FOR_SHARES} samples are too few for percentages: profile for longer, or under load."
        ));
    }
    captions.append(&mut drawing.captions);
    drawing.captions = captions;
    drawing.unit = "samples".into();
    let by_number = |frame: &await_profile::drawing::Frame<'_>| {
        is_few.then(|| {
            format!(
                "{} ({} of {} samples)",
                frame.name, frame.weight, frame.whole
            )
        })
    };
    drawing
        .draw_with(folded, by_number)
        .map_err(EndpointError::failed)
}

/// Frame around the work of these endpoints.
#[cfg(feature = "flamegraph")]
pub(crate) const OWN: &str = "[debug endpoints]";
