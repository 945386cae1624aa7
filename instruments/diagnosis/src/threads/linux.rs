//! Stacks of threads on Linux: taking them, and finding their names.

mod calls;
mod child;
mod program;
mod resolve;
mod sampler;
mod single;
mod standstill;
mod stops;
mod unwinder;

pub use child::copy_memory;
pub use program::{ProgramFile, open_plain};
pub use resolve::{NamedFrame, Names};
pub use sampler::{Samples, sample, why_refused};
pub use single::{Stopped, Stopper};
pub use standstill::{Piece, Standstill, StillThread};
pub use unwinder::{Call, Unwinder};
