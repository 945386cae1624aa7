//! `pins.toml`: the versions that `setup` installs.

use std::sync::OnceLock;

use serde::Deserialize;

/// Content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pins {
    pub(crate) k6: String,
    pub(crate) mdbook: String,
    pub(crate) flamegraph: String,
    pub(crate) samply: String,
    /// Crates that a fix may want.
    pub(crate) crates: Vec<String>,
    pub(crate) kernel: Kernel,
}

/// Packages of a Linux kernel for the emulated machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    /// Package with its version, as apt takes it.
    pub(crate) package: String,
    /// Hash of the package's file, in hexadecimal.
    pub(crate) sha256: String,
    /// Packages that depend on a distribution's newest kernel, in the order in which they are tried.
    pub(crate) newest: Vec<String>,
}

/// Returns the pinned versions.
///
/// The file is compiled in, and a test parses it.
pub(crate) fn pins() -> &'static Pins {
    static PINS: OnceLock<Pins> = OnceLock::new();
    PINS.get_or_init(|| toml::from_str(include_str!("../pins.toml")).expect("pins.toml is right"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_a_version_of_each_tool_and_a_hash_of_the_kernel() {
        let Pins {
            k6,
            mdbook,
            flamegraph,
            samply,
            crates,
            kernel,
        } = pins();
        for version in [k6, mdbook, flamegraph, samply] {
            let parts: Vec<&str> = version.split('.').collect();
            assert!(parts.len() == 3, "{version} is no version");
            assert!(
                parts.iter().all(|part| part.parse::<u32>().is_ok()),
                "{version} is no version"
            );
        }
        assert!(!crates.is_empty() && !kernel.newest.is_empty());
        assert!(kernel.package.contains('='), "{}", kernel.package);
        let is_hex = |digit: char| digit.is_ascii_digit() || ('a'..='f').contains(&digit);
        assert!(
            kernel.sha256.len() == 64 && kernel.sha256.chars().all(is_hex),
            "{} is no SHA-256",
            kernel.sha256
        );
    }
}
