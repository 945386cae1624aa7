//! `cargo workshop capstone bench`: the contract tests, then users, then a score.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use children::{Interrupt, Starting};
use engine::load::Protocol;
use engine::placement::Placement;
use engine::service::{CommandError, CommandServer, Launch, Start};
use tempfile::TempDir;
use terminal::exit::{CliError, Exit};
use terminal::git::Git;
use terminal::output::Format;
use terminal::{files, json};

use crate::cli::Bench;
use crate::history::{CostChange, Run};
use crate::journeys::{self, Objectives, Process, RunError, Score, Settings};
use crate::shop::{Built, INIT, KEPT, Shop, ended_well};

/// Longest time in which the contract tests compile; a shop that does not compile has no score.
const COMPILE: Duration = Duration::from_secs(3600);
/// Longest time that they run.
const TESTS: Duration = Duration::from_secs(600);
/// Longest time until a program answers.
const READY: Duration = Duration::from_secs(30);

/// Locks this workshop's bench for as long as the returned file lives, so that only one runs at a time.
///
/// # Errors
///
/// Returns an error if another bench is running: two at once spoil each other's scores.
pub fn alone(shop: &Shop) -> Result<File, CliError> {
    let folder = shop.state();
    let refused = |why: std::io::Error| CliError::bad(format!("{}: {why}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(refused)?;
    let file = File::create(folder.join("bench.lock")).map_err(refused)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(CliError::invalid(
            "another bench of this shop is running, and two at once spoil each other's scores: wait for it",
        )),
        // On a file system without locks, the reader must not start two.
        _ => Ok(file),
    }
}

/// Measures the shop in its folder and gives it a score.
///
/// # Errors
///
/// Returns an error if the contract is broken, or if the run is invalid.
pub fn run(
    shop: &Shop,
    options: &Bench,
    format: Format,
    interrupt: &Interrupt,
) -> Result<Exit, CliError> {
    let git = Git::within(shop.root());
    let attempt = Attempt {
        // Other scores are of a shop that may break its contract, or of another database.
        is_kept: !options.no_tests && shop.database.is_none(),
        commit: git.say(["rev-parse", "--short", "HEAD"])?,
        is_changed: !git.say(["status", "--porcelain", "capstone"])?.is_empty(),
        shop,
    };
    // Read before the measurement, so that an error in it shows at once.
    let before = shop.history()?;
    if !options.no_tests
        && let Err(error) = test(shop, interrupt)?
    {
        if error.exit != Exit::Interrupted {
            attempt.keep(None)?;
        }
        return Err(error);
    }
    let payments = shop.built("payments", interrupt)?;
    let length = Length {
        time: Duration::from_secs(options.seconds),
        users: None,
    };
    let built = shop.here(interrupt)?;
    let score = measure(&built, &payments, length, true, interrupt)?;
    attempt.keep(Some(score.clone()))?;
    match format {
        Format::Json => json::print_as("score", &score)?,
        Format::Human => print(&score, before.last_score())?,
    }
    Ok(Exit::Good)
}

/// One bench, and where its score goes.
struct Attempt<'a> {
    is_kept: bool,
    commit: String,
    is_changed: bool,
    shop: &'a Shop,
}

impl Attempt<'_> {
    /// Saves a score; `None` stands for a broken contract.
    fn keep(&self, result: Option<Score>) -> Result<(), CliError> {
        if !self.is_kept {
            return Ok(());
        }
        self.shop.history()?.add(Run {
            commit: self.commit.clone(),
            is_changed: self.is_changed,
            result,
        })
    }
}

