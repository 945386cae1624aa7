//! The line of an incident in the service's log.

/// Writes a warning to the service's log: through `tracing` if it has a subscriber, else through `log` if it has a
/// logger, else to standard error.
pub(crate) fn warn(line: &str) {
    #[cfg(feature = "tracing")]
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "debug_endpoints::incidents", "{line}");
        return;
    }
    #[cfg(feature = "log")]
    if log::max_level() >= log::LevelFilter::Warn {
        log::warn!(target: "debug_endpoints::incidents", "{line}");
        return;
    }
    // Standard error may be closed.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
}
