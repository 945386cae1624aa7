//! What people and scripts read of runs, from records of runs that never ran. Nothing is started
//! here, so it is one program: each takes some seconds to link.

mod capture;
mod captured;
mod flamegraph;
mod plan;
mod plots;
mod report;
mod summary;
