//! One value of `/metrics`, and how it is written.

use std::fmt::{self, Write};

/// A value as Prometheus knows it.
#[derive(Debug)]
pub(crate) struct Metric {
    /// With its unit, and `_total` at the end of a counter's.
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

    /// As [`Metric::counter`], for what is not whole.
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

    /// As [`Metric::gauge`], for a number of things.
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
