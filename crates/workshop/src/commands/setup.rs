//! `cargo workshop setup [TOOL…]`: pinned k6, Locust, mdBook and profilers, and a kernel for an
//! emulated machine, in `.tools/`; crates that a fix may want, where cargo keeps its own.
//!
//! Each is built or installed beside its final place and put there last, so that an interrupted call
//! leaves nothing that looks whole. A Python environment names its own folder, so its stamp comes last.

mod kernel;
mod locust;

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use children::{Interrupt, Starting};
use tempfile::TempDir;

use crate::chapters::Workshop;
use crate::compile;
use crate::tools::{self, Get, Tools};
use terminal::exit::{CliError, Exit};
use terminal::{ctrl_c, files};

/// Prefix of the name of a folder in which something is being installed.
const PARTIAL: &str = "partial-";
/// Longest time of an installation, on the slowest machine. One that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Bytes that are kept of each output of a program.
const KEPT: usize = 1 << 16;

enum Done {
    There,
    Installed,
    /// There is nothing to install, for this reason.
    Skipped(&'static str),
}

/// Installs what is not there yet, all tools or those named.
pub(crate) fn run(named: &[String]) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let setup = Setup {
        tools: Tools::of(&workshop),
        interrupt: ctrl_c::watch(),
    };
    let _lock = setup.lock()?;
    let mut exit = Exit::Good;
    for tool in tools::all() {
        if !named.is_empty() && !named.iter().any(|name| tool.is_called(name)) {
            continue;
        }
        let began = Instant::now();
        let pin = setup.tools.pin(tool);
        let name = match &pin {
            Some(pin) => format!("{} {pin}", tool.name),
            None => tool.name.clone(),
        };
        let done = match &tool.get {
            _ if pin.is_some() && setup.tools.found(tool) == pin => Ok(Done::There),
            // The reader installs it.
            Get::ByHand(_) => continue,
            Get::Go { module, version } => setup.go(module, version, &tool.name),
            Get::Cargo { version } => setup.cargo(&tool.name, version),
            Get::Pip { requirements } => setup.locust(requirements),
            Get::Kernel(kernel) => setup.kernel(kernel),
            Get::Crates(wanted) => setup.crates(wanted, workshop.root()),
        };
        match done {
            Ok(Done::There) => println!("{name:<15} there already"),
            Ok(Done::Installed) => {
                println!("{name:<15} installed in {} s", began.elapsed().as_secs());
            }
            Ok(Done::Skipped(why)) => println!("{name:<15} left out: {why}"),
            Err(error) if error.exit == Exit::Interrupted => return Err(error),
            Err(sentence) => {
                println!("{name:<15} MISSING: {sentence}");
                // Few need a kernel, which comes from the distribution.
                if !matches!(tool.get, Get::Kernel(_)) || !named.is_empty() {
                    exit = Exit::Bad;
                }
            }
        }
    }
    Ok(exit)
}

struct Setup {
    tools: Tools,
    interrupt: Interrupt,
}

