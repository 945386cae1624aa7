//! Children of every kind, when this process ends, is interrupted, or is killed. The program has a
//! `main` of its own, since it is started again as a guard, as a leash, and as one that is killed.

fn main() -> std::process::ExitCode {
    if let Some(ended) = bench::child::instead() {
        return ended;
    }
    #[cfg(target_os = "linux")]
    linux::run();
    std::process::ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use bench::child::{Kin, Starting, Tail};
    use loadgen::interrupt::Interrupt;

    /// Long enough for a busy machine; what is asserted is what comes to pass, not when.
    const SOON: Duration = Duration::from_secs(20);
    /// A copy of this program, which removes itself.
    const COPY: &str = "copy";
    const KINDS: [(&str, Kin); 3] = [
        ("server", Kin::Server),
        ("tool", Kin::Tool),
        ("family", Kin::Family),
    ];

    pub(super) fn run() {
        let arguments: Vec<String> = std::env::args().collect();
        if let [_, helper, kind, folder] = &arguments[..]
            && helper == "helper"
        {
            return helper_that_is_killed(kind, Path::new(folder));
        }
        let tests: [(&str, fn()); 7] = [
            ("no_child_outlives_a_kill", no_child_outlives_a_kill),
            ("a_dropped_child_is_gone", a_dropped_child_is_gone),
            (
                "a_replaced_program_starts_some",
                a_replaced_program_starts_some,
            ),
            ("all_are_killed_at_once", all_are_killed_at_once),
            ("a_folder_goes_after_a_kill", a_folder_goes_after_a_kill),
            ("memory_has_a_limit", memory_has_a_limit),
            ("any_bytes_may_be_printed", any_bytes_may_be_printed),
        ];
        for (name, test) in tests {
            test();
            println!("test {name} ... ok");
        }
    }

    /// An endless loop that hears nothing: neither of a closed standard input nor of SIGTERM. It
    /// tells its number and, as a family, that of a child which has left its group.
    fn deaf(folder: &Path, kind: &str) -> Command {
        let own = "trap '' TERM INT HUP; echo $$ >$FOLDER/own.new; mv $FOLDER/own.new $FOLDER/own";
        let other = "setsid sh -c 'echo $$ >$FOLDER/other.new; mv $FOLDER/other.new $FOLDER/other; \
                     exec sleep 1000' &";
        let other = if kind == "family" { other } else { "" };
        let mut shell = Command::new("sh");
        shell
            .env("FOLDER", folder)
            .args(["-c", &format!("{own}; {other} while :; do sleep 0.1; done")]);
        shell
    }

    fn helper_that_is_killed(kind: &str, folder: &Path) {
        let own = std::env::current_exe().unwrap();
        if own.ends_with(COPY) {
            std::fs::remove_file(own).unwrap();
        }
        let (_, kin) = KINDS.iter().find(|(name, _)| *name == kind).unwrap();
        let own = folder.join("temporary");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("file"), "left by a killed process").unwrap();
        let _keeper = bench::child::Keeper::of(&own).unwrap();
        let _running = Starting::of(&deaf(folder, kind), *kin).start().unwrap();
        std::thread::sleep(10 * SOON);
    }

    fn killed(kind: &str) -> tempfile::TempDir {
        killed_of(&std::env::current_exe().unwrap(), kind)
    }

    fn killed_of(program: &Path, kind: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut helper = Command::new(program)
            .args(["helper", kind])
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        for name in started(kind) {
            number_in(&folder.path().join(name));
        }
        helper.kill().unwrap();
        helper.wait().unwrap();
        folder
    }

    fn started(kind: &str) -> &'static [&'static str] {
        match kind {
            "family" => &["own", "other"],
            _ => &["own"],
        }
    }

    fn no_child_outlives_a_kill() {
        for (kind, _) in KINDS {
            let folder = killed(kind);
            for name in started(kind) {
                ends(number_in(&folder.path().join(name)), kind);
            }
        }
    }

    fn a_dropped_child_is_gone() {
        for (kind, kin) in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let running = Starting::of(&deaf(folder.path(), kind), kin)
                .start()
                .unwrap();
            let numbers = started(kind).iter();
            let numbers: Vec<u32> = numbers
                .map(|name| number_in(&folder.path().join(name)))
                .collect();
            drop(running);
            for number in numbers {
                assert!(!is_alive(number), "{kind} {number} was left behind");
            }
        }
    }

    /// Another build takes the place of the program that builds it.
    fn a_replaced_program_starts_some() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join(COPY);
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let left = killed_of(&copy, "family");
        assert!(!copy.exists());
        ends(number_in(&left.path().join("other")), "family");
    }

    /// What the second Ctrl-C does.
    fn all_are_killed_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let tool = Starting::of(&deaf(folder.path(), "tool"), Kin::Tool).start();
        let number = number_in(&folder.path().join("own"));
        bench::child::kill_all();
        ends(number, "tool");
        drop(tool);
    }

    fn a_folder_goes_after_a_kill() {
        let folder = killed("tool");
        let own = folder.path().join("temporary");
        until(|| !own.exists(), "the folder of a killed process");
    }

    fn memory_has_a_limit() {
        let mut greedy = Command::new("sh");
        // The shell holds all of it in one variable.
        greedy.args([
            "-c",
            "x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo got ${#x}",
        ]);
        let said = |limit| {
            Starting::of(&greedy, Kin::Tool)
                .with_memory(limit)
                .output(&Interrupt::new(), SOON, 1 << 16)
                .unwrap()
                .expect("it ends")
        };
        let limited = said(Some(64 << 20));
        assert!(!limited.status.success(), "{limited:?}");
        assert!(!limited.stdout.starts_with(b"got"), "{limited:?}");
    }

    fn any_bytes_may_be_printed() {
        let mut shell = Command::new("sh");
        shell.args(["-c", r"printf '\377\n' >&2; echo after >&2"]);
        let mut running = Starting::of(&shell, Kin::Tool)
            .stderr(Stdio::piped())
            .start()
            .unwrap();
        let tail = Tail::of(running.stderr());
        let ended = running.exit_within(SOON).expect("it ends");
        assert!(ended.success(), "{ended}");
        assert_eq!(tail.at_the_end(), "\u{fffd}\nafter");
    }

    /// The number in a file that will be there soon.
    fn number_in(file: &Path) -> u32 {
        let read = || std::fs::read_to_string(file).ok()?.trim().parse().ok();
        until(|| read().is_some(), &file.display().to_string());
        read().unwrap()
    }

    fn ends(number: u32, kind: &str) {
        until(|| !is_alive(number), &format!("the end of {kind} {number}"));
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
}