/// Runs the contract tests of the shop that lies here. The inner error is that of a broken contract.
///
/// # Errors
///
/// Returns an error if the tests do not compile.
pub fn test(shop: &Shop, interrupt: &Interrupt) -> Result<Result<(), CliError>, CliError> {
    eprintln!("the contract tests …");
    let mut compile = shop.cargo();
    compile.args(["test", "--quiet", "--test", "contract", "--no-run"]);
    ended_well(compile.args(shop.features()), COMPILE, interrupt)?;
    let mut test = shop.cargo();
    test.args(["test", "--quiet", "--test", "contract"]);
    // A rule that is broken says so in a sentence.
    test.args(shop.features()).env("RUST_BACKTRACE", "0");
    if let Some(url) = &shop.database {
        test.env("POSTGRES", url)
            .args(["--", "--test-threads", "1"]);
    }
    // Their temporary files go with this process's, should they have no time to remove them.
    for folder in ["TMPDIR", "TMP", "TEMP"] {
        test.env(folder, tempfile::env::temp_dir());
    }
    let output = Starting::of(&test)
        .output(interrupt, TESTS, KEPT)
        .map_err(CliError::of_child("cargo cannot be run"))?;
    let Some(output) = output else {
        let seconds = TESTS.as_secs();
        let late = format!("the contract tests did not end within {seconds} s");
        return Ok(Err(CliError::bad(late)));
    };
    if output.status.success() {
        return Ok(Ok(()));
    }
    let [printed, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut rules = broken_rules(&printed);
    if rules.is_empty() {
        rules = format!("\n{printed}{errors}");
    }
    Ok(Err(CliError::bad(format!(
        "the contract is broken, which is a score of 0; capstone/tests has each rule:{rules}"
    ))))
}

/// Rules that do not hold, a line for each, by what the tests printed.
fn broken_rules(printed: &str) -> String {
    let mut rules = String::new();
    for failure in printed.split("\n---- ").skip(1) {
        let Some((name, said)) = failure.split_once(" stdout ----") else {
            continue;
        };
        // `thread 'name' panicked at file:line:column:`, then the sentence, then a note on backtraces.
        let Some((_, said)) = said.split_once("panicked at ") else {
            continue;
        };
        let mut sentence = Vec::new();
        for line in said.lines().skip(1) {
            if line.is_empty() || line.starts_with("note: ") {
                break;
            }
            sentence.push(line);
        }
        _ = write!(rules, "\n  {name}: {}", sentence.join(" "));
    }
    rules
}

/// The length of a run.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// Counted time.
    pub time: Duration,
    /// Number of users to begin with, as in [`Settings::users`].
    pub users: Option<f64>,
}

/// A shop that answers, with a database of its own and a payment service.
pub struct Running {
    /// The shop.
    pub server: RefCell<CommandServer>,
    placement: Placement,
    // Ends with the shop.
    _payments: CommandServer,
    data: TempDir,
}

/// Starts a shop with a fresh database.
///
/// # Errors
///
/// Returns an error if the database cannot be made, or if a program does not answer.
pub fn start(shop: &Built, payments: &Path, interrupt: &Interrupt) -> Result<Running, CliError> {
    let data = files::temporary()?;
    let mut init = shop.command();
    init.args(["init-db", "--data"]).arg(data.path());
    ended_well(&init, INIT, interrupt)?;

    let placement = Placement::apart();
    let start = |name, command: &str, ready, cpus| {
        let launch = Launch {
            name,
            start: Start::Shell {
                command,
                folder: &shop.folder,
                ready: Some(ready),
                protocol: &Protocol::default(),
            },
            ready_within: READY,
            cpus,
        };
        CommandServer::start(&launch, interrupt).map_err(|error| match error {
            CommandError::Interrupted => CliError::interrupted(),
            other => CliError::bad(other),
        })
    };
    let command = format!("exec '{}' --port {{port}}", payments.display());
    let cpus = &placement.generator;
    let payments = start("payment service", &command, "/charges", cpus)?;
    let database = match &shop.database {
        Some(url) => format!(" --database '{}'", url.replace('\'', r"'\''")),
        None => String::new(),
    };
    let command = format!(
        "exec '{}'{database} --data '{}' --port {{port}} --admin-port {{admin_port}} --payments http://{}",
        shop.program.display(),
        data.path().display(),
        payments.address()
    );
    let server = start("shop", &command, "/health", &placement.server)?;
    Ok(Running {
        server: RefCell::new(server),
        placement,
        _payments: payments,
        data,
    })
}

