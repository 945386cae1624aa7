//! Reports for people: tables, plots, flamegraphs, the HTML report and the folder of `cargo workshop capture`, all
//! derived from a record.

pub(crate) mod boxes;
pub mod capture;
pub mod claims;
pub mod gallery;
pub mod html;
pub mod measuring;
pub mod plots;
pub mod rows;
pub mod summary;
pub mod table;
