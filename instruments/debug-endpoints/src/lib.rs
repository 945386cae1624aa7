//! Profiles of a running service, over HTTP: CPU, heap, what its requests wait for and where its threads are blocked, a
//! heartbeat of its runtime, and metrics. What Go's `net/http/pprof` is there, for async Rust.
//!
//! # An axum service
//!
//! Four lines, marked here, and `debug = "limited"` in the Cargo profile, so that frames have names:
//!
//! ```no_run
//! use std::net::SocketAddr;
//! # use axum::{Router, routing::get};
//! # #[tokio::main]
//! # async fn main() -> std::io::Result<()> {
//!
//! let debug = debug_endpoints::DebugEndpoints::new(); // 1
//! let app = Router::new()
//!     .route("/", get(async || "hello"))
//!     .layer(debug.layer()) // 2: these requests are in the await profile
//!     .merge(debug.router()); // 3: /debug/…
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! // 4: who asks has to be known, because only this machine may.
//! let app = app.into_make_service_with_connect_info::<SocketAddr>();
//! axum::serve(listener, app).await
//! # }
//! ```
//!
//! # Any other service
//!
//! A listener of its own, on a thread of its own: it answers also while the service's runtime is
//! stalled, which is when one wants to ask. The layer fits every tower service of HTTP requests.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), debug_endpoints::ListenError> {
//! let debug = debug_endpoints::DebugEndpoints::new();
//! let address = debug.listen("127.0.0.1:0")?; // 6060 is what people try first.
//! println!("profiles are at http://{address}/debug");
//! # Ok(())
//! # }
//! ```
//!
//! Three lines for warp, whose filters become a tower service that `hyper_util`'s `TowerToHyperService` serves. Its
//! requests are named by method and path; tonic's by service and method, with
//! `Server::builder().layer(debug.profiler().layer_named(GrpcMethod).with_bodies())`. Without `with_bodies` what streams of
//! either wait for is not seen:
//!
//! ```
//! use warp::Filter;
//!
//! # fn example() -> Result<(), debug_endpoints::ListenError> {
//! let debug = debug_endpoints::DebugEndpoints::new(); // 1
//! debug.listen("127.0.0.1:6060")?; // 2
//! let routes = warp::path!("hello").map(|| "hello");
//! let service = tower::ServiceBuilder::new()
//!     .layer(debug.profiler().layer().with_bodies()) // 3
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
//! This machine, by the name `localhost` or an address of loopback: a name that leads here by accident or
//! by DNS rebinding is refused, and so is what a page of another site embeds. Others need a
//! [token](DebugEndpoints::token).
//!
//! Behind a proxy on the same machine every request comes from this machine. Without a token, the router refuses
//! what has a header of proxies (`X-Forwarded-…`, `Forwarded`, `Via`, `X-Real-IP`, …) or is HTTP/1.0, but a proxy
//! need not show itself: **set a token**, and let the proxy keep `/debug` to itself.
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
//! The first CPU profile allocates that profiler's tables, **about 100 MB of resident memory** that stay. Where that is
//! too much, leave out the default feature `cpu`, and take CPU profiles with perf. A CPU profile also needs a
//! folder for temporary files that can be written to; none is left there.
//!
//! # Heap profiles in production
//!
//! With the feature `jemalloc`, make `debug_endpoints::Jemalloc` the allocator and start the service with
//! `_RJEM_MALLOC_CONF=prof:true` in its environment: jemalloc then samples an allocation each 512 KiB.
//!
//! # Elsewhere than on Linux
//!
//! CPU profiles need a Unix system, and those of threads need Linux. Elsewhere their endpoints answer 501 with a
//! sentence, and all others work. Memory, sockets, the number of threads and runtimes that nobody watches are told on
//! Linux only.

mod allocator;
#[cfg(all(unix, feature = "cpu"))]
mod cpu_names;
mod cpu_profile;
mod cpu_profiler;
#[cfg(all(unix, feature = "cpu"))]
mod cpu_sampler;
mod debug_endpoints;
mod endpoints;
mod error;
mod guard;
mod heap_profile;
mod heartbeat;
mod jemalloc;
mod last;
mod limits;
mod listener;
mod look;
mod memory;
mod metrics;
mod own_thread;
mod permit;
mod runtimes;
mod shared;
#[cfg(all(unix, feature = "cpu"))]
mod sigprof;
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
