//! Folded stacks to an SVG that zooms and searches.

use inferno::flamegraph::{Options, from_lines};

/// Draws `folded`; an empty profile gives a picture that says so.
pub(crate) fn draw(folded: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut options = Options::default();
    "CPU: where CPU time was spent".clone_into(&mut options.title);
    "samples".clone_into(&mut options.count_name);
    options.deterministic = true;
    let folded = if folded.is_empty() {
        "[no samples: nothing ran] 1"
    } else {
        folded
    };
    let mut svg = Vec::new();
    from_lines(&mut options, folded.lines(), &mut svg)?;
    Ok(String::from_utf8(svg)?)
}
