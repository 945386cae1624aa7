//! `cargo workshop capstone way`: measures the reference way again, and other orders of its changes.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use course::bench::provenance;
use course::report::plots::{self, Direction, Marks, Point};
use engine::load::interrupt::Interrupt;
use engine::{environment, figures};
use terminal::exit::{CliError, Exit};
use terminal::git::Git;
use terminal::{ctrl_c, files};

use super::Shop;
use super::bench::{Length, measure};
use super::others::Others;
use crate::chapters::Workshop;
use crate::cli::Way;
use crate::commands::derived::put;
use crate::steps::{
    self,
    way::{self, FOLDER, Order, Patch, Scores},
};

/// Beside the changes.
const RECORD: &str = "scores.json";
/// How long a score counts in a new record.
const SECONDS: u64 = 15;
/// How long users come for a picture, after the warm-up.
const PICTURED: Duration = Duration::from_secs(20);
/// After so long a picture is taken.
const WARM: Duration = Duration::from_secs(15);

pub(super) fn run(shop: &Shop, asked: &Way) -> Result<Exit, CliError> {
    let folder = shop.workshop.root().join(FOLDER);
    let file = folder.join(RECORD);
    let mut scores = recorded(&shop.workshop)?;
    let interrupt = ctrl_c::watch();
    let git = Git::at(shop.workshop.root())?;
    let index = files::temporary()?;
    let git = git.with(&[("GIT_INDEX_FILE", index.path().join("index"))]);
    let changes = way::read(&git, "HEAD")?;
    let names: Vec<String> = changes.iter().map(|change| change.name.clone()).collect();
    if scores.rounds.is_empty() {
        scores.seconds = asked.seconds.unwrap_or(SECONDS);
    }
    let seconds = asked.seconds.unwrap_or(scores.seconds);
    let differs = if scores.seconds != seconds {
        Some(format!("scores of {} s", scores.seconds))
    } else if !names.starts_with(&scores.changes) {
        Some("scores of other changes".to_owned())
    } else {
        None
    };
    if let Some(differs) = differs {
        return Err(CliError::usage(format!(
            "{} has {differs}, which do not compare with those that you ask for: move it away to begin anew",
            file.display()
        )));
    }
    scores.changes = names;
    let line = Line {
        git,
        others: Others::open(shop)?,
        interrupt: &interrupt,
        payments: shop.built("payments", &interrupt)?,
        time: Duration::from_secs(seconds),
    };
    let trees = way::trees(&line.git, "HEAD", &changes)?;
    let step = |after: usize| {
        let change = after.checked_sub(1).map(|before| &*changes[before].name);
        line.step(change.unwrap_or_default(), trees[after].clone())
    };
    if asked.pictures {
        for (before, change) in changes.iter().enumerate() {
            let file = folder.join(format!("{}.svg", change.name));
            if !file.exists() {
                line.picture(change, &step(before)?, &file)?;
            }
        }
        return Ok(Exit::Good);
    }
    let first = asked
        .last
        .map_or(0, |last| trees.len().saturating_sub(last));
    let measured = (0..trees.len()).filter(|after| *after == 0 || *after >= first);
    let way = measured.map(|after| Ok((after, step(after)?)));
    let way = way.collect::<Result<Vec<_>, CliError>>()?;
    let mut orders = Vec::new();
    for seed in &asked.order {
        let steps = line.shuffled(step(0)?, &changes, *seed, asked.until)?;
        orders.push((*seed, steps));
    }
    if asked.build {
        return Ok(Exit::Good);
    }
    let seen = environment::observe(true, "", [].into());
    let now = provenance::now();
    scores.day = now.get(..10).unwrap_or_default().into();
    scores.machine = seen.cpu_model;
    let mut users = vec![None; trees.len()];
    while scores.rounds_of(changes.len()) < asked.rounds {
        let mut round = vec![None; trees.len()];
        let mut places: Vec<_> = way.iter().collect();
        if scores.rounds.len() % 2 == 1 {
            places.reverse();
        }
        for (after, step) in places {
            // A change from the one before is a step or two for the warm-up.
            let near = users[*after].or_else(|| *users.get(after.checked_sub(1)?)?);
            let score;
            (score, users[*after]) = line.score(step, near)?;
            round[*after] = Some(score);
        }
        scores.rounds.push(round);
        keep(&file, &scores)?;
    }
    for (seed, steps) in orders {
        let mut order = Order {
            seed,
            changes: steps[1..].iter().map(|step| step.name.clone()).collect(),
            scores: Vec::new(),
        };
        let mut users = None;
        for step in &steps {
            let score;
            (score, users) = line.score(step, users)?;
            order.scores.push(score);
        }
        scores.orders.retain(|other| other.seed != seed);
        scores.orders.push(order);
        keep(&file, &scores)?;
    }
    derive(&shop.workshop, false)?;
    Ok(Exit::Good)
}

/// A shop after some of the changes.
struct Step {
    /// Of the last change; empty at the beginning.
    name: String,
    tree: String,
    commit: String,
}

struct Line<'a> {
    git: Git,
    others: Others<'a>,
    interrupt: &'a Interrupt,
    payments: PathBuf,
    time: Duration,
}

