//! Login: a first request to a server, which identifies the user of all others.

use hyper::header::SET_COOKIE;
use serde_json::Value;

use crate::answers::{AnswerError, Asked};
use crate::load;
use crate::traffic::Request;

/// A first request, whose answer yields headers for all others.
#[derive(Debug, Clone)]
pub struct Login {
    /// Request to send. Cookies that the answer sets are sent back from then on.
    pub request: Request,
    /// JSON pointer to the token in the answer, which is sent from then on as `authorization: Bearer …`.
    pub token: Option<String>,
}

impl Login {
    /// Logs in, and returns the headers that identify the user to this server.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not answer, or gives neither cookie nor token.
    pub fn at(&self, server: &Asked<'_>) -> Result<Vec<(String, String)>, AnswerError> {
        let Request { method, path, .. } = &self.request;
        let failed = |why: String| {
            AnswerError::Status(format!("{}: --login {method} {path} {why}", server.who))
        };
        let target = server.target.clone();
        let answer = load::ask_for_all(target, [&self.request], server.time_out)
            .map_err(|why| {
                let who = server.who;
                AnswerError::Other(format!(
                    "{who}: --login {method} {path} got no answer: {why}"
                ))
            })?
            .pop();
        let Some((answer, headers)) = answer else {
            return Ok(Vec::new());
        };
        if !(200..400).contains(&answer.status) {
            return Err(failed(format!("is answered with status {}", answer.status)));
        }
        let cookies: Vec<&str> = headers
            .get_all(SET_COOKIE)
            .iter()
            .filter_map(|cookie| cookie.to_str().ok()?.split(';').next())
            .collect();
        let cookie = (!cookies.is_empty()).then(|| ("cookie".to_owned(), cookies.join("; ")));
        let token = self.token.as_ref().map(|pointer| {
            let json: Option<Value> = serde_json::from_slice(&answer.body.unwrap_or_default()).ok();
            let token = match json.as_ref().and_then(|json| json.pointer(pointer)) {
                Some(Value::String(token)) => token.clone(),
                Some(Value::Number(token)) => token.to_string(),
                _ => return Err(failed(format!("has no text at {pointer} of its answer"))),
            };
            Ok(("authorization".to_owned(), format!("Bearer {token}")))
        });
        let found: Vec<(String, String)> = cookie.into_iter().chain(token.transpose()?).collect();
        if found.is_empty() {
            return Err(failed(
                "sets no cookie; if it answers with a token, say where, by --login-token /token"
                    .to_owned(),
            ));
        }
        Ok(found)
    }
}
