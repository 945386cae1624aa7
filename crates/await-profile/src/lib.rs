//! A flamegraph of what the requests of an async service are waiting for.
//!
//! A CPU profile of a service that waits for a lock shows an idle machine. This
//! crate draws the other picture: of all requests in flight, sampled over time, the
//! chain of awaits that each is suspended in, down to the lock, timer, channel or
//! socket. Stable Rust, no compiler flags, any executor, two lines:
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

mod children;
mod clone_hook;
mod fold;
mod frames;
mod known;
mod names;
mod noted;
mod probe;
mod profile;
mod profiler;
mod registry;
mod sampler;
mod session;
mod slot;
mod stack;
mod summary;
mod symbols;
mod tracked;
mod turn;
mod view;

#[cfg(feature = "tower")]
mod body;
#[cfg(feature = "flamegraph")]
mod differential;
#[cfg(feature = "flamegraph")]
mod flamegraph;
#[cfg(feature = "tower")]
mod layer;
#[cfg(feature = "pprof")]
mod pprof;

#[cfg(feature = "tower")]
pub use body::{BodyLayer, BodyService, TrackedBody};
pub use children::{Inherited, inherit};
#[cfg(feature = "flamegraph")]
pub use differential::differential;
#[cfg(feature = "flamegraph")]
pub use flamegraph::{FlamegraphError, FlamegraphOptions};
pub use fold::Share;
pub use frames::Frames;
pub use hdrhistogram;
#[cfg(feature = "tower")]
pub use layer::{AwaitLayer, AwaitService, MethodAndPath, ResponseFuture, RouteName};
pub use profile::Profile;
pub use profiler::{AwaitProfiler, ProfileError, ProfileOptions};
pub use summary::{Quantiles, RouteSummary, Samples, Summary};
pub use tracked::Tracked;
