//! Reads HTTP/1.1 answers from a stream of bytes, without any I/O of its own and, once its
//! buffer has grown to the answer's size, without allocating.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::failure::Failure;

/// An answer that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status code.
    pub(super) status: u16,
    /// Where the decoded body lies in the decoder's buffer.
    body: Range<usize>,
    /// Whether the connection may carry another request.
    pub(super) reusable: bool,
}

/// Larger answers are refused, however few users there are.
pub(super) const LARGEST: usize = 64 << 20;
/// Larger answers are refused where all users' together would not fit into memory: a chapter's are a
/// few KiB, so this is a runaway server.
const LARGEST_OF_MANY: usize = 1 << 20;
/// What the answers of all users together may take.
const LARGEST_OF_ALL: usize = 1 << 30;
const MOST_HEADERS: usize = 64;
/// A head is read anew with every piece that comes.
const LARGEST_HEAD: usize = 64 << 10;

/// How many bytes an answer may have, where so many users may each have one on its way.
pub(super) fn largest(users: u32) -> usize {
    let share = LARGEST_OF_ALL / usize::try_from(users.max(1)).unwrap_or(usize::MAX);
    share.clamp(LARGEST_OF_MANY, LARGEST)
}

/// How the end of the body is known (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy)]
enum Framing {
    /// The head is not complete; it starts here (later than 0 after an interim answer).
    Head { start: usize },
    /// The body ends at this byte.
    Length { end: usize },
    /// Chunks before `read` are decoded, their payload moved to end at `written`.
    Chunked { read: usize, written: usize },
    /// The body ends with the connection.
    UntilClose,
}

/// A connection's read buffer and what is known about the answer in it.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Bytes that an answer may have, head and framing included.
    largest: usize,
    bytes: Vec<u8>,
    filled: usize,
    framing: Framing,
    status: u16,
    body: usize,
    reusable: bool,
}

impl Decoder {
    pub(super) fn new(largest: usize) -> Self {
        Self {
            largest,
            bytes: vec![0; 2048],
            filled: 0,
            framing: Framing::Head { start: 0 },
            status: 0,
            body: 0,
            reusable: true,
        }
    }

    /// Forgets the answer before, keeps the buffer.
    pub(super) fn reset(&mut self) {
        self.filled = 0;
        self.framing = Framing::Head { start: 0 };
    }

