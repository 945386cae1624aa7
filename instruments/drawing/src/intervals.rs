//! A picture of ratios with their intervals, against "no difference". It stands within a page, and takes its colours.

use maud::{Markup, html};
use statistics::figures;

/// Size of the picture and of its parts, in px.
const WIDTH: f64 = 720.0;
const NAMES: f64 = 210.0;
const ROW: f64 = 26.0;
const AXIS: f64 = 34.0;
/// Room for half of the last label.
const EDGE: f64 = 24.0;
/// Smallest distance of two labels of the axis.
const APART: f64 = 46.0;
/// Ratios that may have a label, and their reciprocals.
const LABELS: [f64; 8] = [1.0, 1.1, 1.25, 1.5, 2.0, 5.0, 10.0, 20.0];
/// Largest ratio that is shown. One beyond it has an arrow at the edge, with its value.
const MOST: f64 = 20.0;

/// One ratio: larger is better.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name of the metric.
    pub name: String,
    /// The ratio.
    pub ratio: f64,
    /// Its interval; an end may be 0 or infinite.
    pub interval: (f64, f64),
    /// The ratio in words.
    pub text: String,
}

/// Draws the rows from top to bottom on one logarithmic axis, with a line at 1 and a band of `margin` around it. Nothing
/// without rows.
pub fn against_one(rows: &[Row], margin: f64) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    let mut most = 1.0 + 2.0 * margin.max(0.02);
    for row in rows {
        let (low, high) = row.interval;
        for end in [row.ratio, row.ratio.recip(), high, low.recip()] {
            if end.is_finite() {
                most = most.max(end);
            }
        }
    }
    let most = (most * 1.05).min(MOST);
    let at = |ratio: f64| {
        let share = 0.5 + ratio.clamp(most.recip(), most).ln() / most.ln() / 2.0;
        NAMES + share * (WIDTH - NAMES - EDGE)
    };
    let is_inside = |ratio: f64| (most.recip()..=most).contains(&ratio);
    let height = rows.len() as f64 * ROW + AXIS;
    let bottom = height - AXIS;
    let mut labels: Vec<f64> = Vec::new();
    for label in LABELS {
        for label in [label, label.recip()] {
            let is_free = |other: &f64| (at(*other) - at(label)).abs() >= APART;
            if label <= most && label >= most.recip() && labels.iter().all(is_free) {
                labels.push(label);
            }
        }
    }
    let band = (at((1.0 + margin).recip()), at(1.0 + margin));
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" style="width:100%;max-width:60rem;height:auto;font-size:13px"
            aria-label="Ratio of each metric with its interval; right of the line at 1 the change is better" {
            rect x=(band.0) y="0" width=(band.1 - band.0) height=(bottom) fill="var(--card)" {}
            line x1=(at(1.0)) x2=(at(1.0)) y1="0" y2=(bottom) stroke="var(--faint)" {}
            @for (place, row) in rows.iter().enumerate() {
                @let middle = (place as f64 + 0.5) * ROW;
                @let (low, high) = row.interval;
                @let colour = colour(low, high);
                text x=(NAMES - 10.0) y=(middle + 4.0) text-anchor="end" fill="var(--ink)" { (row.name) }
                g stroke=(colour) stroke-width="3" {
                    title { (row.name) ": " (row.text) }
                    line x1=(at(low)) x2=(at(high)) y1=(middle) y2=(middle) {}
                    @if is_inside(row.ratio) {
                        circle cx=(at(row.ratio)) cy=(middle) r="4" fill=(colour) {}
                    } @else {
                        path d=(arrow(at(row.ratio), middle, row.ratio > 1.0)) fill=(colour) {}
                    }
                }
                @if !is_inside(row.ratio) {
                    text x=(at(row.ratio)) y=(middle - 7.0) text-anchor=(if row.ratio > 1.0 { "end" } else { "start" })
                        font-size="11" fill="var(--ink)" { (figures::ratio(row.ratio)) }
                }
            }
            @for label in &labels {
                text x=(at(*label)) y=(bottom + 15.0) text-anchor="middle" fill="var(--faint)" { (figures::ratio(*label)) }
            }
            text x=(at(1.0) - 12.0) y=(bottom + 30.0) text-anchor="end" fill="var(--faint)" { "← worse" }
            text x=(at(1.0) + 12.0) y=(bottom + 30.0) fill="var(--faint)" { "better →" }
        }
    }
}

/// Returns the path of an arrow whose tip is beyond `x`, to the right or to the left.
fn arrow(x: f64, y: f64, is_right: bool) -> String {
    let tip = if is_right { 8.0 } else { -8.0 };
    format!("M{x:.1} {:.1}l{tip} 5l{} 5z", y - 5.0, -tip)
}

/// Returns the colour of an interval: whether all of it is better, worse or neither.
fn colour(low: f64, high: f64) -> &'static str {
    if low > 1.0 {
        "var(--proved)"
    } else if high < 1.0 {
        "var(--refuted)"
    } else {
        "var(--faint)"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: f64, interval: (f64, f64)) -> Row {
        Row {
            name: "latency <1>".to_owned(),
            ratio,
            interval,
            text: "a ratio".to_owned(),
        }
    }

    #[test]
    fn an_interval_has_the_colour_of_its_side_and_stays_within_the_picture() {
        for (ratio, interval, colour) in [
            (2.0, (1.5, 2.7), "--proved"),
            (0.5, (0.4, 0.6), "--refuted"),
            (1.0, (0.9, 1.1), "var(--faint)\" stroke-width"),
            (0.01, (0.0, 0.02), "--refuted"),
            (500.0, (30.0, f64::INFINITY), "--proved"),
        ] {
            let svg = against_one(&[row(ratio, interval)], 0.05).into_string();
            assert!(svg.contains(colour), "{svg}");
            assert!(svg.contains("latency &lt;1&gt;"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            for part in svg.split("x1=\"").skip(1) {
                let number: f64 = part.split('"').next().unwrap().parse().unwrap();
                assert!((NAMES..=WIDTH).contains(&number), "{number}");
            }
        }
        // A ratio outside of the picture is no point on its edge.
        let svg = |ratio| against_one(&[row(ratio, (10.0, 900.0))], 0.05).into_string();
        assert!(svg(453.0).contains("<path") && svg(453.0).contains(">453<"));
        assert!(!svg(453.0).contains("<circle") && !svg(15.0).contains("<path"));
        assert!(against_one(&[], 0.05).into_string().is_empty());
    }
}
