//! The shop's faults, each alone: put back into the end of the reference way, our instruments name it as `faults.md`
//! says.
//!
//! A busy machine can hide a fault, or look like one: each shop has some attempts, of which one has to be right.

use std::cmp::Reverse;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use children::Interrupt;
use engine::load::ask;
use engine::placement::Placement;
use serde_json::Value;
use shop_bench::commands::bench;
use shop_bench::journeys::{self, Kind, Objectives, Settings};
use shop_bench::shop::Built;

use super::{FAULTS, WAY, command, root, run, succeed};

/// Longest time until a shop answers.
const WITHIN: Duration = Duration::from_secs(60);
const ATTEMPTS: u32 = 3;
/// Number of users at the beginning; more come while the shop keeps its objectives.
const USERS: f64 = 50.0;
/// Time for the users to come, and for everything that grows at first.
const BEGINNING: Duration = Duration::from_secs(8);
/// Needs a shop that is built for it.
const HEAP: &str = "/debug/heap";

/// A row of the table: a fault, where the shop that is shipped has it, and what shows it.
pub(super) struct Row {
    pub(super) fault: String,
    place: String,
    pub(super) seen: Vec<Sign>,
}

/// A sign of a fault: a request while users are there, and words that one line of its answer contains.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sign {
    asks: String,
    by_organisers: bool,
    says: Vec<String>,
}

impl Sign {
    fn is_in(&self, answer: &str) -> bool {
        let says = |line: &str| self.says.iter().all(|words| line.contains(words));
        answer.lines().any(says)
    }
}

