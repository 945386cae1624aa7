//! An axis whose labels are round numbers near its values, however far these lie apart.

use std::ops::Range;

use plotters::{
    coord::{
        combinators::LogCoord,
        ranged1d::{DefaultFormatting, KeyPointHint, Ranged},
        types::RangedCoordf64,
    },
    prelude::IntoLogRange as _,
};

/// Values as many times apart as this are shown on a log scale; others show best from 0, unless all of them
/// would lie in the upper half.
const APART: f64 = 8.0;
/// Labels nearer to each other than this share of the axis would lie on each other.
const NEAREST: f64 = 0.085;

/// How much further than its values a log scale reaches, as a factor at both ends.
const LOG_ROOM: f64 = 1.5;
/// How much further a scale from 0 reaches, as shares of the highest value.
const ROOM_BELOW: f64 = 0.06;
const ROOM_ABOVE: f64 = 0.1;

/// From 0, or in factors where the values are far apart.
pub struct Scale {
    on: On,
    /// What is labelled; round numbers where there is none.
    places: Vec<f64>,
}

enum On {
    Plain(RangedCoordf64),
    Log(LogCoord<f64>),
}

impl Scale {
    /// With room for the marks at both ends. Of `places`, in rising order, those get no label that are too
    /// near to the one before; round numbers are labelled where there are none.
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

    /// In factors.
    pub fn log(range: Range<f64>) -> Self {
        Self {
            on: On::Log(range.log_scale().into()),
            places: Vec::new(),
        }
    }

    /// In steps.
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

/// Powers of ten between two values, and the 2 or 5 of each end that is nearer to it, so that a label is
/// where the values are; all of these where there are few powers of ten.
fn round(low: f64, high: f64) -> Vec<f64> {
    let all = (-9..=15).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    let inside: Vec<f64> = all.filter(|place| (low..=high).contains(place)).collect();
    let is_power = |place: &f64| (place.log10() - place.log10().round()).abs() < 1e-6;
    let ends = [inside.first(), inside.last()].map(Option::<&f64>::copied);
    let is_kept =
        |place: &f64| high / low < 100.0 || is_power(place) || ends.contains(&Some(*place));
    inside.iter().copied().filter(is_kept).collect()
}

/// The lowest and the highest of the values, if there are any.
pub fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |span, value| {
        let (low, high) = span.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// Whether values are told in factors.
pub fn is_apart((low, high): (f64, f64)) -> bool {
    low > 0.0 && high / low > APART
}

/// What stands at a value: nothing below the axis, and no unit at 0.
pub fn text(value: f64, label: &dyn Fn(f64) -> String) -> String {
    if value.abs() < 1e-9 {
        "0".to_owned()
    } else if value < 0.0 {
        String::new()
    } else {
        label(value)
    }
}
