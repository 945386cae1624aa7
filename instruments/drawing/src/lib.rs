//! Tables, plots, flamegraphs and pages of measurements. The same figures give the same bytes.

pub mod canvas;
pub mod flamegraph;
pub mod html;
pub mod rounds;
pub mod scale;
pub mod table;
