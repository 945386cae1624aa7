//! The commands as a reader types them: the real program in a small workshop
//! of its own, never in the repository.

mod bad_places;
mod capstone;
mod hints_and_progress;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod numa;
mod own_service;
mod reset_and_solution;
mod results;
mod setup_and_doctor;
mod step_branches;
#[cfg(unix)]
mod watch;
mod workshop;
mod wrong_usage;
