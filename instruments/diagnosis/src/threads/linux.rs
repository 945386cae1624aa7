//! Stacks of threads on Linux: taking them, and finding their names.

mod calls;
mod resolve;
mod sampler;
mod single;
mod stops;
mod unwinder;

pub use resolve::{NamedFrame, Names};
pub use sampler::{Samples, sample};
pub use single::{Stopped, Stopper};
pub use unwinder::Unwinder;
