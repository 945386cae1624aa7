//! What a thread is for, and whether it has anything to do: by the functions on its stack.
//!
//! Not by its name. Tokio's workers and its blocking threads have the same one, and threads inherit it: a pool of rayon's
//! is called `tokio-rt-worker`, too, if a worker was the first to use it.

#![cfg_attr(not(target_os = "linux"), allow(dead_code))] // Elsewhere only CPU profiles use it.

use await_profile::plumbing::{LANGUAGE, PLUMBING, crate_of, place_of};

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Runs tasks of a runtime of tokio's with several threads.
    Worker,
    /// Runs requests of an actix service, on a runtime of its own.
    Actix,
    /// Runs tasks of a runtime of tokio's that has this thread alone.
    CurrentThread,
    /// Runs `spawn_blocking`, or a worker that gave its tasks away by `block_in_place`.
    Blocking,
    /// One of a pool of rayon's.
    Rayon,
}

/// A worker that gave its tasks away and blocks nobody.
const GAVE_AWAY: &str = "multi_thread::worker::block_in_place";

/// What tells a role.
const TOLD_BY: [(&str, Role); 10] = [
    ("multi_thread::worker::run", Role::Worker),
    ("multi_thread::worker::Context", Role::Worker),
    ("multi_thread::worker::Launch", Role::Worker),
    ("tokio::runtime::blocking::pool::Inner", Role::Blocking),
    ("rayon_core::registry::ThreadBuilder", Role::Rayon),
    ("rayon_core::registry::main_loop", Role::Rayon),
    ("actix_server::worker", Role::Actix),
    ("actix_rt::arbiter", Role::Actix),
    ("scheduler::current_thread::", Role::CurrentThread),
    ("tokio::task::local::LocalSet", Role::CurrentThread),
];

impl Role {
    /// Of the functions of a stack, from the outermost inwards: further in, whoever hands a job over is in the pool's
    /// functions, too.
    pub(crate) fn of(functions: &[&str]) -> Option<Self> {
        // Threads of the profilers hand tasks to runtimes, too.
        let is_others = |name: &&&str| !is_profilers(name);
        let outer = functions.iter().take_while(is_others);
        let told = |name: &&str| TOLD_BY.iter().find(|(part, _)| name.contains(part));
        let mut told = outer.filter_map(told).map(|(_, role)| *role);
        let first = told.next()?;
        // Workers are threads of the blocking pool with a task that never ends.
        let is_worker = first == Self::Blocking && told.any(|role| role == Self::Worker);
        let role = if is_worker { Self::Worker } else { first };
        let gave_away =
            role == Self::Worker && functions.iter().any(|name| name.contains(GAVE_AWAY));
        Some(if gave_away { Self::Blocking } else { role })
    }

    /// What it is called in profiles.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Worker => "tokio worker",
            Self::Actix => "actix worker",
            Self::CurrentThread => "tokio current_thread",
            Self::Blocking => "tokio blocking thread",
            Self::Rayon => "rayon",
        }
    }

    /// The first frame of a thread's stacks. Names that somebody has given stay, but for the numbers at their end.
    pub(crate) fn label(role: Option<Self>, name: &str) -> String {
        let numbers = |c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | '#' | ' ');
        let Some(role) = role else {
            return name.to_owned();
        };
        let given = match role {
            Self::Worker | Self::Blocking | Self::CurrentThread => name.trim_end_matches(numbers),
            Self::Actix | Self::Rayon => "",
        };
        match given {
            "" | "tokio-rt-worker" => role.name().to_owned(),
            given => format!("{} ({given})", role.name()),
        }
    }

    /// Whether it drives tasks, all of which wait while it is held.
    pub(crate) fn is_runtime(self) -> bool {
        matches!(self, Self::Worker | Self::Actix | Self::CurrentThread)
    }
}

fn is_profilers(name: &str) -> bool {
    ["await_profile", "debug_endpoints"].contains(&crate_of(name))
}

/// Whether a stack is of a profiler's own work: on a thread of its own, or for an endpoint. Requests pass the await
/// profiler, too, on threads that something else began.
pub(crate) fn is_of_profiler<'a>(functions: impl Iterator<Item = &'a str> + Clone) -> bool {
    let is_language = |krate: &&str| place_of(krate).is_some_and(|at| PLUMBING[at].1 == LANGUAGE);
    let named = functions.filter(|name| name.contains("::"));
    let first = named
        .clone()
        .find(|name| is_profilers(name) || !is_language(&crate_of(name)));
    first.is_some_and(is_profilers) || named.map(crate_of).any(|krate| krate == "debug_endpoints")
}

/// Why a thread that sleeps with this stack has nothing to do, if it has not.
pub(crate) fn idle(role: Option<Role>, functions: &[&str]) -> Option<&'static str> {
    let any = |is_so: &dyn Fn(&str) -> bool| functions.iter().any(|name| is_so(name));
    let parks = any(&|name| {
        let mut parts = name.rsplit("::");
        let last = parts.find(|part| !part.contains("closure"));
        name.contains("tokio::runtime::") && last.is_some_and(|last| last.starts_with("park"))
    });
    match role {
        Some(role) if role.is_runtime() => parks.then_some("parked worker"),
        Some(Role::Blocking) => {
            let has_work =
                |name: &str| name.contains("tokio::runtime::task::") || name.contains(GAVE_AWAY);
            (!any(&has_work)).then_some("blocking thread without work")
        }
        Some(_) => any(&|name| name.contains("rayon_core::sleep")).then_some("rayon without work"),
        None if parks => Some("block_on"),
        None => any(&is_profilers).then_some("profiler"),
    }
}

