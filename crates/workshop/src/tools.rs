//! The tools that the workshop needs beside Rust: the table in `tools.toml`, and their places on this machine.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use course::bench::recording::nginx;
use serde::Deserialize;

use crate::chapters::Workshop;

/// Content of `tools.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    tools: Vec<Tool>,
}

/// A tool that some command or page needs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// Argument at which it prints its version.
    #[serde(default = "version_option")]
    asked: String,
    /// Only Linux has it.
    #[serde(default)]
    pub(crate) linux_only: bool,
    /// Commands and pages that need it.
    pub(crate) needed_by: String,
    pub(crate) get: Get,
}

/// A way to get a tool. All but the first are `setup`'s.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Get {
    /// An address, or a command of the system's package manager.
    ByHand(String),
    /// Built from a Go module.
    Go {
        module: String,
        version: String,
    },
    /// Built from the crate of the tool's name, by the versions that its own lock file names.
    Cargo {
        version: String,
    },
    /// Python packages, by files that name their versions and hashes.
    Pip {
        requirements: Vec<String>,
    },
    Kernel(Kernel),
    /// Crates that a fix may want, put where cargo keeps its own.
    Crates(Vec<String>),
}

/// Packages of a Linux kernel for the machine with several NUMA nodes.
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

fn version_option() -> String {
    "--version".to_owned()
}

/// Returns the rows of the table.
///
/// The file is compiled in, and a test parses it.
pub(crate) fn all() -> &'static [Tool] {
    static TABLE: OnceLock<Table> = OnceLock::new();
    let read = || toml::from_str(include_str!("../tools.toml")).expect("tools.toml is right");
    &TABLE.get_or_init(read).tools
}

impl Tool {
    /// Returns whether `setup` installs it.
    pub(crate) fn is_installable(&self) -> bool {
        !matches!(self.get, Get::ByHand(_))
    }

    /// Returns whether a reader means it by this name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns its purpose, and how to get it.
    pub(crate) fn remedy(&self) -> String {
        let how = match &self.get {
            Get::ByHand(how) => how.clone(),
            _ => format!("cargo workshop setup {}", self.name.to_lowercase()),
        };
        format!("{}: {how}", self.needed_by)
    }
}

/// A copy of the requirements in a virtual environment, written when all of them are installed.
pub(crate) const VENV_STAMP: &str = "workshop-requirements.txt";

/// The tools of one workshop: `.tools/`.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    root: PathBuf,
    /// Folder of everything that `setup` installs, ignored by git.
    pub(crate) folder: PathBuf,
}

impl Tools {
    pub(crate) fn of(workshop: &Workshop) -> Self {
        Self {
            root: workshop.root().to_owned(),
            folder: workshop.root().join(".tools"),
        }
    }

    pub(crate) fn k6(&self) -> PathBuf {
        self.program("k6")
    }

    pub(crate) fn mdbook(&self) -> PathBuf {
        self.program("mdbook")
    }

    /// Returns the path at which `setup` puts the kernel of the machine with several NUMA nodes.
    pub(crate) fn kernel(&self) -> PathBuf {
        self.folder.join("kernel").join("vmlinuz")
    }

    /// A program that `setup` built.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        self.folder.join("bin").join(file)
    }

    /// The virtual environment that holds Locust.
    pub(crate) fn venv(&self) -> PathBuf {
        self.folder.join("venv")
    }

    /// A program of the virtual environment: `python`, `locust`.
    pub(crate) fn in_venv(&self, name: &str) -> PathBuf {
        let folder = if cfg!(windows) { "Scripts" } else { "bin" };
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        self.venv().join(folder).join(file)
    }

    /// `PATH` with the programs of the virtual environment first.
    pub(crate) fn path_with_venv(&self) -> OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = vec![self.in_venv("locust")];
        folders[0].pop();
        folders.extend(std::env::split_paths(&path));
        // A folder that cannot stand in PATH is none of ours.
        std::env::join_paths(folders).unwrap_or(path)
    }

    /// Returns the version that `setup` installs; `None` for a tool that has none.
    pub(crate) fn pin(&self, tool: &Tool) -> Option<String> {
        match &tool.get {
            Get::Go { version, .. } | Get::Cargo { version } => Some(version.clone()),
            Get::Pip { requirements } => self.locust_pin(requirements),
            _ => None,
        }
    }

    /// Returns the version of a tool that is there.
    pub(crate) fn found(&self, tool: &Tool) -> Option<String> {
        let program = match (&tool.get, tool.name.as_str()) {
            (Get::Pip { requirements }, _) => return self.locust_version(requirements),
            (Get::ByHand(_), "Python") => return Some(python()?.1),
            (Get::ByHand(_), "nginx") => nginx()?,
            (Get::ByHand(_), "PostgreSQL") => postgres()?.join("postgres"),
            (Get::ByHand(_), name) => PathBuf::from(name.to_lowercase()),
            (_, name) => self.program(name),
        };
        version(program, [&tool.asked])
    }

    /// The requirement files that there are, and what they say together.
    pub(crate) fn requirements(&self, names: &[String]) -> (Vec<PathBuf>, String) {
        let mut files = Vec::new();
        let mut texts = String::new();
        for name in names {
            let file = self.root.join(name);
            if file.is_file() {
                texts += &std::fs::read_to_string(&file).unwrap_or_default();
                files.push(file);
            }
        }
        (files, texts)
    }

    /// The Locust that the requirements pin.
    fn locust_pin(&self, requirements: &[String]) -> Option<String> {
        let (_, text) = self.requirements(requirements);
        for line in text.lines() {
            if let Some(rest) = line.trim().strip_prefix("locust==") {
                return rest.split_whitespace().next().map(str::to_owned);
            }
        }
        None
    }

    /// The pinned one if the virtual environment holds just what the requirements say.
    fn locust_version(&self, requirements: &[String]) -> Option<String> {
        if self.venv_is_current(requirements) {
            return self.locust_pin(requirements);
        }
        if self.venv().is_dir() {
            return Some("with other requirements".to_owned());
        }
        None
    }

    /// Returns whether the virtual environment holds exactly what the requirements say.
    pub(crate) fn venv_is_current(&self, requirements: &[String]) -> bool {
        let stamp = std::fs::read_to_string(self.venv().join(VENV_STAMP));
        // The interpreter is a link to one that an update may have removed.
        stamp.is_ok_and(|stamp| stamp == self.requirements(requirements).1)
            && self.in_venv("python").is_file()
    }
}

