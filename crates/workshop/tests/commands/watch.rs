//! `cargo workshop watch`: a grade at every save, on a terminal and without one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::workshop::{CHAPTER, Workshop};

/// Nothing here takes so long, unless the machine stands still.
const WITHIN: Duration = Duration::from_secs(60);
/// Script of a cargo that finds an error and counts its calls.
const REFUSING: &str = r#"
echo asked >> asked
echo '{"reason":"compiler-message","message":{"level":"error","rendered":"error: no such thing"}}'
exit 101"#;

/// A command that runs, and the lines that it prints.
struct Watching {
    child: Child,
    keys: ChildStdin,
    lines: Receiver<String>,
}

impl Watching {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            // A terminal's text need not be UTF-8 when it is cut.
            for line in stdout.split(b'\n').map_while(Result::ok) {
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        Self {
            keys: child.stdin.take().unwrap(),
            child,
            lines,
        }
    }

    /// Waits for a line with this text.
    #[track_caller]
    fn says(&self, text: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(WITHIN) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => before.push(line),
                Err(error) => panic!("no `{text}` ({error}): {before:#?}"),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn ends_with(mut self, code: i32) {
        let ended = self.child.wait().unwrap();
        assert_eq!(ended.code(), Some(code), "{ended:?}");
    }
}

#[test]
fn without_a_terminal_each_save_prints_a_result() {
    let workshop = Workshop::new();
    let cargo = workshop.stand_in("cargo", REFUSING);
    let watching = Watching::start(workshop.command("watch 1").env("CARGO", cargo));
    watching.says("chapter 1: FAILED");
    // As editors do that write a new file and rename it.
    let beside = workshop.path(CHAPTER).join("src/.exercise.rs.swp");
    std::fs::write(&beside, "//! Mine.\n").unwrap();
    std::fs::rename(&beside, workshop.exercise()).unwrap();
    watching.says("chapter 1: FAILED");
    let asked = workshop.read("asked");
    assert_eq!(asked.lines().count(), 2, "{asked}");
    // As those that write into the file.
    std::fs::write(workshop.exercise(), "//! Mine, too.\n").unwrap();
    watching.says("chapter 1: FAILED");
    kill_process(Pid::from_child(&watching.child), Signal::TERM).unwrap();
    watching.ends_with(130);
}

#[test]
fn it_ends_when_nobody_reads_what_it_prints() {
    let workshop = Workshop::new();
    let cargo = workshop.stand_in("cargo", REFUSING);
    let mut watch = workshop.command("watch 1");
    watch.env("CARGO", cargo).stdin(Stdio::null());
    let mut child = watch
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// `script` gives it a terminal, and `stty` tells whether that is as before.
#[cfg(target_os = "linux")]
#[test]
fn keys_do_their_work_and_the_terminal_is_as_before() {
    let program = env!("CARGO_BIN_EXE_cargo-workshop");
    for (keys, signal) in [("q", ""), ("", "INT"), ("", "TERM"), ("", "KILL")] {
        let workshop = Workshop::new();
        // Predicted already, so the command asks nothing.
        workshop.run("predict 1 --gain 10-100").good();
        let cargo = workshop.stand_in("cargo", REFUSING);
        let ending = match signal {
            "" => "wait_for=none".to_owned(),
            signal => {
                format!("(while [ ! -e stop ]; do sleep 0.05; done; kill -{signal} $(cat pid)) &")
            }
        };
        // The keeper needs a moment after a kill.
        let session = format!(
            "before=$(stty -g); {ending}\n\
             sh -c 'echo $$ > pid; exec \"$0\" watch 1' '{program}'; code=$?\n\
             for i in $(seq 250); do [ \"$(stty -g)\" = \"$before\" ] && break; sleep 0.2; done\n\
             [ \"$(stty -g)\" = \"$before\" ] && echo as before, code $code"
        );
        let file = workshop.path("session.sh");
        std::fs::write(&file, session).unwrap();
        let mut script = Command::new("script");
        script
            .args(["--quiet", "--return", "--command"])
            .arg(format!("sh {}", file.display()))
            .arg("/dev/null")
            .envs([("CARGO", cargo.as_os_str()), ("TERM", "xterm".as_ref())])
            .current_dir(workshop.path(""));
        let mut watching = Watching::start(&mut script);
        watching.says("broken: it compiles");
        watching.says("q quit");
        watching.press("h");
        watching.says("Hint 1 of 2: One?");
        watching.says("q quit");
        watching.press("r");
        watching.says("broken: it compiles");
        watching.says("q quit");
        watching.press(keys);
        std::fs::write(workshop.path("stop"), "").unwrap();
        let code = match signal {
            "" => 0,
            "KILL" => 137,
            _ => 130,
        };
        watching.says(&format!("as before, code {code}"));
        watching.ends_with(0);
    }
}
