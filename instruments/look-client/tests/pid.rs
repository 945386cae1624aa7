//! A look at other programs from outside.
//!
//! `cargo test -p duel-look-client --features pid`: the feature is off by default, and so are these tests.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use terminal::testing::once_in_three;

/// Returns an example of this crate, which cargo builds beside its tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join("examples").join(name)
}

/// A program that ends with the test.
struct Program(Child);

impl Program {
    /// Starts a program, and waits until it says that it is ready.
    fn start(program: &Path, fault: &str) -> Self {
        let mut command = Command::new(program);
        command.arg(fault);
        Self::begin(command)
    }

    /// Starts a command, and waits until its program says that it is ready.
    fn begin(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    /// Looks at it for some seconds, and returns what is said.
    fn look(&self, seconds: &str) -> String {
        let output = look(&["--pid", &self.0.id().to_string(), "--seconds", seconds]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Looks at it until these words are said, at most three times: a crowded machine may leave a look too few moments.
    fn look_for(&self, seconds: &str, words: &[&str]) -> String {
        let mut said = String::new();
        for _ in 0..3 {
            said = self.look(seconds);
            if words.iter().all(|word| said.contains(word)) {
                break;
            }
        }
        for word in words {
            assert!(said.contains(word), "no `{word}` in:\n{said}");
        }
        said
    }

    /// Looks at it until this word is not said, at most three times: on a crowded machine, what stands still for the whole
    /// of a look resembles what is stuck, and what waits for a CPU what computes.
    fn look_without(&self, seconds: &str, word: &str) {
        once_in_three(|| {
            let said = self.look(seconds);
            (!said.contains(word), said)
        });
    }

    /// Sends it a signal such as `-STOP`.
    fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.unwrap().success());
    }

    /// Returns the states of its threads: `S` sleeps, `t` and `T` are stopped.
    fn states(&self) -> String {
        let mut states = String::new();
        let tasks = format!("/proc/{}/task", self.0.id());
        for task in fs::read_dir(tasks).unwrap() {
            let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            let (_, after) = stat.rsplit_once(") ").unwrap();
            states.push(after.chars().next().unwrap());
        }
        states
    }

    /// Waits until its threads have such states: they change them when they get a CPU.
    fn wait_for_states(&self, are_right: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let states = self.states();
            if are_right(&states) {
                return;
            }
            assert!(Instant::now() < deadline, "{states}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn look(words: &[&str]) -> Output {
    Command::new(example("look")).args(words).output().unwrap()
}

/// Returns the number of the line in `examples/threads.rs` with this comment.
fn line(comment: &str) -> String {
    let text = include_str!("../examples/threads.rs");
    let line = text.lines().position(|line| line.ends_with(comment));
    format!("threads.rs:{}", line.unwrap() + 1)
}

#[test]
fn a_deadlock_is_named_at_its_line_and_locks_in_order_are_not_accused() {
    let threads = example("threads");
    let place = line("// waits here");
    let said = Program::start(&threads, "deadlock").look_for("3", &["Usual cause: A deadlock"]);
    let first = said.lines().find(|line| line.starts_with("1. "));
    let first = first.unwrap_or_else(|| panic!("{said}"));
    assert!(first.contains("lock") && first.contains(&place), "{said}");
    assert!(!said.contains("/debug/"), "no endpoints there: {said}");

    Program::start(&threads, "ordered").look_without("3", "eadlock");
}

#[test]
fn a_place_that_computes_is_named() {
    let computes = "computes all the time";
    let said = Program::start(&example("threads"), "busy").look_for("6", &[computes]);
    let first = said.lines().find(|line| line.starts_with("1. "));
    let first = first.unwrap_or_else(|| panic!("{said}"));
    assert!(
        first.contains(computes) && first.contains(&line("// computes here")),
        "{said}"
    );

    Program::start(&example("threads"), "pauses").look_without("3", computes);
}

#[test]
fn a_process_and_threads_whose_names_the_system_cuts_inside_a_letter_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("работники");
    fs::copy(example("threads"), &program).unwrap();
    let program = Program::start(&program, "named");
    program.look_for("3", &["работни\u{fffd}", "computes all the time"]);
    let output = look(&["--name", "работники", "--seconds", "1"]);
    assert!(output.status.success(), "{output:?}");
}

/// Starts the example with a library that is then replaced by a pipe or by a file of holes, and looks at it.
fn look_past(put: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("evil.so");
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        path.contains("/libgcc_s").then_some(path)
    });
    fs::copy(libc.expect("a library"), &library).unwrap();
    let mut command = Command::new(example("threads"));
    command.arg("busy").env("LD_PRELOAD", &library);
    let program = Program::begin(command);
    fs::remove_file(&library).unwrap();
    // That is how the system calls the file now.
    put(&folder.path().join("evil.so (deleted)"));
    program.look_for("2", &["computes all the time"]);
}

