//! Crates, paths and parts of names.

use std::sync::LazyLock;

use crate::crate_of;
use crate::tables::{name, rows};

/// A crate whose frames are in every stack of every service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Its name in code.
    pub krate: &'static str,
    /// Larger part that it belongs to: `mio` belongs to `tokio`, and `core` to [`LANGUAGE`]. Empty for crates that do
    /// small work for the others.
    pub part: &'static str,
}

/// Value of [`Carrier::part`] for the standard library's crates, and for the frames that an await profile adds. Such
/// frames do not end a run of frameworks' frames, between which they lie.
pub const LANGUAGE: &str = "std";

static CARRIERS: LazyLock<Vec<Carrier>> = LazyLock::new(|| {
    let mut carriers = Vec::new();
    for row in rows("Crates that carry requests") {
        let part = row.get(1).copied().filter(|part| *part != "–");
        carriers.push(Carrier {
            krate: name(row[0]),
            part: part.unwrap_or_default(),
        });
    }
    carriers
});

/// Returns the crates that carry requests, from the executor to the handler.
pub fn carriers() -> &'static [Carrier] {
    &CARRIERS
}

/// Returns the position of a crate among the [`carriers`], from the executor to the handler; `None` for other crates.
pub fn place_of(krate: &str) -> Option<usize> {
    CARRIERS.iter().position(|carrier| carrier.krate == krate)
}

/// Returns the names in the first column of a table.
fn column(heading: &str) -> Vec<&'static str> {
    rows(heading).iter().map(|row| name(row[0])).collect()
}

/// Returns whether a function starts a thread. The standard library's own functions are not among them.
pub fn starts_thread(function: &str) -> bool {
    static STARTS: LazyLock<Vec<&str>> = LazyLock::new(|| column("Functions that start a thread"));
    STARTS.contains(&function)
}

/// Returns whether a system call, by its name, waits for a disk.
pub fn waits_for_disk(call: &str) -> bool {
    static CALLS: LazyLock<Vec<&str>> = LazyLock::new(|| column("Calls that wait for a disk"));
    CALLS.contains(&call)
}

/// Returns whether a function makes a client, which has a pool of connections of its own.
pub fn makes_client(function: &str) -> bool {
    static MAKES: LazyLock<Vec<&str>> = LazyLock::new(|| column("Functions that make a client"));
    // A compiler may write the type in angle brackets, and its parameters at the end.
    let plain = function.replace(['<', '>'], "");
    MAKES.iter().any(|made| plain.starts_with(made))
}

static FRAMEWORKS: LazyLock<Vec<&str>> = LazyLock::new(|| column("Frameworks"));

/// Returns whether a crate belongs to a framework whose crates are known by the beginning of their names.
pub fn is_framework_crate(krate: &str) -> bool {
    let mut beginnings = FRAMEWORKS.iter().filter_map(|name| name.strip_suffix('*'));
    beginnings.any(|beginning| krate.starts_with(beginning))
}

/// Returns whether a function brings requests from the executor to their handlers.
pub fn carries_requests(function: &str) -> bool {
    let krate = crate_of(function);
    match place_of(krate) {
        Some(place) => FRAMEWORKS.contains(&CARRIERS[place].part),
        None => is_framework_crate(krate),
    }
}

/// Returns whether a function belongs to a runtime, or to a library by which it talks to others.
pub fn is_of_runtime(function: &str) -> bool {
    let place = place_of(crate_of(function));
    place.is_some_and(|place| matches!(CARRIERS[place].part, "tokio" | "hyper"))
}

/// Returns whether a function belongs to what `async` functions await: a runtime, its sockets and timers, a channel.
pub fn is_awaited(function: &str) -> bool {
    let krate = crate_of(function);
    let is_of_tokio = place_of(krate).is_some_and(|place| CARRIERS[place].part == "tokio");
    is_of_tokio || PathMeaning::Primitive.names().contains(&krate)
}

/// Returns whether a crate waits on behalf of others, so that its frames do not show the reason for the wait.
pub fn waits_for_others(krate: &str) -> bool {
    static WAITING: LazyLock<Vec<&str>> =
        LazyLock::new(|| column("Crates that wait on behalf of others"));
    WAITING.contains(&krate)
}

