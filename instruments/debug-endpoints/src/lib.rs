//! Profiles of a running service, over HTTP: CPU, heap, what its requests wait for and where its threads are blocked, a
//! heartbeat of its runtime, and metrics. What Go's `net/http/pprof` is there, for async Rust.
//!
//! # An axum service
//!
//! Three lines, marked here, and in the Cargo profile `debug = "limited"` and `strip = "none"`, so that frames have names:
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
//! The listener has a thread of its own, so it answers also while the service's runtime is stalled, which is when one
//! wants to ask. It answers to this machine alone. [`DebugEndpoints::router`] puts the same endpoints on the service's own
//! port, for whoever has a token.
//!
//! # Any other service
//!
//! The layer fits every tower service of HTTP requests. Warp's filters become one, which `hyper_util`'s
//! `TowerToHyperService` serves. Its requests are named by method and path; tonic's by service and method, with
//! `Server::builder().layer(debug.profiler().layer_named(GrpcMethod).with_bodies())`. Without `with_bodies` the
//! streams of either are not seen:
//!
//! ```
//! use warp::Filter;
//!
//! # fn example() -> Result<(), debug_endpoints::ListenError> {
//! let debug = debug_endpoints::DebugEndpoints::new();
//! debug.listen("127.0.0.1:6060")?;
//! let routes = warp::path!("hello").map(|| "hello");
//! let service = tower::ServiceBuilder::new()
//!     .layer(debug.profiler().layer().with_bodies())
//!     .service(warp::service(routes));
//! # let _ = service;
//! # Ok(())
//! # }
//! ```
//!
//! # More than one runtime
//!
//! Heartbeat and metrics watch the runtime in which the `DebugEndpoints` were made. Add others by
//! [`DebugEndpoints::runtime`] or, where each worker makes one as those of actix do, by
//! [`DebugEndpoints::watch_current_runtime`]. The heartbeat says when the process has more than it watches.
//!
//! # What there is
//!
//! | path | answer |
//! | --- | --- |
//! | `/debug/pprof/profile?seconds=N` | CPU profile, gzipped pprof protobuf (`&format=folded`, `svg`) |
//! | `/debug/pprof/flamegraph?seconds=N` | the same as a flamegraph (`&idle=true` draws idle time too) |
//! | `/debug/pprof/last?format=…` | the last CPU profile again, in another format |
//! | `/debug/await?seconds=N` | what requests wait for, folded stacks (`&format=svg`, `pprof`, `json`) |
//! | `/debug/pprof/await?seconds=N` | the same as gzipped pprof protobuf, for collectors |
//! | `/debug/await/last?format=…` | the last await profile again, in another format |
//! | `/debug/pprof/heap` | who keeps memory, gzipped pprof protobuf (build with the feature `jemalloc`) |
//! | `/debug/heap?seconds=N` | heap profile for dhat's viewer (build with the feature `heap`) |
//! | `/debug/threads?seconds=N` | what each thread does and where it is blocked, folded stacks (`&format=svg`, `json`) |
//! | `/debug/threads/last?format=…` | the last profile of threads again, in another format |
//! | `/debug/heartbeat?seconds=N` | how late the runtimes and their blocking pools are, JSON |
//! | `/debug/memory?seconds=N` | what of the memory is live, what the allocator keeps, and which grows, JSON |
//! | `/debug/sockets?seconds=N` | connections opened and accepted, by address, and what waits in them (`&format=json`) |
//! | `/debug/look?seconds=N` | all of them at once, and what they say together (`&format=json`) |
//! | `/debug/metrics` | metrics of runtime and process, and the service's own, Prometheus text |
//!
//! A listener has them all, a list of them at `/`, and `/metrics` too. Each of its connections answers one
//! request; clients that are owed no answer give way to new ones, and it answers while the service is out of file
//! descriptors. `N` is at most 600, and 10
//! where it is left out. One profile has at most a million samples.
//!
//! # Who may ask
//!
//! A listener answers this machine, by the name `localhost` or an address of loopback: it refuses a name that leads here
//! by accident or by DNS rebinding, and what a page of another site embeds. Others need a
//! [token](DebugEndpoints::token).
//!
//! The router is on the service's own port. Behind a proxy on the same machine every request comes from this machine,
//! so without a token it refuses everybody, unless the author
//! [vouches](DebugEndpoints::trust_loopback) that there is no proxy.
//!
//! # What it costs
//!
//! Nothing runs while nobody asks: no thread samples, no timer ticks. The layer costs each request what
//! an armed [`AwaitProfiler`] does, about a microsecond. There is one profile at a time of each kind in the
//! process, and one by dhat beside no other; whoever asks for a second is answered 409. Those of CPUs and of
//! waiting can be taken at the same time; then each has in it what the other one costs. The last CPU
//! profile and the last await profile stay in memory.
//!
//! A profile of threads stops each of them for a moment, by ptrace, and no more than once while it sleeps; no call of
//! the service's fails for it on x86-64. The crate's README says more.
//!
//! While nobody asks, the endpoints take about a megabyte. Reading the names of functions takes up to three times the
//! program's size, which is given back: a program of 40 MB went from 9 MB to **125 MB in a look**, and had 25 MB afterwards.
//! Where the cgroup's `memory.max`, `RLIMIT_DATA` or `RLIMIT_AS` leaves too little, and where the system starts no thread,
//! the answer is 503 with a sentence.
//!
//! A CPU profile has SIGPROF sent to each thread by a timer of its CPU time. Its handler copies registers and 64 KiB of
//! the stack; it takes no lock and allocates nothing. It refuses to run beside another profiler's.
//!
//! # Heap profiles in production
//!
//! With the feature `jemalloc`, make `debug_endpoints::Jemalloc` the allocator and start the service with
//! `_RJEM_MALLOC_CONF=prof:true` in its environment: jemalloc then samples an allocation each 512 KiB.
//!
//! # Elsewhere than on Linux
//!
//! CPU profiles and those of threads need Linux, on x86-64 or aarch64. Elsewhere their endpoints answer 501 with a
//! sentence, and all others work. Memory, sockets, the number of threads and runtimes that nobody watches are told on
//! Linux only.

mod allocator;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
mod cpu_names;
mod cpu_profile;
mod cpu_profiler;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
mod cpu_sampler;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
mod cpu_samples;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
mod cpu_signal;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
mod cpu_timer;
mod debug_endpoints;
mod descriptors;
mod endpoints;
mod error;
mod evidence;
mod guard;
mod heap_profile;
mod heartbeat;
mod jemalloc;
mod last;
mod limits;
mod listener;
mod look;
mod memory;
mod memory_left;
mod metrics;
mod own_thread;
mod permit;
mod runtimes;
mod shared;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(not(target_os = "linux"))]
#[path = "no_sockets.rs"]
mod sockets;
#[cfg(target_os = "linux")]
mod tcp_socket;
mod thread_flamegraph;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
mod threads;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
)))]
#[path = "no_threads.rs"]
mod threads;
mod waits;

pub use await_profile::{AwaitProfiler, GrpcMethod, MatchedRoute, inherit};
pub use debug_endpoints::DebugEndpoints;
pub use error::{ListenError, TokenError};
/// The allocator that `/debug/pprof/heap` is about: `#[global_allocator] static ALLOCATOR: Jemalloc = Jemalloc;`
/// in the service's `main.rs`.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
pub use tikv_jemallocator::Jemalloc;
