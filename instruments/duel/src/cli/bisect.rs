//! `duel bisect`: finds the commit that made a service slower.

use std::time::{Duration, Instant};

use children::Interrupt;
use serde::Serialize;
use statistics::FIRST_LOOK;
use statistics::figures;
use statistics::metric::{Metric, Triplet};
use statistics::verdict::{self, Estimate, Goal};

use crate::bisect::{Search, Slower};
use drawing::table::{Column, Table, sentence_case, shortened};
use engine::comparison::{self, Enough};
use engine::event::Event;
use engine::placement::Placement;
use engine::traffic::Traffic;

use super::compare::{check_path, deciding, explained, make, protocol};
use super::requests;
use super::revision::{commit, repository};
use crate::cli::options::{Bisect, Format};
use terminal::exit::{CliError, Exit};
use terminal::git::{Commit, Git};
use terminal::progress::Terminal;
use terminal::{ctrl_c, json};

/// Result that `bisect --format json` prints.
#[derive(Debug, Default, Serialize)]
struct Bisected {
    verdict: Ending,
    reason: String,
    seconds: f64,
    /// The commits that were given.
    good: String,
    bad: String,
    /// Key of the metric that decides.
    metric: String,
    /// Slowdown of bad against good.
    effect: Option<Slower>,
    /// The commit that made it slower.
    commit: Option<String>,
    /// Slowdown of that commit against the one before it.
    step: Option<Slower>,
    /// Probability that the commit is among `likely`.
    probability: Option<f64>,
    /// Shortest run of commits that holds it with enough confidence; one commit, if it was found.
    likely: Vec<String>,
    /// All commits after good up to bad, the oldest first.
    commits: Vec<Candidate>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "snake_case")]
enum Ending {
    Found,
    Inconclusive,
    NothingToFind,
    #[default]
    Invalid,
}

#[derive(Debug, Serialize)]
struct Candidate {
    #[serde(flatten)]
    commit: Commit,
    #[serde(skip)]
    is_merge: bool,
    /// Slowdown against good; `None` if the commit was not tried.
    measured: Option<Slower>,
    /// Probability that it is the commit that made the service slower.
    probability: Option<f64>,
    /// Reason why it could not be measured.
    skipped: Option<String>,
}

