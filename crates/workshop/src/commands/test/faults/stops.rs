//! Commands stopped by a signal at a random moment.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::place::{Place, gone};
use crate::exit::CliError;
use crate::tools;

/// The moments are the same in every run, as far as the machine is.
const SEED: u64 = 20;

/// A command that can be stopped.
struct Stopped {
    /// As one types it.
    name: &'static str,
    command: Command,
    /// It is stopped before so many milliseconds have passed.
    within_ms: u64,
}

/// How stops of one command went.
#[derive(Default)]
struct Seen {
    /// By SIGINT, SIGTERM and SIGKILL.
    stops: [usize; 3],
    /// How often it had come to its end by itself.
    ended_before: usize,
    longest: Duration,
}

/// What was stopped how often, as a Markdown table.
pub(super) struct Table {
    rows: Vec<(&'static str, Seen)>,
}

/// Stops commands, one after the other, `count` times.
pub(super) fn all(place: &Place<'_>, count: usize) -> Result<Table, CliError> {
    let small = small(place)?;
    let mut random = SEED;
    let mut rows: Vec<(&'static str, Seen)> = Vec::new();
    for number in 0..count {
        let mut stopped = commands(place, &small);
        let kinds = stopped.len();
        let mut stopped = stopped.swap_remove(number % kinds);
        let signal = (number + number / kinds) % 3;
        let after = Duration::from_millis(next(&mut random) % stopped.within_ms);
        let what = format!(
            "`{}` stopped by {} after {} ms",
            stopped.name,
            SIGNALS[signal],
            after.as_millis()
        );
        let marker = format!("{}-{number}", std::process::id());
        let mut running = place.start(&mut stopped.command, &marker)?;
        let ended = running.exit_within(after).is_some();
        if !ended {
            send(running.id(), signal);
        }
        let began = Instant::now();
        let left = gone(&marker, began);
        drop(running);
        let whole = left.and_then(|gone| place.is_whole().map(|()| gone));
        let whole = whole.and_then(|gone| is_installed_whole(&small).map(|()| gone));
        let gone = whole.map_err(|why| CliError::bad(format!("{what}: {why}")))?;
        place
            .context
            .note(&format!("{what}: gone {} ms later", gone.as_millis()))?;
        let row = rows.iter().position(|(name, _)| *name == stopped.name);
        let row = row.unwrap_or_else(|| {
            rows.push((stopped.name, Seen::default()));
            rows.len() - 1
        });
        let seen = &mut rows[row].1;
        if ended {
            seen.ended_before += 1;
        } else {
            seen.stops[signal] += 1;
            seen.longest = seen.longest.max(gone);
        }
    }
    Ok(Table { rows })
}

const SIGNALS: [&str; 3] = ["SIGINT", "SIGTERM", "SIGKILL"];

fn send(process: u32, signal: usize) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process};

        let signal = [Signal::INT, Signal::TERM, Signal::KILL][signal];
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        // It is no other's number: the child has not been waited for.
        let _ = process.map(|process| kill_process(process, signal));
    }
    let _ = (process, signal);
}

fn commands(place: &Place<'_>, small: &PathBuf) -> Vec<Stopped> {
    let number = place.chapter.number;
    let own = |name: &'static str, options: &str, within_ms| {
        let words = name.replace('N', &number.to_string());
        Stopped {
            name,
            command: place.scratch.own(&format!("{words} {options}")),
            within_ms,
        }
    };
    let mut all = vec![
        own("prove N", "", 8000),
        own("check N", "", 6000),
        own("load N", "--seconds 3 --users 50", 5000),
        own("capture N", "", 8000),
        own("reset N", "", 12),
        own("steps", "", 1500),
    ];
    let tools = &place.context.tools;
    if tools.k6_version().is_some() {
        all.push(own("load N --with k6", "--seconds 3 --users 50", 5000));
    }
    if tools.in_venv("locust").is_file() {
        all.push(own("load N --with locust", "--seconds 3 --users 50", 6000));
    }
    // The temporary files of a reader's service are its own affair.
    let service = format!(
        "TMPDIR='{}' '{}' solution --port {{port}} --admin-port {{admin_port}}",
        small.display(),
        place.program.display()
    );
    let mut compare = own("compare", "--get /read --seconds 0.2 --users 5", 5000);
    compare
        .command
        .args(["--base", &service, "--change", &service]);
    all.push(compare);
    let mut setup = own("setup locust", "", 1500);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [small.join("path")]
        .into_iter()
        .chain(std::env::split_paths(&path));
    setup.command.current_dir(small);
    if let Ok(path) = std::env::join_paths(path) {
        setup.command.env("PATH", path);
    }
    all.push(setup);
    all
}

/// A workshop whose Python installs nothing, and takes its time for it.
fn small(place: &Place<'_>) -> Result<PathBuf, CliError> {
    const PYTHON: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo 'Python 3.11.7' && exit
mkdir -p "$3/bin"
sleep 0.3
printf '#!/bin/sh\nsleep 0.4\n' > "$3/bin/python"
chmod +x "$3/bin/python"
"#;
    let small = place.scratch.folder().join("small");
    let within = place.context.workshop.shown(&place.chapter.folder);
    let write = |name: &str, text: &str| -> std::io::Result<()> {
        let file = small.join(name);
        fs::create_dir_all(file.parent().unwrap_or(&small))?;
        fs::write(file, text)
    };
    let made = || -> std::io::Result<()> {
        write("Cargo.toml", "[workspace]\n")?;
        write(&format!("{within}/chapter.toml"), "")?;
        write("locust/requirements.txt", "locust==0\n")?;
        write("path/python3", PYTHON)?;
        let python = small.join("path/python3");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&python, fs::Permissions::from_mode(0o755))?;
        }
        let _ = python;
        Ok(())
    };
    made().map_err(CliError::because("the copy cannot be written"))?;
    Ok(small)
}

/// The environment is not there, or whole; the next `setup` makes another.
fn is_installed_whole(small: &std::path::Path) -> Result<(), CliError> {
    let venv = small.join(".tools/venv");
    if venv.exists() && !venv.join(tools::VENV_STAMP).is_file() {
        return Err(CliError::bad("half of an environment is left"));
    }
    let _ = fs::remove_dir_all(&venv);
    Ok(())
}

/// The next number of `SplitMix64`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| `cargo workshop …` | {} | had ended by itself | processes left | temporary files \
             left | work lost | all gone after, at most |",
            SIGNALS.join(" | ")
        )?;
        writeln!(
            f,
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
        )?;
        for (name, seen) in &self.rows {
            let [interrupted, terminated, killed] = seen.stops;
            writeln!(
                f,
                "| `{name}` | {interrupted} | {terminated} | {killed} | {} | 0 | 0 | 0 | {:.2} s |",
                seen.ended_before,
                seen.longest.as_secs_f64()
            )?;
        }
        Ok(())
    }
}
