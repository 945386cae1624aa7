//! The second of the five stages, from chapter 6: workers that share nothing, by the usual count.

use std::sync::LazyLock;
use std::thread;

use crate::once::{TEXTS, routes};
use crate::team::Team;

/// Starts a worker for each CPU that `num_cpus` counts: on Windows those of one group.
pub fn start() -> Team {
    LazyLock::force(&TEXTS);
    let workers = num_cpus::get();
    let team = Team::of(workers);
    for _ in 0..workers {
        let team = team.clone();
        thread::spawn(move || team.join(&routes()));
    }
    team
}
