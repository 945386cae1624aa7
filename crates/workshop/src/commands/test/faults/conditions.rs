//! Commands under conditions that nobody asked for.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bench::child::{self, Starting};
use loadgen::interrupt::Interrupt;
use serde_json::Value;

use super::place::{Place, gone};
use crate::exit::CliError;
use crate::{compile, files, tools};

/// No command here takes so long unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Bytes that are kept of what one prints.
const KEPT: usize = 1 << 16;

/// What was tried and what came of it, as a Markdown table.
pub(super) struct Table(Vec<[String; 3]>);

/// A condition with a command under it.
struct Tried {
    condition: &'static str,
    words: &'static str,
    within: Within,
    variables: &'static [(&'static str, Option<&'static str>)],
    /// The exit codes that are right.
    codes: &'static [i32],
    /// What it says then.
    says: &'static str,
    /// In the book's words.
    outcome: &'static str,
}

/// What stands between the system and the command.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Nothing,
    /// Limits of a shell, which the command replaces.
    Limits(&'static str),
    OtherUser,
    FullDisk,
}

const FULL: &str = "the disk is full";
const LOAD: &str = "load N --variant solution --seconds 1 --users 10";

const ALL: &[Tried] = &[
    Tried {
        condition: FULL,
        words: "reset N",
        within: Within::FullDisk,
        variables: &[],
        codes: &[1],
        says: "so nothing was changed",
        outcome: "refused in a sentence; the exercise stays as it was",
    },
    Tried {
        condition: FULL,
        words: "hint N",
        within: Within::FullDisk,
        variables: &[],
        codes: &[0],
        says: "progress is not remembered",
        outcome: "the hint is told, with a note that it is not remembered",
    },
    Tried {
        condition: FULL,
        words: "check N",
        within: Within::FullDisk,
        variables: &[],
        codes: &[1],
        says: "",
        outcome: "graded",
    },
    Tried {
        condition: FULL,
        words: "prove N",
        within: Within::FullDisk,
        variables: &[],
        codes: &[2],
        says: "free some space",
        outcome: "refused before anything is measured",
    },
    Tried {
        condition: FULL,
        words: "capture --derive N",
        within: Within::FullDisk,
        variables: &[],
        codes: &[1],
        says: "free some space",
        outcome: "refused in a sentence; the capture stays as it was",
    },
    Tried {
        condition: FULL,
        words: "steps",
        within: Within::FullDisk,
        variables: &[],
        codes: &[1],
        says: "",
        outcome: "refused in a sentence; no branch is there",
    },
    Tried {
        condition: "the folder is another user's, to be read only",
        words: "reset N",
        within: Within::OtherUser,
        variables: &[],
        codes: &[1],
        says: "so nothing was changed",
        outcome: "refused in a sentence; the exercise stays as it was",
    },
    Tried {
        condition: "the folder is another user's, to be read only",
        words: "hint N",
        within: Within::OtherUser,
        variables: &[],
        codes: &[0],
        says: "progress is not remembered",
        outcome: "the hint is told, with a note that it is not remembered",
    },
    Tried {
        condition: "64 files may be open",
        words: "load N --variant solution --seconds 1 --users 500",
        within: Within::Limits("ulimit -n 64"),
        variables: &[],
        codes: &[1, 2, 3],
        says: "ulimit -n",
        outcome: "refused in a sentence that says how many are needed, and how to allow them",
    },
    Tried {
        condition: "a proxy in the environment, which is not there",
        words: LOAD,
        within: Within::Nothing,
        variables: &[
            ("http_proxy", Some("http://127.0.0.1:9")),
            ("HTTP_PROXY", Some("http://127.0.0.1:9")),
            ("https_proxy", Some("http://127.0.0.1:9")),
            ("ALL_PROXY", Some("http://127.0.0.1:9")),
            ("CARGO_NET_OFFLINE", Some("true")),
        ],
        codes: &[0],
        says: "",
        outcome: "as without it: this machine's servers are asked directly",
    },
    Tried {
        condition: "no `HOME`",
        words: LOAD,
        within: Within::Nothing,
        variables: &[("HOME", None)],
        codes: &[0],
        says: "",
        outcome: "as with it",
    },
    Tried {
        condition: "a folder with spaces, a comma and a letter that is no ASCII",
        words: LOAD,
        within: Within::Nothing,
        variables: &[],
        codes: &[0],
        says: "",
        outcome: "as in any other; all commands above were stopped in it",
    },
];

