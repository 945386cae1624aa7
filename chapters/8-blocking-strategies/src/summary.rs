//! The service's answer.

use std::fmt;

use axum::response::{IntoResponse, Response};

/// The highest byte of a body, its position, and the body's length. Every byte of it is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    highest: u8,
    position: u64,
    length: u64,
}

impl Summary {
    /// Takes the next bytes of the body into account.
    pub fn update(&mut self, bytes: &[u8]) {
        // Unlike `Iterator::max`, the compiler turns this into a few instructions for many bytes.
        let highest = bytes.iter().fold(self.highest, |a, b| a.max(*b));
        if highest > self.highest {
            let here = bytes.iter().position(|byte| *byte == highest);
            self.position = self.length + here.unwrap_or_default() as u64;
            self.highest = highest;
        }
        self.length += bytes.len() as u64;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            highest, length, ..
        } = self;
        write!(f, "{highest} is the highest of {length} bytes")
    }
}

/// The service's answer. The header `position` says where the highest byte is.
impl IntoResponse for Summary {
    fn into_response(self) -> Response {
        let position = [("position", self.position.to_string())];
        (position, self.to_string()).into_response()
    }
}
