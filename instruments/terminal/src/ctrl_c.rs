//! Ctrl-C: the first asks the command to stop, the second ends the process.

#[cfg(unix)]
use std::os::unix::net::UnixStream;

use children::Interrupt;

use crate::files;

/// Returns a flag that Ctrl-C sets. The children of this process and its temporary files end with it in any
/// case.
pub fn watch() -> Interrupt {
    files::tidied_up_after_a_kill();
    let interrupt = Interrupt::new();
    let flag = interrupt.clone();
    std::thread::spawn(move || {
        // If so few files may be open, tokio panics. The system's own Ctrl-C has to do then.
        #[cfg(unix)]
        if [(); 4]
            .map(|()| UnixStream::pair())
            .iter()
            .any(Result::is_err)
        {
            return;
        }
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        else {
            return;
        };
        runtime.block_on(async {
            while asked_to_stop().await.is_ok() {
                if flag.is_set() {
                    std::process::exit(130);
                }
                flag.set();
            }
        });
    });
    interrupt
}

/// Waits for Ctrl-C, or for the signal of a closed terminal or of `kill`.
#[cfg(unix)]
async fn asked_to_stop() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut closed = signal(SignalKind::hangup())?;
    let mut killed = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed,
        _ = closed.recv() => Ok(()),
        _ = killed.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn asked_to_stop() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
