//! The programs that the workshop needs beside Rust, in one table: their purposes and their paths.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) use course::bench::recording::nginx;

use crate::chapters::Workshop;
use crate::cli::Tool;
use crate::pins::pins;

/// A program that some command or page needs.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Name for `setup`, and the version that `setup` installs.
    pub(crate) pinned: Option<(Tool, Version)>,
    /// The version that is there.
    pub(crate) found: Version,
    /// Purpose of the program, and how to get it.
    pub(crate) needed: &'static str,
}

type Version = fn(&Tools) -> Option<String>;

/// All of them. `setup` installs those that are pinned, `doctor` looks for each.
pub(crate) const PROGRAMS: [Program; 12] = [
    Program {
        name: "git",
        pinned: None,
        found: |_| version("git", ["--version"]),
        needed: "cargo workshop steps needs it: https://git-scm.com",
    },
    Program {
        name: "k6",
        pinned: Some((Tool::K6, |_| Some(pins().k6.clone()))),
        found: |tools| version(tools.k6(), ["version"]),
        needed: "load --with k6: cargo workshop setup k6",
    },
    Program {
        name: "mdbook",
        pinned: Some((Tool::Mdbook, |_| Some(pins().mdbook.clone()))),
        found: |tools| version(tools.mdbook(), ["--version"]),
        needed: "reading the book in a browser: cargo workshop setup mdbook",
    },
    Program {
        name: "Locust",
        pinned: Some((Tool::Locust, Tools::locust_pin)),
        found: Tools::locust_version,
        needed: "load --with locust: cargo workshop setup locust",
    },
    Program {
        name: "Go",
        pinned: None,
        found: |_| Some(go()?.1),
        needed: "building k6, chapter 4's baseline, and go tool pprof: https://go.dev/dl",
    },
    Program {
        name: "nginx",
        pinned: None,
        found: |_| version(nginx()?, ["-v"]),
        needed: "prove 4 --upstream nginx: https://nginx.org (on Debian: apt-get install nginx-light)",
    },
    Program {
        name: "PostgreSQL",
        pinned: None,
        found: |_| version(postgres()?.join("postgres"), ["--version"]),
        needed: "prove 9 --database postgres://…: https://www.postgresql.org (on Debian: apt-get install \
                 postgresql)",
    },
    Program {
        name: "Python",
        pinned: None,
        found: |_| Some(python()?.1),
        needed: "Locust: https://www.python.org",
    },
    Program {
        name: "perf",
        pinned: None,
        found: |_| version("perf", ["--version"]),
        needed: "profiles that the kernel's timer does not cap (on Debian: apt-get install linux-perf)",
    },
    Program {
        name: "flamegraph",
        pinned: Some((Tool::Flamegraph, |_| Some(pins().flamegraph.clone()))),
        found: |tools| version(tools.program("flamegraph"), ["--version"]),
        needed: "CPU profiles by `cargo flamegraph`, if you want them (perf on Linux, xctrace on macOS): cargo \
                 workshop setup flamegraph",
    },
    Program {
        name: "samply",
        pinned: Some((Tool::Samply, |_| Some(pins().samply.clone()))),
        found: |tools| version(tools.program("samply"), ["--version"]),
        needed: "CPU profiles with a row for each thread, if you want them: cargo workshop setup samply",
    },
    Program {
        name: "valgrind",
        pinned: None,
        found: |_| version("valgrind", ["--version"]),
        needed: "cachegrind and callgrind, which count where the machine does not (on Debian: apt-get \
                 install valgrind)",
    },
];

/// Programs of [`PROGRAMS`] that only Linux has.
pub(crate) const OF_LINUX: [&str; 2] = ["perf", "valgrind"];

/// Requirements that pip installs, in this order: Locust, and the driver of the browser test.
const REQUIREMENTS: [&str; 2] = ["locust/requirements.txt", "tests/browser/requirements.txt"];

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

    /// The requirement files that there are, and what they say together.
    pub(crate) fn requirements(&self) -> (Vec<PathBuf>, String) {
        let mut files = Vec::new();
        let mut texts = String::new();
        for name in REQUIREMENTS {
            let file = self.root.join(name);
            if file.is_file() {
                texts += &std::fs::read_to_string(&file).unwrap_or_default();
                files.push(file);
            }
        }
        (files, texts)
    }

    /// The Locust that the requirements pin.
    pub(crate) fn locust_pin(&self) -> Option<String> {
        let (_, text) = self.requirements();
        for line in text.lines() {
            if let Some(rest) = line.trim().strip_prefix("locust==") {
                return rest.split_whitespace().next().map(str::to_owned);
            }
        }
        None
    }

    /// The pinned one if the virtual environment holds just what the requirements say.
    fn locust_version(&self) -> Option<String> {
        if self.venv_is_current() {
            return self.locust_pin();
        }
        if self.venv().is_dir() {
            return Some("with other requirements".to_owned());
        }
        None
    }

    /// Returns whether the virtual environment holds exactly what the requirements say.
    pub(crate) fn venv_is_current(&self) -> bool {
        let stamp = std::fs::read_to_string(self.venv().join(VENV_STAMP));
        // The interpreter is a link to one that an update may have removed.
        stamp.is_ok_and(|stamp| stamp == self.requirements().1) && self.in_venv("python").is_file()
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
