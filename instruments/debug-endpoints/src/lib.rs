//! Profiles of a running service, over HTTP: CPU, heap, waits of requests, blocked threads, a heartbeat (how late tasks
//! of the runtime run), and metrics. It is for tokio what `net/http/pprof` is for Go.
//!
//! # An axum service
//!
//! Enable the feature `axum`, and add the three numbered lines. In the Cargo profile, set `debug = "limited"` and `strip = "none"`, so that frames
//! have names:
//!
//! ```no_run
//! # use axum::{Router, routing::get};
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let debug = debug_endpoints::DebugEndpoints::new(); // 1
//! debug.listen("127.0.0.1:6060")?; // 2: http://127.0.0.1:6060/debug
//! let app = Router::new()
//!     .route("/", get(async || "hello"))
//!     .layer(debug.layer()); // 3: these requests are in the await profile
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! axum::serve(listener, app).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The listener has a thread of its own, so it answers even while the service's runtime is stalled. It answers only
//! programs of this machine. `DebugEndpoints::router` (feature `axum`) puts the same endpoints on the service's own port, for clients
//! with a token.
//!
//! # Any other service
//!
//! The listener needs no web framework. Each framework is a feature:
//!
//! - `actix`: `App::new().wrap(debug.actix())`, in the closure that `HttpServer::new` takes.
//! - `tower`: `debug.profiler().layer()` fits every tower service of HTTP requests. For tonic, the layer is
//!   `Server::builder().layer(debug.profiler().layer_named(GrpcMethod).with_bodies())`, which names requests by service
//!   and method. Warp's filters become a tower service; requests are named by method and path. `with_bodies` shows
//!   streamed bodies of warp and tonic, too.
//! - Without a feature, [`AwaitProfiler::wrap`] takes the future that answers a request of hyper, or handles a message.
//!   [`watch`] takes a task that runs for long.
//!
//! ```
//! # async fn handle(_: u32) {}
//! # async fn example(mut messages: tokio::sync::mpsc::Receiver<u32>) -> Result<(), debug_endpoints::ListenError> {
//! let debug = debug_endpoints::DebugEndpoints::new();
//! debug.listen("127.0.0.1:6060")?;
//! while let Some(message) = messages.recv().await {
//!     debug.profiler().wrap("orders", handle(message)).await;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # More than one runtime
//!
//! Heartbeat and metrics watch the runtime in which the `DebugEndpoints` were made. Add others with
//! [`DebugEndpoints::runtime`], or by [`DebugEndpoints::watch_current_runtime`] from one of their threads. The heartbeat says if there are runtimes that it does not watch.
//!
//! # Endpoints
//!
//! Folded stacks are text: one line for each chain of calls, with its weight. `go tool pprof` and collectors read pprof.
//!
//! | path | answer |
//! | --- | --- |
//! | `/debug/pprof/profile?seconds=N` | CPU profile, gzipped pprof protobuf (`&format=folded`, `svg`) |
//! | `/debug/pprof/flamegraph?seconds=N` | the same as a flamegraph (`&idle=true` draws idle time too) |
//! | `/debug/pprof/last?format=…` | the last CPU profile again, in another format |
//! | `/debug/await?seconds=N` | what requests wait for, folded stacks (`&format=svg`, `pprof`, `json`) |
//! | `/debug/pprof/await?seconds=N` | the same as gzipped pprof protobuf, for collectors |
//! | `/debug/await?seconds=N&tail=99` | what the slowest 1 % of each route's requests wait for (`&format=svg`, `json`) |
//! | `/debug/await/last?format=…` | the last await profile again, in another format |
//! | `/debug/await/recent` | where the requests of the last five minutes were, by route and line, JSON |
//! | `/debug/pprof/heap` | code that allocated the memory in use, gzipped pprof protobuf (build with the feature `jemalloc`) |
//! | `/debug/heap?seconds=N` | heap profile for the viewer of [dhat](https://docs.rs/dhat) (build with the feature `heap`) |
//! | `/debug/threads?seconds=N` | what each thread does and where it is blocked, folded stacks (`&format=svg`, `json`, `&idle=true`, `&all=true`) |
//! | `/debug/threads/last?format=…` | the last profile of threads again, in another format |
//! | `/debug/tasks` | all tasks of the runtimes: where each waits, what it holds, who waits for whom, and deadlocks (`?of=NAME`, `&format=json`, `html`, `svg`) |
//! | `/debug/heartbeat?seconds=N` | how long tasks and jobs of the blocking pool wait to run, JSON |
//! | `/debug/memory?seconds=N` | memory that is live, memory that the allocator keeps, and which of them grows, JSON |
//! | `/debug/sockets?seconds=N` | connections opened and accepted, by address, data that waits in them, and lost datagrams (`&format=json`) |
//! | `/debug/look?seconds=N` | waits, threads, CPU, heartbeat, memory and sockets at once, and what they say together (`&tail=99`, `&format=json`) |
//! | `/debug/incidents` | the last moments at which the service was [stuck, too slow or short of something](Incidents), with stacks (`?format=json`) |
//! | `/debug/metrics` | metrics of runtime and process, and the service's own, Prometheus text |
//!
//! A listener also has a list of them at `/`, and the metrics at `/metrics`. Each connection gets one answer, and idle
//! connections are closed to make room for new ones. A listener answers even while the service is out of file
//! descriptors. `N` is at most 600; the default is 10. A profile may have at most a million samples.
//!
//! # Access
//!
//! A listener answers this machine, by the name `localhost` or an address of loopback. It refuses every other name, so
//! a web site cannot make its own name point here (DNS rebinding). It also refuses requests that a page of another site, or of
//! another port, embeds.
//! Other machines need a [token](DebugEndpoints::token).
//!
//! The router is on the service's own port. Behind a proxy on the same machine, every request comes from this machine. So
//! without a token the router refuses everybody, unless you vouch by `trust_loopback()` that there is no proxy.
//!
//! # Costs
//!
//! Nothing runs while nobody asks, unless the service [records incidents](DebugEndpoints::record_incidents) or [counts
//! waits](DebugEndpoints::count_waits): no thread takes samples, and no timer runs. The layer registers every request, even
//! while no profile is taken ([`AwaitProfiler::armed`]), which costs about a microsecond. While the page at `/debug` is
//! visible, and half a minute longer, waits are counted for it.
//!
//! The process takes one profile of each kind at a time, and a second request is answered 409. A heap profile by dhat
//! excludes all other profiles. CPU and await profiles can be taken at the same time, but each then includes the cost of
//! the other. The last profiles of CPU, waits and threads stay in memory.
//!
//! A profile of threads stops each thread for a moment, by [ptrace](https://man7.org/linux/man-pages/man2/ptrace.2.html),
//! and at most once while it sleeps. On x86-64, no call of the service fails because of it. The README says more.
//!
//! While nobody asks, the endpoints take about a megabyte. Reading the names of functions takes up to three times the
//! program's size, which is given back: a program of 40 MB went from 9 MB to **125 MB in a look**, and had 25 MB
//! afterwards. The answer is 503, and says why, if the cgroup's `memory.max`, `RLIMIT_DATA` or `RLIMIT_AS` leaves too
//! little memory, or if no thread can be started.
//!
//! While glibc counts live memory for a look, threads that allocate wait: some 10 ms for 100,000 free pieces. If a sample of
//! its heaps shows more, it is not asked, and the answer says so.
//!
//! For a CPU profile, a timer of each thread's CPU time sends SIGPROF to that thread. The handler copies registers and
//! up to 64 KiB of the stack; it takes no lock and allocates nothing. The profiler refuses to run beside another
//! handler of SIGPROF. If the service begins a profiler of its own during a profile, the profile ends early, and leaves
//! that handler in force. A thread that blocks SIGPROF, or whose stack has no room for a signal (less than 64 KiB between
//! guard pages, or an alternate stack of less than 6 KiB), is stopped for each sample instead. CPU time without a sample is
//! said with the profile.
//!
//! # Heap profiles in production
//!
//! With the feature `jemalloc`, make `debug_endpoints::Jemalloc` the allocator and start the service with
//! `_RJEM_MALLOC_CONF=prof:true` in its environment. Jemalloc then samples one allocation every 512 KiB, on average.
//!
//! # Lines whose memory stays
//!
//! With `#[global_allocator] static ALLOCATOR: debug_endpoints::WatchedAllocator = debug_endpoints::WatchedAllocator::system();` a look
//! names the lines that allocate what is not freed. It samples one allocation every 512 KiB, on average, and only during a
//! look.
//!
//! # Systems other than Linux
//!
//! CPU and thread profiles need Linux, on x86-64 or aarch64. Only Linux reports memory, sockets, the number of threads,
//! and runtimes that are not watched. An endpoint that the system does not support answers 501, and says why.

