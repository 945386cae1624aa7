//! Status of this process, as Linux reports it.

#[cfg(target_os = "linux")]
use std::{fs::File, os::unix::fs::FileExt, sync::OnceLock};

/// Reads `/proc/self/status` from a file that stays open, so that it works in a service that is out of file
/// descriptors.
#[cfg(target_os = "linux")]
pub(crate) fn own_status() -> Option<String> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let file = FILE.get_or_init(|| File::open("/proc/self/status").ok());
    // The kernel writes the file anew, some 1,500 bytes, for each read at its beginning.
    let mut text = vec![0; 8192];
    let length = file.as_ref()?.read_at(&mut text, 0).ok()?;
    text.truncate(length);
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns nothing: only Linux has it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn own_status() -> Option<String> {
    None
}

/// Returns the number after `name` in the text of `/proc/self/status`.
pub(crate) fn status_field(status: &str, name: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_threads_and_memory() {
        let status = own_status().expect("this is Linux");
        assert!(status_field(&status, "Threads:").is_some_and(|threads| threads >= 1.0));
        assert!(status_field(&status, "VmHWM:").is_some_and(|kib| kib > 100.0));
        assert_eq!(status_field(&status, "NoSuch:"), None);
    }
}