/// Nothing can be written there by somebody else, root apart.
const OTHER_USER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups --";

/// Mounts that nobody else sees, and that go with the command.
const OWN_MOUNTS: &str = "unshare --user --map-root-user --mount --";

/// Runs a command in a copy of the folder `$1` on a small disk without a byte left, which stands in the
/// folder's place. Whatever the command leaves there comes back to the folder, by way of `$2`. Names of files
/// that are being written begin with `$3`.
const ON_A_FULL_DISK: &str = r#"
set -e
place=$1 before=$2 partial=$3
shift 3
mount --bind "$place" "$before"
size=$(du --summarize --block-size=1K "$place" | cut -f 1)
mount -t tmpfs -o "size=$((size * 2))k" full "$place"
cp --archive "$before/." "$place"
cd "$place"
# What a killed writer left makes room when the next one removes it.
find . -name "$partial*" -delete
if cat /dev/zero 2> /dev/null > the-rest; then exit 99; fi
code=0
"$@" || code=$?
rm the-rest
find "$before" -mindepth 1 -delete
cp --archive "$place/." "$before"
exit $code
"#;

/// A grade takes as long as most others together, so those are `at_length` only.
pub(super) fn all(place: &Place<'_>, at_length: bool) -> Result<Table, CliError> {
    let is_long = |words: &str| words.starts_with("check ");
    let mut rows = Vec::new();
    let now = |tried: &&Tried| at_length || !is_long(tried.words);
    for (number, tried) in ALL.iter().filter(now).enumerate() {
        if let Some(missing) = tried.within.missing(place) {
            let what = format!("left out: {}, {missing}", tried.condition);
            place.context.tell(what);
            continue;
        }
        let marker = format!("{}-condition-{number}", std::process::id());
        let (code, said) = run(place, tried, &marker)?;
        let is_right = code.is_some_and(|code| tried.codes.contains(&code));
        if !is_right || !said.contains(tried.says) {
            return Err(CliError::bad(format!(
                "where {}, `{}` ended with {code:?} and said: {said}",
                tried.condition, tried.words
            )));
        }
        rows.push([tried.condition, tried.words, tried.outcome].map(str::to_owned));
    }
    let clock = place.context.folder.join("clock");
    match libfaketime().filter(|library| moves_the_clock(library, &clock)) {
        Some(library) => {
            let now = |(words, ..): &&Jumping| at_length || !is_long(words);
            for (words, is_right, outcome) in JUMPING.iter().filter(now) {
                while_the_clock_jumps(place, words, *is_right, &by(&library, &clock), &clock)?;
                rows.push([JUMPS, words, outcome].map(str::to_owned));
            }
        }
        None => place.context.tell(format!(
            "left out: {JUMPS}, without libfaketime (apt-get install libfaketime)"
        )),
    }
    two_at_once(place)?;
    rows.push(
        [
            "two at the same time",
            "check N",
            "both give a verdict; what is remembered is whole",
        ]
        .map(str::to_owned),
    );
    Ok(Table(rows))
}

