//! Taking stacks of threads.

mod calls;
mod resolve;
mod sampler;
mod stops;
mod unwinder;

pub use resolve::{NamedFrame, Names};
pub use sampler::{Samples, sample};
pub use unwinder::Unwinder;
