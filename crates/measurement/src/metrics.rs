//! What a server counts, read from its Prometheus text.

use std::collections::BTreeMap;

/// Metrics by name; labels and comments are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Reads Prometheus text; lines that are not `name value` are passed over.
    pub fn parse(text: &str) -> Self {
        Self(
            text.lines()
                .filter(|line| !line.starts_with('#') && !line.contains('{'))
                .filter_map(|line| {
                    let (name, value) = line.split_once(' ')?;
                    Some((name.to_owned(), value.trim().parse().ok()?))
                })
                .collect(),
        )
    }

    /// The value of `name`, if the server has it.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// A count, for metrics that never are fractions or below zero.
    pub fn count(&self, name: &str) -> Option<u64> {
        // Counts fit: f64 is exact to 2^53.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        self.get(name).map(|value| value as u64)
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
}
