//! Frames of the stacks in which requests wait.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// Beginning and end of the frame that all waits share when a request waits for several things at once.
const SEVERAL: [&str; 2] = ["(one of ", " waits at once)"];
/// Frame of a wake by a timer of the runtime.
const TIMER: &str = "(a timer)";

/// A frame of the stack in which a request waits, or of the code that ends the wait.
///
/// Its text is that of a flamegraph: `shop::read (src/read.rs:3)`, `tokio::sync::Mutex::lock`, `(running)`. As data it is
/// written as this text, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frame {
    /// A line of the service's own code.
    Own(Line),
    /// Another function, or one whose line is unknown.
    Function(String),
    /// No function: the request waits for so many things at once, and the frames below are one of them.
    Several(usize),
    /// No function: a timer of the runtime ended the wait.
    Timer,
    /// No function: the state of the request, such as `(running)`.
    State(String),
}

/// A line of the service's own code.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The function.
    pub function: String,
    /// The file, as far as it says which one it is: `src/read.rs`.
    pub file: String,
    /// Number of the line in the file.
    pub line: u32,
}

impl Line {
    /// Returns whether both are lines of one function.
    pub fn is_in_function_of(&self, other: &Self) -> bool {
        (&self.function, &self.file) == (&other.function, &other.file)
    }
}

impl Frame {
    /// Returns the line of the service's own code.
    pub fn line(&self) -> Option<&Line> {
        match self {
            Self::Own(line) => Some(line),
            _ => None,
        }
    }

    /// Returns the function's name, without file and line. `None` if it is no function.
    pub fn function(&self) -> Option<&str> {
        match self {
            Self::Own(line) => Some(&line.function),
            Self::Function(function) => Some(function),
            Self::Several(_) | Self::Timer | Self::State(_) => None,
        }
    }
}

/// Returns the innermost line of the service's own code among these frames, the outermost first.
pub fn innermost_line(frames: &[Frame]) -> Option<&Line> {
    frames.iter().rev().find_map(Frame::line)
}

/// Returns the text of these frames, from the outermost inwards: `shop::read (src/read.rs:3) > tokio::sync::Mutex::lock`.
pub fn path(frames: &[Frame]) -> String {
    let mut texts = Vec::new();
    for frame in frames {
        texts.push(frame.to_string());
    }
    texts.join(" > ")
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.function, self.file, self.line)
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(line) => line.fmt(f),
            Self::Function(text) | Self::State(text) => f.write_str(text),
            Self::Several(waits) => write!(f, "{}{waits}{}", SEVERAL[0], SEVERAL[1]),
            Self::Timer => f.write_str(TIMER),
        }
    }
}

impl FromStr for Frame {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == TIMER {
            Self::Timer
        } else if let Some(waits) = waits_at_once(text) {
            Self::Several(waits)
        } else if text.starts_with('(') {
            Self::State(text.to_owned())
        } else if let Some(line) = own_line(text) {
            Self::Own(line)
        } else {
            Self::Function(text.to_owned())
        })
    }
}

fn waits_at_once(text: &str) -> Option<usize> {
    let [begin, end] = SEVERAL;
    text.strip_prefix(begin)?.strip_suffix(end)?.parse().ok()
}

fn own_line(text: &str) -> Option<Line> {
    let (function, place) = text.strip_suffix(')')?.rsplit_once(" (")?;
    let (file, line) = place.rsplit_once(':')?;
    Some(Line {
        function: function.to_owned(),
        file: file.to_owned(),
        line: line.parse().ok()?,
    })
}

impl PartialEq<str> for Frame {
    fn eq(&self, text: &str) -> bool {
        let Ok(other) = text.parse::<Self>();
        *self == other
    }
}

impl PartialEq<&str> for Frame {
    fn eq(&self, text: &&str) -> bool {
        *self == **text
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Frame {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Frame {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        let Ok(frame) = text.parse();
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_its_text() {
        let line = Line {
            function: "<shop::Cache<K> as shop::Read>::read".to_owned(),
            file: "src/read.rs".to_owned(),
            line: 3,
        };
        for (frame, text) in [
            (
                Frame::Own(line),
                "<shop::Cache<K> as shop::Read>::read (src/read.rs:3)",
            ),
            (
                Frame::Function("core::ops::FnOnce(u8)".to_owned()),
                "core::ops::FnOnce(u8)",
            ),
            (Frame::Several(2), "(one of 2 waits at once)"),
            (
                Frame::State("(one of its children)".to_owned()),
                "(one of its children)",
            ),
            (Frame::Timer, "(a timer)"),
            (Frame::State("(running)".to_owned()), "(running)"),
        ] {
            assert_eq!(frame.to_string(), text);
            assert_eq!(text.parse(), Ok(frame));
        }
    }
}
