//! A capture that was never recorded, and a way to look at what is drawn from it.

use course::report::capture::{Capture, Files};

use crate::support::record;

/// Writes `text` into the folder that `REPORT_PLOTS` names, if any, for a person to look at.
pub(crate) fn keep(name: &str, text: &str) {
    if let Some(folder) = std::env::var_os("REPORT_PLOTS") {
        std::fs::write(std::path::Path::new(&folder).join(name), text).unwrap();
    }
}

/// Asserts that `text` contains every part.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// Adds stacks to the profiles of that record.
pub(crate) fn capture() -> Capture {
    let waiting =
        "request;read;tokio::sync::Mutex::lock 19970\nrequest;read;tokio::time::sleep 30\n";
    let calling = "request;read;tokio::time::sleep 20000\n";
    let serving = "runtime;poll;hyper::dispatch;read 410\nruntime;park;epoll_wait 300\n";
    let folded = [
        ("problem.cpu.folded", "runtime;park;epoll_wait 9\n"),
        ("problem.await.folded", waiting),
        ("solution.cpu.folded", serving),
        ("solution.await.folded", calling),
    ];
    Capture {
        record: record(),
        folded: folded
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into(),
        dhat: Files::new(),
    }
}