/// Searches for the commit, and prints it.
pub(super) fn run(options: &Bisect) -> Result<Exit, CliError> {
    let how = &options.how;
    if how.run.is_none() {
        return Err(CliError::usage(
            "--run is missing: give the command that starts a commit's build, such as --run './target/release/shop --port {port}'",
        ));
    }
    check_path("--ready", how.ready.as_deref().unwrap_or("/"))?;
    let (specs, of_log) = requests::specs(&how.sent, None)?;
    for sentence in &of_log {
        eprintln!("{sentence}");
    }
    let arrivals = (how.rate, how.think);
    let traffic = requests::traffic(&how.sent, &specs, how.users, arrivals, how.seconds)?;
    let routes: Vec<&str> = traffic.routes.iter().map(|route| &*route.name).collect();
    let metrics = Metric::all(&routes, traffic.bystander.is_some(), &[]);
    let deciding = deciding(how, &metrics)?;
    let git = Git::at(&repository()?.0)?;
    let good = commit(&git, "--good ", &options.good)?;
    let bad = commit(&git, "--bad ", &options.bad)?;
    let mut outcome = Bisected {
        commits: between(&git, &good.hash, &bad.hash)?,
        good: good.hash.clone(),
        bad: bad.hash.clone(),
        metric: deciding.key.clone(),
        ..Bisected::default()
    };
    let interrupt = ctrl_c::watch();
    let terminal = Terminal::new();
    let began = Instant::now();
    let searched = search(
        options,
        (&good, &bad),
        &traffic,
        deciding,
        &mut outcome,
        &interrupt,
        &terminal,
    );
    drop(terminal);
    match searched {
        Err(error) if error.exit == Exit::Invalid && !interrupt.is_set() => {
            outcome.reason = sentence_case(&error.to_string());
        }
        searched => searched?,
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    match how.output.format {
        Format::Human => println!("{}", outcome.text()),
        Format::Json => {
            eprintln!("{}", outcome.text());
            json::print_as("bisect", &outcome)?;
        }
    }
    Ok(match outcome.verdict {
        Ending::Found => Exit::Good,
        Ending::Inconclusive | Ending::NothingToFind => Exit::Bad,
        Ending::Invalid => Exit::Invalid,
    })
}

/// Returns the commits after `good` up to `bad`, the oldest first.
fn between(git: &Git, good: &str, bad: &str) -> Result<Vec<Candidate>, CliError> {
    let is_above = git.ask(["merge-base", "--is-ancestor", good, bad]);
    let range = format!("{good}..{bad}");
    let format = "--format=%H%x09%h%x09%P%x09%s";
    let list = git.say(["log", "--first-parent", "--reverse", format, &range])?;
    let mut commits = Vec::new();
    for line in list.lines() {
        let fields: Vec<&str> = line.splitn(4, '\t').collect();
        if let [hash, short, parents, subject] = fields[..] {
            commits.push(Candidate {
                commit: Commit {
                    hash: hash.to_owned(),
                    short: short.to_owned(),
                    subject: subject.to_owned(),
                },
                is_merge: parents.contains(' '),
                measured: None,
                probability: None,
                skipped: None,
            });
        }
    }
    if is_above.is_none() || commits.is_empty() {
        return Err(CliError::usage(
            "--good names no commit that came before that of --bad, so nothing lies between them",
        ));
    }
    Ok(commits)
}

fn search(
    options: &Bisect,
    (good, bad): (&Commit, &Commit),
    traffic: &Traffic,
    deciding: &Metric,
    outcome: &mut Bisected,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let how = &options.how;
    let say = |text: &str| terminal.say(text);
    let observer = |event: Event<'_>| terminal.show(event);
    let protocol = protocol(&how.sent, traffic)?;
    let login = requests::login(&how.sent)?;
    let placement = Placement::apart();
    let (began, time) = (Instant::now(), Duration::from_secs_f64(options.at_most));
    let make =
        |name, commit: &Commit, like| make(name, commit, like, how, &protocol, interrupt, &say);
    let base = make("base", good, None)?;
    // The worktree of a change is removed once it is compared.
    let compare = |commit: &Commit, until: Duration, enough: Option<&Enough<'_>>| {
        let change = make("change", commit, Some(&base.revision))?;
        let comparison = comparison::Comparison {
            base: base.side.clone(),
            change: change.side,
            builds: None,
            ready: how.ready.as_deref(),
            ready_within: Duration::from_secs_f64(how.ready_within),
            protocol: &protocol,
            traffic: traffic.clone(),
            login: login.as_ref(),
            how: requests::how(&how.sent),
            counters: &[],
            metrics_path: "",
            is_metrics_on_admin: false,
            with_profiles: false,
            deciding,
            goal: Goal::Difference { margin: how.margin },
            enough,
            at_most: until.saturating_sub(began.elapsed()),
            placement: &placement,
            generator: None,
            interrupt,
            observer: &observer,
        };
        let compared = comparison.run();
        compared.map_err(|error| explained(error, interrupt))
    };
    // The other half of the time is for the commits between.
    let whole = compare(bad, time / 2, None)?;
    let nothing = match whole.verdict.kind {
        verdict::Speed::Slower => None,
        verdict::Speed::Invalid => return Err(CliError::invalid(whole.verdict.reason)),
        verdict::Speed::NoDifference => Some("no difference between them, nothing to find"),
        verdict::Speed::Faster => Some("bad is faster than good, nothing to find"),
        verdict::Speed::Inconclusive => {
            Some("it is not known whether bad is slower, nothing to find")
        }
    };
    if let Some(nothing) = nothing {
        outcome.verdict = Ending::NothingToFind;
        outcome.reason = sentence_case(&format!("{nothing}: {}", whole.verdict.reason));
        return Ok(());
    }
    let commits = &mut outcome.commits;
    let mut search = Search::new(
        commits.len(),
        slower(deciding, &whole.rounds),
        options.confidence,
    );
    while began.elapsed() < time
        && let Some(place) = search.next()
    {
        let candidate = &mut commits[place];
        let enough = |rounds: &[Triplet]| search.is_enough(place, &slower(deciding, rounds));
        let why = match compare(&candidate.commit, time, Some(&enough)) {
            Ok(compared) => {
                let rounds = slower(deciding, &compared.rounds);
                if rounds.len() >= FIRST_LOOK as usize {
                    search.add(place, &rounds);
                    if let Some(slower) = search.measured(place) {
                        say(&format!("{}: {}", candidate.commit, in_words(slower)));
                    }
                    continue;
                }
                compared.verdict.reason
            }
            Err(error) if matches!(error.exit, Exit::Invalid | Exit::Usage) => error.to_string(),
            Err(error) => return Err(error),
        };
        // Once the time is over, a failure is not the commit's fault.
        if began.elapsed() >= time {
            break;
        }
        search.skip(place);
        say(&format!("{}: left out: {why}", candidate.commit));
        candidate.skipped = Some(why);
    }
    outcome.judge(&search, began.elapsed() >= time);
    Ok(())
}

