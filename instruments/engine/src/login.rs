//! Login: a first request to a server, which identifies the user of all others.

use hyper::header::SET_COOKIE;
use serde_json::Value;

use crate::answers::{AnswerError, Asked};
use crate::load::ask::ask;
use crate::traffic::Request;

/// A first request, whose answer yields headers for all others.
#[derive(Debug, Clone)]
pub struct Login {
    /// Request to send. Cookies that the answer sets are sent back from then on.
    pub request: Request,
    /// Token in the answer, which is sent from then on in the header `authorization`.
    pub token: Option<Token>,
}

/// A token in the answer to a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// JSON pointer to it.
    pub pointer: String,
    /// Scheme that precedes it in the header, such as `Bearer`.
    pub scheme: String,
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
        let answer = match ask(server.target, &self.request, server.time_out) {
            Ok(answer) => answer,
            Err(why) => {
                let (who, advice) = (server.who, server.target.advice());
                return Err(AnswerError::Other(format!(
                    "{who}: --login {method} {path} got no answer: {why}{advice}"
                )));
            }
        };
        if !(200..400).contains(&answer.status) {
            return Err(failed(format!("is answered with status {}", answer.status)));
        }
        let mut found = Vec::new();
        let mut cookies = Vec::new();
        for cookie in answer.headers.get_all(SET_COOKIE) {
            if let Ok(cookie) = cookie.to_str() {
                let (pair, _attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
                cookies.push(pair);
            }
        }
        if !cookies.is_empty() {
            found.push(("cookie".to_owned(), cookies.join("; ")));
        }
        if let Some(Token { pointer, scheme }) = &self.token {
            // An answer that is no JSON has nothing at any pointer.
            let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let token = match json.pointer(pointer) {
                Some(Value::String(token)) => token.clone(),
                Some(Value::Number(token)) => token.to_string(),
                _ => return Err(failed(format!("has no text at {pointer} of its answer"))),
            };
            found.push(("authorization".to_owned(), format!("{scheme} {token}")));
        }
        if found.is_empty() {
            return Err(failed(
                "sets no cookie; if it answers with a token, say where, by --login-token /token"
                    .to_owned(),
            ));
        }
        Ok(found)
    }
}
