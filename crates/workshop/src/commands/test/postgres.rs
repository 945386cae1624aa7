//! The proof of chapters with a database, on a `PostgreSQL` server of this check's own.

use std::path::Path;
use std::time::Duration;

use bench::server::command::{CommandServer, Launch};

use super::claims;
use super::context::Context;
use crate::exit::CliError;
use crate::{files, tools};

/// Whom the server runs as where this process is root, whom it refuses.
const ACCOUNT: &str = "postgres";
/// How long the server may take to make its first files and to listen.
const TIMEOUT: Duration = Duration::from_secs(120);

/// As `prove` by hand, with `fsync` on: what noise cannot touch decides.
pub(super) fn proof(context: &Context<'_>) -> Result<(), CliError> {
    let folder = files::temporary()?;
    let own = folder.path().join("server");
    let command = command(&own)?;
    let launch = Launch {
        name: "PostgreSQL server",
        command: &command,
        folder: folder.path(),
        ready: None,
        ready_within: TIMEOUT,
        tls: None,
        cpus: &[],
    };
    let server = CommandServer::start(&launch, context.interrupt())
        .map_err(CliError::because("the check has no database"))?;
    let options = format!("--database postgres://shop@{}/postgres", server.address());
    for chapter in &context.chapters {
        if chapter.file()?.takes_database {
            claims::prove(context, chapter, &options)?;
        }
    }
    Ok(())
}

/// For the shell: makes a database in `folder` and serves it on `{port}`.
fn command(folder: &Path) -> Result<String, CliError> {
    let programs = tools::postgres().ok_or_else(|| CliError::bad("PostgreSQL is not installed"))?;
    let (programs, folder) = (programs.display(), folder.display());
    let (owner, become_account) = if tools::is_root() {
        (
            format!("chmod 711 . && chown {ACCOUNT} '{folder}' && "),
            format!("setpriv --reuid={ACCOUNT} --regid={ACCOUNT} --clear-groups "),
        )
    } else {
        Default::default()
    };
    Ok(format!(
        "mkdir '{folder}' && {owner}cd '{folder}' && \
         {become_account}'{programs}/initdb' -D data -U shop -A trust >&2 && \
         exec {become_account}'{programs}/postgres' -D data -h 127.0.0.1 -p {{port}} -k ''"
    ))
}
