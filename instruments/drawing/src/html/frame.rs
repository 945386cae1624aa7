//! A flamegraph that zooms and searches inside the report.

use maud::{Markup, html};

/// What makes inferno's picture, drawn for a page of its own, fill a frame.
const STYLE: &str =
    "<style>body{margin:0;overflow-x:hidden}svg{display:block}body>svg{width:100%}</style>";

/// A frame with the picture in it. It is not an image with a `data:` address:
/// that would be a stranger to the page, and browsers refuse the question that
/// the search asks to strangers' frames.
pub fn of(svg: &str, title: &str) -> Markup {
    let start = svg.find("<svg").unwrap_or(0);
    let picture = svg[start..].replacen(" onload=\"init(evt)\"", "", 1);
    // What is too little to be drawn has no script.
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

/// The picture's height in px, as its first tag says.
fn height(svg: &str) -> u32 {
    svg.split_once(" height=\"")
        .and_then(|(_, rest)| rest.split_once('"')?.0.parse().ok())
        .unwrap_or(400)
}