/// Returns the rows of the table: those that begin with the name of a fault.
pub(super) fn rows() -> Vec<Row> {
    let table = fs::read_to_string(root().join("capstone/reference/faults.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.split(" | ").collect();
        let mut seen: Vec<Sign> = Vec::new();
        for words in code(cells[3]) {
            match seen.last_mut() {
                Some(sign) if !words.starts_with('/') => sign.says.push(words.to_owned()),
                _ => seen.push(Sign {
                    asks: words.to_owned(),
                    by_organisers: cells[3].contains("organisers alone"),
                    says: Vec::new(),
                }),
            }
        }
        Row {
            fault: code(cells[0]).next().unwrap().to_owned(),
            place: code(cells[1]).next().unwrap().to_owned(),
            seen,
        }
    };
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(row).collect()
}

/// Returns the parts of a text that stand in backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
#[ignore = "needs an hour, to compile the shop with each of its faults"]
fn weekly_our_instruments_name_each_fault_of_the_shop_and_none_without_it() {
    // `FAULTS=no-index,booking-lock` tries these alone.
    let only = std::env::var("FAULTS").ok();
    let is_asked = |row: &Row| {
        let mut asked = only.iter().flat_map(|only| only.split(','));
        only.is_none() || asked.any(|fault| fault == row.fault)
    };
    let tree = Tree::new();
    let (mut wrong, mut signs) = (Vec::new(), Vec::new());
    for row in rows().into_iter().filter(is_asked) {
        let patch = format!("{FAULTS}/{}.patch", row.fault);
        tree.apply("", &root().join(&patch));
        for mut sign in row.seen {
            tree.find(&row.place, &mut sign);
            if !tree.answers(&sign, |answer| sign.is_in(answer)) {
                wrong.push(format!("{} is not named: {sign:?}", row.fault));
            }
            signs.push(sign);
        }
        tree.apply("--reverse", &root().join(&patch));
    }
    signs.sort();
    let is_alike = |a: &Sign, b: &Sign| (&a.asks, a.by_organisers) == (&b.asks, b.by_organisers);
    for alike in signs.chunk_by(is_alike) {
        let is_clear = |answer: &str| !alike.iter().any(|sign| sign.is_in(answer));
        if !tree.answers(&alike[0], is_clear) {
            wrong.push(format!("named without a fault: one of {alike:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The end of the way, always at the same place: cargo builds anew what lies elsewhere.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        let tree = Self(root().join("capstone/target/faults"));
        tree.remove();
        let mut add = command("git", "worktree add --detach --quiet");
        succeed(add.arg(&tree.0).arg("HEAD"));
        tree.apply("", &root().join(WAY));
        tree
    }

    fn apply(&self, how: &str, patch: &Path) {
        let mut git = command("git", &format!("apply {how}"));
        succeed(git.arg(patch).current_dir(&self.0));
    }

    /// Puts the line of this shop for that of the shop that is shipped, by what is written there.
    fn find(&self, place: &str, sign: &mut Sign) {
        let Some((file, line)) = place.split_once(':') else {
            return;
        };
        let line: usize = line.parse().unwrap();
        let lines = |root: &Path| {
            let text = fs::read_to_string(root.join("capstone/src").join(file)).unwrap();
            let lines: Vec<_> = text.lines().map(|line| line.trim().to_owned()).collect();
            lines
        };
        let code = lines(&root()).swap_remove(line - 1);
        let here = lines(&self.0).into_iter().position(|line| line == code);
        for words in sign.says.iter_mut().filter(|words| words.contains(place)) {
            let here = here.unwrap_or_else(|| panic!("`{code}` is not in the shop with its fault"));
            *words = words.replace(place, &format!("{file}:{}", here + 1));
        }
    }

    /// Returns whether the shop's answer satisfies `so` in one of a few attempts.
    fn answers(&self, asked: &Sign, so: impl Fn(&str) -> bool) -> bool {
        let programs = self.build(&asked.asks);
        (0..ATTEMPTS).any(|_| {
            let answer = self.answer(&programs, asked);
            let is_so = so(&answer);
            if !is_so {
                tell(&format!("{asked:?}: {answer}"));
            }
            is_so
        })
    }

    /// The folder with its programs: that of the shop itself, where their dependencies are built already.
    fn build(&self, asks: &str) -> PathBuf {
        let target = root().join("capstone/target");
        let mut cargo = cargo("build --quiet --bins");
        if asks.starts_with(HEAP) {
            cargo.args(["--features", "debug-endpoints/heap"]);
        }
        let shop = self.0.join("capstone");
        succeed(cargo.current_dir(shop).env("CARGO_TARGET_DIR", &target));
        target.join("debug")
    }

    /// Returns the shop's answer while its users are there.
    fn answer(&self, programs: &Path, asked: &Sign) -> String {
        let interrupt = Interrupt::new();
        let built = Built {
            program: programs.join("capstone"),
            folder: self.0.clone(),
            database: None,
        };
        let running = bench::start(&built, &programs.join("payments"), &interrupt).unwrap();
        let shop = running.server.borrow();
        let mut objectives = Objectives::shipped().unwrap();
        if asked.by_organisers {
            let journeys = &mut objectives.journeys;
            journeys.retain(|kind, _| *kind == Kind::Organise);
        }
        let users = Settings {
            shop: shop.address(),
            // Until that is answered.
            time: Duration::MAX,
            users: Some(USERS),
            process: None,
            objectives,
            cpus: &Placement::apart().generator,
            interrupt: &interrupt,
            observer: &|_, _| (),
        };
        let asks = match asked.asks.split_once('?') {
            None => format!("{}?seconds=8", asked.asks),
            Some((_, more)) if more.contains("seconds=") => asked.asks.clone(),
            Some((path, more)) => format!("{path}?seconds=8&{more}"),
        };
        let admin_address = shop.admin_address();
        thread::scope(|scope| {
            let asking = scope.spawn(|| {
                thread::sleep(BEGINNING);
                let answer = ask::get(admin_address, &asks, WITHIN);
                interrupt.set();
                answer
            });
            let ended = journeys::run(&users);
            match asking.join().unwrap() {
                Ok(profile) if asks.starts_with(HEAP) => live_at_the_end(&profile),
                // Each object of a list is a line, too.
                Ok(answer) => String::from_utf8(answer).unwrap().replace("},{", "},\n{"),
                Err(error) => format!("no answer: {error}; the users: {:?}", ended.err()),
            }
        })
    }

    fn remove(&self) {
        let mut remove = command("git", "worktree remove --force --force");
        run(remove.arg(&self.0));
        // One that was killed may have left the folder without git knowing it.
        _ = fs::remove_dir_all(&self.0);
        run(&mut command("git", "worktree prune"));
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A line for each of the places that keep most, as dhat's viewer sorts them.
fn live_at_the_end(profile: &[u8]) -> String {
    let profile: Value = serde_json::from_slice(profile).unwrap();
    let mut places = profile["pps"].as_array().unwrap().clone();
    places.sort_by_key(|place| Reverse(place["eb"].as_u64()));
    let line = |place: &Value| {
        let frames = place["fs"].as_array().unwrap().iter();
        let name = |at: &Value| profile["ftbl"][usize::try_from(at.as_u64()?).ok()?].as_str();
        let frames: Vec<_> = frames.filter_map(name).collect();
        format!("{} bytes: {}\n", place["eb"], frames.join("; "))
    };
    places.iter().take(20).map(line).collect()
}

fn cargo(words: &str) -> Command {
    command(env!("CARGO"), words)
}

/// Prints a line even if the test passes.
fn tell(line: &str) {
    // Not `eprintln!`, whose output is shown of failed tests alone.
    let _ = writeln!(std::io::stderr(), "told: {line}");
}
