//! One value of `/metrics`, and its Prometheus text.

use std::fmt::{self, Write};

/// A value as Prometheus knows it.
#[derive(Debug)]
pub(crate) struct Metric {
    /// Name with its unit; a counter's ends with `_total`.
    pub(crate) name: &'static str,
    help: &'static str,
    kind: &'static str,
    pub(crate) value: f64,
}

impl Metric {
    /// A number of things that only rises.
    pub(crate) fn counter(name: &'static str, help: &'static str, count: u64) -> Self {
        Self::sum(name, help, count as f64)
    }

    /// A counter like [`Metric::counter`], for a sum that is no whole number.
    pub(crate) fn sum(name: &'static str, help: &'static str, sum: f64) -> Self {
        Self {
            kind: "counter",
            ..Self::gauge(name, help, sum)
        }
    }

    /// A number that rises and falls.
    pub(crate) fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self {
            name,
            help,
            kind: "gauge",
            value,
        }
    }

    /// A gauge like [`Metric::gauge`], for a number of things.
    pub(crate) fn count(name: &'static str, help: &'static str, count: u64) -> Self {
        Self::gauge(name, help, count as f64)
    }

    /// Adds it to a text for Prometheus.
    pub(crate) fn write_to(&self, text: &mut String) -> fmt::Result {
        let Self {
            name,
            help,
            kind,
            value,
        } = self;
        writeln!(
            text,
            "# HELP {name} {help}.\n# TYPE {name} {kind}\n{name} {value}"
        )
    }
}
