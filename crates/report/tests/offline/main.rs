//! What is made of runs: verdicts, grades, captures, plots and reports. Nothing is started here, so it
//! is one program: each takes some seconds to link.

mod capture;
mod chapter_file;
mod flamegraph;
mod grade;
mod plots;
mod reference;
mod regions;
mod report;
mod statistics;
mod summary;
mod support;
mod verdict;
mod workers;
