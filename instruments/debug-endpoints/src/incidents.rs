//! Incidents: moments at which the service was stuck, too slow, or short of something, with the stacks and waits of those
//! moments.
//!
//! A thread of its own watches the service, since the runtime is what may stand still. What it judges is in pure state
//! machines, which are driven by time and observations: [`judge`] by the second, [`workers`] by the step.

pub(crate) mod capture;
mod condition;
mod date;
#[cfg(target_os = "linux")]
mod delays;
#[cfg(not(target_os = "linux"))]
#[path = "incidents/no_delays.rs"]
mod delays;
pub(crate) mod judge;
pub(crate) mod kind;
mod latency;
pub(crate) mod log_line;
mod moment;
pub(crate) mod options;
mod pace;
pub(crate) mod recorder;
pub(crate) mod watcher;
mod workers;

#[cfg(test)]
mod day;
