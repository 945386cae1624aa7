//! The part of the book about one's own service: what its pages show is run, on `examples/shop`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bench::child::{Running, Starting};
use bench::server::command::{CommandServer, Launch};
use bench::server::get;

use super::context::Context;
use crate::exit::CliError;

const PAGES: &str = "src/own";
const SHOP: &str = "examples/shop";
/// What starts the service on a page, before its options.
const STARTS: &str = "./target/release/shop";
/// Where it listens on the pages. Here it is any free port.
const PORT: &str = "8080";
/// Before a block whose commands are not run here, with the reason.
const NOT_RUN: &str = "<!-- not run by the tests: ";

/// Longer than anything takes here that is not broken.
const WITHIN: Duration = Duration::from_secs(60);

/// What requests wait for under load: the first fault.
const WAITS: &str = "shop::database::Database::connection";

/// Both routes with a fault: whoever looks into the service has something to see.
const LOAD: [&str; 4] = ["--get", "/checkout/{1..5000} x20", "--get", "/search?q=tea"];

/// Builds the shop and runs each command of each page in order. A service that a page starts serves
/// until the page's end.
pub(super) fn commands(context: &Context<'_>) -> Result<(), CliError> {
    let shop = context.workshop.root().join(SHOP);
    let mut build = context.cargo("build --release --locked");
    context.run(build.current_dir(&shop))?;
    // The pages' commands run as this program: that the folder has a `cargo workshop` is seen here.
    let mut named = context.cargo("workshop --version");
    context.run(named.current_dir(&shop))?;
    let mut ran = 0;
    for page in pages(&context.workshop.root().join(PAGES))? {
        let text = fs::read_to_string(&page);
        let text = text.map_err(CliError::because(format!("{}", page.display())))?;
        let mut server = None;
        for command in commands_of(&text) {
            context.note(&format!("# {}", context.workshop.shown(&page)))?;
            if command.starts_with(STARTS) {
                // The one before it goes first.
                drop(server.take());
                server = Some(start(context, &command)?);
            } else if !command.starts_with("cd ") {
                run(context, &command, server.as_ref())?;
            }
            ran += 1;
        }
    }
    if ran == 0 {
        return Err(CliError::bad(format!("{PAGES} has no commands")));
    }
    Ok(())
}

fn pages(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let entries = fs::read_dir(folder);
    let entries = entries.map_err(CliError::because(format!("{}", folder.display())))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut pages: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|is| is == "md"))
        .collect();
    pages.sort();
    Ok(pages)
}

/// The commands of a page's `console` blocks, a line each, without those that say why not.
fn commands_of(page: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let (mut in_block, mut is_run, mut goes_on) = (false, true, false);
    for line in page.lines() {
        if line.starts_with(NOT_RUN) {
            is_run = false;
        } else if line.starts_with("```") {
            // The mark is for one block, so its end takes it back.
            is_run |= in_block;
            in_block = line == "```console";
        } else if in_block && is_run {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push(command.to_owned()),
                (None, Some(last)) if goes_on => last.push_str(line.trim_start()),
                // What the command before printed.
                _ => continue,
            }
            let last = commands.last_mut();
            goes_on = last.is_some_and(|last| {
                let rest = last.strip_suffix('\\').map(str::to_owned);
                rest.map(|rest| *last = rest).is_some()
            });
        }
    }
    commands
}

fn start(context: &Context<'_>, command: &str) -> Result<CommandServer, CliError> {
    let launch = Launch {
        name: "shop",
        command: &command.replace(PORT, "{port}"),
        folder: &context.workshop.root().join(SHOP),
        ready: Some("/health"),
        ready_within: WITHIN,
        tls: None,
        cpus: &[],
    };
    let server = CommandServer::start(&launch, context.interrupt());
    server.map_err(|error| CliError::bad(error.to_string()))
}

