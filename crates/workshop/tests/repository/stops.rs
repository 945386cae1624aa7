//! Commands that are stopped at any moment, and commands on an unusual machine, leave no process and no temporary
//! file behind, and all that the reader has as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use terminal::testing::once_in_three;

use crate::{command, root, run, succeed, tell, turn};

/// Name of the copy's folder, with characters that break careless scripts.
const NAME: &str = "stopped, wherever it läuft";
const PARTS: [&str; 11] = [
    ".cargo",
    "Cargo.toml",
    "Cargo.lock",
    "chapters",
    "crates",
    "instruments",
    "studies",
    "k6",
    "locust",
    "flamegraphs",
    "reference",
];
const EXERCISE: &str = "chapters/1-mutex-held-across-await/src/exercise.rs";
/// Environment variable that marks the processes of a command.
const MARKER: &str = "WORKSHOP_STOPPED";
/// Longest time until all processes of a command have ended. It takes far less, unless the machine stands still.
const GONE: Duration = Duration::from_secs(60);

const STOPS: usize = 12;
/// The moments are the same in every run, as far as the machine is.
const SEED: u64 = 20;
/// Commands, each stopped before so many milliseconds have passed.
const COMMANDS: [(&str, u64); 8] = [
    ("prove 1", 8000),
    ("check 1", 6000),
    ("load 1 --seconds 3 --users 50", 4000),
    ("load 1 --with k6 --seconds 3 --users 50", 4000),
    ("capture 1 --even-if-busy", 8000),
    ("profile 1 --kind await --seconds 20", 12_000),
    ("reset 1", 12),
    ("compare --get /read --seconds 0.2 --users 5", 4000),
];

const LOAD: &str = "load 1 --variant solution --seconds 1 --users 10";

#[test]
#[ignore = "needs k6 (cargo workshop setup k6) and a minute"]
fn what_is_stopped_leaves_nothing_behind_and_loses_nothing() {
    let _turn = turn();
    let place = Place::new();
    let mut random = fastrand::Rng::with_seed(SEED);
    for number in 0..STOPS {
        let (words, within) = COMMANDS[number % COMMANDS.len()];
        let signal = [Signal::INT, Signal::KILL, Signal::TERM][number % 3];
        let after = Duration::from_millis(random.u64(..within));
        let marker = format!("{}-{number}", std::process::id());
        let mut stopped = place.start(words, &marker);
        std::thread::sleep(after);
        let ended = stopped.try_wait().unwrap();
        if ended.is_none() {
            // Its number is no other's: it has not been waited for.
            kill_process(Pid::from_child(&stopped), signal).unwrap();
        }
        let what = format!("`{words}` stopped by {signal:?} after {after:?}");
        let seconds = all_gone(&marker, &what);
        stopped.wait().unwrap();
        place.is_whole(&what);
        tell(&format!(
            "{what}: ended before: {ended:?}, all gone {seconds:.2} s later"
        ));
    }
    // Few files, a proxy that is not there, no home: refused in a sentence, or as anywhere else.
    for (machine, words, code, says) in [
        (
            "ulimit -n 64;",
            "load 1 --variant solution --seconds 1 --users 500",
            3,
            "ulimit -n",
        ),
        (
            "export http_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9;",
            LOAD,
            0,
            "",
        ),
        ("unset HOME;", LOAD, 0, ""),
    ] {
        once_in_three(|| {
            let mut shell = command("sh", "-c");
            shell.arg(format!("{machine} exec \"$@\"")).arg("sh");
            shell
                .arg(env!("CARGO_BIN_EXE_cargo-workshop"))
                .args(words.split(' '));
            let marker = format!("{}-{machine}", std::process::id());
            let (output, said) = run(place.mark(&mut shell, &marker));
            all_gone(&marker, machine);
            place.is_whole(machine);
            // A generator that gets no CPU beside something else says so, and a service that stands still for a second
            // leaves requests waiting.
            let ended = output.status.code();
            let is_right = ended == Some(code) || code == 0 && ended == Some(3);
            (is_right && said.contains(says), said)
        });
    }
}

/// A copy of the workshop with a reader's work in it. It shares the workshop's compiled files.
struct Place {
    folder: PathBuf,
    target: PathBuf,
    shipped: String,
    mine: String,
    captures: BTreeMap<PathBuf, Vec<u8>>,
}