/// Returns the logarithm of the change's slowdown in each round.
fn slower(deciding: &Metric, rounds: &[Triplet]) -> Vec<f64> {
    let mut logs = Vec::new();
    for round in rounds {
        if let Some(estimate) = Estimate::of(deciding, std::slice::from_ref(round)) {
            logs.push(-estimate.ratio.ln());
        }
    }
    logs
}

fn in_words(Slower { times, interval }: Slower) -> String {
    let [times, low, high] = [times, interval.0, interval.1].map(figures::ratio);
    format!("{times} times slower ({low} to {high})")
}

impl Bisected {
    fn judge(&mut self, search: &Search, is_late: bool) {
        let posterior = search.posterior();
        for (place, candidate) in self.commits.iter_mut().enumerate() {
            candidate.measured = search.measured(place);
            candidate.probability = Some(posterior[place]);
        }
        let (likely, probability) = search.likely();
        let last = self.commits.len() - 1;
        let tried = self.commits.iter().filter(|one| one.measured.is_some());
        let sure = format!(
            "{} sure; {} of {} tried",
            figures::percent(probability),
            tried.count(),
            figures::things(self.commits.len() as u64, "commit"),
        );
        let among = &self.commits[likely.clone()];
        self.effect = search.measured(last);
        self.probability = Some(probability);
        self.likely = among.iter().map(|one| one.commit.hash.clone()).collect();
        let [found] = among else {
            self.verdict = Ending::Inconclusive;
            self.reason = format!(
                "One of {} neighbours made it slower, {} to {}; {sure}; {}.",
                among.len(),
                among[0].commit.short,
                among[among.len() - 1].commit.short,
                if is_late {
                    "the time is up: give more with --at-most"
                } else {
                    "the measurements cannot tell them apart"
                }
            );
            return;
        };
        self.verdict = Ending::Found;
        self.commit = Some(found.commit.hash.clone());
        self.step = search.step(likely.start);
        let did = self.step.or(self.effect).map(in_words).unwrap_or_default();
        self.reason = format!("{} made it {did}; {sure}.", found.commit);
        if let (Some(step), Some(whole)) = (self.step, self.effect)
            && step.interval.1 < whole.times
        {
            self.reason += " From good to bad it is ";
            self.reason += &in_words(whole);
            self.reason += ": other commits have a share.";
        }
        if found.is_merge {
            self.reason += " It is a merge, which counts as one commit with all that it brought.";
        }
    }

    /// Formats the result for a terminal.
    fn text(&self) -> String {
        let mut rows = Vec::new();
        for one in &self.commits {
            let said = match (one.measured, &one.skipped) {
                (Some(slower), _) => in_words(slower),
                (None, Some(why)) => format!("left out: {why}"),
                (None, None) => continue,
            };
            let probability = one.probability.map(figures::percent);
            rows.push(vec![
                one.commit.short.clone(),
                shortened(&one.commit.subject, 48),
                shortened(&said, 60),
                probability.unwrap_or_default(),
            ]);
        }
        let table = if rows.is_empty() {
            String::new()
        } else {
            let columns = [
                Column::text("commit"),
                Column::text(""),
                Column::text("against good"),
                Column::figures("is the first slow one"),
            ];
            format!("\n\n{}", Table::new(columns, rows).text())
        };
        let verdict = match self.verdict {
            Ending::Found => "found",
            Ending::Inconclusive => "inconclusive",
            Ending::NothingToFind => "nothing to find",
            Ending::Invalid => "invalid",
        };
        format!("{verdict}: {}{table}", self.reason)
    }
}
