//! The log file.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::fmt::format::FmtSpan;

/// Writes all that is logged to `shop.log`.
pub fn init(folder: &Path) -> io::Result<()> {
    let file = File::create(folder.join("shop.log"))?;
    tracing_subscriber::fmt()
        .with_writer(Mutex::new(file))
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE)
        .init();
    Ok(())
}
