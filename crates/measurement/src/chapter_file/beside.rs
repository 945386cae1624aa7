//! A figure that the server counts, of which nothing is claimed.

use serde::{Deserialize, Serialize};

use crate::figures;

/// Shown beside the mechanism, of the same rounds, and in the chapter's table of variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// What is counted, as reports print it.
    pub name: String,
    /// The name under which the server's `/metrics` carries it.
    pub metric: String,
    /// What it is counted in.
    #[serde(default)]
    pub unit: Unit,
}

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// It is a count.
    #[default]
    One,
    /// Time, printed in milliseconds.
    Seconds,
    /// Memory, printed in MiB.
    Bytes,
}

impl Beside {
    /// The name of its single figure in the book's `values.md`, without the variant.
    pub fn key(&self) -> String {
        self.metric.replace('_', "-")
    }
}

impl Unit {
    /// A value for people.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::One => figures::count(value),
            Self::Seconds => figures::milliseconds(value * 1e3),
            Self::Bytes => format!("{} MiB", figures::count((value / 1_048_576.0).round())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn a_figure_is_printed_in_its_unit() {
        assert_eq!(Unit::One.text(517.0), "517");
        assert_eq!(Unit::Seconds.text(0.256), "256 ms");
        assert_eq!(Unit::Bytes.text(16.0 * 1_048_576.0), "16 MiB");
    }
}