impl Place {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(NAME);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("tmp")).unwrap();
        fs::create_dir_all(folder.join(".tools")).unwrap();
        // With their times, by which cargo sees that all but the exercise is compiled.
        let mut copy = command("cp", "--archive");
        succeed(copy.args(PARTS).arg(&folder));
        std::os::unix::fs::symlink(root().join(".tools/bin"), folder.join(".tools/bin")).unwrap();
        let shipped = fs::read_to_string(folder.join(EXERCISE)).unwrap();
        let mut place = Self {
            mine: format!("{shipped}\n// A reader's own line, äöü.\n"),
            shipped,
            captures: BTreeMap::new(),
            target: Path::new(env!("CARGO_TARGET_TMPDIR"))
                .parent()
                .unwrap()
                .to_owned(),
            folder,
        };
        place.captures = place.captured();
        place.write_mine();
        let mut build = command(env!("CARGO"), "build --package chapter1");
        succeed(place.mark(&mut build, "build"));
        place
    }

    fn write_mine(&self) {
        fs::write(self.folder.join(EXERCISE), &self.mine).unwrap();
    }

    fn captured(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = fs::read_dir(self.folder.join("flamegraphs/chapter1")).unwrap();
        let files = files
            .map(|file| file.unwrap().path())
            .filter(|file| file.is_file());
        files
            .map(|file| (file.clone(), fs::read(file).unwrap()))
            .collect()
    }

    /// A command in the copy whose processes and temporary files can be told from all others.
    fn mark<'a>(&self, command: &'a mut Command, marker: &str) -> &'a mut Command {
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target);
        command
            .env(MARKER, marker)
            .env("TMPDIR", self.folder.join("tmp"))
    }

    fn start(&self, words: &str, marker: &str) -> Child {
        let mut own = command(env!("CARGO_BIN_EXE_cargo-workshop"), words);
        if words.starts_with("compare ") {
            let program = self.target.join("debug/chapter1");
            // The temporary files of a reader's service are its own affair.
            let service = format!(
                "TMPDIR=/tmp '{}' solution --port {{port}} --admin-port {{admin_port}}",
                program.display()
            );
            own.args(["--base", &service, "--change", &service]);
        }
        self.mark(&mut own, marker);
        own.stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Asserts that nothing of the reader's was lost and nothing was left, and puts all as it was.
    fn is_whole(&self, what: &str) {
        let exercise = fs::read_to_string(self.folder.join(EXERCISE)).unwrap_or_default();
        if exercise != self.mine {
            // `reset` alone takes it away, and keeps it. Killed between its two renames it has not restored the shipped one
            // yet, which the next `reset` does.
            let kept = self.folder.join(".workshop/kept");
            let mut all = fs::read_dir(&kept).into_iter().flatten().flatten();
            let is_kept =
                all.any(|file| fs::read_to_string(file.path()).is_ok_and(|text| text == self.mine));
            assert!(
                is_kept && (exercise == self.shipped || exercise.is_empty()),
                "{what}: the exercise is gone"
            );
            fs::remove_dir_all(kept).unwrap();
            self.write_mine();
        }
        if let Ok(progress) = fs::read_to_string(self.folder.join(".workshop/progress.json")) {
            let read: Result<serde_json::Value, _> = serde_json::from_str(&progress);
            assert!(read.is_ok(), "{what}: progress.json is damaged");
        }
        assert!(
            self.captured() == self.captures,
            "{what}: the capture has changed"
        );
        let left: Vec<_> = fs::read_dir(self.folder.join("tmp"))
            .unwrap()
            .map(|one| one.unwrap().path())
            .collect();
        assert!(
            left.is_empty(),
            "{what}: temporary files are left: {left:?}"
        );
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Newer than what was compiled of the copy, lest the reader's next `check` grades that.
        let own = fs::File::options().append(true).open(root().join(EXERCISE));
        let _ = own.and_then(|file| file.set_modified(SystemTime::now()));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Waits until all processes of a command have ended, and returns how many seconds that took.
fn all_gone(marker: &str, what: &str) -> f64 {
    let began = Instant::now();
    loop {
        let living = living(marker);
        if living.is_empty() {
            return began.elapsed().as_secs_f64();
        }
        assert!(
            began.elapsed() < GONE,
            "{what}: there still runs {living:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes that have the marker among their variables.
fn living(marker: &str) -> Vec<String> {
    let marker = format!("{MARKER}={marker}").into_bytes();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let folders = processes.map(|process| process.path()).filter(|folder| {
        let variables = fs::read(folder.join("environ")).unwrap_or_default();
        variables
            .split(|byte| *byte == 0)
            .any(|variable| variable == marker)
    });
    folders
        .map(|folder| fs::read_to_string(folder.join("cmdline")).unwrap_or_default())
        .collect()
}
