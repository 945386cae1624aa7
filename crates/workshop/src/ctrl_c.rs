//! Ctrl-C: the first asks what runs to stop, the second does not ask.

use evidence::interrupt::Interrupt;

/// A flag that Ctrl-C sets. Servers and generators that run are children or
/// threads of this process and end with it in any case.
pub(crate) fn watch() -> Interrupt {
    let interrupt = Interrupt::new();
    let flag = interrupt.clone();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        else {
            return;
        };
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if flag.is_set() {
                    std::process::exit(130);
                }
                flag.set();
            }
        });
    });
    interrupt
}
