//! Output of a child: any bytes, read to the end so that the child never waits for us, kept in part.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ecosystem::printable;

/// Number of lines that are kept for messages.
const LINES_KEPT: usize = 40;
/// Number of bytes of such a line that are kept.
const LINE_KEPT: usize = 4096;

/// Longest time to wait for the rest of an output once its process has ended.
const LATE: Duration = Duration::from_secs(1);

/// The last lines of an output, kept while the process runs.
#[derive(Debug)]
pub struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Tail {
    /// Keeps the last lines of a child's output, which is read until it closes.
    pub fn of(output: Option<impl Read + Send + 'static>) -> Self {
        let lines = Arc::<Mutex<VecDeque<String>>>::default();
        let kept = Arc::clone(&lines);
        let reader = each_line(output, LINE_KEPT, move |line| {
            let mut lines = locked(&kept);
            if lines.len() == LINES_KEPT {
                lines.pop_front();
            }
            lines.push_back(line);
        });
        Self { lines, reader }
    }

    /// Returns the last lines of a process that has ended, the very last one among them.
    pub fn at_the_end(&self) -> String {
        let began = Instant::now();
        if let Some(reader) = &self.reader {
            // Another process may hold the output open.
            while !reader.is_finished() && began.elapsed() < LATE {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.text()
    }

    /// Returns the lines so far, safe for a terminal.
    pub fn text(&self) -> String {
        let mut lines = locked(&self.lines);
        printable(&lines.make_contiguous().join("\n"))
    }
}

/// Locks the lines. A thread that panics has left them whole.
fn locked(lines: &Mutex<VecDeque<String>>) -> MutexGuard<'_, VecDeque<String>> {
    match lines.lock() {
        Ok(lines) => lines,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// Returns the lines of a child's output as they come, each cut after `longest` bytes. The child waits while 40 lines
/// wait for the receiver. Once the receiver is gone, the output is still read until it closes.
pub fn lines_of(output: Option<impl Read + Send + 'static>, longest: usize) -> Receiver<String> {
    let (sender, receiver) = sync_channel(LINES_KEPT);
    each_line(output, longest, move |line| drop(sender.send(line)));
    receiver
}

/// Reads all of an output and keeps its last `kept` bytes, because an error's end is what matters.
pub(super) fn whole(
    output: Option<impl Read + Send + 'static>,
    kept: usize,
) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut piece = [0; 8192];
        if let Some(mut output) = output {
            while let Ok(count @ 1..) = output.read(&mut piece) {
                bytes.extend_from_slice(&piece[..count]);
                if bytes.len() > 2 * kept {
                    bytes.drain(..bytes.len() - kept);
                }
            }
        }
        bytes.drain(..bytes.len().saturating_sub(kept));
        bytes
    })
}

fn each_line(
    output: Option<impl Read + Send + 'static>,
    longest: usize,
    mut then: impl FnMut(String) + Send + 'static,
) -> Option<JoinHandle<()>> {
    let mut output = BufReader::new(output?);
    Some(std::thread::spawn(move || {
        while let Some(line) = next_line(&mut output, longest) {
            then(line);
        }
    }))
}

/// Returns the next line without its end. Holds at most `longest` bytes of it at any time.
fn next_line(output: &mut impl BufRead, longest: usize) -> Option<String> {
    let mut line = Vec::new();
    let mut is_begun = false;
    loop {
        let bytes = match output.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Ok(bytes) if !bytes.is_empty() => bytes,
            _ => break,
        };
        is_begun = true;
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        let used = match end {
            Some(end) => end + 1,
            None => bytes.len(),
        };
        line.extend_from_slice(&piece[..piece.len().min(longest - line.len())]);
        output.consume(used);
        if end.is_some() {
            break;
        }
    }
    if !is_begun {
        return None;
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Some(String::from_utf8_lossy(&line).into_owned())
}

/// Returns the last lines of an output on one line; `None` if there are none.
pub fn last_lines(text: &str) -> Option<String> {
    const MOST: usize = 6;
    let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.retain(|line| !line.is_empty());
    if lines.is_empty() {
        return None;
    }
    Some(lines[lines.len().saturating_sub(MOST)..].join(" | "))
}

/// Returns the panics in an output, each with its place.
///
/// Rust prints `thread 'x' (id) panicked at file:line:column:` and the message on the next line.
pub fn panics_in(words: &str) -> Vec<String> {
    let mut panics = Vec::new();
    let mut lines = words.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((_, place)) = line.split_once(" panicked at ")
            && let Some(message) = lines.peek()
        {
            panics.push(format!("{place} {message}"));
        }
    }
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

    /// Bytes that are no text, and a line without an end, are read past.
    #[test]
    fn any_output_is_read_to_its_end() {
        let mut said = b"one\r\n\xff\xfe two\n\n".to_vec();
        said.extend(std::iter::repeat_n(b'x', 100_000));
        said.extend(b"\nlast");
        let mut output = BufReader::with_capacity(7, &said[..]);
        let lines: Vec<String> = std::iter::from_fn(|| next_line(&mut output, 10)).collect();
        assert_eq!(
            lines,
            ["one", "\u{fffd}\u{fffd} two", "", "xxxxxxxxxx", "last"]
        );
    }

    #[test]
    fn of_a_long_output_the_end_is_kept() {
        let said = std::io::Cursor::new("x".repeat(100_000) + "end");
        assert_eq!(whole(Some(said), 4).join().unwrap(), b"xend");
    }
}
