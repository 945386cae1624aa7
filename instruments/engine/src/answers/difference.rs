//! Two answers to one request: how they differ.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use children::{Interrupt, Starting};

use super::{AnswerError, Asked};
use crate::bodies::Right;
use crate::service;
use crate::traffic::{Expected, Request, Rule};

/// Number of bytes of a body that a message shows.
const SHOWN: usize = 80;
/// Largest number of JSON pointers that a message lists. With more there is no advice.
const POINTERS: usize = 8;
/// Longest time that one judgment may take.
const TO_JUDGE: Duration = Duration::from_secs(10);

/// Two answers to one request that differ: where, and what they are.
pub(super) struct Difference {
    place: String,
    expected: String,
    received: String,
}

/// Returns how `answer` differs from the expected one; `None` if it is right.
pub(super) fn difference(
    request: &Request,
    answer: &Expected,
    judge: Option<&str>,
    server: &Asked<'_>,
) -> Result<Option<Difference>, AnswerError> {
    let expected = &request.expected;
    if expected.allows(answer.status) {
        return Ok(None);
    }
    if answer.status != expected.status {
        return Ok(Some(Difference {
            place: String::new(),
            expected: format!("status {}", expected.status),
            received: format!("status {}", answer.status),
        }));
    }
    let Some(right) = Right::of(expected) else {
        return Ok(None);
    };
    let received = answer.body.as_deref().unwrap_or_default();
    let is_right = match judge {
        Some(judge) => is_judged_same(judge, expected, answer, server.interrupt)?,
        None => right.is(received),
    };
    if is_right {
        return Ok(None);
    }
    let mut place = String::new();
    if expected.is_json()
        && let Some(pointers) = right.differing(received)
    {
        let pointers: Vec<String> = pointers.into_iter().take(POINTERS).collect();
        place = format!(" at {}", pointers.join(", "));
    }
    Ok(Some(Difference {
        place,
        expected: format!("{:?}", body(expected)),
        received: format!("{:?}", body(answer)),
    }))
}

pub(super) fn differ(
    difference: &Difference,
    request: &Request,
    base: &str,
    change: &str,
) -> AnswerError {
    let Difference {
        place,
        expected,
        received,
    } = difference;
    AnswerError::Other(format!(
        "answers differ{place}: {} is {expected} of the {base}, and {received} of the {change}",
        name(request),
    ))
}

/// Changes between two answers to the same requests of a route.
#[derive(Default)]
pub(super) struct Changes {
    /// Number of answers that changed.
    pub(super) count: usize,
    /// Set if pointers cannot describe a change: a status differs, or a body is not JSON.
    is_no_json: bool,
    pointers: BTreeSet<String>,
    has_other_size: bool,
    pub(super) has_other_status: bool,
}

impl Changes {
    pub(super) fn note(&mut self, one: &Expected, again: &Expected, rule: &Rule) {
        let expected = Expected {
            rule: rule.clone(),
            ..one.clone()
        };
        let body = again.body.as_deref().unwrap_or_default();
        self.has_other_status |= one.status != again.status;
        let right = if one.status == again.status {
            Right::of(&expected)
        } else {
            None
        };
        let mut pointers = None;
        if let Some(right) = right {
            if right.is(body) {
                return;
            }
            pointers = right.differing(body);
        }
        self.count += 1;
        self.has_other_size |= one.body.as_deref().unwrap_or_default().len() != body.len();
        match pointers {
            Some(pointers) => self.pointers.extend(pointers),
            None => self.is_no_json = true,
        }
    }

    /// Returns the option that compares the most, if that is more than the status.
    pub(super) fn advice(&self) -> Option<String> {
        let has_pointers =
            !self.is_no_json && !self.has_other_status && !self.pointers.contains("");
        if has_pointers && self.pointers.is_empty() {
            return Some("add --compare json, for the order of its keys changes".to_owned());
        }
        if has_pointers && self.pointers.len() <= POINTERS {
            let mut advice = "add".to_owned();
            for pointer in &self.pointers {
                let _ = write!(advice, " --ignore-json '{pointer}'");
            }
            return Some(advice);
        }
        if self.has_other_size || self.has_other_status {
            return None;
        }
        Some("add --compare size".to_owned())
    }
}

/// Returns whether the command `judge` calls the two answers the same.
pub(super) fn is_judged_same(
    judge: &str,
    expected: &Expected,
    received: &Expected,
    interrupt: &Interrupt,
) -> Result<bool, AnswerError> {
    let failed =
        |why: &dyn std::fmt::Display| AnswerError::Status(format!("--judge {judge:?}: {why}"));
    let folder = tempfile::Builder::new().prefix("workshop-").tempdir();
    let folder = folder.map_err(|error| failed(&error))?;
    let mut command = service::shell(judge);
    for (variable, answer) in [("EXPECTED", expected), ("RECEIVED", received)] {
        let file = folder.path().join(variable.to_lowercase());
        let body = answer.body.as_deref().unwrap_or_default();
        std::fs::write(&file, body).map_err(|error| failed(&error))?;
        command.env(variable, file);
    }
    let output = match Starting::of(&command).output(interrupt, TO_JUDGE, 4096) {
        Ok(Some(output)) => output,
        Ok(None) => return Err(failed(&"it takes more than 10 s")),
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
            return Err(AnswerError::Interrupted);
        }
        Err(error) => return Err(failed(&error)),
    };
    match output.status.code() {
        // Exit codes of a shell whose command does not exist or cannot be executed.
        Some(126 | 127) => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
        code => Ok(code == Some(0)),
    }
}

/// Returns method and path, for messages.
pub(super) fn name(request: &Request) -> String {
    format!("{} {}", request.method, request.path)
}

/// Returns the beginning of a body, for messages.
pub(super) fn body(answer: &Expected) -> String {
    let bytes = answer.body.as_deref().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
    if bytes.len() > SHOWN {
        text + "…"
    } else {
        text
    }
}