impl Setup {
    /// One `setup` at a time; what an interrupted one left behind goes.
    fn lock(&self) -> Result<File, CliError> {
        let folder = &self.tools.folder;
        let refused = |error: std::io::Error| {
            CliError::bad(format!(
                "tools cannot be installed into {} ({error}): free some space or mend the folder's \
                 permissions",
                folder.display()
            ))
        };
        std::fs::create_dir_all(folder).map_err(refused)?;
        let file = File::create(folder.join("setup.lock")).map_err(refused)?;
        if file.try_lock().is_err() {
            eprintln!("waiting for another `cargo workshop setup` to finish");
            while file.try_lock().is_err() {
                if self.interrupt.is_set() {
                    return Err(CliError::interrupted());
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        for entry in std::fs::read_dir(folder).map_err(refused)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                // Leftovers that cannot be removed do no harm.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        Ok(file)
    }

    /// Builds the program of a Go module.
    fn go(&self, module: &str, version: &str, name: &str) -> Result<Done, CliError> {
        let Some((go, _)) = tools::go() else {
            return Err(CliError::bad(format!(
                "building {name} needs Go: install it from https://go.dev/dl (1.25 or newer), then run `cargo workshop \
                 setup {name}`"
            )));
        };
        let folder = self.partial()?;
        let mut install = Command::new(go);
        install
            .args(["install", &format!("{module}@v{version}")])
            // Outside any Go module, and for this machine whatever the reader cross-compiles for.
            .current_dir(folder.path())
            .env("GOBIN", folder.path())
            .env("CGO_ENABLED", "0")
            .env_remove("GOOS")
            .env_remove("GOARCH");
        let doing = format!("building {name} {version}, a minute or three");
        self.fetch(&install, &doing, name)?;
        put_program(folder.path(), &self.tools.program(name))
    }

    /// Builds the programs of a crate by the versions that its own lock file names.
    fn cargo(&self, name: &str, version: &str) -> Result<Done, CliError> {
        let folder = self.partial()?;
        let mut install = Command::new(compile::program());
        install
            .args(["install", "--locked", "--quiet", name])
            .args(["--version", version, "--profile", "dev", "--root"])
            .arg(folder.path())
            // Outside the workspace and its scenarios.
            .current_dir(folder.path())
            // A book of some dozen pages and seconds of samples need no optimised program: a quarter of
            // the time to build.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_DEBUG_ASSERTIONS", "false")
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        let doing = format!("building {name} {version}, a minute or three");
        self.fetch(&install, &doing, name)?;
        let bin = folder.path().join("bin");
        for program in std::fs::read_dir(&bin)
            .map_err(not_written(&bin))?
            .flatten()
        {
            let name = program.file_name();
            put(&program.path(), &self.tools.folder.join("bin").join(name))?;
        }
        Ok(Done::Installed)
    }

    /// Fetches crates that a fix may want, so that `cargo add --offline` finds them: by a package that
    /// names them, and holds to the workshop's versions where those are compiled anyway.
    fn crates(&self, names: &[String], root: &Path) -> Result<Done, CliError> {
        let folder = files::temporary()?;
        let folder = folder.path();
        let mut dependencies = String::new();
        for name in names {
            // The newest that cargo may take, so that what `cargo add` adds is what was fetched.
            let _ = writeln!(dependencies, "{name} = \"*\"");
        }
        let manifest = format!(
            "[package]\nname = \"within-reach\"\nedition = \"2024\"\nrust-version = \"{}\"\n\
             [lib]\npath = \"lib.rs\"\n[workspace]\n[dependencies]\n{dependencies}",
            env!("CARGO_PKG_RUST_VERSION")
        );
        std::fs::write(folder.join("lib.rs"), "").map_err(not_written(folder))?;
        std::fs::write(folder.join("Cargo.toml"), manifest).map_err(not_written(folder))?;
        std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))
            .map_err(not_written(folder))?;
        let fetch = |option: &str| {
            let mut command = Command::new(compile::program());
            command.args(["fetch", option]).current_dir(folder);
            command
        };
        let offline = fetch("--offline").stdin(Stdio::null()).output();
        if offline.is_ok_and(|said| said.status.success()) {
            return Ok(Done::There);
        }
        self.fetch(
            &fetch("--quiet"),
            "fetching crates that a fix may want",
            "crates",
        )?;
        Ok(Done::Installed)
    }

    /// A folder in `.tools/` that goes with the value.
    fn partial(&self) -> Result<TempDir, CliError> {
        let folder = &self.tools.folder;
        let mut named = tempfile::Builder::new();
        let made = named.prefix(PARTIAL).tempdir_in(folder);
        made.map_err(not_written(folder))
    }

    /// Runs a program that needs the network, as [`Self::call`] does.
    fn fetch(&self, command: &Command, doing: &str, tool: &str) -> Result<(), CliError> {
        let remedy = format!("check the network, and run `cargo workshop setup {tool}` again");
        self.call(command, doing, &remedy)
    }

    /// Runs a program to its end. `doing` tells the reader what takes so long, `remedy` what to do when
    /// it fails.
    fn call(&self, command: &Command, doing: &str, remedy: &str) -> Result<(), CliError> {
        eprintln!("{doing} …");
        let said = Starting::of(command)
            .output(&self.interrupt, TIMEOUT, KEPT)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::Interrupted => CliError::interrupted(),
                _ => CliError::bad(format!("{doing} failed ({error}): {remedy}")),
            })?;
        let how = match &said {
            Some(said) if said.status.success() => return Ok(()),
            Some(_) => "failed",
            None => "took over 30 minutes, and was ended",
        };
        for output in said.iter().flat_map(|said| [&said.stdout, &said.stderr]) {
            let text = String::from_utf8_lossy(output);
            let lines: Vec<&str> = text.lines().collect();
            if !lines.is_empty() {
                eprintln!("{}", lines[lines.len().saturating_sub(15)..].join("\n"));
            }
        }
        Err(CliError::bad(format!(
            "{doing} {how}; the end of its output is above: {remedy}"
        )))
    }
}

/// Puts a program where it belongs, out of the folder that it was built into.
fn put_program(from: &Path, to: &Path) -> Result<Done, CliError> {
    put(&from.join(to.file_name().unwrap_or_default()), to)?;
    Ok(Done::Installed)
}

fn put(from: &Path, to: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(to.parent().unwrap_or(to)).map_err(not_written(to))?;
    std::fs::rename(from, to).map_err(not_written(to))
}

fn not_written(file: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    move |error| {
        CliError::bad(format!(
            "{} cannot be written ({error}): free some space or mend the folder's permissions",
            file.display()
        ))
    }
}
