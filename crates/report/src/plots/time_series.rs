//! Anything over time: connections, lateness, requests per second.

use plotters::prelude::{ChartBuilder, LineSeries};

use super::{
    PlotError,
    canvas::{self, FAINT, INK, KeyEntry, LETTERS, Look},
};
use measurement::figures;

/// One line of a time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is, for the key.
    pub name: String,
    /// Seconds and value.
    pub points: Vec<(f64, f64)>,
}

/// Up to four series over seconds, from 0, with a label for the values.
///
/// # Errors
///
/// When no series has a point that is a number.
pub fn time_series(title: &str, values: &str, series: &[Series]) -> Result<String, PlotError> {
    let points = || {
        series
            .iter()
            .flat_map(|line| line.points.iter())
            .filter(|point| is_drawable(**point))
    };
    if points().next().is_none() {
        return Err(PlotError::Empty(title.to_owned()));
    }
    let end = points().map(|(s, _)| *s).fold(1e-3, f64::max);
    let low = points().map(|(_, value)| *value).fold(0.0, f64::min);
    let high = points().map(|(_, value)| *value).fold(1e-3, f64::max);
    let key: Vec<KeyEntry> = series
        .iter()
        .enumerate()
        .map(|(index, line)| KeyEntry {
            text: line.name.clone(),
            look: Look::nth(index),
            hollow: false,
            line: true,
        })
        .collect();
    let description = format!(
        "{values} over {} s, at most {}.",
        figures::ratio(end),
        figures::ratio(high)
    );
    canvas::plot(title, &description, &key, |area| {
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(54)
            .y_label_area_size(86)
            .margin_right(20)
            .build_cartesian_2d(0.0..end, low..high * 1.05)
            .map_err(|error| error.to_string())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc("time (s)")
            .y_desc(values)
            .x_label_formatter(&|s| figures::count(*s))
            .y_label_formatter(&|value| figures::count(*value))
            .x_labels(7)
            .y_labels(6)
            .label_style(canvas::label_style(LETTERS))
            .axis_desc_style(canvas::label_style(LETTERS))
            .axis_style(INK)
            .bold_line_style(FAINT)
            .light_line_style(canvas::PAPER)
            .draw()
            .map_err(|error| error.to_string())?;
        for (index, line) in series.iter().enumerate() {
            let look = Look::nth(index);
            let points: Vec<(f64, f64)> = line
                .points
                .iter()
                .copied()
                .filter(|point| is_drawable(*point))
                .collect();
            // Marks that a reader without colours can follow, not one a point.
            let every = points.len().div_ceil(12).max(1);
            let marks: Vec<_> = points
                .iter()
                .step_by(every)
                .map(|at| (*at, look, false))
                .collect();
            chart
                .draw_series(LineSeries::new(points, look.line()))
                .map_err(|error| error.to_string())?;
            canvas::set_marks(chart.plotting_area(), marks)?;
        }
        Ok(())
    })
}

fn is_drawable((s, value): (f64, f64)) -> bool {
    s >= 0.0 && canvas::is_drawable(s) && canvas::is_drawable(value)
}
