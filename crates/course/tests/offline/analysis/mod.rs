//! What runs show, from records of runs that never ran. Nothing is started here, so it is one
//! program.

mod grade;
mod noise;
mod prediction;
mod statistics;
mod verdict;