impl Line<'_> {
    /// A step whose program is built.
    fn step(&self, name: &str, tree: String) -> Result<Step, CliError> {
        let commit = steps::commit(&self.git, &tree, "HEAD", 0, "way")?;
        self.others.shop(&commit, self.interrupt)?;
        Ok(Step {
            name: name.to_owned(),
            tree,
            commit,
        })
    }

    /// As they were drawn, but one that cannot be made before another comes after it.
    fn shuffled(
        &self,
        beginning: Step,
        changes: &[Patch],
        seed: u64,
        until: usize,
    ) -> Result<Vec<Step>, CliError> {
        let mut left: Vec<&Patch> = changes.iter().collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut left);
        let mut steps = vec![beginning];
        while !left.is_empty() && steps.len() <= until {
            let mut next = None;
            for (place, change) in left.iter().enumerate() {
                let Some(tree) = change.merged(&self.git, &steps[steps.len() - 1].tree)? else {
                    continue;
                };
                match self.step(&change.name, tree) {
                    Ok(step) => {
                        next = Some((place, step));
                        break;
                    }
                    Err(error) if error.exit == Exit::Interrupted => return Err(error),
                    Err(_) => {}
                }
            }
            let Some((place, step)) = next else {
                let names: Vec<_> = left.iter().map(|change| change.name.as_str()).collect();
                eprintln!("order {seed} ends before {}", names.join(", "));
                break;
            };
            eprintln!("order {seed}: {}", step.name);
            left.remove(place);
            steps.push(step);
        }
        Ok(steps)
    }

    /// Takes the picture of the shop before a change that its message speaks of.
    fn picture(&self, change: &Patch, before: &Step, file: &Path) -> Result<(), CliError> {
        let shop = self.others.shop(&before.commit, self.interrupt)?;
        let length = Length {
            time: PICTURED,
            users: None,
        };
        let endpoint = if change.speaks_of("await picture") {
            "/debug/await"
        } else {
            "/debug/threads"
        };
        let taken = Mutex::new(Vec::new());
        let take = |admin: SocketAddr| {
            // Users have come by then.
            std::thread::sleep(WARM);
            let path = format!("{endpoint}?seconds=10&format=svg");
            let svg = engine::ask::get(admin, &path, Duration::from_secs(30));
            *taken.lock().unwrap_or_else(PoisonError::into_inner) = svg.unwrap_or_default();
        };
        measure(&shop, &self.payments, length, false, &take, self.interrupt)?;
        let svg = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        if svg.is_empty() {
            return Err(CliError::invalid(format!("{endpoint} gave no picture")));
        }
        eprintln!("{}", file.display());
        files::replace(file, svg)
    }

    /// The score of a step, and with how many users it was reached.
    fn score(&self, step: &Step, users: Option<f64>) -> Result<(f64, Option<f64>), CliError> {
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
        // Another program may have had the CPU for a while.
        let score = measured().or_else(|error| match error.exit {
            Exit::Invalid => measured(),
            _ => Err(error),
        })?;
        eprintln!("{:>7.1}  {}", score.score, step.name);
        Ok((score.score, Some(score.users)))
    }
}

fn keep(file: &Path, scores: &Scores) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(scores).map_err(CliError::bad)?;
    files::replace(file, text + "\n")
}

/// What was measured; nothing where there is no file of it.
fn recorded(workshop: &Workshop) -> Result<Scores, CliError> {
    let file = workshop.root().join(FOLDER).join(RECORD);
    match std::fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text).map_err(CliError::because(file.display())),
        Err(_) => Ok(Scores::default()),
    }
}

/// The curve, and a table.
pub(crate) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let scores = recorded(workshop)?;
    if scores.rounds.is_empty() {
        return Ok(());
    }
    let mut table =
        "| | change | score | times as good as before |\n| ---: | --- | ---: | ---: |\n".to_owned();
    let mut curve = Vec::new();
    for after in 0..=scores.changes.len() {
        let Some(score) = scores.mean(after) else {
            break;
        };
        curve.push(Point::at(after as f64, score));
        let change = match after {
            0 => "the shop as it was".to_owned(),
            _ => in_words(&scores.changes[after - 1]),
        };
        let gain = after
            .checked_sub(1)
            .and_then(|before| scores.gains(before, after));
        let gain = gain.map_or_else(String::new, |(ratio, interval)| {
            let interval = interval.map_or_else(String::new, |(low, high)| {
                format!(" ({} to {})", figures::ratio(low), figures::ratio(high))
            });
            figures::ratio(ratio) + &interval
        });
        let score = figures::ratio(score);
        _ = writeln!(table, "| {after} | {change} | {score} | {gain} |");
    }
    _ = writeln!(
        table,
        "\n*Mean scores of rounds of {} s. A gain is of the rounds that have both shops, and rows differ in their rounds: \
         compare by the last column. Measured by `cargo workshop capstone way` until {} (UTC): {}.*",
        scores.seconds, scores.day, scores.machine,
    );
    let mut series = vec![Marks {
        name: "the way".to_owned(),
        points: curve,
    }];
    for order in &scores.orders {
        let points = order.scores.iter().enumerate();
        let points = points.map(|(after, score)| Point::at(after as f64, *score));
        series.push(Marks {
            name: format!("order {}", order.seed),
            points: points.collect(),
        });
    }
    let across = Direction::new("changes", &figures::count);
    let up = Direction::new("score", &figures::ratio);
    let title = "The ticket shop's score, change after change";
    let curve = plots::xy(title, &across, &up, &series, true);
    let folder = workshop.root().join("flamegraphs/capstone");
    put(&folder.join("table.md"), &table, verify)?;
    put(
        &folder.join("curve.svg"),
        &curve.unwrap_or_default(),
        verify,
    )
}

/// `03-index-the-seats` as people read it.
fn in_words(change: &str) -> String {
    change.split('-').skip(1).collect::<Vec<_>>().join(" ")
}