    /// Where the next bytes go; never empty.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.filled == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        &mut self.bytes[self.filled..]
    }

    /// Whether any byte of an answer has come.
    pub(super) fn has_begun(&self) -> bool {
        self.filled > 0
    }

    pub(super) fn body(&self, answer: &Answer) -> &[u8] {
        &self.bytes[answer.body.clone()]
    }

    /// Takes `count` more bytes, written into [`Self::room`]. `None`: the answer goes on.
    pub(super) fn advance(&mut self, count: usize) -> Result<Option<Answer>, Failure> {
        self.filled += count;
        if self.filled > self.largest {
            return Err(Failure::TooLarge(self.largest));
        }
        while let Framing::Head { start } = self.framing {
            if !self.read_head(start)? {
                return Ok(None);
            }
        }
        match self.framing {
            Framing::Head { .. } | Framing::UntilClose => Ok(None),
            Framing::Length { end } => self.ends_at(end, end),
            Framing::Chunked { read, written } => self.read_chunks(read, written),
        }
    }

    /// The server closed the connection: an end only where the body lasts until then.
    pub(super) fn close(&mut self) -> Result<Answer, Failure> {
        if let Framing::UntilClose = self.framing {
            return Ok(self.answer(self.filled));
        }
        Err(if self.has_begun() {
            Failure::ClosedWithin
        } else {
            Failure::Closed
        })
    }

    /// Whether the head at `start` is complete; sets the framing if so. An interim answer (1xx)
    /// is skipped, and the head expected after it.
    fn read_head(&mut self, start: usize) -> Result<bool, Failure> {
        let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let mut head = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut head,
            &self.bytes[start..self.filled],
            &mut headers,
        );
        let length = match parsed {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if self.filled - start > LARGEST_HEAD => {
                return Err(Failure::Invalid("answer with a head of over 64 KiB"));
            }
            Ok(httparse::Status::Partial) => return Ok(false),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Failure::Invalid("answer with over 64 headers"));
            }
            Err(_) => return Err(Failure::Invalid("answer is not HTTP/1.1")),
        };
        let status = head.code.unwrap_or_default();
        let fields = Fields::of(head.headers)?;
        let body = start + length;
        if status == 101 {
            return Err(Failure::Invalid("answer switches protocols"));
        }
        if (100..200).contains(&status) {
            self.framing = Framing::Head { start: body };
            return Ok(body < self.filled);
        }
        self.status = status;
        self.body = body;
        self.reusable = match head.version {
            Some(1) => !fields.close,
            _ => fields.keep_alive,
        };
        self.framing = if status == 204 || status == 304 {
            Framing::Length { end: body }
        } else if fields.chunked {
            Framing::Chunked {
                read: body,
                written: body,
            }
        } else if let Some(length) = fields.length {
            if length > self.largest {
                return Err(Failure::TooLarge(self.largest));
            }
            Framing::Length { end: body + length }
        } else {
            self.reusable = false;
            Framing::UntilClose
        };
        Ok(true)
    }

    fn read_chunks(
        &mut self,
        mut read: usize,
        mut written: usize,
    ) -> Result<Option<Answer>, Failure> {
        const BROKEN: Failure = Failure::Invalid("broken chunk in an answer");
        loop {
            self.framing = Framing::Chunked { read, written };
            let rest = &self.bytes[read..self.filled];
            let (line, size) = match httparse::parse_chunk_size(rest) {
                Ok(httparse::Status::Complete((line, size))) => (line, size),
                Ok(httparse::Status::Partial) => return Ok(None),
                Err(_) => return Err(BROKEN),
            };
            if size == 0 {
                return self.read_trailers(read + line, written);
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > self.largest {
                return Err(Failure::TooLarge(self.largest));
            }
            let payload = read + line..read + line + size;
            let next = payload.end + 2;
            if self.filled < next {
                return Ok(None);
            }
            if &self.bytes[payload.end..next] != b"\r\n" {
                return Err(BROKEN);
            }
            self.bytes.copy_within(payload, written);
            written += size;
            read = next;
        }
    }

    fn read_trailers(&mut self, start: usize, written: usize) -> Result<Option<Answer>, Failure> {
        let mut trailers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        match httparse::parse_headers(&self.bytes[start..self.filled], &mut trailers) {
            Ok(httparse::Status::Complete((length, _))) => self.ends_at(start + length, written),
            Ok(httparse::Status::Partial) => Ok(None),
            Err(_) => Err(Failure::Invalid("broken trailer in an answer")),
        }
    }

    /// The answer if its message, up to `message_end`, has arrived and nothing follows.
    fn ends_at(&self, message_end: usize, body_end: usize) -> Result<Option<Answer>, Failure> {
        match self.filled.cmp(&message_end) {
            std::cmp::Ordering::Less => Ok(None),
            std::cmp::Ordering::Equal => Ok(Some(self.answer(body_end))),
            std::cmp::Ordering::Greater => Err(Failure::Invalid("bytes after the answer's end")),
        }
    }

    fn answer(&self, body_end: usize) -> Answer {
        Answer {
            status: self.status,
            body: self.body..body_end,
            reusable: self.reusable,
        }
    }
}

/// The header fields that say where an answer ends and whether the connection lives on.
#[derive(Default)]
struct Fields {
    length: Option<usize>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Self, Failure> {
        let mut fields = Self::default();
        for header in headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                let length = std::str::from_utf8(header.value)
                    .ok()
                    .and_then(|text| text.trim().parse().ok())
                    .ok_or(Failure::Invalid("content-length is not a number"))?;
                if fields.length.is_some_and(|before| before != length) {
                    return Err(Failure::Invalid("two different content-lengths"));
                }
                fields.length = Some(length);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                fields.chunked = true;
                if !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Failure::Invalid("transfer-encoding other than chunked"));
                }
            } else if header.name.eq_ignore_ascii_case("connection") {
                for token in header.value.split(|&byte| byte == b',') {
                    let token = token.trim_ascii();
                    fields.close |= token.eq_ignore_ascii_case(b"close");
                    fields.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
        }
        Ok(fields)
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "answer_agreement.rs"]
mod agreement;
