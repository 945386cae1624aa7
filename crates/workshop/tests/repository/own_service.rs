//! The part of the book about one's own service: these tests run the commands of its pages on `examples/shop`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use terminal::testing::once_in_three;

use crate::running::{Running, WITHIN, free_port, wait_for};
use crate::{cargo, pages, root, run, succeed, turn, workshop};

/// Command that starts the service on a page, without its options.
const STARTS: &str = "./target/release/shop";
/// Port of the service on the pages; below, the port of its debug endpoints. The test replaces both by free ports.
const PORT: &str = "8080";
const ADMIN_PORT: &str = "6060";
/// Before a block whose commands are not run here, with the reason.
const NOT_RUN: &str = "<!-- not run by the tests: ";

/// Function in which requests wait under load: the first fault.
const WAITS: &str = "shop::database::Database::connection";

/// Builds the shop, and runs each command of each page in order. A service that a page starts serves until the
/// page's end.
#[test]
#[ignore = "needs Go (https://go.dev/dl), curl, and a minute"]
fn the_books_commands_run_on_the_shop() {
    let _turn = turn();
    // The commands work with any build, and an optimised one takes a minute more. It goes into a folder apart from
    // the reader's own build.
    let mut build = cargo("build --release --locked --target-dir target/test");
    build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    succeed(build.current_dir(shop()));
    // The pages' commands run as this program: that the folder has a `cargo workshop` is seen here.
    succeed(cargo("workshop --version").current_dir(shop()));
    let mut ran = 0;
    let own = root().join("src/own");
    for (page, text) in pages::all()
        .into_iter()
        .filter(|(page, _)| page.starts_with(&own))
    {
        let mut server = None;
        for command in commands_of(&text) {
            if command.starts_with(STARTS) {
                // The one before it goes first.
                drop(server.take());
                server = Some(Server::start(&command));
            } else if !command.starts_with("cd ") && !command.starts_with("cargo build") {
                try_out(&command, server.as_ref(), &page);
            }
            ran += 1;
        }
    }
    assert!(ran > 10, "{ran}");
}

/// The small services with the faults that people reported: they compile with these instruments, and actix' endpoints
/// are as the book shows them.
#[test]
#[ignore = "needs some minutes, to compile another workspace"]
fn weekly_the_field_compiles_without_a_warning_and_its_tests_pass() {
    let _turn = turn();
    for words in ["clippy --all-targets --quiet", "test --quiet"] {
        let mut field = cargo(&format!("{words} --locked --target-dir target/test"));
        field.env("RUSTFLAGS", "-D warnings");
        succeed(field.current_dir(root().join("instruments/diagnosis/tests/field")));
    }
}

fn shop() -> PathBuf {
    root().join("examples/shop")
}

/// The commands of a page's `console` blocks, a line each, without those that say why not.
pub(crate) fn commands_of(page: &str) -> Vec<String> {
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
            let last = commands.last_mut().unwrap();
            goes_on = last.ends_with('\\');
            last.truncate(last.trim_end_matches('\\').len());
        }
    }
    commands
}

/// The shop, on ports of its own.
struct Server {
    port: String,
    admin_port: String,
    _process: Running,
}

impl Server {
    fn start(command: &str) -> Self {
        let [port, admin_port] = [(); 2].map(|()| free_port());
        let command = format!(
            "{} --admin-port {admin_port}",
            here(command).replace(PORT, &port)
        );
        let mut words = command.split_whitespace();
        let program = shop().join(words.next().unwrap());
        let process = Command::new(program)
            .args(words)
            .stdout(Stdio::null())
            .spawn();
        let server = Self {
            _process: Running(process.unwrap()),
            port,
            admin_port,
        };
        wait_for(&server.port);
        server
    }

    /// Starts a load in the background. It runs when this returns, and ends with the value. It requests both faults,
    /// so that the instruments have something to find.
    fn under_load(&self) -> Running {
        let mut load = workshop("load --users 20 --seconds 600 --expect-status 200 --url");
        load.arg(format!("http://127.0.0.1:{}", self.port));
        load.args(["--get", "/checkout/{1..5000} x20", "--get", "/search?q=tea"]);
        let load = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let load = Running(load.unwrap());
        let waits = format!(
            "curl -s 'http://127.0.0.1:{}/debug/await?seconds=0.2'",
            self.admin_port
        );
        let began = Instant::now();
        while !run(&mut shell(&waits)).1.contains(WAITS) {
            assert!(began.elapsed() < WITHIN, "the load is on, and nobody waits");
        }
        load
    }
}

fn shell(script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-e", "-u", "-c", script]).current_dir(shop());
    shell.env("WORKSHOP", env!("CARGO_BIN_EXE_cargo-workshop"));
    shell
}

fn try_out(command: &str, server: Option<&Server>, page: &Path) {
    let is_comparison = command.contains(" compare ");
    if is_comparison && !command.contains("--profiles") {
        // Those run in `commands/own_service.rs`, on a service that takes no time to build.
        return;
    }
    println!("{}: `{command}`", page.display());
    let mut script = short(command);
    let mut load = None;
    if let Some(server) = server {
        script = script
            .replace(PORT, &server.port)
            .replace(ADMIN_PORT, &server.admin_port);
        load = command.contains("/debug/").then(|| server.under_load());
    }
    // A machine that stands still for a second leaves requests waiting, and a profile of that second empty.
    once_in_three(|| {
        let (output, printed) = run(&mut shell(&script));
        let code = output.status.code();
        // A comparison may come out as it likes on a busy machine, and a generator may get no CPU there.
        let is_bound = command.contains(" load ") && code == Some(3);
        let mut is_right =
            code == Some(0) || is_bound || is_comparison && matches!(code, Some(1 | 3));
        if is_comparison && code != Some(3) {
            let report = fs::read_to_string(shop().join("target/duel/compare.html")).unwrap();
            is_right &= report.contains("Base to change: waiting");
        }
        // What the page is about has to be in the picture: who waits for a connection.
        if command.contains("/debug/await?") && !command.contains("-o ") {
            is_right &= printed.contains(WAITS);
        }
        (is_right, (code, printed))
    });
    drop(load);
}

/// A command of this test's build.
fn here(command: &str) -> String {
    command.replace("./target/release/", "./target/test/release/")
}

/// The command, for this program, with seconds where a page has more, and failing where curl would only print.
fn short(command: &str) -> String {
    let mut command = here(command)
        .replace("cargo workshop", "\"$WORKSHOP\"")
        .replace("curl ", "curl --fail --silent --show-error ")
        .replace("seconds=10", "seconds=1")
        .replace("--seconds 60", "--seconds 1");
    if command.contains("\" compare ") {
        command.push_str(" --seconds 0.2 --warm-up 0 --at-most 1");
    } else if command.contains("\" load ") && !command.contains("--seconds") {
        command.push_str(" --seconds 1");
    }
    command
}

#[test]
fn commands_are_found_and_what_they_print_and_what_is_marked_is_not() {
    let page = "```console\n$ first \\\n    --option\nprinted\n$ second\n```\n\
                <!-- not run by the tests: it asks for a password -->\n\n```console\n$ third\n```\n\
                ```toml\n$ no command\n```\n```console\n$ fourth\n```\n";
    assert_eq!(commands_of(page), ["first --option", "second", "fourth"]);
}
