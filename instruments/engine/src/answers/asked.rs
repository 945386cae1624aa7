//! Questions to a server, apart from a load.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use children::Interrupt;

use super::AnswerError;
use super::difference::name;
use crate::load::Target;
use crate::load::ask::{Unanswered, ask};
use crate::traffic::{Expected, Request};

/// Number of times that a request is repeated while its answer has a status that is allowed beside the right one, with
/// [`PAUSE`] before each.
const ASKED_AGAIN: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A server to ask, and how long to wait for its answers.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Name of the server in messages.
    pub who: &'a str,
    /// Address, protocol and headers for the requests.
    pub target: &'a Target,
    /// Longest time to wait for an answer.
    pub time_out: Duration,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl Asked<'_> {
    pub(super) fn ask(&self, request: &Request) -> Result<Expected, AnswerError> {
        if self.interrupt.is_set() {
            return Err(AnswerError::Interrupted);
        }
        let reason = match ask(self.target, request, self.time_out) {
            Ok(answer) => return Ok(Expected::of(answer.status, Some(answer.body))),
            Err(reason) => reason,
        };
        let got = match reason {
            Unanswered::Grpc(_) => "is answered with",
            Unanswered::TimeOut | Unanswered::Failed(_) => "got no answer:",
        };
        let (who, request) = (self.who, name(request));
        let advice = self.target.advice();
        Err(AnswerError::Other(format!(
            "{who}: {request} {got} {reason}{advice}"
        )))
    }

    /// Asks until the status is not merely an allowed one: the refusal of an overloaded service teaches nothing.
    /// Returns the last answer if no other comes.
    pub(super) fn ask_in_earnest(&self, request: &Request) -> Result<Expected, AnswerError> {
        let mut answer = self.ask(request)?;
        for _ in 0..ASKED_AGAIN {
            if !request.expected.allows(answer.status) {
                break;
            }
            std::thread::sleep(PAUSE);
            answer = self.ask(request)?;
        }
        Ok(answer)
    }

    /// Sends all `requests`, `at_once` of them at the same time, and returns the answers by the requests' places. Those
    /// that have not begun at `until` are left out.
    pub(super) fn ask_all(
        &self,
        requests: &[Request],
        at_once: usize,
        until: Option<Instant>,
    ) -> Result<Vec<(usize, Expected)>, AnswerError> {
        let next = AtomicUsize::new(0);
        let ask_some = || {
            let mut answers = Vec::new();
            while until.is_none_or(|until| Instant::now() < until) {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = requests.get(place) else {
                    break;
                };
                answers.push((place, self.ask_in_earnest(request)?));
            }
            Ok(answers)
        };
        let mut answers: Vec<(usize, Expected)> = Vec::new();
        std::thread::scope(|scope| {
            let count = at_once.min(requests.len());
            let asking: Vec<_> = (0..count).map(|_| scope.spawn(ask_some)).collect();
            for one in asking {
                let Ok(some) = one.join() else {
                    let panicked = "a request panicked; see the message above".to_owned();
                    return Err(AnswerError::Other(panicked));
                };
                answers.extend(some?);
            }
            Ok(())
        })?;
        answers.sort_by_key(|(place, _)| *place);
        Ok(answers)
    }
}
