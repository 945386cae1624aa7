//! Google's `profile.proto`, the format that `go tool pprof` and similar tools read.
//!
//! The messages are those of
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>, as far as they are needed
//! here and by `debug-endpoints`, which writes its CPU profiles with the same builder.

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

/// A whole profile: tables that the builder fills, and fields that the caller sets.
#[allow(missing_docs)] // See the format.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// Kind and unit of a value, as indices of two strings.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// One stack, innermost location first.
#[allow(missing_docs)]
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// Key and text of a label, as indices of two strings.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Label {
    #[prost(int64, tag = "1")]
    pub key: i64,
    #[prost(int64, tag = "2")]
    pub str: i64,
}

/// A part of a file that is mapped into memory.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
}

/// A place in the code. It has several lines if functions are inlined, innermost first.
#[allow(missing_docs)]
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line of a function.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function, with indices of its strings.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
}

/// Fills the tables of a profile, each entry once.
#[derive(Debug)]
pub struct Builder {
    /// Profile so far.
    pub profile: Profile,
    strings: HashMap<String, i64>,
    /// IDs of functions; the keys have ID 0.
    functions: HashMap<Function, u64>,
    locations: HashMap<Location, u64>,
}

impl Default for Builder {
    fn default() -> Self {
        let mut builder = Self {
            profile: Profile::default(),
            strings: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
        };
        // The format requires the empty string first.
        builder.string("");
        builder
    }
}

impl Builder {
    /// Returns the index of a string, and adds it if it is new.
    pub fn string(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        let index = i64::try_from(self.strings.len()).unwrap_or(i64::MAX);
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    /// Returns the type of values of this kind, with their unit.
    pub fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            r#type: self.string(kind),
            unit: self.string(unit),
        }
    }

    /// Adds a comment, which `go tool pprof -comments` shows.
    pub fn comment(&mut self, text: &str) {
        let text = self.string(text);
        self.profile.comment.push(text);
    }

    /// Returns the ID of a function, and adds it if it is new.
    pub fn function(&mut self, name: &str, system_name: &str, file: &str) -> u64 {
        let function = Function {
            id: 0,
            name: self.string(name),
            system_name: self.string(system_name),
            filename: self.string(file),
        };
        let next = self.functions.len() as u64 + 1;
        let id = *self.functions.entry(function).or_insert(next);
        if id == next {
            self.profile.function.push(Function { id, ..function });
        }
        id
    }

    /// Returns the ID of a location, and adds it if it is new. `location.id` has to be 0.
    pub fn location(&mut self, location: Location) -> u64 {
        let next = self.locations.len() as u64 + 1;
        let id = *self.locations.entry(location.clone()).or_insert(next);
        if id == next {
            self.profile.location.push(Location { id, ..location });
        }
        id
    }

    /// Returns the profile as gzipped protobuf, for a recording that began at `began` and lasted for `lasted`.
    pub fn finish(mut self, began: SystemTime, lasted: Duration) -> Vec<u8> {
        self.profile.time_nanos = nanos(began.duration_since(UNIX_EPOCH).unwrap_or_default());
        self.profile.duration_nanos = nanos(lasted);
        let encoded = self.profile.encode_to_vec();
        // Writing to memory does not fail.
        gzipped(&encoded).unwrap_or(encoded)
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn gzipped(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes)?;
    gzip.finish()
}
