//! Measures the reference way through the ticket shop, and other orders of its changes: `capstone/reference/way/scores.json`,
//! from which `cargo workshop capture --derive` draws the table and the curve.
//!
//! `cargo workshop steps && cargo run -p studies --bin shop_way -- --rounds 5` (or `--order SEED`, or `--pictures`)

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use children::Interrupt;
use children::environment;
use clap::Parser;
use course::bench::provenance;
use course::report::way::{Order, Scores};
use shop_bench::commands::bench::{Length, measure};
use shop_bench::others::Others;
use shop_bench::shop::Shop;
use terminal::exit::{CliError, Exit};
use terminal::git::Git;
use terminal::{ctrl_c, files};

/// The branch of the way, which `cargo workshop steps` writes.
const BRANCH: &str = "steps/capstone";
/// Prefix of the line in which a commit of the branch names its change: `Workshop-Step: capstone 3/26 03-pay`.
const TRAILER: &str = "Workshop-Step: capstone ";
/// The scores.
const RECORD: &str = "capstone/reference/way/scores.json";
/// Seconds that a score counts in a new record.
const SECONDS: u64 = 15;
/// Time that users come for a picture, after the warm-up.
const PICTURED: Duration = Duration::from_secs(20);
/// Time after which a picture is taken.
const WARM: Duration = Duration::from_secs(15);

#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds, those that are there already included
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds that each score counts [default: as in the record]
    #[arg(long)]
    seconds: Option<u64>,
    /// Measure only the beginning and the last so many shops
    #[arg(long, value_name = "SHOPS")]
    last: Option<usize>,
    /// Measure the changes in another order, too, which is drawn with this seed
    #[arg(long, value_name = "SEED")]
    order: Vec<u64>,
    /// Number of changes to measure in such an order
    #[arg(long, value_name = "CHANGES", default_value_t = 10)]
    until: usize,
    /// Build all shops, and measure none
    #[arg(long)]
    build: bool,
    /// Take the pictures that are missing, and measure none
    #[arg(long)]
    pictures: bool,
}

fn main() -> std::process::ExitCode {
    terminal::exit::end(run(&Arguments::parse()))
}

fn run(asked: &Arguments) -> Result<Exit, CliError> {
    let shop = Shop::find()?;
    let file = shop.root().join(RECORD);
    let interrupt = ctrl_c::watch();
    let index = files::temporary()?;
    let git = Git::at(shop.root())?;
    let git = git.with(&[("GIT_INDEX_FILE", index.path().join("index"))]);
    let steps = steps(&git)?;
    let line = Line {
        git,
        others: Others::open(&shop)?,
        payments: shop.built("payments", &interrupt)?,
        interrupt: &interrupt,
        time: Duration::from_secs(asked.seconds.unwrap_or(SECONDS)),
    };
    if asked.pictures {
        line.pictures(&steps, shop.root())?;
        return Ok(Exit::Good);
    }

    let mut scores = match std::fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text).map_err(CliError::because(file.display()))?,
        Err(_) => Scores::default(),
    };
    begin(&mut scores, &steps, asked, &file)?;
    let line = Line {
        time: Duration::from_secs(scores.seconds),
        ..line
    };
    let last = asked.last.unwrap_or(steps.len());
    let first = steps.len().saturating_sub(last);
    let mut measured = Vec::new();
    for (after, step) in steps.iter().enumerate() {
        if after == 0 || after >= first {
            line.others.shop(&step.commit, &interrupt)?;
            measured.push((after, step));
        }
    }
    let mut orders = Vec::new();
    for seed in &asked.order {
        orders.push((*seed, line.shuffled(&steps, *seed, asked.until)?));
    }
    if asked.build {
        return Ok(Exit::Good);
    }
    scores.day = provenance::now().chars().take(10).collect();
    scores.machine = environment::observe(true, "", [].into()).cpu_model;
    let mut users = vec![None; steps.len()];
    while scores.rounds_of(steps.len() - 1) < asked.rounds {
        let mut round = vec![None; steps.len()];
        let is_back = scores.rounds.len() % 2 == 1;
        for place in 0..measured.len() {
            let place = if is_back {
                measured.len() - 1 - place
            } else {
                place
            };
            let (after, step) = measured[place];
            // A change from the one before is a step or two for the warm-up.
            let before = after.saturating_sub(1);
            let (score, near) = line.score(step, users[after].or(users[before]))?;
            users[after] = Some(near);
            round[after] = Some(score);
        }
        scores.rounds.push(round);
        keep(&file, &scores)?;
    }
    for (seed, steps) in orders {
        let mut order = Order {
            seed,
            changes: Vec::new(),
            scores: Vec::new(),
        };
        let mut users = None;
        for (place, step) in steps.iter().enumerate() {
            let (score, near) = line.score(step, users)?;
            users = Some(near);
            order.scores.push(score);
            if place > 0 {
                order.changes.push(step.name.clone());
            }
        }
        scores.orders.retain(|other| other.seed != seed);
        scores.orders.push(order);
        keep(&file, &scores)?;
    }
    println!("now: cargo workshop capture --derive");
    Ok(Exit::Good)
}

