//! Servers that do not come up.
#![cfg(unix)]

use course::bench::server::{Launch, Server, ServerError};
use course::bench::testing::write_script;
use engine::load::interrupt::Interrupt;

/// A retry loop that logs before it serves: what it prints is neither waited for without end nor kept.
#[test]
fn a_server_that_prints_and_never_listens_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    write_script(&program, "#!/bin/sh\nexec yes the database is away\n");
    let started = Server::start(&Launch::of(&program, "exercise"), &Interrupt::new());
    let Err(ServerError::Hangs { said, .. }) = started else {
        panic!("{started:?}");
    };
    assert_eq!(said, "the database is away");
}
