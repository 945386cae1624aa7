//! Servers that do not come up.

use children::Interrupt;
use course::bench::server::{Launch, Server, ServerError};
use course::bench::testing::write_script;

/// The program prints in an endless retry loop before it serves. The wait for it ends, and its output is not
/// kept.
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
