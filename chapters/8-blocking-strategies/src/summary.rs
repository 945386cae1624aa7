//! What is computed from a body.

use std::fmt;

/// The highest byte of a body and its length. Every byte of it is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    highest: u8,
    length: u64,
}

impl Summary {
    /// The summary of `bytes` and all that was added before.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self {
            // Unlike `Iterator::max`, the compiler turns this into a few instructions for many bytes.
            highest: bytes.iter().fold(self.highest, |a, b| a.max(*b)),
            length: self.length + bytes.len() as u64,
        }
    }
}

/// The service's answer.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { highest, length } = self;
        write!(f, "{highest} is the highest of {length} bytes")
    }
}
