//! What chapters write down, what runs show, and what people read of it: from records of runs that never ran. Nothing is
//! started here, so it is one program: each takes some seconds to link.

mod analysis;
mod measurement;
mod report;
mod support;
