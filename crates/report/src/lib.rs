//! What people read: tables, plots, flamegraphs, the HTML report and the capture folder, all
//! derived from a record.

pub mod capture;
pub mod flamegraph;
pub mod html;
pub mod instructions;
pub mod plots;
pub mod regions;

pub mod summary;
pub mod table;
