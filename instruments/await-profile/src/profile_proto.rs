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

/// Makes types of messages, with the number and kind of each field as the format has them. Each writes itself, which is all
/// that is needed here: a library that also reads them brings six crates. In tests prost reads them, and writes the same.
macro_rules! messages {
    ($(
        $(#[$about:meta])*
        $name:ident {
            $($number:tt ($($kind:ident),+) $field:ident: $type:ty,)+
        }
    )+) => {
        $(
            $(#[$about])*
            #[allow(missing_docs)] // See the format.
            #[derive(Clone, PartialEq)]
            #[cfg_attr(test, derive(prost::Message))]
            #[cfg_attr(not(test), derive(Debug, Default))]
            pub struct $name {
                $(
                    #[cfg_attr(test, prost($($kind),+, tag = $number))]
                    pub $field: $type,
                )+
            }

            impl Encode for $name {
                fn encode_fields(&self, to: &mut Vec<u8>) {
                    $(self.$field.put($number, to);)+
                }
            }
        )+
    };
}

messages! {
    /// A whole profile: tables that the builder fills, and fields that the caller sets.
    Profile {
        1 (message, repeated) sample_type: Vec<ValueType>,
        2 (message, repeated) sample: Vec<Sample>,
        3 (message, repeated) mapping: Vec<Mapping>,
        4 (message, repeated) location: Vec<Location>,
        5 (message, repeated) function: Vec<Function>,
        6 (string, repeated) string_table: Vec<String>,
        9 (int64) time_nanos: i64,
        10 (int64) duration_nanos: i64,
        11 (message, optional) period_type: Option<ValueType>,
        12 (int64) period: i64,
        13 (int64, repeated) comment: Vec<i64>,
        14 (int64) default_sample_type: i64,
    }

    /// Kind and unit of a value, as indices of two strings.
    #[derive(Copy, Eq)]
    ValueType {
        1 (int64) r#type: i64,
        2 (int64) unit: i64,
    }

    /// One stack, innermost location first.
    Sample {
        1 (uint64, repeated) location_id: Vec<u64>,
        2 (int64, repeated) value: Vec<i64>,
        3 (message, repeated) label: Vec<Label>,
    }

    /// Key and text of a label, as indices of two strings.
    #[derive(Copy, Eq)]
    Label {
        1 (int64) key: i64,
        2 (int64) str: i64,
    }

    /// A part of a file that is mapped into memory.
    #[derive(Copy, Eq)]
    Mapping {
        1 (uint64) id: u64,
        2 (uint64) memory_start: u64,
        3 (uint64) memory_limit: u64,
        4 (uint64) file_offset: u64,
        5 (int64) filename: i64,
    }

    /// A place in the code. It has several lines if functions are inlined, innermost first.
    #[derive(Eq, Hash)]
    Location {
        1 (uint64) id: u64,
        2 (uint64) mapping_id: u64,
        3 (uint64) address: u64,
        4 (message, repeated) line: Vec<Line>,
    }

    /// A line of a function.
    #[derive(Copy, Eq, Hash)]
    Line {
        1 (uint64) function_id: u64,
        2 (int64) line: i64,
    }

    /// A function, with indices of its strings.
    #[derive(Copy, Eq, Hash)]
    Function {
        1 (uint64) id: u64,
        2 (int64) name: i64,
        3 (int64) system_name: i64,
        4 (int64) filename: i64,
    }
}

/// A message, which writes its fields.
trait Encode {
    fn encode_fields(&self, to: &mut Vec<u8>);
}

/// A field of a message, which writes itself with its number, or nothing if it has its default value.
trait Field {
    fn put(&self, number: u64, to: &mut Vec<u8>);
}

/// Writes a number, seven bits a byte, the lowest first.
fn varint(mut value: u64, to: &mut Vec<u8>) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            to.push(low);
            return;
        }
        to.push(low | 0x80);
    }
}

/// Writes a field of bytes with their length.
fn put_bytes(number: u64, bytes: &[u8], to: &mut Vec<u8>) {
    varint(number << 3 | 2, to);
    varint(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}

impl Field for u64 {
    fn put(&self, number: u64, to: &mut Vec<u8>) {
        if *self != 0 {
            varint(number << 3, to);
            varint(*self, to);
        }
    }
}

impl Field for i64 {
    fn put(&self, number: u64, to: &mut Vec<u8>) {
        self.cast_unsigned().put(number, to);
    }
}

impl Field for Vec<u64> {
    fn put(&self, number: u64, to: &mut Vec<u8>) {
        let mut packed = Vec::new();
        for value in self {
            varint(*value, &mut packed);
        }
        if !packed.is_empty() {
            put_bytes(number, &packed, to);
        }
    }
}

impl Field for Vec<i64> {
    fn put(&self, number: u64, to: &mut Vec<u8>) {
        let values: Vec<u64> = self.iter().map(|value| value.cast_unsigned()).collect();
        values.put(number, to);
    }
}

impl Field for Vec<String> {
    fn put(&self, number: u64, to: &mut Vec<u8>) {
        for text in self {
            put_bytes(number, text.as_bytes(), to);
        }
    }
}

impl<M: Encode> Field for Option<M> {
    fn put(&self, number: u64, to: &mut Vec<u8>) {
        if let Some(message) = self {
            let mut fields = Vec::new();
            message.encode_fields(&mut fields);
            put_bytes(number, &fields, to);
        }
    }
}

impl<M: Encode> Field for Vec<M> {
    fn put(&self, number: u64, to: &mut Vec<u8>) {
        let mut fields = Vec::new();
        for message in self {
            fields.clear();
            message.encode_fields(&mut fields);
            put_bytes(number, &fields, to);
        }
    }
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
        let mut encoded = Vec::new();
        self.profile.encode_fields(&mut encoded);
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

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn messages_are_written_as_prost_writes_them() {
        let numbers = [0, 1, 127, 128, 300, i64::MAX, -1, i64::MIN];
        let mut builder = Builder::default();
        let period = builder.value_type("cpu", "nanoseconds");
        builder.comment("a comment");
        for number in numbers {
            let function_id = builder.function(&number.to_string(), "", "src/main.rs");
            let line = Line {
                function_id,
                line: number,
            };
            builder.location(Location {
                address: number.cast_unsigned(),
                line: vec![line, line],
                ..Location::default()
            });
        }
        let profile = Profile {
            sample_type: vec![period, ValueType::default()],
            sample: vec![
                Sample::default(),
                Sample {
                    location_id: (0..300).collect(),
                    value: numbers.to_vec(),
                    label: vec![Label { key: 1, str: -1 }, Label::default()],
                },
            ],
            mapping: vec![Mapping {
                id: 1,
                memory_limit: u64::MAX,
                ..Mapping::default()
            }],
            time_nanos: i64::MAX,
            period_type: Some(period),
            period: 10,
            ..builder.profile
        };
        for profile in [profile, Profile::default()] {
            let mut written = Vec::new();
            profile.encode_fields(&mut written);
            assert_eq!(written, profile.encode_to_vec());
            assert_eq!(Profile::decode(&*written), Ok(profile));
        }
    }
}
