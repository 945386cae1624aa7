//! Metrics of a server, read from its Prometheus text: the lab's, or that of any service.

use std::collections::BTreeMap;

/// Largest count that is exact as `f64`. Nothing that a server counts comes near it.
const LARGEST_COUNT: f64 = (1_u64 << 53) as f64;

/// One line of Prometheus text: `name value` or `name{labels} value`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample<'a> {
    /// The metric's name.
    pub(crate) name: &'a str,
    /// Set if it is one of several, told apart by labels.
    pub(crate) is_labelled: bool,
    /// Its value, which is finite.
    pub(crate) value: f64,
}

/// Returns the samples of Prometheus text. Skips lines that are no samples, and values that are no finite numbers.
pub(crate) fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().filter_map(sample)
}

/// Metrics by name; those with labels are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Reads Prometheus text. Skips lines that are no samples, and values that are no finite numbers.
    pub fn parse(text: &str) -> Self {
        let mut metrics = BTreeMap::new();
        for sample in samples(text) {
            if !sample.is_labelled {
                metrics.insert(sample.name.to_owned(), sample.value);
            }
        }
        Self(metrics)
    }

    /// Returns the value of `name`, if the server has it; always finite.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Returns the value of `name` as a count; `None` if it is a fraction, below zero, or too large to be exact.
    pub fn count(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        if !(0.0..=LARGEST_COUNT).contains(&value) || value.fract() != 0.0 {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is one
        Some(value as u64)
    }
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim_ascii_start();
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')?;
    let (name, rest) = line.split_at(end);
    let (is_labelled, rest) = match rest.trim_ascii_start().strip_prefix('{') {
        Some(labels) => (true, &labels[end_of_labels(labels)?..]),
        None => (false, rest.strip_prefix([' ', '\t'])?),
    };
    // A time may follow, and then an example of what was counted.
    let mut words = rest.split('#').next()?.split_ascii_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    if let Some(time) = words.next() {
        time.parse::<f64>().ok()?;
    }
    if name.is_empty() || words.next().is_some() || !value.is_finite() {
        return None;
    }
    Some(Sample {
        name,
        is_labelled,
        value,
    })
}

/// Returns the end of the labels, their bracket included. Quoted text may hold any character.
fn end_of_labels(labels: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = labels.bytes().position(|byte| {
        if is_escaped {
            is_escaped = false;
        } else {
            is_escaped = is_quoted && byte == b'\\';
            is_quoted ^= byte == b'"';
        }
        !is_quoted && byte == b'}'
    });
    end.map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_comments_are_not() {
        let metrics = Metrics::parse(
            "# TYPE a counter\na_total 3\nlab_info{chapter=\"1\"} 1\nbusy 0.25\n# EOF\n",
        );
        assert_eq!(metrics.count("a_total"), Some(3));
        assert_eq!(metrics.get("busy"), Some(0.25));
        assert_eq!(metrics.get("lab_info"), None);
    }

    /// Reads text as other services than the lab's write it.
    #[test]
    fn times_tabs_labels_and_exemplars_are_no_part_of_a_value() {
        let text = "timed_total 3 1395066363000\ntabbed\t4\n  indented 5\n\
                    example_total 17 1520879607.7 # {trace=\"a\"} 0.67\n\
                    route_total {path=\"/a}b\\\"#\"} 8 # {trace=\"a\"} 0.67\n\
                    three 1 2 3\nglued\"1\" 2\n{quoted=\"name\"} 9\ncut{path=\"/} 1\n";
        let read: Vec<(&str, f64)> = samples(text).map(|one| (one.name, one.value)).collect();
        let right = [
            ("timed_total", 3.0),
            ("tabbed", 4.0),
            ("indented", 5.0),
            ("example_total", 17.0),
            ("route_total", 8.0),
        ];
        assert_eq!(read, right);
    }

    #[test]
    fn what_cannot_be_a_count_is_none() {
        let metrics = Metrics::parse("a NaN\nb +Inf\nc -1\nd 0.5\ne 1e300\nf 9007199254740992\n");
        let all = ["a", "b", "c", "d", "e", "f"].map(|name| metrics.count(name));
        assert_eq!(all, [None, None, None, None, None, Some(1 << 53)]);
        let values = ["a", "b", "c"].map(|name| metrics.get(name));
        assert_eq!(values, [None, None, Some(-1.0)]);
    }
}
