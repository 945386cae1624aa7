//! One value of `/metrics`.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// A value that is read for each request of `/metrics`: the hot path does not count it.
#[derive(Debug)]
pub(crate) struct Metric {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Whole(i64),
    Fraction(f64),
}

impl Metric {
    /// A number of things.
    pub(crate) fn count(name: &'static str, help: &'static str, count: u64) -> Self {
        let value = Value::Whole(i64::try_from(count).unwrap_or(i64::MAX));
        Self {
            name,
            help,
            unit: None,
            value,
        }
    }

    /// A number without a unit: a share, or one thing for each of another.
    pub(crate) fn ratio(name: &'static str, help: &'static str, ratio: f64) -> Self {
        Self {
            name,
            help,
            unit: None,
            value: Value::Fraction(ratio),
        }
    }

    /// A time, in seconds.
    pub(crate) fn seconds(name: &'static str, help: &'static str, seconds: f64) -> Self {
        Self {
            unit: Some(Unit::Seconds),
            ..Self::ratio(name, help, seconds)
        }
    }

    pub(crate) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let gauge: &dyn EncodeMetric = match &self.value {
            Value::Whole(value) => &ConstGauge::new(*value),
            Value::Fraction(value) => &ConstGauge::new(*value),
        };
        let unit = self.unit.as_ref();
        let encoder = encoder.encode_descriptor(self.name, self.help, unit, gauge.metric_type())?;
        gauge.encode(encoder)
    }
}
