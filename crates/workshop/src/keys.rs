//! Single keys of a terminal, without Enter.

use std::io::{IsTerminal, Read};
use std::process::Child;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// Sets the terminal on descriptor 1 so that it hands over each key at once and shows none, until standard input ends:
/// with the process that holds its other end, however that one ends. Settings that somebody else has changed since
/// stay: the reader's shell may have the terminal again. Ctrl-C stays a signal.
#[cfg(unix)]
const KEY_BY_KEY: &str = r#"
PATH=/usr/bin:/bin
trap '' HUP INT TERM TTOU
exec 3<&1
before=$(stty -g <&3) || exit
stty -icanon -echo min 1 time 0 <&3
ours=$(stty -g <&3)
read -r line
[ "$(stty -g <&3)" = "$ours" ] && stty "$before" <&3
"#;

/// The keys that a reader presses; none without a terminal. Some terminals cannot hand over single keys, but only
/// whole lines.
#[derive(Debug)]
pub(crate) struct Keys {
    pressed: Receiver<char>,
    /// Keeps the channel open when there is nothing more to read.
    _open: Sender<char>,
    /// Puts the terminal back when its standard input closes.
    keeper: Option<Child>,
    are_there: bool,
}

impl Keys {
    /// Begins to listen.
    pub(crate) fn listen() -> Self {
        let are_there = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let (open, pressed) = mpsc::channel();
        let mut keeper = None;
        if are_there {
            keeper = keep();
            let sender = open.clone();
            std::thread::spawn(move || {
                for byte in std::io::stdin().lock().bytes().map_while(Result::ok) {
                    if sender.send(char::from(byte)).is_err() {
                        return;
                    }
                }
            });
        }
        Self {
            pressed,
            _open: open,
            keeper,
            are_there,
        }
    }

    /// Returns whether there is a terminal on which a reader can press keys.
    pub(crate) fn are_there(&self) -> bool {
        self.are_there
    }

    /// Returns whether the terminal hands over whole lines.
    pub(crate) fn need_enter(&self) -> bool {
        self.keeper.is_none()
    }

    /// Waits for the next key for at most this long.
    pub(crate) fn next_within(&self, time: Duration) -> Option<char> {
        self.pressed.recv_timeout(time).ok()
    }
}

/// Starts the process that restores the terminal; `None` without a shell, or if the terminal has no single keys.
fn keep() -> Option<Child> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        use std::os::unix::process::CommandExt;
        use std::process::{Command, Stdio};

        if std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb") {
            return None;
        }
        let terminal = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
        Command::new("/bin/sh")
            .args(["-c", KEY_BY_KEY])
            // Ctrl-C must not end it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(terminal)
            .stderr(Stdio::null())
            .spawn()
            .ok()
    }
    #[cfg(not(unix))]
    None
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            // It closes the keeper's standard input first.
            let _ = keeper.wait();
        }
    }
}