/// Makes sure that new scores compare with those of the record.
fn begin(
    scores: &mut Scores,
    steps: &[Step],
    asked: &Arguments,
    file: &Path,
) -> Result<(), CliError> {
    let mut names = Vec::new();
    for step in &steps[1..] {
        names.push(step.name.clone());
    }
    if scores.rounds.is_empty() {
        scores.seconds = asked.seconds.unwrap_or(SECONDS);
    }
    let differs = if let Some(seconds) = asked.seconds
        && seconds != scores.seconds
    {
        format!("scores of {} s", scores.seconds)
    } else if !names.starts_with(&scores.changes) {
        "scores of other changes".to_owned()
    } else {
        scores.changes = names;
        return Ok(());
    };
    Err(CliError::usage(format!(
        "{} has {differs}, which do not compare with those that you ask for: move it away to begin anew",
        file.display()
    )))
}

/// A shop after some of the changes.
#[derive(Debug, Clone)]
struct Step {
    /// Name of the last change; empty at the beginning.
    name: String,
    message: String,
    commit: String,
}

/// The beginning and each commit of the branch.
fn steps(git: &Git) -> Result<Vec<Step>, CliError> {
    let Some(base) = git.ask(["merge-base", "HEAD", BRANCH]) else {
        return Err(CliError::usage(format!(
            "there is no branch {BRANCH}: cargo workshop steps writes it"
        )));
    };
    let range = format!("{base}..{BRANCH}");
    let commits = git.say(["rev-list", "--reverse", &range])?;
    let mut steps = vec![Step {
        name: String::new(),
        message: String::new(),
        commit: base,
    }];
    for commit in commits.lines() {
        let message = git.say(["show", "--no-patch", "--format=%B", commit])?;
        steps.push(Step {
            name: name_in(&message).to_owned(),
            commit: commit.to_owned(),
            message,
        });
    }
    Ok(steps)
}

/// Returns the name of the change in a commit's message, the second word behind the trailer; empty if there is none.
fn name_in(message: &str) -> &str {
    for line in message.lines() {
        if let Some(trailer) = line.strip_prefix(TRAILER) {
            return trailer.split(' ').nth(1).unwrap_or_default();
        }
    }
    ""
}

struct Line<'a> {
    git: Git,
    others: Others<'a>,
    interrupt: &'a Interrupt,
    payments: PathBuf,
    time: Duration,
}

