//! `cargo workshop look URL`: what the instruments of a running service say together.

use std::time::Duration;

use measurement::traffic::{Expected, Request};

use crate::cli::{Format, Look};
use crate::exit::{CliError, Exit};
use crate::requests::Target;

/// What the endpoints take to look up names, on a slow machine.
const TO_WRITE: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &Look) -> Result<Exit, CliError> {
    let target = Target::of("look", &options.url, None)?;
    let format = match options.output.format {
        Format::Human => "",
        Format::Json => "&format=json",
    };
    // Not an option, which others on this machine could read.
    let token = std::env::var("DEBUG_TOKEN").ok();
    let bearer = |token: String| {
        (
            "authorization".to_owned(),
            format!("Bearer {}", token.trim()),
        )
    };
    let request = Request {
        method: "GET".to_owned(),
        path: format!("/debug/look?seconds={}{format}", options.seconds),
        headers: token.map(bearer).into_iter().collect(),
        body: None,
        expected: Expected::of(200, None),
    };
    let time_out = Duration::from_secs_f64(options.seconds) + TO_WRITE;
    let asked = loadgen::ask(target.server.clone(), [&request], time_out);
    let origin = target.origin();
    let answers = asked.map_err(|why| {
        CliError::invalid(format!(
            "{origin} does not answer ({why}): name the address of the service's debug endpoints, and if they are part of \
             its router, give them a listener of their own (DebugEndpoints::listen)"
        ))
    })?;
    let answer = answers.into_iter().next();
    let (status, body) = answer.map_or((0, Vec::new()), |answer| {
        (answer.status, answer.body.unwrap_or_default())
    });
    let text = String::from_utf8_lossy(&body);
    match status {
        200 => {
            println!("{}", text.trim_end());
            Ok(Exit::Good)
        }
        404 => Err(CliError::invalid(format!(
            "{origin} has no /debug/look: it is not the address of debug endpoints, or of those of an earlier version"
        ))),
        _ => Err(CliError::invalid(format!(
            "{origin} answered {status}: {}",
            text.trim()
        ))),
    }
}
