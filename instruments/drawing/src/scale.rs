//! Scale of an axis whose labels are round numbers near its values, however far these are apart.

use std::ops::Range;

use plotters::{
    coord::{
        combinators::LogCoord,
        ranged1d::{DefaultFormatting, KeyPointHint, Ranged},
        types::RangedCoordf64,
    },
    prelude::IntoLogRange as _,
};

/// Ratio of highest to lowest value above which a scale is logarithmic. Other scales begin at 0, unless all values
/// would lie in the upper half.
const APART: f64 = 8.0;
/// Smallest distance of two labels as a share of the axis; nearer ones would overlap.
const NEAREST: f64 = 0.085;

/// Factor by which a log scale reaches beyond its values, at both ends.
const LOG_ROOM: f64 = 1.5;
/// Distances by which a scale from 0 reaches below 0 and above its values, as shares of the highest value.
const ROOM_BELOW: f64 = 0.06;
const ROOM_ABOVE: f64 = 0.1;

/// A linear scale, or a logarithmic one if the values are far apart.
pub struct Scale {
    on: On,
    /// Values that have labels; if there are none, round numbers have them.
    places: Vec<f64>,
}

enum On {
    Plain(RangedCoordf64),
    Log(LogCoord<f64>),
}

impl Scale {
    /// Returns a scale with room for the marks at both ends. The values `places`, in rising order, get labels, except
    /// those too near to the label before. If there are none, round numbers get labels.
    pub fn over((low, high): (f64, f64), mut places: Vec<f64>) -> Self {
        if places.is_empty() && is_apart((low, high)) {
            places = round(low / 1.4, high * 1.4);
        }
        let at = |value: f64| {
            if is_apart((low, high)) {
                (value / low).ln() / (high / low * LOG_ROOM * LOG_ROOM).ln()
            } else {
                value / (high * (ROOM_BELOW + 1.0 + ROOM_ABOVE))
            }
        };
        let mut last = f64::NEG_INFINITY;
        places.retain(|place| {
            let is_far = at(*place) - last >= NEAREST;
            if is_far {
                last = at(*place);
            }
            is_far
        });
        let scale = if is_apart((low, high)) {
            Self::log(low / LOG_ROOM..high * LOG_ROOM)
        } else {
            let high = if high > 0.0 { high } else { 1.0 };
            let from = if places.is_empty() && low > high / 2.0 {
                (low - (high - low)).min(0.8 * low)
            } else {
                -ROOM_BELOW * high
            };
            Self::linear(from..high * (1.0 + ROOM_ABOVE))
        };
        Self { places, ..scale }
    }

    /// Returns a logarithmic scale.
    pub fn log(range: Range<f64>) -> Self {
        Self {
            on: On::Log(range.log_scale().into()),
            places: Vec::new(),
        }
    }

    /// Returns a linear scale.
    pub fn linear(range: Range<f64>) -> Self {
        Self {
            on: On::Plain(range.into()),
            places: Vec::new(),
        }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match &self.on {
            On::Plain(plain) => plain.map(value, limit),
            On::Log(log) => log.map(value, limit),
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match &self.on {
            _ if !self.places.is_empty() => self.places.clone(),
            On::Plain(plain) => plain.key_points(hint),
            On::Log(log) => log.key_points(hint),
        }
    }

    fn range(&self) -> Range<f64> {
        match &self.on {
            On::Plain(plain) => plain.range(),
            On::Log(log) => log.range(),
        }
    }
}

/// Returns the powers of ten between two values, and the first and last round number, so that a label is near both
/// ends. Round numbers are 1, 2 or 5 times a power of ten. It returns all of them if the values are less than 100 times
/// apart.
fn round(low: f64, high: f64) -> Vec<f64> {
    let mut places = Vec::new();
    for power in -9..=15 {
        for digit in [1.0, 2.0, 5.0] {
            let place = digit * 10_f64.powi(power);
            if (low..=high).contains(&place) {
                places.push(place);
            }
        }
    }
    if high / low < 100.0 {
        return places;
    }
    let ends = [places.first().copied(), places.last().copied()];
    places.retain(|place| {
        let power = place.log10();
        (power - power.round()).abs() < 1e-6 || ends.contains(&Some(*place))
    });
    places
}

/// Returns the lowest and the highest of the values, if there are any.
pub fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut span = None;
    for value in values {
        let (low, high) = span.unwrap_or((value, value));
        span = Some((f64::min(low, value), f64::max(high, value)));
    }
    span
}

/// Returns whether two values are so far apart that they need a logarithmic scale.
pub fn is_apart((low, high): (f64, f64)) -> bool {
    low > 0.0 && high / low > APART
}

/// Returns the label of a value: nothing below 0, and no unit at 0.
pub fn text(value: f64, label: &dyn Fn(f64) -> String) -> String {
    if value.abs() < 1e-9 {
        "0".to_owned()
    } else if value < 0.0 {
        String::new()
    } else {
        label(value)
    }
}