/// Starts a shop with a fresh database, and sends users to it.
///
/// # Errors
///
/// Returns an error if the run is invalid, or if the shop ends.
pub fn measure(
    shop: &Built,
    payments: &Path,
    length: Length,
    is_told: bool,
    interrupt: &Interrupt,
) -> Result<Score, CliError> {
    let running = start(shop, payments, interrupt)?;
    let server = &running.server;
    let admin_address = server.borrow().admin_address();
    if is_told {
        eprintln!(
            "users come and go for {} s after a warm-up; debug endpoints on http://{admin_address}/debug",
            length.time.as_secs()
        );
    }
    let database = running.data.path().join("shop.db");
    let process = Process {
        id: server.borrow().id(),
        cpus: &running.placement.server,
        database: shop.database.is_none().then_some(database),
        debug: admin_address,
    };
    let settings = Settings {
        shop: server.borrow().address(),
        time: length.time,
        users: length.users,
        process: Some(process),
        objectives: Objectives::shipped().map_err(CliError::bad)?,
        cpus: &running.placement.generator,
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
    let run = journeys::run(&settings);
    let alive = server.borrow_mut().is_alive("under load");
    alive.map_err(CliError::bad)?;
    if let Err(RunError::Starved { counted, .. }) = &run
        && is_told
    {
        eprintln!("a busy machine hardly changes what a journey asks for:");
        for (name, cost) in counted.in_words() {
            if let Some(cost) = cost {
                eprintln!("{cost:>8.2} {name}");
            }
        }
    }
    run.map_err(|error| match error {
        RunError::Interrupted => CliError::interrupted(),
        wrong @ (RunError::Broken { .. } | RunError::Wrong(_)) => CliError::bad(wrong),
        other => CliError::invalid(other),
    })
}

/// Prints a score, with its costs and how they changed since the one before.
fn print(score: &Score, before: Option<&Score>) -> Result<(), CliError> {
    let objectives = Objectives::shipped().map_err(CliError::bad)?;
    println!("route         answers      p99  of its objective");
    for (route, (count, p99)) in &score.p99_ms {
        print!("{route:<12} {count:>8} {p99:>5.0} ms");
        if let Some(within) = objectives.within_ms.get(route) {
            let within = *within as f64;
            print!("  {:>5.0} %", 100.0 * p99 / within);
            if let Some(before) = before
                && let Some((_, p99)) = before.p99_ms.get(route)
            {
                print!("  was {:.0} %", 100.0 * p99 / within);
            }
        }
        print!("\n");
    }
    println!("\na journey costs        since the last score");
    for cost in CostChange::between(before, score) {
        println!("{cost}");
    }
    println!(
        "\n{:.1} journeys a second in time, {} late, {} broken; {:.0} users",
        score.journeys_per_second, score.late_journeys, score.broken_journeys, score.users
    );
    if let Some(lost) = score.lost {
        println!(
            "other programs had {:.0} % of the CPU time that the shop wanted",
            100.0 * lost
        );
    }
    for (route, steps) in &score.missed {
        println!("{route} held the users back {steps} times");
    }
    let [from, to] = score.interval;
    println!("\nscore: {:.1} ({from:.1} to {to:.1})", score.score);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::broken_rules;

    #[test]
    fn each_broken_rule_is_a_line() {
        let printed = "\nrunning 3 tests\n.FF\nfailures:\n\n---- it_sells_once stdout ----\n\nthread 'it_sells_once' (7) \
                       panicked at tests/contract.rs:3:5:\na seat is sold once: seat 7 was sold twice\nnote: run with \
                       `RUST_BACKTRACE=1`\n\n---- it_is_fresh stdout ----\n\nthread 'it_is_fresh' panicked at \
                       tests/contract.rs:9:5:\nthe list is old\n\n\nfailures:\n    it_is_fresh\n";
        assert_eq!(
            broken_rules(printed),
            "\n  it_sells_once: a seat is sold once: seat 7 was sold twice\n  it_is_fresh: the list is old"
        );
        assert_eq!(broken_rules("error: no test target"), "");
    }
}