impl Within {
    /// What keeps it from being tried here.
    fn missing(self, place: &Place<'_>) -> Option<&'static str> {
        let (can_be, missing) = match self {
            Self::Nothing | Self::Limits(_) => (true, ""),
            Self::OtherUser => (
                tools::is_root() && child::find("setpriv").is_some(),
                "which only root can be, by setpriv",
            ),
            Self::FullDisk => (
                child::find("unshare").is_some()
                    && place
                        .context
                        .run(&mut words(OWN_MOUNTS, &["true".into()]))
                        .is_ok(),
                "without the right to mount one (unshare)",
            ),
        };
        (!can_be).then_some(missing)
    }

    /// The command within it.
    fn around(self, command: &Command, place: &Place<'_>) -> Result<Command, CliError> {
        let own = [command.get_program()]
            .into_iter()
            .chain(command.get_args());
        let own = own.map(OsStr::to_owned).collect::<Vec<_>>();
        let shell = |script: &str| ["-c", script, "sh"].map(OsString::from).to_vec();
        Ok(match self {
            Self::Nothing => words("env", &own),
            Self::Limits(limits) => {
                let script = format!("{limits}; exec \"$@\"");
                words("sh", &[shell(&script), own].concat())
            }
            Self::OtherUser => words(OTHER_USER, &own),
            Self::FullDisk => {
                let before = place.context.folder.join("before");
                fs::create_dir_all(&before).map_err(CliError::because(before.display()))?;
                let given = vec![
                    place.scratch.folder().into(),
                    before.into(),
                    files::PARTIAL.into(),
                ];
                let script = shell(ON_A_FULL_DISK);
                words(&format!("{OWN_MOUNTS} sh"), &[script, given, own].concat())
            }
        })
    }
}

/// A command of these words, and more.
fn words(first: &str, more: &[OsString]) -> Command {
    let mut all = first.split_whitespace();
    let mut command = Command::new(all.next().unwrap_or_default());
    command.args(all).args(more);
    command
}

/// Its exit code, and what it printed.
fn run(place: &Place<'_>, tried: &Tried, marker: &str) -> Result<(Option<i32>, String), CliError> {
    let words = tried.words.replace('N', &place.chapter.number.to_string());
    let own = place.scratch.own(&words);
    let mut command = tried.within.around(&own, place)?;
    for (name, value) in own.get_envs() {
        command.env(name, value.unwrap_or(OsStr::new("")));
    }
    for (name, value) in tried.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(place.scratch.folder());
    place.mark(&mut command, marker);
    // Through pipes, which no limit on files reaches.
    let ended = Starting::of(&command)
        .output(&Interrupt::new(), TIMEOUT, KEPT)
        .map_err(CliError::because("a command cannot be started"))?;
    gone(marker, Instant::now())?;
    place.is_whole().map_err(|why| {
        CliError::bad(format!("where {}, after `{words}`: {why}", tried.condition))
    })?;
    let said = ended.as_ref().map_or(String::new(), |ended| {
        [&ended.stdout, &ended.stderr]
            .map(|said| String::from_utf8_lossy(said).into_owned())
            .concat()
    });
    Ok((ended.and_then(|ended| ended.status.code()), said))
}

const JUMPS: &str = "the clock jumps by a day, forwards and back, ten times a second";

/// What runs while the clock jumps, whether code and JSON are right, and that in the book's words.
type Jumping = (&'static str, fn(Option<i32>, &Value) -> bool, &'static str);

const JUMPING: &[Jumping] = &[
    (
        "load N --variant solution --seconds 3 --users 10 --format json",
        // Half a second of noise, and not a day.
        |code, said| {
            let seconds = said["seconds"].as_f64();
            code == Some(0) && seconds.is_some_and(|seconds| (2.5..60.0).contains(&seconds))
        },
        "as with one that does not: what passes is timed by another clock, which only goes on",
    ),
    (
        "check N --format json",
        // What is graded has the fault still.
        |code, said| code == Some(1) && said["verdict"] == "failed",
        "the same grade as with one that does not",
    ),
];

/// libfaketime stands between a program and the clock of the day; the other, by which durations are
/// taken, it leaves as it is.
fn while_the_clock_jumps(
    place: &Place<'_>,
    words: &str,
    is_right: fn(Option<i32>, &Value) -> bool,
    by: &[(&str, OsString)],
    clock: &Path,
) -> Result<(), CliError> {
    const TIMES: [&str; 4] = ["+1d", "+0d", "-1d", "+0d"];

    files::replace(clock, TIMES[1])?;
    let words = words.replace('N', &place.chapter.number.to_string());
    let mut command = place.scratch.own(&words);
    command.envs(by.iter().cloned());
    // The compiler's allocator and the library wait for each other.
    let cargo = place.context.folder.join("cargo-by-the-real-clock");
    let script = format!(
        "#!/bin/sh\nunset LD_PRELOAD\nexec '{}' \"$@\"\n",
        compile::program().display()
    );
    program(&cargo, &script)?;
    command.env("CARGO", &cargo);
    let marker = format!("{}-clock", std::process::id());
    let mut running = place.start(&mut command, &marker)?;
    let began = Instant::now();
    let mut times = TIMES.iter().cycle();
    let status = loop {
        if let Some(status) = running.exit_within(Duration::from_millis(100)) {
            break Some(status);
        }
        if began.elapsed() > TIMEOUT {
            break None;
        }
        files::replace(clock, times.next().unwrap_or(&TIMES[0]))?;
    };
    drop(running);
    gone(&marker, Instant::now())?;
    place.is_whole()?;
    let said = place.last_said();
    let json = said.find('{').map_or("", |begin| &said[begin..]);
    let told = serde_json::Deserializer::from_str(json).into_iter().next();
    let told: Value = told.and_then(Result::ok).unwrap_or_default();
    let code = status.and_then(|status| status.code());
    if !is_right(code, &told) {
        return Err(CliError::bad(format!(
            "where the clock jumps, `{words}` ended with {code:?} and said: {said}"
        )));
    }
    Ok(())
}

/// Writes a program.
fn program(file: &Path, script: &str) -> Result<(), CliError> {
    files::replace(file, script)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file, fs::Permissions::from_mode(0o755))
            .map_err(CliError::because(file.display()))?;
    }
    Ok(())
}

