//! Stacks of threads on Linux: taking them, and finding their names.

mod calls;
mod program;
mod resolve;
mod sampler;
mod single;
mod stops;
mod unwinder;

pub use program::{ProgramFile, open_plain};
pub use resolve::{NamedFrame, Names};
pub use sampler::{Samples, sample};
pub use single::{Stopped, Stopper};
pub use unwinder::Unwinder;