fn run(
    context: &Context<'_>,
    command: &str,
    server: Option<&CommandServer>,
) -> Result<(), CliError> {
    let mut shortened = short(command);
    let mut load = None;
    if let Some(server) = server {
        let address = server.address();
        shortened = shortened.replace(PORT, &address.port().to_string());
        if command.contains("/debug/") {
            load = Some(put_load_on(context, address)?);
        }
    }
    let mut shell = context.command("sh", "-e -u -c");
    shell
        .arg(&shortened)
        .current_dir(context.workshop.root().join(SHOP))
        .env("WORKSHOP", context.own("").get_program());
    let (code, printed) = context.output(&mut shell)?;
    drop(load);
    // A comparison may come out as it likes on a busy machine.
    let is_fine = code == Some(0) || command.contains(" compare ") && matches!(code, Some(1 | 3));
    if !is_fine {
        return Err(CliError::bad(format!(
            "`{command}` of the book ended with {code:?}"
        )));
    }
    if command.contains("--profiles") && code != Some(3) {
        let report = SHOP.to_owned() + "/target/workshop/compare.html";
        let page = fs::read_to_string(context.workshop.root().join(report));
        if !page.is_ok_and(|page| page.contains("Base to change: waiting")) {
            return Err(CliError::bad(format!(
                "`{command}` of the book has no profiles in its report"
            )));
        }
    }
    // What the page is about has to be in the picture.
    let shows_waits = command.contains("/debug/await?") && !command.contains("-o ");
    if shows_waits && !printed.contains(WAITS) {
        return Err(CliError::bad(format!(
            "`{command}` of the book shows nobody who waits for a connection"
        )));
    }
    Ok(())
}

/// A load that nobody waits for: it is on when this returns, and ends with the value.
fn put_load_on(context: &Context<'_>, address: SocketAddr) -> Result<Running, CliError> {
    let mut load = context.own("load --users 20 --seconds 600 --expect-status 200 --url");
    load.arg(format!("http://{address}")).args(LOAD);
    let load = Starting::of(&load).start();
    let load = load.map_err(CliError::because("the load cannot be started"))?;
    let began = Instant::now();
    while began.elapsed() < WITHIN && !context.interrupt().is_set() {
        let waits = get(address, "/debug/await?seconds=0.2", WITHIN).unwrap_or_default();
        if String::from_utf8_lossy(&waits).contains(WAITS) {
            return Ok(load);
        }
    }
    Err(CliError::bad("the load is on, and nobody waits"))
}

/// The command, for this program, with seconds where a page has more, and failing where curl would
/// only print.
fn short(command: &str) -> String {
    let mut command = command
        .replace("cargo workshop", "\"$WORKSHOP\"")
        .replace("curl ", "curl --fail --silent --show-error ")
        .replace("seconds=10", "seconds=2")
        .replace("--seconds 60", "--seconds 2");
    if command.contains("\" compare ") {
        command.push_str(" --seconds 0.2 --warm-up 0 --at-most 1");
    } else if command.contains("\" load ") && !command.contains("--seconds") {
        command.push_str(" --seconds 2");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_and_what_they_print_and_what_is_marked_is_not() {
        let page = "\
```console
$ first \\
    --option
printed
$ second
```

<!-- not run by the tests: it asks for a password -->

```console
$ third
```

```toml
$ no command
```

```console
$ fourth
```
";
        assert_eq!(
            commands_of(page),
            ["first --option", "second", "fourth"].map(str::to_owned)
        );
    }

    #[test]
    fn what_takes_long_is_shortened() {
        let load = short("cargo workshop load --url http://127.0.0.1:8080 --seconds 60");
        assert_eq!(
            load,
            "\"$WORKSHOP\" load --url http://127.0.0.1:8080 --seconds 2"
        );
        let compare = short("cargo workshop compare --base a --change b");
        assert!(compare.ends_with(" --at-most 1"), "{compare}");
        assert!(short("curl 'http://a/?seconds=10'").contains("--fail"));
    }
}
