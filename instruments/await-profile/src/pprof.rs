//! Await profiles as [`profile_proto`](crate::profile_proto).

use std::time::SystemTime;

use crate::frame::{Frame, portable};
use crate::profile::Profile as AwaitProfile;
use crate::profile_proto::{Builder, Label, Line, Location, Sample};
use crate::stack::Frames;

impl AwaitProfile {
    /// Returns the profile as gzipped protobuf. A sample carries its route as the label `route`, and
    /// has two values, in microseconds:
    ///
    /// - `wait`, shown by default: the part of the profile's duration that a request in flight spent
    ///   there on average. All samples add up to the duration, so tools that divide one by the other
    ///   show 100 %.
    /// - `wait_of_all`: the time that all requests together spent there, as in
    ///   [`folded`](Self::folded).
    ///
    /// The number of requests in flight, and the time of a request by Little's law, are comments
    /// (`go tool pprof -comments`).
    pub fn pprof(&self, frames: Frames) -> Vec<u8> {
        let mut builder = Builder::default();
        let wait = builder.value_type("wait", "microseconds");
        let of_all = builder.value_type("wait_of_all", "microseconds");
        builder.profile.sample_type = vec![wait, of_all];
        builder.profile.default_sample_type = wait.r#type;
        builder.profile.period_type = Some(wait);
        builder.profile.period = 1_000_000 / i64::from(self.captures_per_second.max(1));
        builder.comment(&format!("{:.1} requests in flight", self.mean_in_flight()));
        for route in self.routes() {
            if let Some(latency) = route.latency_ms {
                let route = route.name;
                builder.comment(&format!(
                    "{route}: {latency:.1} ms a request, by Little's law"
                ));
            }
        }
        let route = builder.string("route");
        let weights = self.weights(frames);
        let total: u64 = weights.rounded().map(|(_, micros)| micros).sum();
        let elapsed = self.collected.elapsed;
        for (stack, micros) in weights.rounded() {
            let label = stack.first().map(|frame| Label {
                key: route,
                str: builder.string(&frame.label()),
            });
            let of_one = micros as f64 / total as f64 * elapsed.as_micros() as f64;
            // Innermost first.
            let locations = stack
                .iter()
                .rev()
                .map(|frame| location(&mut builder, frame));
            let sample = Sample {
                location_id: locations.collect(),
                value: [of_one, micros as f64].map(rounded).to_vec(),
                label: label.into_iter().collect(),
            };
            builder.profile.sample.push(sample);
        }
        let began = SystemTime::now().checked_sub(elapsed);
        builder.finish(began.unwrap_or(SystemTime::UNIX_EPOCH), elapsed)
    }
}

fn location(builder: &mut Builder, frame: &Frame) -> u64 {
    let file = frame.file.as_deref().map(portable).unwrap_or_default();
    let line = Line {
        function_id: builder.function(&frame.path, &frame.path, &file),
        line: frame.line.unwrap_or_default().into(),
    };
    builder.location(Location {
        line: vec![line],
        ..Location::default()
    })
}

#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn rounded(micros: f64) -> i64 {
    micros.round() as i64
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use prost::Message;

    use super::*;
    use crate::profile_proto::Profile;
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
            // A runtime that stands still answers no sample.
            let mut few = Vec::new();
            while few.len() < 3 {
                let options = ProfileOptions::lasting(Duration::from_millis(100));
                let profile = profiler.profile(options.captures_per_second(500)).await;
                let profile = profile.unwrap();
                let samples = profile.summary().samples;
                if samples.waiting > 0 {
                    return profile;
                }
                few.push(samples);
            }
            panic!("{few:?}");
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
        // Where other programs have the CPU, most of the time may go to requests that are woken and not polled.
        let mut stacks = Vec::new();
        for sample in &read.sample {
            let stack: Vec<&str> = sample.location_id.iter().map(|&at| function(at)).collect();
            stacks.push(stack);
        }
        let asleep = vec!["tokio::time::Sleep", "GET /"];
        assert!(stacks.contains(&asleep), "{stacks:?}");
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
