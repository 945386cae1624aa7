//! Effect of compiler settings on a loop that has all of a CPU: `compiler.md`.
//!
//! The page of chapter 3's problem and solution alone, compiled by `rustc` with more and more of its help: a service
//! around it would take minutes for each build. Each program runs ten times, in turns, and the run that took the least CPU
//! time counts. The profile that guides the last build is of these pages, which is the best case.
//!
//! `cargo run -p studies --bin compiler -- 50` (pages). It needs Linux and `rustup component add llvm-tools`, or an
//! `llvm-profdata` of the compiler's version that `LLVM_PROFDATA` names.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use course::measurement::claim::{PROBLEM, SOLUTION};
use statistics::figures;
use studies::Failed;

/// Source of each program, after the modules. It prints the CPU time of a page, in nanoseconds.
const MAIN: &str = r#"
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let page = if arguments[1] == "problem" { problem::page } else { solution::page };
    let clients = clients::known(0);
    let cpu_time = || {
        let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        said.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let pages: usize = arguments[2].parse().unwrap();
    let began = cpu_time();
    for number in 0..pages {
        std::hint::black_box(page(&clients, number));
    }
    println!("{}", (cpu_time() - began) as f64 / pages as f64);
}
"#;

/// Flags of link-time optimisation.
const LTO: [&str; 2] = ["-Ccodegen-units=1", "-Clto=fat"];

fn main() -> Result<(), Failed> {
    let pages = studies::argument(1, 50)?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    fs::write(folder.join("page.rs"), source()?)?;
    let lto = compile(folder, "lto", &LTO)?;
    let native = compile(folder, "native", &[LTO[0], LTO[1], "-Ctarget-cpu=native"])?;
    let profile = format!("-Cprofile-use={}", profile(folder, pages)?.display());
    let guided = compile(folder, "guided", &[LTO[0], LTO[1], &profile])?;
    let builds = [
        (
            "as cargo's `release`",
            compile(folder, "release", &["-Ccodegen-units=16"])?,
        ),
        ("LTO, one codegen unit", lto),
        ("the same for this CPU", native),
        ("LTO, guided by a profile", guided),
    ];
    let mut rows = Vec::new();
    for variant in [PROBLEM, SOLUTION] {
        rows.extend(builds.iter().map(|build| (variant, build, f64::INFINITY)));
    }
    for _ in 0..10 {
        for (variant, (_, program), least) in &mut rows {
            *least = least.min(run(program, variant, pages)?);
        }
    }
    println!("| variant | build | CPU time of a page | gain |");
    println!("| --- | --- | ---: | ---: |");
    let first = rows[0].2;
    for (variant, (name, _), least) in rows {
        let (time, gain) = (
            figures::milliseconds(least / 1e6),
            figures::ratio(first / least),
        );
        println!("| {variant} | {name} | {time} | {gain} |");
    }
    studies::print_provenance(&format!("The least of ten runs of {pages} pages"));
    Ok(())
}

/// The functions of both variants, and what calls them.
fn source() -> Result<String, Failed> {
    let folder = fs::canonicalize(studies::folder(3)?)?.join("src");
    let clients = folder.join("clients.rs");
    let mut source = format!("#[path = \"{}\"]\nmod clients;\n", clients.display());
    for variant in [PROBLEM, SOLUTION] {
        let text = fs::read_to_string(folder.join(variant).with_extension("rs"))?;
        let mut parts = text.split("// ANCHOR: page").skip(1);
        let rest = parts.next().ok_or("chapter 3 has no anchor `page`")?;
        let (page, _) = rest.split_once("// ANCHOR_END").unwrap_or((rest, ""));
        let uses = "use crate::clients::Client;\nconst PAGE: usize = 10;\n";
        writeln!(source, "mod {variant} {{\n{uses}{page}}}")?;
    }
    Ok(source + MAIN)
}

/// Compiles with these flags; where the program is.
fn compile(folder: &Path, name: &str, flags: &[&str]) -> Result<PathBuf, Failed> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "-Copt-level=3", "-Adead_code", "-o", name]);
    finish(rustc.args(flags).arg("page.rs").current_dir(folder))?;
    Ok(folder.join(name))
}

fn run(program: &Path, variant: &str, pages: usize) -> Result<f64, Failed> {
    let said = finish(Command::new(program).arg(variant).arg(pages.to_string()))?;
    Ok(String::from_utf8(said.stdout)?.trim().parse()?)
}

/// Counts which way the code goes, in both variants.
fn profile(folder: &Path, pages: usize) -> Result<PathBuf, Failed> {
    let raw = folder.join("raw");
    let counts = format!("-Cprofile-generate={}", raw.display());
    let program = compile(folder, "counting", &[&counts])?;
    for variant in [PROBLEM, SOLUTION] {
        run(&program, variant, pages)?;
    }
    let libraries = finish(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let libraries = PathBuf::from(String::from_utf8(libraries.stdout)?.trim());
    let own = libraries.with_file_name("bin").join("llvm-profdata");
    let merged = folder.join("merged.profdata");
    let program = match env::var_os("LLVM_PROFDATA") {
        Some(named) => PathBuf::from(named),
        None if own.exists() => own,
        None => {
            return Err(format!(
                "{} is missing; `rustup component add llvm-tools` installs it, or name another in LLVM_PROFDATA",
                own.display()
            )
            .into());
        }
    };
    let mut merge = Command::new(program);
    finish(merge.arg("merge").arg("-o").arg(&merged).arg(&raw))?;
    Ok(merged)
}

/// Runs a command to its end, which must be a good one.
fn finish(command: &mut Command) -> Result<Output, Failed> {
    let said = command.output();
    let said = said.map_err(|error| format!("{command:?}: {error}"))?;
    if said.status.success() {
        return Ok(said);
    }
    let errors = String::from_utf8_lossy(&said.stderr);
    Err(format!("{command:?} failed: {errors}").into())
}
