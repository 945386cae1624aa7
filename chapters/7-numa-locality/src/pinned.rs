//! The other half: a worker stays on its CPU, but the texts lie where they were first written.

use std::sync::LazyLock;

use many_cpus::SystemHardware;

use crate::once::{TEXTS, routes};
use crate::team::Team;

/// Starts a worker for each CPU, which stays there.
pub fn start() -> Team {
    LazyLock::force(&TEXTS);
    let processors = SystemHardware::current().processors();
    let team = Team::of(processors.len());
    let joining = team.clone();
    processors.spawn_threads(move |_| joining.join(&routes()));
    team
}
