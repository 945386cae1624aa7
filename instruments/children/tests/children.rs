//! Children of each kind, when this process ends, is interrupted, or is killed.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use children::{Interrupt, Starting, Tail, cpus, processes};

/// Time limit that is long enough for a busy machine: the tests assert what happens, not when.
const SOON: Duration = Duration::from_secs(60);
/// Names of the variables that hold the folder and the kind for the process that is killed.
const FOLDER: &str = "CHILDREN_FOLDER";
const KIND: &str = "CHILDREN_KIND";

/// Returns an endless loop that ignores the end of its standard input and SIGTERM, and another one in the background.
/// Both write their numbers. The other may be a daemon: it obeys SIGTERM, but has a session of its own.
fn deaf(folder: &Path, is_daemon: bool) -> Command {
    let told =
        |name: &str| format!("echo $$ >$FOLDER/{name}.new; mv $FOLDER/{name}.new $FOLDER/{name}");
    let own = told("own");
    let other = told("other");
    let other = if is_daemon {
        format!("setsid sh -c '{other}; exec sleep 1000' &")
    } else {
        format!("sh -c '{other}; while :; do sleep 0.1; done' &")
    };
    let deaf = format!("trap '' TERM INT HUP; {own};");
    let begin = if is_daemon {
        [other, deaf]
    } else {
        [deaf, other]
    };
    let mut shell = Command::new("sh");
    shell.env("FOLDER", folder).arg("-c");
    shell.arg(format!("{} while :; do sleep 0.1; done", begin.join(" ")));
    shell
}

fn starting<'a>(kind: &str, command: &'a Command) -> Starting<'a> {
    match kind {
        "server" => Starting::of(command).stops_with_stdin(),
        _ => Starting::of(command),
    }
}

#[test]
#[ignore = "other tests start it as a process of its own, and kill it"]
fn a_process_that_is_killed() {
    // Run with all other tests, it has nothing to do.
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let own = folder.join("temporary");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("file"), "left by a killed process").unwrap();
    let _kept = children::remove_at_the_end(&own).unwrap();
    let command = deaf(folder, false);
    let _running = starting(&std::env::var(KIND).unwrap(), &command)
        .start()
        .unwrap();
    std::thread::sleep(10 * SOON);
}

#[test]
fn nothing_outlives_a_kill() {
    for kind in ["server", "program"] {
        let folder = tempfile::tempdir().unwrap();
        let mut killed = Command::new(std::env::current_exe().unwrap())
            .args(["a_process_that_is_killed", "--exact", "--ignored"])
            .env(FOLDER, folder.path())
            .env(KIND, kind)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let numbers = numbers_in(folder.path());
        killed.kill().unwrap();
        killed.wait().unwrap();
        for number in numbers {
            until(|| !is_alive(number), &format!("the end of {kind} {number}"));
        }
        let temporary = folder.path().join("temporary");
        until(|| !temporary.exists(), "the end of a temporary folder");
    }
}

#[test]
fn a_dropped_child_is_gone() {
    for (kind, is_daemon) in [("server", false), ("program", false), ("program", true)] {
        let folder = tempfile::tempdir().unwrap();
        let running = starting(kind, &deaf(folder.path(), is_daemon))
            .start()
            .unwrap();
        let numbers = numbers_in(folder.path());
        drop(running);
        for number in numbers {
            until(|| !is_alive(number), &format!("the end of {kind} {number}"));
        }
    }
}

/// Tests a daemon of a service that crashes. A process that was forked twice has no parent but the first process of
/// all, and a session of its own.
#[test]
fn a_daemon_without_a_parent_is_found_and_ended() {
    for is_ended_by_itself in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let end = if is_ended_by_itself {
            "while [ ! -e $FOLDER/end ]; do sleep 0.1; done"
        } else {
            "exec sleep 1000"
        };
        let daemon = "trap '' TERM; echo $$ >$FOLDER/daemon.new; mv $FOLDER/daemon.new $FOLDER/daemon; \
                      while :; do sleep 0.1; done";
        let mut shell = Command::new("sh");
        shell.env("FOLDER", folder.path()).arg("-c");
        shell
            .arg(format!("(setsid sh -c \"$0\" &) ; {end}"))
            .arg(daemon);
        let mut running = Starting::of(&shell).with_daemons().start().unwrap();
        let file = folder.path().join("daemon");
        until(|| file.exists(), "the start of the daemon");
        let number: u32 = std::fs::read_to_string(file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let is_found = || {
            let found = processes::from(running.id()).unwrap();
            found.iter().any(|process| process.id == number)
        };
        until(is_found, "the daemon among what the child started");
        if is_ended_by_itself {
            std::fs::write(folder.path().join("end"), "").unwrap();
            assert!(running.exit_within(SOON).is_some());
        } else {
            drop(running);
        }
        until(|| !is_alive(number), "the end of the daemon");
    }
}

