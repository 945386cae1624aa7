//! `cargo workshop look URL`: what the instruments of a running service say together.

use std::time::Duration;

use crate::traffic::{Expected, Request};

use crate::cli::exit::{CliError, Exit};
use crate::cli::options::{Format, Look};
use crate::cli::requests::Target;

/// What the endpoints take to look up names, on a slow machine.
const TO_WRITE: Duration = Duration::from_secs(60);

pub fn run(options: &Look) -> Result<Exit, CliError> {
    let is_json = options.output.format == Format::Json;
    let said = ask(&options.url, options.seconds, is_json)?;
    println!("{}", said.trim_end());
    Ok(Exit::Good)
}

/// What the debug endpoints at this address say after so many seconds.
pub(crate) fn ask(url: &str, seconds: f64, is_json: bool) -> Result<String, CliError> {
    let target = Target::of("look", url, None)?;
    let format = if is_json { "&format=json" } else { "" };
    // Not an option, which others on this machine could read.
    let token = std::env::var("DEBUG_TOKEN").ok();
    let bearer = |token: String| {
        let value = format!("Bearer {}", token.trim());
        ("authorization".to_owned(), value)
    };
    let request = Request {
        method: "GET".to_owned(),
        path: format!("/debug/look?seconds={seconds}{format}"),
        headers: token.map(bearer).into_iter().collect(),
        body: None,
        expected: Expected::of(200, None),
    };
    let time_out = Duration::from_secs_f64(seconds) + TO_WRITE;
    let origin = target.origin();
    let answers = crate::load::ask(target.server, [&request], time_out).map_err(|why| {
        CliError::invalid(format!(
            "{origin} does not answer ({why}): name the address of the service's debug endpoints, and if they are part \
             of its router, give them a listener of their own (DebugEndpoints::listen)"
        ))
    })?;
    let answer = answers.into_iter().next();
    let answer = answer.map(|answer| (answer.status, answer.body.unwrap_or_default()));
    let (status, body) = answer.unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    match status {
        200 => Ok(text.into_owned()),
        404 => Err(CliError::invalid(format!(
            "{origin} has no /debug/look: it is not the address of debug endpoints, or of those of an earlier version"
        ))),
        _ => Err(CliError::invalid(format!(
            "{origin} answered {status}: {}",
            text.trim()
        ))),
    }
}

/// Where the time of an answer is spent that takes `client_ms` for the client, from what the endpoints say as data.
pub(crate) fn inside(said: &str, client_ms: f64) -> Option<String> {
    let said: serde_json::Value = serde_json::from_str(said).ok()?;
    let text = said["text"].as_str()?.trim_end();
    let inside = said["latency_ms"].as_f64()?;
    let outside = 1.0 - inside / client_ms;
    let shares = if outside > 0.2 && client_ms - inside > 0.5 {
        format!(
            "{:.0} % of the time lies outside of its handlers, in sockets, the kernel, a proxy, or here",
            outside * 100.0
        )
    } else {
        "it is spent in there".to_owned()
    };
    Some(format!(
        "{inside:.3} ms in the service, {client_ms:.3} ms for the client: {shares}.\n{text}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_outside_of_the_service_is_named() {
        let said = r#"{ "latency_ms": 0.5, "text": "Nothing." }"#;
        let outside = inside(said, 42.0).unwrap();
        assert!(
            outside.contains("99 % of the time lies outside of its handlers"),
            "{outside}"
        );
        assert!(outside.ends_with("Nothing."));
        assert!(inside(said, 0.6).unwrap().contains("is spent in there"));
        assert_eq!(inside(r#"{ "latency_ms": null }"#, 1.0), None);
    }
}
