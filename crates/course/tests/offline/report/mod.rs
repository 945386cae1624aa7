//! Reports of runs for people and scripts, from records of runs that never ran. Nothing is started here, so
//! all are one program, because each program takes some seconds to link.

mod capture;
mod captured;
mod flamegraph;
mod plan;
mod plots;
#[allow(
    clippy::module_inception,
    reason = "the tests of one report among those of all"
)]
mod report;
mod summary;