/// Whose code a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The service's.
    Own,
    /// That of a library, which the service calls.
    Library,
    /// What carries requests, the language, the system: in every stack, and so says nothing.
    Plumbing,
}

/// Libraries that wait on behalf of others.
const WAITING: [&str; 9] = [
    "crossbeam_channel",
    "dashmap",
    "flume",
    "lock_api",
    "once_cell",
    "parking_lot",
    "parking_lot_core",
    "rayon",
    "rayon_core",
];

impl Whose {
    /// By the name and the file; without a file, libraries that wait on behalf of others are known by name.
    pub(crate) fn of(function: &str, file: &str, is_foreign: bool) -> Self {
        let krate = crate_of(function);
        let is_known = waits_for_others(krate) || krate.starts_with(ACTIX);
        if place_of(krate).is_some() || is_profilers(function) || !function.contains("::") {
            Self::Plumbing
        } else if is_foreign || (file.is_empty() && is_known) {
            Self::Library
        } else {
            Self::Own
        }
    }
}

/// What the crates begin with that run and carry the requests of actix services.
const ACTIX: &str = "actix";

/// Whether a crate waits on behalf of others, so that it says nothing about what for.
pub(crate) fn waits_for_others(krate: &str) -> bool {
    WAITING.contains(&krate)
}

/// Whether a function brings requests from the executor to their handlers.
pub(crate) fn carries_requests(function: &str) -> bool {
    let krate = crate_of(function);
    let part = place_of(krate).map(|place| PLUMBING[place].1);
    krate.starts_with(ACTIX) || part.is_some_and(|part| FRAMEWORKS.contains(&part))
}

/// Those of [`PLUMBING`].
const FRAMEWORKS: [&str; 4] = ["axum", "hyper", "tonic", "warp"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_what_its_stack_begins_with_whatever_it_calls() {
        let pool = "<tokio::runtime::blocking::pool::Inner>::run";
        let task = "tokio::runtime::task::raw::poll";
        let worker = "tokio::runtime::scheduler::multi_thread::worker::run";
        let park = "<tokio::runtime::scheduler::multi_thread::worker::Context>::park_internal";
        let actix = "actix_rt::arbiter::Arbiter::with_tokio_rt::{{closure}}";
        let in_place = "tokio::runtime::scheduler::multi_thread::worker::block_in_place";
        let block_on = "tokio::runtime::park::CachedParkThread::block_on";
        let parks = "tokio::runtime::park::CachedParkThread::park";
        for (stack, role, why_idle) in [
            (
                &[pool, task, worker, task, "shop::visit"][..],
                Some(Role::Worker),
                None,
            ),
            (
                &[pool, task, worker, park],
                Some(Role::Worker),
                Some("parked worker"),
            ),
            (
                &[pool, task, worker, task, in_place, block_on, parks],
                Some(Role::Blocking),
                None,
            ),
            (&[pool, task, "shop::export"], Some(Role::Blocking), None),
            (
                &[pool, "parking_lot::condvar::Condvar::wait"],
                Some(Role::Blocking),
                Some("blocking thread without work"),
            ),
            // It waits for the lock of the pool to which it gives a job.
            (
                &[actix, "actix_web::web::block", pool],
                Some(Role::Actix),
                None,
            ),
            (
                &[
                    "rayon_core::registry::main_loop",
                    "rayon_core::sleep::Sleep::sleep",
                ],
                Some(Role::Rayon),
                Some("rayon without work"),
            ),
            (&["shop::main", block_on, "shop::serve"], None, None),
            (&["shop::main", block_on, parks], None, Some("block_on")),
            (&["shop::main", "std::thread::JoinHandle::join"], None, None),
        ] {
            assert_eq!(Role::of(stack), role, "{stack:?}");
            assert_eq!(idle(role, stack), why_idle, "{stack:?}");
        }
    }

    #[test]
    fn a_profiler_is_plumbing_wherever_it_was_compiled() {
        let path = "/home/me/profilers/src/heartbeat.rs";
        for (function, whose) in [
            ("debug_endpoints::heartbeat::take", Whose::Plumbing),
            ("<await_profile::probe::Probe>::poll", Whose::Plumbing),
            ("shop::visit", Whose::Own),
        ] {
            assert_eq!(Whose::of(function, path, false), whose, "{function}");
        }
    }

    #[test]
    fn a_name_that_somebody_gave_stays() {
        for (role, name, label) in [
            (Some(Role::Worker), "tokio-rt-worker", "tokio worker"),
            (Some(Role::Worker), "shop-io-12", "tokio worker (shop-io)"),
            (Some(Role::Rayon), "tokio-rt-worker", "rayon"),
            (None, "upstream-1", "upstream-1"),
        ] {
            assert_eq!(Role::label(role, name), label);
        }
    }
}
