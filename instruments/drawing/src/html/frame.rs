//! A flamegraph that zooms and searches inside the report.

use maud::{Markup, html};

/// Style that makes inferno's picture, drawn for a page of its own, fill a frame.
const STYLE: &str =
    "<style>body{margin:0;overflow-x:hidden}svg{display:block}body>svg{width:100%}</style>";

/// Returns a frame with the picture in it. It is not a frame with a `data:` address,
/// because that has another origin than the page. Browsers refuse the prompt with
/// which the search asks for a word in frames of another origin.
pub fn of(svg: &str, title: &str) -> Markup {
    let start = svg.find("<svg").unwrap_or(0);
    let picture = svg[start..].replacen(" onload=\"init(evt)\"", "", 1);
    // A strip in place of a picture has no script.
    let init = if picture.len() < svg[start..].len() {
        "<script>init()</script>"
    } else {
        ""
    };
    let page = format!("<!doctype html><meta charset=\"utf-8\">{STYLE}{picture}{init}");
    html! {
        iframe title=(title) srcdoc=(page) height=(height(svg)) loading="lazy" {}
    }
}

/// Returns the picture's height in px, from its first tag.
fn height(svg: &str) -> u32 {
    if let Some((_, rest)) = svg.split_once(" height=\"")
        && let Some((number, _)) = rest.split_once('"')
        && let Ok(height) = number.parse()
    {
        return height;
    }
    400
}