/// Debian's, by whatever name it calls this machine.
fn libfaketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.is_file())
}

/// Whether a program sees another day by it.
fn moves_the_clock(library: &Path, clock: &Path) -> bool {
    let day = |envs: &[(&str, OsString)]| {
        let mut date = Command::new("date");
        let said = date.arg("+%F").envs(envs.iter().cloned()).output();
        said.ok()
            .filter(|said| said.status.success())
            .map(|said| said.stdout)
    };
    let written = files::replace(clock, "-2d").is_ok();
    let (own, moved) = (day(&[]), day(&by(library, clock)));
    written && own.is_some() && moved.is_some() && own != moved
}

/// The variables by which a program, and all that it starts, take the day's time from a file.
fn by(library: &Path, clock: &Path) -> [(&'static str, OsString); 6] {
    [
        ("LD_PRELOAD", library.into()),
        ("FAKETIME_TIMESTAMP_FILE", clock.into()),
        ("FAKETIME_NO_CACHE", "1".into()),
        // By its old name and its new one.
        ("DONT_FAKE_MONOTONIC", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        // Files have the system's times.
        ("NO_FAKE_STAT", "1".into()),
    ]
}

fn two_at_once(place: &Place<'_>) -> Result<(), CliError> {
    let words = format!("check {}", place.chapter.number);
    let markers = [0, 1].map(|one| format!("{}-twice-{one}", std::process::id()));
    let mut both = Vec::new();
    for marker in &markers {
        both.push(place.start(&mut place.scratch.own(&words), marker)?);
    }
    for (mut running, marker) in both.into_iter().zip(&markers) {
        let code = running
            .exit_within(TIMEOUT)
            .and_then(|status| status.code());
        drop(running);
        gone(marker, Instant::now())?;
        if !matches!(code, Some(0 | 1 | 3)) {
            return Err(CliError::bad(format!(
                "of two checks at once, one ended with {code:?} and said: {}",
                place.last_said()
            )));
        }
    }
    let remembered = place.scratch.folder().join(".workshop/progress.json");
    if !fs::exists(&remembered).unwrap_or(false) {
        return Err(CliError::bad("of two checks at once, none is remembered"));
    }
    place.is_whole()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| condition | `cargo workshop …` | what came of it |")?;
        writeln!(f, "| --- | --- | --- |")?;
        for [condition, words, outcome] in &self.0 {
            writeln!(f, "| {condition} | `{words}` | {outcome} |")?;
        }
        Ok(())
    }
}
