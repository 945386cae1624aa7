//! What an upstream has counted.

/// Connections and requests since the server started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
}
