//! Tests on chapter files, analysis and reports, from records of runs that never ran. Nothing is started
//! here, so all are one program, because each program takes some seconds to link.

mod analysis;
mod measurement;
mod report;
mod support;
