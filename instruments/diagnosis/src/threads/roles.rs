//! Roles of threads, and whether they have anything to do, by the functions on their stacks.
//!
//! Names do not tell. Tokio's workers and its blocking threads have the same name, and threads inherit it: the threads
//! of a rayon pool are called `tokio-rt-worker`, too, if a worker was the first to use it.

pub use ecosystem::Role;
use ecosystem::{
    LANGUAGE, PartMeaning, carriers, crate_of, is_framework_crate, place_of, waits_for_others,
};
use serde::{Deserialize, Serialize};

/// Returns the role of a thread with this stack, given from the outermost function inwards. The outermost one decides:
/// further in, a thread that hands a job over is in the pool's functions, too.
pub fn role_of(functions: &[&str]) -> Option<Role> {
    let mut role = None;
    for name in functions {
        // Threads of the profilers hand tasks to runtimes, too.
        if is_profilers(name) {
            break;
        }
        // Whoever wakes a task gets into the functions of its runtime.
        if role.is_none() && wakes(name) {
            break;
        }
        match (role, Role::told_by(name)) {
            (None, told) => role = told,
            // Workers are threads of the blocking pool with a task that never ends.
            (Some(Role::Blocking), Some(Role::Worker)) => role = Some(Role::Worker),
            _ => {}
        }
    }
    let gave_away = functions
        .iter()
        .any(|name| PartMeaning::GaveAway.fits(name));
    if role == Some(Role::Worker) && gave_away {
        return Some(Role::Blocking);
    }
    role
}

/// Returns the first frame of a thread's stacks. It keeps a name that the service gave, without the numbers at its end.
pub fn label(role: Option<Role>, name: &str) -> String {
    let Some(role) = role else {
        return name.to_owned();
    };
    let given = match role {
        Role::Worker | Role::Blocking | Role::CurrentThread => name
            .trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | '#' | ' ')),
        Role::Actix | Role::Rayon => "",
    };
    match given {
        "" | "tokio-rt-worker" => role.name().to_owned(),
        given => format!("{} ({given})", role.name()),
    }
}

/// Returns whether a function wakes a task.
fn wakes(function: &str) -> bool {
    method(function).starts_with("wake")
}

/// Returns the last part of a function's path that is no closure.
fn method(function: &str) -> &str {
    let mut parts = function.rsplit("::");
    let method = parts.find(|part| !part.contains("closure"));
    method.unwrap_or_default()
}

fn is_profilers(name: &str) -> bool {
    ["await_profile", "debug_endpoints"].contains(&crate_of(name))
}

/// Returns whether a stack is a profiler's own work: on a thread of its own, or for an endpoint. The service's requests
/// pass the await profiler, too, but on threads that something else began.
pub fn is_of_profiler<'a>(functions: impl Iterator<Item = &'a str>) -> bool {
    // Whoever began the stack is its outermost function but for those of the language.
    let mut is_begun = false;
    for name in functions.filter(|name| name.contains("::")) {
        let krate = crate_of(name);
        if !is_begun && is_profilers(name) || krate == "debug_endpoints" || takes_stack(name) {
            return true;
        }
        is_begun |= !is_language(krate);
    }
    false
}

/// Returns whether a crate is of the language, and so on every stack.
fn is_language(krate: &str) -> bool {
    place_of(krate).is_some_and(|at| carriers()[at].part == LANGUAGE)
}

/// Returns whether a function takes a request's stack for the await profile.
fn takes_stack(function: &str) -> bool {
    crate_of(function) == "await_profile"
        && (function.contains("clone_waker") || function.contains("::capture_into"))
}

/// Returns why a thread that sleeps with this stack has nothing to do, or `None` if it has work.
pub fn idle(role: Option<Role>, functions: &[&str]) -> Option<&'static str> {
    let mut names = functions.iter();
    let parks = functions
        .iter()
        .any(|name| PartMeaning::Runtime.fits(name) && method(name).starts_with("park"));
    let (is_idle, why) = match role {
        Some(role) if role.is_runtime() => (parks, "parked worker"),
        Some(Role::Blocking) => (
            !names.any(|name| PartMeaning::Task.fits(name) || PartMeaning::GaveAway.fits(name)),
            "blocking thread without work",
        ),
        Some(_) => (
            names.any(|name| PartMeaning::RayonIdle.fits(name)),
            "rayon without work",
        ),
        None if parks => (true, "block_on"),
        None => (names.any(|name| is_profilers(name)), "profiler"),
    };
    is_idle.then_some(why)
}

/// Owner of a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// The service's own code.
    Own,
    /// Code of a library that the service calls.
    Library,
    /// Code that carries requests, or that of the language or the system: it is in every stack, so it says nothing.
    Plumbing,
    /// Code without a name, as in a stripped program.
    Nameless,
}

impl Whose {
    /// Returns the owner by name and file; without a file, libraries that wait on behalf of others are known by name.
    pub fn of(function: &str, file: &str, is_foreign: bool) -> Self {
        let krate = crate_of(function);
        let is_known = waits_for_others(krate) || is_framework_crate(krate);
        let path = function.split_once('<').map_or(function, |(path, _)| path);
        let is_path = path.is_empty() || path.contains("::");
        if place_of(krate).is_some() || is_profilers(function) || !is_path {
            Self::Plumbing
        } else if is_foreign || (file.is_empty() && is_known) {
            Self::Library
        } else {
            Self::Own
        }
    }
}

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
            // A thread of the service's own wakes a task.
            (
                &[
                    "shop::archive",
                    "tokio::runtime::task::waker::wake_by_val",
                    "tokio::runtime::scheduler::current_thread::Handle::schedule",
                ],
                None,
                None,
            ),
            (&["shop::main", block_on, parks], None, Some("block_on")),
            (&["shop::main", "std::thread::JoinHandle::join"], None, None),
        ] {
            assert_eq!(role_of(stack), role, "{stack:?}");
            assert_eq!(idle(role, stack), why_idle, "{stack:?}");
        }
    }

    #[test]
    fn a_profiler_is_plumbing_wherever_it_was_compiled() {
        let path = "/home/me/profilers/src/heartbeat.rs";
        for (function, whose) in [
            ("debug_endpoints::heartbeat::take", Whose::Plumbing),
            ("<await_profile::probe::Probe>::poll", Whose::Plumbing),
            ("do_io<std::net::TcpStream>", Whose::Plumbing),
            ("<shop::Cart as Clone>::clone", Whose::Own),
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
            assert_eq!(self::label(role, name), label);
        }
    }
}
