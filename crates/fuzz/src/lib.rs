//! Parsers against damaged inputs: small real ones, and copies of them in which a few places are changed.
//!
//! Each test tries all of its corpus and then some thousands of damaged copies, the same in every run.
//! With `FUZZ_SECONDS` it tries others, for so long. What failed once is added to the corpus.

use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};

use fastrand::Rng;

/// Bytes of memory that a check may hold at once, whatever it is given: what a drawing begins with.
const MEMORY: u64 = 4 << 20;
/// And so many for each byte of its input.
const MEMORY_A_BYTE: u64 = 512;

/// Figures that a number may be replaced by: at the ends of their types, and none at all.
const NUMBERS: [&str; 22] = [
    "",
    "0",
    "-0",
    "-1",
    "1",
    "007",
    "0.5",
    "-0.5",
    "1e3",
    "1e-320",
    "1e308",
    "1e999",
    "-1e999",
    "nan",
    "inf",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
];

/// An input, with its name.
pub type Input = (String, Vec<u8>);

/// The files of a folder, by their names.
///
/// # Panics
///
/// If there is none, or one cannot be read.
pub fn files(folder: impl AsRef<Path>) -> Vec<Input> {
    let folder = folder.as_ref();
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Ok((name, fs::read(entry.path())?))
    };
    let files = fs::read_dir(folder).and_then(|files| files.map(read).collect());
    let mut files: Vec<Input> =
        files.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// Pieces of text that mean something to who reads JSON, and those of its own.
pub fn json<'a>(own: &[&'a str]) -> Vec<&'a str> {
    let of_all = [
        "{", "}", "[", "]", "\"", ":", ",", "null", "true", "-", "e9",
    ];
    [own, &of_all].concat()
}

/// What a parser is tried on.
#[derive(Debug)]
pub struct Fuzz<'a> {
    /// What it reads, and what it once read wrongly.
    pub corpus: Vec<Input>,
    /// Pieces of text that mean something to it.
    pub telling: &'a [&'a str],
    /// How many damaged copies are tried without `FUZZ_SECONDS`.
    pub copies: u32,
}

impl Fuzz<'_> {
    /// Calls `check` with each file of the corpus and with damaged copies. It panics where the parser
    /// is wrong; then the input is printed.
    ///
    /// # Panics
    ///
    /// If `check` does, or holds many times as much memory as its input is long.
    pub fn each(&self, mut check: impl FnMut(&[u8])) {
        for (name, bytes) in &self.corpus {
            tried(name, bytes, &mut check);
        }
        let seconds = std::env::var("FUZZ_SECONDS").ok();
        let seconds: Option<u64> = seconds.and_then(|seconds| seconds.parse().ok());
        let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let seed = seconds.map_or(1, |_| now().as_secs());
        let mut random = Rng::with_seed(seed);
        let began = Instant::now();
        let mut copies = 0;
        while seconds.map_or(copies < self.copies, |seconds| {
            began.elapsed().as_secs() < seconds
        }) {
            copies += 1;
            let bytes = self.damaged(&mut random);
            tried(&format!("copy {copies} of seed {seed}"), &bytes, &mut check);
        }
        println!("{copies} damaged copies of {} inputs", self.corpus.len());
    }

    /// A copy of an input in which up to three places are changed.
    fn damaged(&self, random: &mut Rng) -> Vec<u8> {
        let mut bytes = self.any(random).to_vec();
        for _ in 0..random.u32(1..=3) {
            let at = random.usize(..=bytes.len());
            let end = bytes.len().min(at + random.usize(..8));
            let far = bytes.len().min(at + random.usize(..200));
            match random.u32(..10) {
                0 => drop(bytes.splice(at..end, self.piece(random))),
                1 => drop(bytes.splice(at..at, self.piece(random))),
                2 => drop(bytes.drain(at..end)),
                3 => drop(bytes.drain(at..far)),
                4 => {
                    let twice = bytes[at..far].to_vec();
                    let to = random.usize(..=bytes.len());
                    drop(bytes.splice(to..to, twice));
                }
                5 => {
                    let one = [&bytes[at..end], &self.piece(random)].concat();
                    let many = one.repeat(random.usize(..200));
                    drop(bytes.splice(at..at, many));
                }
                6 => {
                    let other = self.any(random);
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[random.usize(..=other.len())..]);
                }
                7 => bytes.truncate(at),
                8 => drop(bytes.splice(at..end, [random.u8(..)])),
                _ => {
                    let is_digit = u8::is_ascii_digit;
                    let from = at + bytes[at..].iter().take_while(|b| !is_digit(b)).count();
                    let length = bytes[from..].iter().take_while(|b| is_digit(b)).count();
                    let number = NUMBERS[random.usize(..NUMBERS.len())].bytes();
                    drop(bytes.splice(from..from + length, number));
                }
            }
        }
        bytes
    }

    fn any(&self, random: &mut Rng) -> &[u8] {
        &self.corpus[random.usize(..self.corpus.len())].1
    }

    fn piece(&self, random: &mut Rng) -> Vec<u8> {
        let telling = self.telling.len();
        match random.usize(..=telling) {
            piece if piece < telling => self.telling[piece].into(),
            _ => vec![random.u8(..)],
        }
    }
}

/// Prints an input while a check of it panics.
struct Shown<'a>(&'a str, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: {}", self.0, self.1.escape_ascii());
        }
    }
}

fn tried(name: &str, bytes: &[u8], check: &mut impl FnMut(&[u8])) {
    let _shown = Shown(name, bytes);
    let held = allocation_counter::measure(|| check(bytes)).bytes_max;
    let allowed = MEMORY + MEMORY_A_BYTE * bytes.len() as u64;
    assert!(
        held <= allowed,
        "{held} bytes of memory for an input of {} bytes",
        bytes.len()
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::panic::catch_unwind;

    use super::*;

    fn fuzz() -> Fuzz<'static> {
        Fuzz {
            corpus: vec![("one".to_owned(), b"answers 40, seconds 5\n".to_vec())],
            telling: &["answers"],
            copies: 2000,
        }
    }

    #[test]
    fn copies_differ_and_are_the_same_in_each_run() {
        let all = |seed| -> Vec<Vec<u8>> {
            let mut random = Rng::with_seed(seed);
            (0..500).map(|_| fuzz().damaged(&mut random)).collect()
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        assert!(BTreeSet::from_iter(all(1)).len() > 400);
    }

    /// What a careless parser would take for a count.
    #[test]
    fn a_parser_that_panics_or_hoards_is_found() {
        let number = |bytes: &[u8]| -> Option<u64> {
            let text = String::from_utf8_lossy(bytes);
            text.strip_prefix("answers ")?
                .split(',')
                .next()?
                .parse()
                .ok()
        };
        let panics = catch_unwind(|| {
            fuzz().each(|bytes| assert!(number(bytes).is_none_or(|answers| answers < 1 << 53)));
        });
        assert!(panics.is_err());
        let hoards = catch_unwind(|| {
            fuzz().each(|bytes| {
                let count = number(bytes).unwrap_or_default().min(1 << 26);
                let all = Vec::<u8>::with_capacity(usize::try_from(count).unwrap());
                drop(std::hint::black_box(all));
            });
        });
        assert!(hoards.is_err());
    }
}
