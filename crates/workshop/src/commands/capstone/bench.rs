//! `cargo workshop capstone bench`: the contract tests, then users, then a score.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use engine::load::Protocol;
use engine::load::interrupt::Interrupt;
use engine::placement::Placement;
use engine::service::{CommandError, CommandServer, Launch};
use journeys::{Objectives, RunError, Score, Settings};
use terminal::exit::{CliError, Exit};
use terminal::git::Git;
use terminal::{ctrl_c, files, json};

use super::history::Run;
use super::{Built, INIT, Shop, ended_well, team};
use crate::cli::Format;

/// What compiling the contract tests may take; a shop that does not compile has no score.
const COMPILE: Duration = Duration::from_secs(3600);
/// What they may take then.
const TESTS: Duration = Duration::from_secs(600);
/// What a program may take until it answers.
const READY: Duration = Duration::from_secs(30);

pub(super) fn run(
    shop: &Shop,
    time: Duration,
    no_tests: bool,
    team: Option<&team::File>,
    format: Format,
) -> Result<Exit, CliError> {
    let interrupt = ctrl_c::watch();
    let git = Git::within(shop.workshop.root());
    let commit = git.say(["rev-parse", "--short", "HEAD"])?;
    let is_changed = !git.say(["status", "--porcelain", "capstone"])?.is_empty();
    let mut history = shop.history()?;
    let mut kept = |result: Option<Score>| {
        // The others are of a file.
        if no_tests || shop.database.is_some() {
            return Ok(());
        }
        let shared = course::report::board::Run {
            time: team::now(),
            commit: commit.clone(),
            is_changed,
            score: result.as_ref().map_or(0.0, |score| score.score),
            interval: result.as_ref().map(|score| score.interval),
        };
        history.add(Run {
            commit: commit.clone(),
            is_changed,
            result,
        })?;
        team.map_or(Ok(()), |team| team.add(shared))
    };
    if !no_tests && let Err(error) = test(shop, &interrupt)? {
        if error.exit != Exit::Interrupted {
            kept(None)?;
        }
        return Err(error);
    }
    let payments = shop.built("payments", &interrupt)?;
    let length = Length { time, users: None };
    let score = measure(
        &shop.here(&interrupt)?,
        &payments,
        length,
        true,
        &|_| (),
        &interrupt,
    )?;
    kept(Some(score.clone()))?;
    match format {
        Format::Json => json::print(&score)?,
        Format::Human => print(&score),
    }
    Ok(Exit::Good)
}

/// The contract tests of the shop as it lies there; the inner error is that of a contract that is broken.
pub(super) fn test(shop: &Shop, interrupt: &Interrupt) -> Result<Result<(), CliError>, CliError> {
    eprintln!("the contract tests …");
    let mut compile = shop.cargo();
    compile.args(["test", "--quiet", "--test", "contract", "--no-run"]);
    ended_well(compile.args(shop.features()), COMPILE, interrupt)?;
    let mut test = shop.cargo();
    test.args(["test", "--quiet", "--test", "contract"]);
    test.args(shop.features());
    if let Some(url) = &shop.database {
        test.env("POSTGRES", url)
            .args(["--", "--test-threads", "1"]);
    }
    // Their temporary files go with this process's, should they have no time to remove them.
    for folder in ["TMPDIR", "TMP", "TEMP"] {
        test.env(folder, tempfile::env::temp_dir());
    }
    Ok(ended_well(&test, TESTS, interrupt).map(|_| ()))
}

/// How long users come.
#[derive(Clone, Copy)]
pub(super) struct Length {
    /// What counts.
    pub(super) time: Duration,
    /// As [`Settings::users`].
    pub(super) users: Option<f64>,
}

/// Starts a shop with a database of its own, and sends users to it; `during` that the debug endpoints can be asked.
pub(super) fn measure(
    shop: &Built,
    payments: &Path,
    length: Length,
    is_told: bool,
    during: &(dyn Fn(SocketAddr) + Sync),
    interrupt: &Interrupt,
) -> Result<Score, CliError> {
    let data = files::temporary()?;
    let mut init = shop.command();
    init.args(["init-db", "--data"]).arg(data.path());
    ended_well(&init, INIT, interrupt)?;

    let placement = Placement::apart();
    let start = |name, command: &str, ready, cpus| {
        let launch = Launch {
            name,
            command,
            folder: &shop.folder,
            ready: Some(ready),
            ready_within: READY,
            protocol: &Protocol::default(),
            cpus,
        };
        CommandServer::start(&launch, interrupt).map_err(|error| match error {
            CommandError::Interrupted => CliError::interrupted(),
            other => CliError::bad(other),
        })
    };
    let command = format!("exec '{}' --port {{port}}", payments.display());
    let payments = start(
        "payment service",
        &command,
        "/charges",
        &placement.generator,
    )?;
    let database = shop.database.as_ref().map_or_else(String::new, |url| {
        format!(" --database '{}'", url.replace('\'', r"'\''"))
    });
    let command = format!(
        "exec '{}'{database} --data '{}' --port {{port}} --admin-port {{admin_port}} --payments http://{}",
        shop.program.display(),
        data.path().display(),
        payments.address()
    );
    let server = start("shop", &command, "/health", &placement.server)?;
    if is_told {
        eprintln!(
            "users come and go for {} s after a warm-up; debug endpoints on http://{}/debug",
            length.time.as_secs(),
            server.admin_address()
        );
    }
    let address = server.address();
    let server = RefCell::new(server);
    let settings = Settings {
        shop: address,
        time: length.time,
        users: length.users,
        objectives: Objectives::shipped().map_err(CliError::bad)?,
        cpus: &placement.generator,
        interrupt,
        observer: &|users, missed| {
            match missed {
                _ if !is_told => {}
                Some(route) => eprintln!("{users:>5} users: {route} misses its objective"),
                None => eprintln!("{users:>5} users"),
            }
            // Nobody waits for the end of a run without a shop.
            if server.borrow_mut().is_alive("under load").is_err() {
                interrupt.set();
            }
        },
    };
    let admin_address = server.borrow().admin_address();
    let run = std::thread::scope(|scope| {
        scope.spawn(|| during(admin_address));
        journeys::run(&settings)
    });
    let alive = server.borrow_mut().is_alive("under load");
    alive.map_err(CliError::bad)?;
    run.map_err(|error| match error {
        RunError::Interrupted => CliError::interrupted(),
        broken @ RunError::Broken { .. } => CliError::bad(broken),
        other => CliError::invalid(other),
    })
}

fn print(score: &Score) {
    println!("route         answers    99 %");
    for (route, (count, p99)) in &score.p99_ms {
        println!("{route:<12} {count:>8}  {p99:>5.0} ms");
    }
    let [from, to] = score.interval;
    println!(
        "\n{:.1} journeys a second in time, {} late, {} broken; {:.0} users",
        score.journeys_per_second, score.late_journeys, score.broken_journeys, score.users
    );
    for (route, steps) in &score.missed {
        println!("{route} held the users back {steps} times");
    }
    println!("\nscore: {:.1} ({from:.1} to {to:.1})", score.score);
}
