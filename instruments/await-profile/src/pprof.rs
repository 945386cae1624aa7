//! Google's `profile.proto`, which `go tool pprof` and its peers read.
//!
//! The messages are those of
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>, as far as they
//! are needed here.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::frame::{Frame, short};
use crate::profile::Profile as AwaitProfile;
use crate::stack::Frames;

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

impl AwaitProfile {
    /// The profile as gzipped protobuf. A sample carries its route as the label `route` and
    /// has two values, in microseconds:
    ///
    /// - `wait`, the one shown by default: of the profile's duration the part that a request
    ///   in flight spent there on average. All of them are the duration, so that readers which
    ///   divide the one by the other show 100 %.
    /// - `wait_of_all`: the time that all requests together spent there, as in
    ///   [`folded`](Self::folded).
    ///
    /// How many were in flight, and how long a request takes by Little's law, are comments
    /// (`go tool pprof -comments`).
    pub fn pprof(&self, frames: Frames) -> Vec<u8> {
        let encoded = Writer::default().write(self, frames).encode_to_vec();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        // Writing to memory does not fail.
        match gzip.write_all(&encoded).and_then(|()| gzip.finish()) {
            Ok(bytes) => bytes,
            Err(_) => encoded,
        }
    }
}

#[derive(Default)]
struct Writer {
    profile: Profile,
    strings: HashMap<String, i64>,
    functions: HashMap<(i64, i64), u64>,
    locations: HashMap<(u64, u32), u64>,
}