pub(crate) fn python() -> Option<(PathBuf, String)> {
    for name in ["python3", "python"] {
        // Windows puts a `python3` on the PATH that only opens a shop.
        if let Some(program) = children::find(name)
            && let Some(version) = version(&program, ["--version"])
            && version.starts_with("3.")
        {
            return Some((program, version));
        }
    }
    None
}

pub(crate) fn go() -> Option<(PathBuf, String)> {
    let program = children::find("go")?;
    let version = version(&program, ["version"])?;
    Some((program, version))
}

/// The folder of a `PostgreSQL` server's programs: Debian has one for each version.
pub(crate) fn postgres() -> Option<PathBuf> {
    let mut folders = Vec::new();
    if let Some(program) = children::find("postgres")
        && let Some(folder) = program.parent()
    {
        folders.push(folder.to_owned());
    }
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        for version in versions.flatten() {
            folders.push(version.path().join("bin"));
        }
    }
    folders
        .into_iter()
        .find(|folder| folder.join("postgres").is_file() && folder.join("initdb").is_file())
}

/// The version that a program prints of itself, nginx on standard error: the first word with digits
/// and dots, such as `1.8.1` of `k6 v1.8.1 (go1.26.8, linux/amd64)`.
pub(crate) fn version<S: AsRef<OsStr>>(
    program: impl AsRef<Path>,
    arguments: impl IntoIterator<Item = S>,
) -> Option<String> {
    let mut asked = Command::new(program.as_ref());
    let said = asked.args(arguments).stdin(Stdio::null()).output().ok()?;
    if !said.status.success() {
        return None;
    }
    [said.stdout, said.stderr]
        .iter()
        .find_map(|said| version_in(&String::from_utf8_lossy(said)))
}

fn version_in(text: &str) -> Option<String> {
    for word in text.split_whitespace() {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_alphabetic() || "-/".contains(c));
        let end = digits
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(digits.len());
        let version = digits[..end].trim_matches('.');
        if version.contains('.') {
            return Some(version.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_a_name_of_its_own_and_those_that_are_installed_a_version_or_hash() {
        let mut names = Vec::new();
        for tool in all() {
            names.push(tool.name.to_lowercase());
            match &tool.get {
                Get::Go { version, .. } | Get::Cargo { version } => {
                    let parts: Vec<&str> = version.split('.').collect();
                    assert!(parts.len() == 3, "{version} is no version");
                    assert!(
                        parts.iter().all(|part| part.parse::<u32>().is_ok()),
                        "{version} is no version"
                    );
                }
                Get::Kernel(kernel) => {
                    assert!(kernel.package.contains('='), "{}", kernel.package);
                    assert!(!kernel.newest.is_empty());
                    let is_hex =
                        |digit: char| digit.is_ascii_digit() || ('a'..='f').contains(&digit);
                    assert!(
                        kernel.sha256.len() == 64 && kernel.sha256.chars().all(is_hex),
                        "{} is no SHA-256",
                        kernel.sha256
                    );
                }
                Get::Pip {
                    requirements: names,
                }
                | Get::Crates(names) => assert!(!names.is_empty()),
                Get::ByHand(how) => assert!(!how.is_empty()),
            }
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "two tools of one name: {names:?}");
    }

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (text, version) in [
            ("k6 v1.8.1 (go1.26.8, linux/amd64)", "1.8.1"),
            ("mdbook v0.5.4", "0.5.4"),
            ("go version go1.26.8 linux/amd64", "1.26.8"),
            ("Python 3.11.7", "3.11.7"),
            ("valgrind-3.19.0", "3.19.0"),
            ("rustc 1.95.0 (59807616e 2026-04-14)", "1.95.0"),
            ("git version 2.39.5", "2.39.5"),
            ("nginx version: nginx/1.22.1", "1.22.1"),
        ] {
            assert_eq!(version_in(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(version_in("usage: k6"), None);
    }
}