#[test]
fn a_pipe_or_a_huge_file_in_place_of_a_library_holds_nothing_up() {
    look_past(|path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    });
    look_past(|path| {
        let file = fs::File::create(path).unwrap();
        file.set_len(200 << 30).unwrap();
    });
}

/// Fields of a section's header in a program of 64 bits, by their place in it.
const FLAGS: usize = 8;
const OFFSET: usize = 24;
const SIZE: usize = 32;

/// Flag of a section that is compressed.
const COMPRESSED: u64 = 1 << 11;

fn number(program: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(program[at..at + 8].try_into().unwrap())
}

fn put(program: &mut [u8], at: usize, value: u64) {
    program[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Returns the places of the headers of sections that are not in memory when the program runs, such as debug information.
fn headers(program: &[u8]) -> Vec<usize> {
    let first = usize::try_from(number(program, 0x28)).unwrap();
    let count = usize::from(u16::from_le_bytes(program[0x3c..0x3e].try_into().unwrap()));
    let mut places: Vec<usize> = (1..count).map(|index| first + 64 * index).collect();
    places.retain(|at| {
        let is_in_memory = number(program, at + FLAGS) & 2 != 0;
        !is_in_memory && number(program, at + SIZE) > 1000
    });
    places
}

#[test]
fn damaged_programs_end_no_look() {
    let whole = fs::read(example("threads")).unwrap();
    let headers = headers(&whole);
    assert!(headers.len() > 5, "it has debug information");
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        // The constants of Knuth's MMIX.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let mut damaged = Vec::new();
    for turn in 0..12 {
        let mut program = whole.clone();
        for &header in &headers {
            let offset = usize::try_from(number(&whole, header + OFFSET)).unwrap();
            let size = usize::try_from(number(&whole, header + SIZE)).unwrap();
            let flags = number(&whole, header + FLAGS);
            match turn {
                // It claims to be compressed, of a size that no machine has, or of one that a large one has.
                0 | 1 => {
                    put(&mut program, header + FLAGS, flags | COMPRESSED);
                    put(&mut program, offset, 1);
                    put(
                        &mut program,
                        offset + 8,
                        if turn == 0 { u64::MAX / 2 } else { 1 << 45 },
                    );
                }
                2 => put(&mut program, header + SIZE, 1 << 45),
                3 => put(&mut program, header + SIZE, u64::MAX),
                4 => put(&mut program, header + OFFSET, u64::MAX - 100),
                5 => put(
                    &mut program,
                    header + SIZE,
                    number(&whole, header + SIZE) / 3,
                ),
                6 => put(&mut program, header + OFFSET, 7),
                7 => program[offset..offset + size].fill(0xff),
                // A number of its content is another.
                _ => {
                    for _ in 0..=size / 500 {
                        program[offset + random(size)] = u8::try_from(random(256)).unwrap();
                    }
                }
            }
        }
        damaged.push(program);
    }
    // More sections than a 16-bit number holds, and the number is in one of them.
    let mut program = whole.clone();
    program[0x3c..0x3e].fill(0);
    let first = usize::try_from(number(&program, 0x28)).unwrap();
    put(&mut program, first + SIZE, 1 << 40);
    damaged.push(program);
    // One that was cut, as by a full disk.
    damaged.push(whole[..whole.len() / 2].to_vec());

    let permissions = fs::metadata(example("threads")).unwrap().permissions();
    let mut paths = Vec::new();
    for (turn, program) in damaged.iter().enumerate() {
        let path = folder.path().join(format!("damaged-{turn}"));
        fs::write(&path, program).unwrap();
        fs::set_permissions(&path, permissions.clone()).unwrap();
        paths.push(path);
    }
    std::thread::scope(|scope| {
        for (turn, path) in paths.into_iter().enumerate() {
            scope.spawn(move || {
                println!("{turn}");
                Program::start(&path, "pauses").look_for("1", &["Threads: 2"]);
            });
        }
    });
}

#[test]
fn memory_that_grows_is_named_and_memory_that_stays_is_not() {
    let grows = "which grows by";
    Program::start(&example("threads"), "grows").look_for("10", &[grows]);
    Program::start(&example("threads"), "pauses").look_without("4", grows);
}

#[test]
fn evidence_is_judged_again_to_the_same_report() {
    let program = Program::start(&example("threads"), "busy");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seen.json");
    let file = file.to_str().unwrap();
    let pid = program.0.id().to_string();
    let first = look(&["--pid", &pid, "--seconds", "2", "--save", file]);
    let again = look(&["--from", file]);
    assert!(
        first.status.success() && again.status.success(),
        "{again:?}"
    );
    assert_eq!(
        String::from_utf8_lossy(&first.stdout),
        String::from_utf8_lossy(&again.stdout)
    );
}

#[test]
fn data_that_nobody_reads_is_named() {
    let unread = "Nobody reads what came in on 1 of 1 connections";
    Program::start(&example("threads"), "unread").look_for("10", &[unread, "17 bytes"]);
}

#[test]
fn a_stripped_program_shows_its_threads_and_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("threads");
    fs::copy(example("threads"), &stripped).unwrap();
    let strip = Command::new("strip").arg(&stripped).status();
    assert!(
        strip.is_ok_and(|status| status.success()),
        "needs strip (binutils)"
    );
    let words = [
        "debug information",
        // Calls and threads need no names of functions.
        "3 threads",
        "clock_nanosleep",
        // A lock, a condition variable and a channel wait in the same call.
        "waits in futex",
        "the stack does not tell which",
    ];
    let said = Program::start(&stripped, "deadlock").look_for("2", &words);
    assert!(!said.contains("idle: thread of a library"), "{said}");
}

#[test]
fn a_process_that_ends_meanwhile_still_has_its_names() {
    // On a crowded machine a look may not have begun after the four seconds.
    let said = once_in_three(|| {
        let mut program = Program::start(&example("threads"), "ordered");
        let id = program.0.id().to_string();
        let mut look = Command::new(example("look"));
        look.args(["--pid", &id, "--seconds", "60"]);
        let look = look.stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(4));
        program.0.kill().unwrap();
        program.0.wait().unwrap();
        let output = look.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let is_named = said.contains("threads::transfer (look-client/examples/threads.rs:");
        (is_named && said.contains("the process ended after"), said)
    });
    assert!(!said.contains("stripped"), "{said}");
}

