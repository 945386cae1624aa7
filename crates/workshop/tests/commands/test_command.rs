//! `cargo workshop test` with a stand-in for cargo: lines, counts, logs, and Ctrl-C.

use crate::workshop::Workshop;

#[test]
fn the_checks_can_be_listed() {
    let said = Workshop::new().run("test --list").good();
    for name in ["format", "lints", "tests", "steps", "proof", "grades"] {
        assert!(said.contains(&format!("{name} ")), "{name}: {said}");
    }
}

#[test]
fn a_name_that_no_check_has_is_refused() {
    let said = Workshop::new().run("test nonsense").refused(2);
    assert!(said.contains("--list"), "{said}");
}

#[test]
fn a_log_that_cannot_be_written_is_said_first() {
    let workshop = Workshop::new();
    workshop.write(".workshop", "a file where the folder should be");
    let said = workshop.run("test format").refused(1);
    assert!(said.contains("logs cannot be written"), "{said}");
}

#[cfg(unix)]
mod with_a_stand_in {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::Workshop;
    use crate::workshop::Said;

    /// `cargo workshop WORDS`, with a cargo made of shell commands and no
    /// other program than the system's own.
    fn with_cargo(workshop: &Workshop, script: &str, words: &str) -> Command {
        let cargo = workshop.stand_in("cargo", script);
        let mut command = workshop.command(words);
        command.env("CARGO", cargo);
        command
    }

    #[test]
    fn a_check_that_passes_is_a_line_and_counts() {
        let workshop = Workshop::new();
        let mut test = with_cargo(&workshop, "echo fine", "test format");
        let said = Said::of(&mut test).good();
        assert!(said.starts_with("ok    format  "), "{said}");
        assert!(!said.contains("fine"), "{said}");
        assert_eq!(said.lines().last(), Some("1 passed, 0 failed"));
        let log = workshop.read(".workshop/test/format.log");
        assert!(log.contains("fine"), "{log}");
    }

    #[test]
    fn what_a_failed_check_printed_is_shown_in_full() {
        let workshop = Workshop::new();
        let script = "echo to out; echo to err >&2; exit 3";
        let mut test = with_cargo(&workshop, script, "test format");
        let said = Said::of(&mut test);
        assert_eq!(said.code, Some(1), "{said:?}");
        for part in ["FAIL  format", "to out", "to err", "ended with code 3"] {
            assert!(said.out.contains(part), "{part}: {said:?}");
        }
        assert_eq!(said.out.lines().last(), Some("0 passed, 1 failed"));
    }

    #[test]
    fn a_failed_test_is_named_though_others_ran_after_it() {
        let workshop = Workshop::new();
        let failed = r"failures:\n    a::closes\ntest result: FAILED.\n";
        let script = format!("printf '{failed}'; yes 'test b ... ok' | head -n 99; exit 101");
        let mut test = with_cargo(&workshop, &script, "test tests");
        let said = Said::of(&mut test);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.out.contains("    a::closes"), "{said:?}");
    }

    #[test]
    fn a_missing_tool_is_skipped_by_a_reader_and_failed_in_ci() {
        let workshop = Workshop::new();
        // `setup` is at it as well, and comes to nothing.
        let mut test = with_cargo(&workshop, "exit 1", "test book");
        let empty = tempfile::tempdir().unwrap();
        let said = Said::of(test.env("PATH", empty.path())).good();
        assert!(
            said.contains("needs mdbook: cargo workshop setup mdbook"),
            "{said}"
        );
        assert_eq!(said.lines().last(), Some("0 passed, 0 failed, 2 skipped"));
        let said = Said::of(test.env("CI", "true"));
        assert_eq!(said.code, Some(1), "{said:?}");
        assert_eq!(said.out.lines().last(), Some("0 passed, 2 failed"));
    }

    #[test]
    fn two_at_a_time_would_measure_each_other() {
        let workshop = Workshop::new();
        let mut first = with_cargo(&workshop, "echo up; sleep 60", "test format")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        await_log(&workshop, "up");
        let said = workshop.run("test format").refused(1);
        assert!(said.contains("another `cargo workshop test`"), "{said}");
        signal(&first.id().to_string(), "INT");
        first.wait().unwrap();
    }

    #[test]
    fn ctrl_c_leaves_no_process() {
        for name in ["INT", "TERM"] {
            let workshop = Workshop::new();
            let script = "sleep 60 & echo sleeps $!; wait";
            let test = with_cargo(&workshop, script, "test format")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let log = await_log(&workshop, "sleeps ");
            let sleeper = log.split("sleeps ").nth(1).unwrap().trim().to_owned();
            assert!(is_alive(&sleeper));
            signal(&test.id().to_string(), name);
            let said = Said::from(test.wait_with_output().unwrap()).refused(130);
            assert!(said.contains("interrupted in `format`"), "{said}");
            let began = Instant::now();
            while is_alive(&sleeper) {
                assert!(began.elapsed() < Duration::from_secs(10), "it sleeps on");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// The check's log, once a line of it holds `part`.
    fn await_log(workshop: &Workshop, part: &str) -> String {
        let began = Instant::now();
        loop {
            let log = std::fs::read_to_string(workshop.path(".workshop/test/format.log"));
            if let Some(log) = log.ok().filter(|log| {
                // The command itself is logged too, but not what it prints.
                log.lines().skip(1).any(|line| line.contains(part)) && log.ends_with('\n')
            }) {
                return log;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "no `{part}`");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(number: &str, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), number])
            .status();
        assert!(sent.unwrap().success());
    }

    fn is_alive(number: &str) -> bool {
        let said = Command::new("ps")
            .args(["-o", "stat=", "-p", number])
            .output()
            .unwrap();
        let state = String::from_utf8(said.stdout).unwrap();
        !state.trim().is_empty() && !state.trim().starts_with('Z')
    }
}