/// Returns whether a path is one of `modules`, or lies in one of them.
pub fn is_within<'a>(path: &str, modules: impl IntoIterator<Item = &'a str>) -> bool {
    for module in modules {
        if let Some(rest) = path.strip_prefix(module)
            && (rest.is_empty() || rest.starts_with("::"))
        {
            return true;
        }
    }
    false
}

macro_rules! meanings {
    ($(#[$doc:meta])* $meanings:ident of $heading:literal: $($(#[$about:meta])* $meaning:ident = $name:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $meanings {
            $($(#[$about])* $meaning,)*
        }

        impl $meanings {
            const ALL: &[Self] = &[$(Self::$meaning),*];

            /// Returns its name in the data file.
            fn name(self) -> &'static str {
                match self {
                    $(Self::$meaning => $name,)*
                }
            }

            /// Returns the names in the data file that have this meaning.
            pub fn names(self) -> &'static [&'static str] {
                static NAMES: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
                    let rows = rows($heading);
                    let mut names = vec![Vec::new(); $meanings::ALL.len()];
                    for row in rows {
                        for meaning in $meanings::ALL {
                            if row.get(1) == Some(&meaning.name()) {
                                names[*meaning as usize].push(name(row[0]));
                            }
                        }
                    }
                    names
                });
                &NAMES[self as usize]
            }
        }
    };
}

meanings! {
    /// Meaning of a path, as users of the crate write it.
    PathMeaning of "Paths":
    /// Something to wait for: a lock, a timer, a channel, a socket.
    Primitive = "primitive",
    /// Implementation of a primitive, which users of the crate do not call.
    Internal = "internal",
    /// Library that the service's own code calls, within a crate that also carries requests, such as hyper's client.
    Client = "client",
    /// Holder of a timer that only limits another wait, such as `tokio::time::timeout`.
    Deadline = "deadline",
    /// Code that wakes tasks for the operating system, such as tokio's I/O driver when a socket is ready.
    Driver = "driver",
    /// Tokio's blocking pool.
    BlockingPool = "blocking_pool",
    /// Part of tokio that runs tasks.
    Scheduler = "scheduler",
    /// Any part of a runtime.
    Runtime = "runtime",
    /// Timer.
    Sleep = "sleep",
    /// Code that accepts connections and serves their requests.
    Server = "server",
    /// Code that wakes a set of futures because one of its members was woken.
    SetWaker = "set_waker",
    /// Handle of a spawned task.
    Handle = "handle",
    /// Set of futures that are polled together.
    Set = "set",
}

impl PathMeaning {
    /// Returns whether a path has this meaning.
    pub fn fits(self, path: &str) -> bool {
        is_within(path, self.names().iter().copied())
    }
}

meanings! {
    /// Meaning of a part of a function's name, as compilers write it.
    PartMeaning of "Parts of names":
    /// Thread that runs tasks of a tokio runtime with several threads.
    Worker = "worker",
    /// Thread of tokio's blocking pool.
    Blocking = "blocking",
    /// Thread of a rayon pool.
    Rayon = "rayon",
    /// Thread that runs requests of an actix service.
    Actix = "actix",
    /// Only thread of a tokio runtime, which runs its tasks.
    CurrentThread = "current_thread",
    /// Worker that gave its tasks away, so that it holds up no other task.
    GaveAway = "gave_away",
    /// Task of a runtime.
    Task = "task",
    /// Runtime.
    Runtime = "runtime",
    /// Idle thread of a rayon pool.
    RayonIdle = "rayon_idle",
    /// Lock of std, `parking_lot`, `DashMap` or C.
    Lock = "lock",
    /// Wait at a channel, of a thread that has nothing to do.
    Channel = "channel",
    /// Call that gives work to a blocking thread.
    HandsOver = "hands_over",
    /// Lock of the runtime to which a task is given.
    Scheduler = "scheduler",
    /// Call that blocks its thread until a future ends.
    BlockOn = "block_on",
    /// Call that waits for rayon's threads.
    WaitsForRayon = "waits_for_rayon",
    /// Blocking look-up of a host's name.
    NameLookup = "name_lookup",
    /// Wait of the kernel for the other end of a pipe.
    Pipe = "pipe",
    /// Wait of `SQLite` until another connection has written.
    SqliteBusy = "sqlite_busy",
    /// `SQLite` as it begins to read.
    SqliteRead = "sqlite_read",
    /// `SQLite` as it runs a statement.
    SqliteRuns = "sqlite_runs",
    /// Set of futures that are polled together.
    Set = "set",
    /// Connection that is no request any more, such as a `WebSocket`.
    Upgraded = "upgraded",
    /// Call that opens a file.
    OpensFile = "opens_file",
    /// Reads or writes a few bytes.
    ReadsFew = "reads_few",
    /// Reads more than it is asked for and keeps it, or writes many pieces at once.
    Buffers = "buffers",
    /// Takes datagrams out of a socket, or waits until it can.
    ReceivesDatagrams = "receives_datagrams",
    /// File whose reads and writes are jobs of the blocking pool.
    FileJobs = "file_jobs",
    /// Opens a TCP connection.
    Connects = "connects",
    /// Wakes all who wait, for each message, or may do so.
    WakesAll = "wakes_all",
    /// Ends its tasks when it is dropped.
    EndsTasks = "ends_tasks",
}