#[test]
fn a_process_that_is_stopped_is_called_so_and_stays_stopped() {
    let program = Program::start(&example("threads"), "pauses");
    let are_stopped = |states: &str| states.chars().all(|state| state == 'T');
    program.signal("-STOP");
    program.wait_for_states(are_stopped);
    let said = program.look_for("2", &["100 % stopped"]);
    let first = said.lines().find(|line| line.starts_with("1. "));
    assert!(
        first.is_some_and(|line| line.contains("is stopped")),
        "{said}"
    );
    program.wait_for_states(are_stopped);
    program.signal("-CONT");
    program.look_without("2", "is stopped");
}

#[test]
fn a_look_that_is_killed_leaves_no_thread_stopped() {
    let program = Program::start(&example("threads"), "ordered");
    let id = program.0.id().to_string();
    for number in 0..50 {
        let mut look = Command::new(example("look"));
        look.args(["--pid", &id, "--seconds", "5"]);
        let mut child = look.stdout(Stdio::null()).spawn().unwrap();
        // Moments all over the beginning of a look, and of its stops.
        std::thread::sleep(Duration::from_millis(number * 173 % 400));
        child.kill().unwrap();
        child.wait().unwrap();
        // The kernel lets a thread go when its tracer has ended.
        program.wait_for_states(|states| !states.contains(['t', 'T']));
    }
    program.look_for("1", &["threads"]);
}

#[test]
fn what_cannot_be_looked_at_is_refused_in_a_sentence() {
    for (words, code, says) in [
        (&["--pid", "999999999"][..], 3, "999999999"),
        (
            &["--name", "no such program is there"],
            3,
            "no such program",
        ),
        (&["--pid", "1", "--name", "x"], 2, "--name"),
        (&["--name", ""], 2, "--name"),
        (&[], 2, "<URL"),
    ] {
        let output = look(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}
