//! Plots as SVG: the same figures give the same bytes; legible on light and
//! dark pages, on a phone, and without telling colours apart.

mod canvas;
mod comparison;
mod heat_map;
mod percentiles;
mod scale;
mod throughput;
mod time_series;
mod xy;

pub(crate) use self::canvas::escaped;

pub use self::{
    comparison::metric_of_rounds,
    heat_map::heat_map,
    percentiles::{bystanders_by_percentile, latency_by_percentile},
    throughput::throughput_of_rounds,
    time_series::{Series, time_series},
    xy::{Direction, Marks, Point, xy},
};

/// A plot that could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlotError {
    /// There is nothing to put into it.
    #[error("the plot \"{0}\" has no figures to show; record at least one round with answers.")]
    Empty(String),
    /// The drawing library gave up.
    #[error("the plot \"{title}\" cannot be drawn ({cause}); this is a fault of the workshop.")]
    Refused {
        /// The plot's title.
        title: String,
        /// What the library said.
        cause: String,
    },
}
