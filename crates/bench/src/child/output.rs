//! The end of what a server wrote to its standard error, and the panics in it.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

/// Lines that are kept for messages.
const LAST_WORDS: usize = 40;

/// The end of a standard error, kept while the process runs.
#[derive(Debug, Clone)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    pub(super) fn of(output: Option<impl Read + Send + 'static>) -> Self {
        let words = Self(Arc::default());
        let kept = words.clone();
        super::each_line(output, move |line| {
            let mut lines = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LAST_WORDS {
                lines.pop_front();
            }
            lines.push_back(line);
        });
        words
    }

    pub(super) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.join("\n")
    }
}

/// Rust prints `thread 'x' (id) panicked at file:line:column:` and the message on the next line.
pub(super) fn panics_in(words: &str) -> Vec<String> {
    let lines: Vec<&str> = words.lines().collect();
    let mut panics: Vec<String> = lines
        .windows(2)
        .filter_map(|pair| {
            let (_, place) = pair[0].split_once(" panicked at ")?;
            Some(format!("{} {}", place, pair[1]))
        })
        .collect();
    panics.dedup();
    panics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_place_once() {
        let said = "thread 'main' (7) panicked at src/exercise.rs:30:5:\nno such client\n\
                    note: run with RUST_BACKTRACE=1";
        let twice = format!("{said}\n{said}");
        assert_eq!(panics_in(&twice), ["src/exercise.rs:30:5: no such client"]);
    }
}
