//! Values to drop when a server stops, however it stops: a process that exits drops nothing by itself.

use std::any::Any;
use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex};

use crate::locked;

/// Values, such as temporary folders, that are dropped last.
#[derive(Clone, Default)]
pub(crate) struct Cleanup(Arc<Mutex<Vec<Box<dyn Any + Send>>>>);

impl Cleanup {
    pub(crate) fn add(&self, value: impl Send + 'static) {
        locked(&self.0).push(Box::new(value));
    }

    /// Drops all of them.
    pub(crate) fn run(&self) {
        locked(&self.0).clear();
    }

    /// Starts a thread that ends the process when its standard input closes, whatever else the process does.
    pub(crate) fn stop_with_stdin(&self) {
        let cleanup = self.clone();
        std::thread::spawn(move || {
            let mut rest = [0; 64];
            while std::io::stdin()
                .read(&mut rest)
                .is_ok_and(|count| count > 0)
            {}
            cleanup.run();
            std::process::exit(0);
        });
    }
}

/// Removes, when it is dropped, the temporary files that this process has open by a name: pprof has one
/// for samples that no memory is left for, and leaves it. Linux alone tells the names.
pub(crate) struct OpenFiles;

impl Drop for OpenFiles {
    fn drop(&mut self) {
        let folder = std::env::temp_dir();
        let handles = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
        for file in handles
            .flatten()
            .flat_map(|handle| handle.path().read_link())
        {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if file.parent() == Some(&folder) && name.starts_with(".tmp") {
                let _ = std::fs::remove_file(&file);
            }
        }
    }
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cleanup")
    }
}
