//! Analyses of records of runs that never ran. Nothing is started here, so all are one program.

mod grade;
mod noise;
mod prediction;
mod statistics;
mod verdict;
