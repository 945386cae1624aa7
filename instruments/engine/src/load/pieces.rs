//! Times within answers that come in pieces: to the first byte of the body, and from one piece to the next.
//!
//! The head of such an answer says nothing about its work: many services send it at once, and the first piece much later.

use std::time::Instant;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use serde::Serialize;

use super::latencies::Latencies;

/// Kind of the pieces of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// Events with data of `text/event-stream`. Comments that keep a connection open are none.
    Event,
    /// Lines of a body of JSON lines.
    Line,
    /// Chunks of any other body, as they arrive: those of HTTP/1.1, or frames of HTTP/2.
    Chunk,
}

impl Piece {
    /// Returns the kind in a body with these headers.
    fn of(headers: &HeaderMap) -> Self {
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        match kind.split(';').next().unwrap_or_default().trim() {
            "text/event-stream" => Self::Event,
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/jsonlines" => Self::Line,
            _ => Self::Chunk,
        }
    }
}

/// Times within the answers of one route.
#[derive(Debug, Clone)]
pub struct Pieces {
    /// Kind of the pieces of the last answer.
    pub kind: Piece,
    /// Times from the moment when a request was due to the first byte of its answer's body.
    pub first_byte: Latencies,
    /// Times from one piece to the next of the same answer.
    pub between: Latencies,
}

impl Pieces {
    /// Adds the times of another thread.
    pub(super) fn merge(&mut self, other: &Self) {
        // A thread without an answer knows no kind, and has the one that stands for none.
        if self.kind == Piece::Chunk {
            self.kind = other.kind;
        }
        self.first_byte.add(&other.first_byte);
        self.between.add(&other.between);
    }
}

/// Moments at which the pieces of one answer arrived.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) kind: Piece,
    pub(super) first_byte: Option<Instant>,
    pub(super) pieces: Vec<Instant>,
    line: Line,
    /// Set if the event that has begun has data.
    has_data: bool,
}

/// The line that has begun.
#[derive(Debug, Default)]
struct Line {
    /// Its first bytes.
    begin: [u8; 5],
    length: usize,
    /// Set if the line before it ended in a carriage return, whose line feed may follow.
    is_after_return: bool,
}

impl Arrived {
    /// Begins with an answer that has no head yet.
    pub(super) fn nothing() -> Self {
        Self {
            kind: Piece::Chunk,
            first_byte: None,
            pieces: Vec::new(),
            line: Line::default(),
            has_data: false,
        }
    }

    /// Notes the head of the answer.
    pub(super) fn head(&mut self, headers: &HeaderMap) {
        self.kind = Piece::of(headers);
    }

    /// Notes bytes of the body that arrived `now`.
    pub(super) fn bytes(&mut self, bytes: &[u8], now: Instant) {
        if bytes.is_empty() {
            return;
        }
        self.first_byte.get_or_insert(now);
        if self.kind == Piece::Chunk {
            self.pieces.push(now);
            return;
        }
        for byte in bytes {
            match byte {
                b'\n' if self.line.is_after_return => self.line.is_after_return = false,
                b'\n' | b'\r' => {
                    if self.ends_piece() {
                        self.pieces.push(now);
                    }
                    self.line = Line {
                        is_after_return: *byte == b'\r',
                        ..Line::default()
                    };
                }
                _ => self.line.add(*byte),
            }
        }
    }

    /// Returns whether a piece is over with the end of the line. An event ends with an empty line (HTML Standard, 9.2.6).
    fn ends_piece(&mut self) -> bool {
        match self.kind {
            Piece::Event if self.line.length == 0 => std::mem::take(&mut self.has_data),
            Piece::Event => {
                self.has_data |= self.line.is_data();
                false
            }
            Piece::Line | Piece::Chunk => self.line.length > 0,
        }
    }
}

impl Line {
    fn add(&mut self, byte: u8) {
        if let Some(place) = self.begin.get_mut(self.length) {
            *place = byte;
        }
        self.length += 1;
        self.is_after_return = false;
    }

    /// Returns whether it is the field `data` of an event.
    fn is_data(&self) -> bool {
        self.begin == *b"data:" || self.length == 4 && self.begin.starts_with(b"data")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::header::HeaderValue;

    use super::*;

    /// Returns the millisecond of the first byte, and those of the pieces, of a body with this type.
    fn arrived(kind: &'static str, parts: &[(u64, &str)]) -> (Option<u128>, Vec<u128>) {
        let begun = Instant::now();
        let mut arrived = Arrived::nothing();
        let headers = [(CONTENT_TYPE, HeaderValue::from_static(kind))];
        arrived.head(&headers.into_iter().collect());
        for (ms, text) in parts {
            arrived.bytes(text.as_bytes(), begun + Duration::from_millis(*ms));
        }
        let ms = |at: &Instant| (*at - begun).as_millis();
        (
            arrived.first_byte.as_ref().map(ms),
            arrived.pieces.iter().map(ms).collect(),
        )
    }

    #[test]
    fn an_event_has_data_and_ends_with_an_empty_line() {
        let kind = "text/event-stream; charset=utf-8";
        let parts = [
            (10, ": keep-alive\n\n"),
            (20, "event: a\nda"),
            (30, "ta: 1\n"),
            (40, "\n"),
            (50, "data: 2\r\n\r\ndata\r\rid: 7\n\n"),
            (60, "database: 1\n\ndata:3\r"),
            (70, "\n\r"),
            (80, "\ndata: unfinished\n"),
        ];
        assert_eq!(arrived(kind, &parts), (Some(10), vec![40, 50, 50, 70]));
    }

    #[test]
    fn lines_of_json_and_chunks_are_pieces() {
        let parts = [
            (5, "{\"a\":1}\n{\"b\""),
            (9, ":2}\r\n"),
            (12, "\n"),
            (15, "{}"),
        ];
        assert_eq!(
            arrived("application/x-ndjson", &parts),
            (Some(5), vec![5, 9])
        );
        assert_eq!(
            arrived("application/json", &parts),
            (Some(5), vec![5, 9, 12, 15])
        );
        assert_eq!(arrived("text/plain", &[(7, "")]), (None, vec![]));
    }
}