#[test]
fn a_child_that_ends_takes_what_it_left_in_the_background() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 1000 & echo $!; exit 7"]);
    let said = Starting::of(&shell).output(&Interrupt::new(), SOON, 1 << 16);
    let said = said.unwrap().expect("it ends");
    assert_eq!(said.status.code(), Some(7));
    let number = String::from_utf8(said.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    until(
        || !is_alive(number),
        "the end of what ran in the background",
    );
}

/// A service may take a moment to end after the shell that started it.
#[test]
fn all_of_a_group_have_time_to_end() {
    let is_tidy = || {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.current_dir(folder.path()).args([
            "-c",
            "sh -c 'trap \"sleep 0.3; echo >tidy; exit\" TERM; echo >ready; while :; do sleep 0.1; done'; :",
        ]);
        let running = Starting::of(&shell).start().unwrap();
        until(|| folder.path().join("ready").exists(), "a service");
        drop(running);
        folder.path().join("tidy").exists()
    };
    // The time is limited, and a machine that stands still may let it pass once.
    assert!((0..3).any(|_| is_tidy()));
}

#[test]
fn memory_has_a_limit() {
    let mut greedy = Command::new("sh");
    // The shell holds all of it in one variable.
    greedy.args([
        "-c",
        "x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo got ${#x}",
    ]);
    let limited = Starting::of(&greedy)
        .with_memory(Some(64 << 20))
        .output(&Interrupt::new(), SOON, 1 << 16)
        .unwrap()
        .expect("it ends");
    assert!(!limited.status.success(), "{limited:?}");
    assert!(!limited.stdout.starts_with(b"got"), "{limited:?}");
}

#[test]
fn any_bytes_may_be_printed() {
    let mut shell = Command::new("sh");
    shell.args(["-c", r"printf '\377\n' >&2; echo after >&2"]);
    let mut running = Starting::of(&shell).stderr(Stdio::piped()).start().unwrap();
    let tail = Tail::of(running.stderr());
    let ended = running.exit_within(SOON).expect("it ends");
    assert!(ended.success(), "{ended}");
    assert_eq!(tail.at_the_end(), "\u{fffd}\nafter");
}

/// Returns the numbers of [`deaf`] and of the other one, which will be there soon.
fn numbers_in(folder: &Path) -> [u32; 2] {
    ["own", "other"].map(|name| {
        let read = || {
            std::fs::read_to_string(folder.join(name))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        until(|| read().is_some(), name);
        read().unwrap()
    })
}

fn until(mut is_so: impl FnMut() -> bool, what: &str) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_alive(number: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest.trim_start());
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

/// Without this, ring's build script runs again whenever a program that cargo runs starts cargo.
#[test]
fn a_child_is_not_told_of_the_package_that_started_it() {
    assert!(
        std::env::var_os("CARGO_PKG_NAME").is_some(),
        "cargo runs this test"
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", "env"]).env("CARGO_PKG_VERSION", "9");
    let said = Starting::of(&shell)
        .output(&Interrupt::new(), SOON, 1 << 16)
        .unwrap()
        .unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        !said.contains("CARGO_PKG_NAME") && !said.contains("CARGO_MANIFEST"),
        "{said}"
    );
    assert!(
        said.contains("CARGO_PKG_VERSION=9"),
        "what the caller wants stays"
    );
}

#[test]
fn a_pinned_thread_and_its_children_stay_where_they_are() {
    let last = *cpus::available().last().unwrap();
    let seen = std::thread::spawn(move || {
        cpus::pin_current_thread(&[last]).unwrap();
        let child = std::process::Command::new("sh")
            .args(["-c", "grep Cpus_allowed_list /proc/self/status"])
            .output()
            .unwrap();
        String::from_utf8(child.stdout).unwrap()
    })
    .join()
    .unwrap();
    assert_eq!(
        seen.split_whitespace().last(),
        Some(last.to_string().as_str())
    );
    assert!(cpus::pin_current_thread(&[]).is_ok());
}
