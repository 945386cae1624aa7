//! Tables, plots, flamegraphs and pages of measurements. Equal figures give equal files, byte for byte.

pub mod canvas;
pub mod flamegraph;
pub mod folded;
pub mod html;
pub mod intervals;
pub mod percentiles;
pub mod profile;
pub mod rounds;
pub mod scale;
pub mod table;