impl Line<'_> {
    /// Draws another order; a change that cannot be made before another one comes after it.
    fn shuffled(&self, steps: &[Step], seed: u64, until: usize) -> Result<Vec<Step>, CliError> {
        let mut left: Vec<(&Step, &Step)> = steps.iter().zip(&steps[1..]).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut left);
        let mut made = vec![steps[0].clone()];
        while !left.is_empty() && made.len() <= until {
            let mut next = None;
            for (place, (before, change)) in left.iter().enumerate() {
                let last = made[made.len() - 1].commit.clone();
                if let Some(step) = self.applied(&last, before, change)? {
                    next = Some((place, step));
                    break;
                }
            }
            let Some((place, step)) = next else {
                eprintln!("order {seed} ends with {} changes left", left.len());
                break;
            };
            eprintln!("order {seed}: {}", step.name);
            left.remove(place);
            made.push(step);
        }
        Ok(made)
    }

    /// A change on another shop; `None` where it does not apply or compile there.
    fn applied(&self, on: &str, before: &Step, change: &Step) -> Result<Option<Step>, CliError> {
        let diff = self
            .git
            .run(["diff", "--full-index", &before.commit, &change.commit], "")?;
        self.git.say(["read-tree", on])?;
        if self
            .git
            .run(["apply", "--cached", "--3way", "-"], &diff)
            .is_err()
        {
            return Ok(None);
        }
        // With conflicts there is no tree.
        let Some(tree) = self.git.ask(["write-tree"]) else {
            return Ok(None);
        };
        let commit = self
            .git
            .say(["commit-tree", &tree, "-p", on, "-m", &change.name])?;
        match self.others.shop(&commit, self.interrupt) {
            Ok(_) => Ok(Some(Step {
                commit,
                ..change.clone()
            })),
            Err(error) if error.exit == Exit::Interrupted => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Takes the pictures that are missing: the first one that each message cites, of the shop before it.
    fn pictures(&self, steps: &[Step], root: &Path) -> Result<(), CliError> {
        for (before, change) in steps.iter().zip(&steps[1..]) {
            let mut paragraphs = change.message.split("\n\n");
            let Some(cited) =
                paragraphs.find(|text| Path::new(text).extension() == Some("svg".as_ref()))
            else {
                continue;
            };
            let Some((text, picture)) = cited.rsplit_once('\n') else {
                continue;
            };
            let file = root.join(picture);
            if !file.exists() {
                self.picture(before, text, &file)?;
            }
        }
        Ok(())
    }

    /// Takes a picture of a shop, by the instrument that a text speaks of.
    fn picture(&self, before: &Step, text: &str, file: &Path) -> Result<(), CliError> {
        let shop = self.others.shop(&before.commit, self.interrupt)?;
        let length = Length {
            time: PICTURED,
            users: None,
        };
        let is_await = text.replace('\n', " ").contains("await picture");
        let endpoint = if is_await {
            "/debug/await"
        } else {
            "/debug/threads"
        };
        let taken = Mutex::new(Vec::new());
        measure(
            &shop,
            &self.payments,
            length,
            false,
            &|admin: SocketAddr| {
                // Users have come by then.
                std::thread::sleep(WARM);
                let path = format!("{endpoint}?seconds=10&format=svg");
                let svg = engine::load::ask::get(admin, &path, Duration::from_secs(30));
                *taken.lock().unwrap_or_else(PoisonError::into_inner) = svg.unwrap_or_default();
            },
            self.interrupt,
        )?;
        let svg = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        if svg.is_empty() {
            return Err(CliError::invalid(format!("{endpoint} gave no picture")));
        }
        eprintln!("{}", file.display());
        files::replace(file, svg)
    }

    /// The score of a step, and with how many users it was reached.
    fn score(&self, step: &Step, users: Option<f64>) -> Result<(f64, f64), CliError> {
        let shop = self.others.shop(&step.commit, self.interrupt)?;
        let length = Length {
            time: self.time,
            users,
        };
        let measured = || {
            measure(
                &shop,
                &self.payments,
                length,
                false,
                &|_| (),
                self.interrupt,
            )
        };
        let score = match measured() {
            // Another program may have had the CPU for a while.
            Err(error) if error.exit == Exit::Invalid => measured()?,
            other => other?,
        };
        eprintln!("{:>7.1}  {}", score.score, step.name);
        Ok((score.score, score.users))
    }
}

fn keep(file: &Path, scores: &Scores) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(scores).map_err(CliError::bad)?;
    files::replace(file, text + "\n")
}