impl PartMeaning {
    /// Returns whether a function's name has this meaning.
    pub fn fits(self, function: &str) -> bool {
        self.names().iter().any(|part| function.contains(part))
    }
}

static PUBLIC: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let mut names = Vec::new();
    for row in rows("Public names") {
        if let [inside, public] = row[..] {
            names.push((name(inside), name(public)));
        }
    }
    names
});

/// Returns the path by which users import the item at `path`.
pub fn public_path(path: String) -> String {
    for (inner, outer) in PUBLIC.iter() {
        if let Some(rest) = path.strip_prefix(inner) {
            // `unbounded::UnboundedSender` is `UnboundedSender`.
            let mut rest = rest;
            if outer.ends_with("Unbounded") {
                rest = rest.strip_prefix("Unbounded").unwrap_or(rest);
            }
            return format!("{outer}{rest}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meaning_has_a_name_and_every_name_a_meaning() {
        let mut names = 0;
        for meaning in PathMeaning::ALL {
            assert!(!meaning.names().is_empty(), "{meaning:?}");
            names += meaning.names().len();
        }
        assert_eq!(names, rows("Paths").len());
        names = 0;
        for meaning in PartMeaning::ALL {
            assert!(!meaning.names().is_empty(), "{meaning:?}");
            names += meaning.names().len();
        }
        assert_eq!(names, rows("Parts of names").len());
        assert!(carriers().len() > 40 && PUBLIC.len() > 15);
    }

    #[test]
    fn a_path_lies_within_a_module_and_not_within_the_beginning_of_a_name() {
        assert!(PathMeaning::Primitive.fits("tokio::sync"));
        assert!(PathMeaning::Primitive.fits("tokio::sync::Mutex::lock"));
        assert!(!PathMeaning::Primitive.fits("tokio::synchronized"));
        assert!(PathMeaning::Internal.fits("tokio::sync::batch_semaphore::Acquire::poll"));
    }

    #[test]
    fn frameworks_bring_requests_and_runtimes_do_not() {
        assert!(carries_requests("axum::routing::Route::call"));
        assert!(carries_requests("hyper_util::server::conn::auto::serve"));
        assert!(carries_requests("actix_web::service::call"));
        assert!(!carries_requests("tokio::runtime::task::raw::poll"));
        assert!(!carries_requests("shop::visit"));
    }

    #[test]
    fn functions_await_sockets_and_channels_and_not_libraries_that_compute() {
        for awaited in [
            "tokio::net::tcp::stream::TcpStream::connect::{{closure}}",
            "<tokio::sync::broadcast::Recv<T> as core::future::future::Future>::poll",
            "async_channel::Sender<T>::try_send",
            "mio::sys::unix::selector::Selector::register",
        ] {
            assert!(is_awaited(awaited), "{awaited}");
        }
        for computes in [
            "serde_json::de::from_str",
            "http::header::map::HeaderMap<T>::insert",
            "shop::visit",
        ] {
            assert!(!is_awaited(computes), "{computes}");
        }
    }

    #[test]
    fn users_import_by_public_names() {
        let public = |path: &str| public_path(path.to_owned());
        assert_eq!(public("tokio::sync::mutex::Mutex"), "tokio::sync::Mutex");
        let sender = "tokio::sync::mpsc::unbounded::UnboundedSender::send";
        assert_eq!(public(sender), "tokio::sync::mpsc::UnboundedSender::send");
        assert_eq!(public("shop::sync"), "shop::sync");
    }
}
