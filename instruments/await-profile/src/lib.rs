//! Flamegraphs of what the requests of an async service wait for.
//!
//! A CPU profile of a service that waits for a lock shows an idle machine. This crate draws the
//! other picture. It samples requests in flight, and shows the chain of awaits in which each is suspended, down to
//! the lock, timer, channel or socket. It needs stable Rust and no compiler flags, and works with any executor.
//!
//! # An axum service
//!
//! Two lines put it around every request:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use await_profile::{FlamegraphOptions, ProfileOptions};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let profiler = await_profile::AwaitProfiler::new().armed();
//! let app: axum::Router = axum::Router::new().layer(profiler.layer());
//!
//! // Later, from anywhere:
//! let profile = profiler.profile(ProfileOptions::lasting(Duration::from_secs(10))).await?;
//! std::fs::write("waits.svg", profile.flamegraph(&FlamegraphOptions::default())?)?;
//! # Ok(())
//! # }
//! ```
//!
//! # A warp service
//!
//! Warp's filters become a tower service, which the layer wraps:
//!
//! ```
//! use tower::ServiceBuilder;
//! use warp::Filter;
//!
//! let profiler = await_profile::AwaitProfiler::new().armed();
//! let routes = warp::path!("hello").map(|| "hello");
//! let service = ServiceBuilder::new().layer(profiler.layer()).service(warp::service(routes));
//! # let _ = service;
//! ```
//!
//! `hyper_util::service::TowerToHyperService` lets hyper serve it. The same goes for tonic,
//! and for every other `Service<http::Request<B>>`.
//!
//! # A plain future
//!
//! ```
//! # futures_executor::block_on(async {
//! let profiler = await_profile::AwaitProfiler::new().armed();
//! let answer = profiler.wrap("a job", async { 42 }).await;
//! # assert_eq!(answer, 42);
//! # });
//! ```
//!
//! # Reading a profile
//!
//! A frame's width is its share of the requests in flight, averaged over time. By Little's law
//! that share, times the mean time of a request, is the time that a mean request spends there.
//! Frames in brackets are not functions. They say that a request was ready or running, or why it
//! was not seen where it waited. [`Profile::summary`] has the same as numbers, and
//! [`Profile::releases`] shows which code released what others waited for.
//!
//! Names and lines come from debug information, which release builds do not have by default.
//! `debug = "limited"` and `strip = "none"` in their profile keep all that is needed.
//! `"line-tables-only"` loses the names of inlined functions.
//!
//! A profile with [`ProfileOptions::tail`] also has [`Profile::tail`]: the waits of each route's slowest requests, beside
//! those of the rest. [`AwaitProfiler::count_waits`] counts the seconds of each kind of wait all the time, for metrics.
//!
//! # What it cannot see
//!
//! - The inside of spawned tasks, and of members of a `FuturesUnordered` or `JoinSet`, unless they
//!   are wrapped by [`inherit`]; tasks of no request, such as those of `WebSockets`, unless by [`watch`].
//! - Blocking calls, and code that does not yield.
//! - The inside of wrappers that poll with a waker of their own.
//! - Which of several joined or selected futures matters.
//!
//! The README says more about each.
//!
//! # Features
//!
//! On by default: `tower` (the layers), `flamegraph` (SVG, by inferno), `pprof`
//! (protobuf), `serde` (the summary as data). Off by default: `axum` (routes named as axum matched them), `actix`
//! (middleware for actix-web 4).

#![cfg_attr(docsrs, feature(doc_cfg))]

mod capture;
mod clone_hook;
mod collected;
mod counting;
mod ended;
mod error;
mod fold;
mod frame;
mod frame_kind;
mod function;
mod in_a_row;
mod interval;
mod label;
mod latency;
mod lock;
mod names;
mod options;
mod percentile;
mod poll_guard;
mod probe;
mod profile;
mod profiler;
mod raw_stack;
mod registry;
mod routes;
mod sampler;
mod session;
mod shared;
mod slot;
mod stack;
mod summary;
#[doc(hidden)] // For `debug-endpoints`, which looks names up alike.
pub mod symbols;
mod sync;
mod tail;
mod tail_routes;
mod tail_times;
mod task;
mod timing;
mod tracked;
mod tracking_waker;
mod unpolled;
mod waits_table;
mod watched;

#[cfg(feature = "actix")]
mod actix;
#[cfg(feature = "tower")]
mod body;
#[cfg(feature = "flamegraph")]
mod differential;
#[cfg(feature = "flamegraph")]
pub mod drawing;
#[cfg(feature = "flamegraph")]
mod flamegraph;
#[cfg(feature = "tower")]
mod layer;
#[cfg(target_os = "linux")]
mod libraries;
#[cfg(feature = "pprof")]
mod pprof;
#[cfg(feature = "pprof")]
#[doc(hidden)] // For `debug-endpoints`, whose CPU profiles are written alike.
pub mod profile_proto;

#[cfg(test)]
mod tests;

#[cfg(feature = "actix")]
pub use actix::{AwaitActixService, AwaitMiddleware};
#[cfg(feature = "tower")]
pub use body::{AllBodies, AxumStreams, Bodies, NoBodies, ResponseFuture, TrackedBody};
pub use counting::{CountedWait, RecentWait, RecentWaits, WaitCounts};
#[cfg(feature = "flamegraph")]
pub use differential::differential;
pub use ecosystem::{
    Answers, Frame, Interval, Line, Place, Release, Requests, Route, Sequence, Unpolled, Wait,
    WaitKind, innermost_line, path,
};
#[cfg(feature = "flamegraph")]
pub use error::FlamegraphError;
pub use error::ProfileError;
#[cfg(feature = "flamegraph")]
pub use flamegraph::FlamegraphOptions;
#[doc(hidden)] // For `debug-endpoints` and `look-client`, which name files alike.
pub use frame::portable;
#[doc(hidden)] // For `debug-endpoints`, which tells the reader's own code alike.
pub use frame_kind::is_foreign;
pub use label::Label;
pub use latency::RouteLatency;
#[cfg(feature = "axum")]
pub use layer::MatchedRoute;
#[cfg(feature = "tower")]
pub use layer::{AwaitLayer, AwaitService, GrpcMethod, MethodAndPath, RouteName};
pub use options::ProfileOptions;
pub use percentile::{Percentile, PercentileError};
pub use profile::Profile;
pub use profiler::AwaitProfiler;
#[doc(hidden)] // For `debug-endpoints`, which tells threads that run requests from others.
pub use profiler::has_begun_requests;
pub use stack::Frames;
pub use summary::{Quantiles, Samples, Summary};
pub use tail::{Tail, TailFinding, TailGroup, TailPlace, TailRoute};
#[doc(hidden)] // For `debug-endpoints`, which knows the runtime.
pub use task::tell_tasks_apart;
pub use tracked::{Tracked, inherit};
pub use watched::watch;
