//! Metrics that a chapter's server has counted.

use std::collections::BTreeMap;

use engine::prometheus::samples;

/// Largest count that is exact as `f64`. Nothing that a server counts comes near it.
const LARGEST_COUNT: f64 = (1_u64 << 53) as f64;

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

    #[test]
    fn what_cannot_be_a_count_is_none() {
        let metrics = Metrics::parse("a NaN\nb +Inf\nc -1\nd 0.5\ne 1e300\nf 9007199254740992\n");
        let all = ["a", "b", "c", "d", "e", "f"].map(|name| metrics.count(name));
        assert_eq!(all, [None, None, None, None, None, Some(1 << 53)]);
        let values = ["a", "b", "c"].map(|name| metrics.get(name));
        assert_eq!(values, [None, None, Some(-1.0)]);
    }
}