mod allocator;
mod answer;
mod cpu_profile;
mod cpu_profiler;
mod debug_endpoints;
mod descriptors;
mod endpoints;
mod error;
mod evidence;
mod guard;
mod heap_profile;
mod heartbeat;
mod incidents;
mod jemalloc;
mod last;
mod limits;
mod listener;
mod look;
mod memory;
mod memory_left;
mod metrics;
mod missing_names;
mod own_status;
mod own_thread;
mod page;
#[cfg(feature = "axum")]
mod peer;
mod permit;
mod recent;
mod runtimes;
mod sampled_picture;
mod shared;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(not(target_os = "linux"))]
#[path = "no_sockets.rs"]
mod sockets;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
mod stacks;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
)))]
#[path = "no_stacks.rs"]
mod stacks;
mod tail;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "tasks"
))]
mod tasks;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "tasks"
)))]
#[path = "no_tasks.rs"]
mod tasks;
mod thread_flamegraph;
mod waits;

#[cfg(feature = "actix")]
pub use await_profile::AwaitMiddleware;
#[cfg(feature = "axum")]
pub use await_profile::MatchedRoute;
pub use await_profile::{AwaitProfiler, WaitKind, inherit, watch};
#[cfg(feature = "tower")]
pub use await_profile::{GrpcMethod, MethodAndPath};
pub use debug_endpoints::DebugEndpoints;
pub use error::{ListenError, TokenError};
pub use incidents::options::Incidents;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
pub use stacks::WatchedAllocator;
/// Allocator that `/debug/pprof/heap` profiles. The service's `main.rs` makes it the global one:
/// `#[global_allocator] static ALLOCATOR: Jemalloc = Jemalloc;`.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
pub use tikv_jemallocator::Jemalloc;