impl Writer {
    fn write(mut self, profile: &AwaitProfile, frames: Frames) -> Profile {
        // The format wants the empty string first.
        self.string("");
        let unit = self.string("microseconds");
        let kind = self.string("wait");
        let wait = ValueType { r#type: kind, unit };
        let of_all = ValueType {
            r#type: self.string("wait_of_all"),
            unit,
        };
        self.profile.sample_type = vec![wait.clone(), of_all];
        self.profile.default_sample_type = kind;
        self.profile.period_type = Some(wait);
        self.profile.period = 1_000_000 / i64::from(profile.captures_per_second.max(1));
        self.profile.duration_nanos =
            i64::try_from(profile.collected.elapsed.as_nanos()).unwrap_or(i64::MAX);
        self.profile.time_nanos = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |now| {
                i64::try_from(now.as_nanos()).unwrap_or(i64::MAX) - self.profile.duration_nanos
            });
        let mut comments = vec![format!(
            "{:.1} requests in flight",
            profile.mean_in_flight()
        )];
        for route in profile.routes() {
            if let Some(latency) = route.latency_ms {
                let route = route.route;
                comments.push(format!(
                    "{route}: {latency:.1} ms a request, by Little's law"
                ));
            }
        }
        self.profile.comment = comments.iter().map(|text| self.string(text)).collect();
        let route = self.string("route");
        let total: u64 = profile
            .weights(frames)
            .rounded()
            .map(|(_, micros)| micros)
            .sum();
        let elapsed = profile.collected.elapsed.as_micros() as f64;
        for (stack, micros) in profile.weights(frames).rounded() {
            let label = stack.first().map(|frame| Label {
                key: route,
                str: self.string(&frame.label()),
            });
            let sample = Sample {
                // Innermost first.
                location_id: stack
                    .iter()
                    .rev()
                    .map(|frame| self.location(frame))
                    .collect(),
                value: [micros as f64 / total as f64 * elapsed, micros as f64]
                    .map(rounded)
                    .to_vec(),
                label: label.into_iter().collect(),
            };
            self.profile.sample.push(sample);
        }
        self.profile
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        let index = i64::try_from(self.profile.string_table.len()).unwrap_or(i64::MAX);
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn location(&mut self, frame: &Frame) -> u64 {
        let name = self.string(&frame.path);
        let file = frame.file.as_deref().map(portable);
        let filename = self.string(&file.unwrap_or_default());
        let line = frame.line.unwrap_or_default();
        let next = self.functions.len() as u64 + 1;
        let function = *self.functions.entry((name, filename)).or_insert(next);
        if function == next {
            self.profile.function.push(Function {
                id: function,
                name,
                system_name: name,
                filename,
            });
        }
        let next = self.locations.len() as u64 + 1;
        let location = *self.locations.entry((function, line)).or_insert(next);
        if location == next {
            let line = Line {
                function_id: function,
                line: i64::from(line),
            };
            self.profile.location.push(Location {
                id: location,
                line: vec![line],
            });
        }
        location
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn rounded(micros: f64) -> i64 {
    micros.round() as i64
}

/// The part of a path that does not tell whose machine it is: the package's folder and
/// what is in it, or else the file's name.
pub fn portable(file: &str) -> String {
    let short = short(file);
    let folder = file
        .strip_suffix(&short)
        .and_then(|above| {
            above
                .trim_end_matches(['/', '\\'])
                .rsplit(['/', '\\'])
                .next()
        })
        .filter(|folder| !folder.is_empty() && short.contains('/'));
    folder.map_or_else(|| short.clone(), |folder| format!("{folder}/{short}"))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use super::*;
    use crate::{AwaitProfiler, ProfileOptions};

    #[test]
    #[cfg_attr(miri, ignore = "needs real stacks")]
    fn functions_routes_and_weights_survive() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let profiler = AwaitProfiler::new().armed();
        let profile = runtime.block_on(async {
            tokio::spawn(profiler.wrap("GET /", tokio::time::sleep(Duration::from_secs(3600))));
            let options =
                ProfileOptions::lasting(Duration::from_millis(100)).captures_per_second(500);
            profiler.profile(options).await.unwrap()
        });
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&*profile.pprof(Frames::Own))
            .read_to_end(&mut bytes)
            .unwrap();
        let read = Profile::decode(&*bytes).unwrap();
        let text = |index: i64| read.string_table[usize::try_from(index).unwrap()].as_str();
        assert_eq!(text(0), "");
        assert_eq!(
            (
                text(read.sample_type[0].r#type),
                text(read.sample_type[0].unit)
            ),
            ("wait", "microseconds")
        );
        let sum = |index: usize| read.sample.iter().map(|s| s.value[index]).sum::<i64>();
        let duration = read.duration_nanos / 1000;
        assert!((sum(0) - duration).abs() <= 10, "{} of {duration}", sum(0));
        let in_flight = sum(1) as f64 / duration as f64;
        assert!(
            (in_flight - profile.mean_in_flight()).abs() < 0.01,
            "{in_flight}"
        );
        assert!(text(read.comment[0]).ends_with(" requests in flight"));
        let longest = read
            .sample
            .iter()
            .max_by_key(|sample| sample.value[0])
            .unwrap();
        assert_eq!(
            (text(longest.label[0].key), text(longest.label[0].str)),
            ("route", "GET /")
        );
        let function = |location: u64| {
            let location = read
                .location
                .iter()
                .find(|candidate| candidate.id == location)
                .unwrap();
            let function = read
                .function
                .iter()
                .find(|function| function.id == location.line[0].function_id);
            text(function.unwrap().name)
        };
        let stack: Vec<&str> = longest
            .location_id
            .iter()
            .map(|&location| function(location))
            .collect();
        assert_eq!(stack, ["tokio::time::Sleep", "GET /"]);
    }

    #[test]
    fn a_portable_path_does_not_tell_whose_machine_it_is() {
        for (file, expected) in [
            ("/home/me/shop/src/cart.rs", "shop/src/cart.rs"),
            (
                "/home/me/.cargo/registry/src/index-1/tokio-1.0.0/src/sync/mutex.rs",
                "tokio-1.0.0/src/sync/mutex.rs",
            ),
            ("/rustc/0123abc/library/core/src/ptr.rs", "core/src/ptr.rs"),
            ("/home/me/x.c", "x.c"),
            ("src/main.rs", "src/main.rs"),
        ] {
            assert_eq!(portable(file), expected);
        }
    }
}
