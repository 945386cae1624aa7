//! `duel compare`: two builds of a service.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::report::{Comparison, Page, Side, export};
use children::Interrupt;
use children::environment;
use children::program;
use engine::answers::AnswerError;
use engine::comparison::{self, Builds, Compared, ComparisonError, LeftOut};
use engine::load::{GeneratorError, Protocol};
use engine::placement::Placement;
use engine::service::{Launch, Start};
use engine::traffic::{Spacing, Traffic};
use statistics::figures;
use statistics::metric::{Metric, P50, REQUESTS_PER_SECOND};
use statistics::verdict::{Goal, Speed, Verdict};

use super::revision::{GIT, LAYOUT, Revision, SHUFFLED, Started, commit, repository};
use crate::cli::by_locust::{self, ByLocust};
use crate::cli::options::{Compare, Comparing, Format, Inconclusive, Sent};
use crate::cli::requests::{self, Target};
use terminal::exit::{CliError, Exit};
use terminal::git::{Commit, Git};
use terminal::progress::Terminal;
use terminal::{ctrl_c, files, json};

/// Compares, and writes the reports.
pub(crate) fn run(options: &Compare) -> Result<Exit, CliError> {
    let (specs, of_log) = requests::specs(&options.how.sent, None)?;
    let traffic = requests::traffic(
        &options.how.sent,
        &specs,
        options.how.users,
        (options.how.rate, options.how.think),
        options.how.seconds,
    )?;
    let routes: Vec<&str> = traffic.routes.iter().map(|route| &*route.name).collect();
    let metrics = Metric::all(&routes, traffic.bystander.is_some(), &options.root_cause);
    let deciding = deciding(&options.how, &metrics)?;
    let folder = folder(options)?;
    let environment = environment::observe(true, "", BTreeMap::new());
    let interrupt = ctrl_c::watch();
    let placement = placement(options);
    let by_locust = ByLocust::of(
        (options.with, &options.workers),
        (&options.how.sent, &specs),
        &traffic,
        options.how.think,
        &placement.generator,
        &interrupt,
    )?;
    let terminal = Terminal::new();
    if let Some(locust) = &by_locust {
        locust.announce(&terminal);
    }
    let began = Instant::now();
    let mut sides = sides(options);
    let locust = by_locust.as_ref().map(|locust| {
        |target: &engine::load::Target, traffic: &Traffic| locust.run(&target.origin(), traffic)
    });
    let setting = Setting {
        traffic: &traffic,
        deciding,
        placement: &placement,
        generator: locust.as_ref().map(|run| run as _),
        interrupt: &interrupt,
        terminal: &terminal,
    };
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is of one lifetime only"
    )]
    let compared = of_both(options, &setting, &mut sides, |comparison| comparison.run());
    drop(terminal);
    let mut compared = match compared {
        Ok((mut compared, notes)) => {
            compared.notes.extend(notes);
            compared.notes.extend(of_log);
            compared
                .notes
                .extend(by_locust.map(|_| by_locust::NOTE.to_owned()));
            compared
        }
        Err(error) if error.exit == Exit::Invalid && !interrupt.is_set() => {
            invalid(&error, began.elapsed())
        }
        Err(error) => return Err(error),
    };
    compared.notes.extend(requests::repeats(&traffic, None));
    let comparison = Comparison::new(
        &compared.verdict,
        &compared.notes,
        began.elapsed().as_secs_f64(),
        deciding,
        &metrics,
        &compared.rounds,
        sides,
    )
    .with_left_out(compared.left_out)
    .with_frames(&compared.profiles);
    let page = Page {
        metrics: &metrics,
        deciding: &deciding.key,
        rounds: &compared.rounds,
        profiles: &compared.profiles,
        load: &load_in_words(&options.how, &traffic, &compared),
        environment: &environment,
        command: &typed(),
        margin: margin(options),
        is_running: !options.running.is_empty(),
    };
    write(options, &comparison, &page, &folder)?;
    Ok(exit(options, &compared.verdict))
}

/// Checks the options, and returns the folder for reports.
pub(super) fn folder(options: &Compare) -> Result<PathBuf, CliError> {
    let folder = match &options.report {
        Some(folder) => folder.clone(),
        None => PathBuf::from("target/duel"),
    };
    check(options)?;
    if options.report.is_none() {
        // `writable` reports a folder that cannot be made.
        let _ = files::ignored(&folder);
    }
    files::writable(&folder)?;
    Ok(folder)
}

/// Writes every file that was asked for, and prints the result.
fn write(
    options: &Compare,
    comparison: &Comparison,
    page: &Page<'_>,
    folder: &Path,
) -> Result<(), CliError> {
    let file = folder.join("compare.html");
    files::replace(&file, comparison.page(page))?;
    if let Some(markdown) = &options.markdown {
        files::replace(markdown, comparison.markdown())?;
    }
    if let Some(folder) = &options.export {
        for (name, text) in export::files(comparison) {
            files::replace(&folder.join(name), text)?;
        }
    }
    match options.how.output.format {
        Format::Human => {
            println!("{}\nreport: {}", comparison.text(), file.display());
        }
        Format::Json => {
            eprintln!("{}\nreport: {}", comparison.text(), file.display());
            json::print_as("comparison", comparison)?;
        }
    }
    Ok(())
}

pub(super) fn exit(options: &Compare, verdict: &Verdict<Speed>) -> Exit {
    match (verdict.kind, options.inconclusive) {
        (Speed::Invalid, _) => Exit::Invalid,
        (Speed::Inconclusive, Some(Inconclusive::Pass)) => Exit::Good,
        (Speed::Inconclusive, Some(Inconclusive::Fail)) => Exit::Inconclusive,
        _ if verdict.is_good => Exit::Good,
        _ => Exit::Bad,
    }
}

/// Checks the options before anything is built or started.
fn check(options: &Compare) -> Result<(), CliError> {
    let commands = [("--base", &options.base), ("--change", &options.change)];
    for (option, command) in commands {
        let Some(command) = command else { continue };
        if command.trim().is_empty() {
            return Err(CliError::usage(format!(
                "{option} is empty: name a command"
            )));
        }
        if command.starts_with(GIT) && options.how.run.is_none() {
            return Err(CliError::usage(format!(
                "{option} {command} needs --run, the command that starts the build, such as --run \
                 './target/release/shop --port {{port}}'"
            )));
        }
    }
    let mut is_git = false;
    for command in [&options.base, &options.change].into_iter().flatten() {
        is_git |= command.starts_with(GIT);
    }
    if options.layouts.is_some() {
        let mut both = [&options.base, &options.change].into_iter().flatten();
        if !both.all(|command| command.starts_with(GIT)) {
            return Err(CliError::usage(
                "--layouts builds both sides: name them as git:REVISION",
            ));
        }
        if !options.how.build.contains(LAYOUT) {
            return Err(CliError::usage(format!(
                "--layouts needs {LAYOUT} in --build; {SHUFFLED}"
            )));
        }
    }
    if options.how.run.is_some() && !is_git {
        return Err(CliError::usage(
            "--run starts the build of a git:REVISION, and neither --base nor --change is one",
        ));
    }
    check_path("--ready", options.how.ready.as_deref().unwrap_or("/"))?;
    check_path("--metrics", &options.metrics)
}

pub(super) fn check_path(option: &str, path: &str) -> Result<(), CliError> {
    if path.starts_with('/') {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "{option} takes a path on the service, such as /health, not {path}"
    )))
}

pub(super) fn deciding<'m>(how: &Comparing, metrics: &'m [Metric]) -> Result<&'m Metric, CliError> {
    let by_default = if how.rate.is_some() {
        P50
    } else {
        REQUESTS_PER_SECOND
    };
    let key = how.metric.as_deref().unwrap_or(by_default);
    let mut keys = Vec::new();
    for metric in metrics {
        if metric.larger_is_better.is_some() {
            if metric.key == key {
                return Ok(metric);
            }
            keys.push(format!("'{}'", metric.key));
        }
    }
    Err(CliError::usage(format!(
        "--metric '{key}' is not measured by this load; there are {}",
        keys.join(", ")
    )))
}

fn goal(options: &Compare) -> Goal {
    match (options.at_least, options.at_most_slower) {
        (Some(times), _) => Goal::AtLeast(times),
        (_, Some(share)) => Goal::AtMostSlower(share),
        _ => Goal::Difference {
            margin: options.how.margin,
        },
    }
}

/// Returns the share below which a difference counts as none, for the picture.
pub(super) fn margin(options: &Compare) -> f64 {
    options.at_most_slower.unwrap_or(options.how.margin)
}

/// Returns base and change, by the names on the command line.
pub(super) fn sides(options: &Compare) -> (Side, Side) {
    let (base, change) = match &options.running[..] {
        [base, change] => (Some(base), Some(change)),
        _ => (options.base.as_ref(), options.change.as_ref()),
    };
    (side(base), side(change))
}

fn side(name: Option<&String>) -> Side {
    Side {
        name: name.cloned().unwrap_or_default(),
        commit: None,
        program: None,
    }
}

/// Needs of a comparison besides its options.
pub(super) struct Setting<'a> {
    pub(super) traffic: &'a Traffic,
    pub(super) deciding: &'a Metric,
    pub(super) placement: &'a Placement,
    /// Another generator than the embedded one.
    pub(super) generator: Option<&'a comparison::Generator<'a>>,
    pub(super) interrupt: &'a Interrupt,
    pub(super) terminal: &'a Terminal,
}

/// Returns the CPUs for servers and generator. Nothing is pinned if the servers run already.
pub(super) fn placement(options: &Compare) -> Placement {
    if options.running.is_empty() {
        return Placement::apart();
    }
    Placement {
        server: Vec::new(),
        generator: Vec::new(),
    }
}

/// Builds both sides if they are revisions, and runs `compare` on them. Also returns notes on them.
pub(super) fn of_both<T>(
    options: &Compare,
    setting: &Setting<'_>,
    (base, change): &mut (Side, Side),
    compare: impl FnOnce(&comparison::Comparison<'_>) -> Result<T, ComparisonError>,
) -> Result<(T, Vec<String>), CliError> {
    let Setting {
        traffic,
        interrupt,
        terminal,
        ..
    } = *setting;
    let is_running = !options.running.is_empty();
    let protocol = if is_running {
        Protocol::default()
    } else {
        protocol(&options.how.sent, traffic)?
    };
    let login = requests::login(&options.how.sent)?;
    // A wrong revision must be reported before anything is built.
    for (name, side) in [("base", &mut *base), ("change", &mut *change)] {
        if let Some(revision) = side.name.strip_prefix(GIT) {
            let git = Git::at(&repository()?.0)?;
            side.commit = Some(commit(&git, &format!("--{name} {GIT}"), revision)?);
        }
    }
    // Dropping these removes the worktrees, after the servers have ended.
    let mut worktrees: Vec<Revision<'_>> = Vec::new();
    let mut started = Vec::new();
    let mut prepared = Vec::new();
    for (name, side) in [("base", &mut *base), ("change", &mut *change)] {
        prepared.push(if is_running {
            running(&side.name, &options.how.sent)?
        } else if let Some(commit) = &side.commit {
            let like = worktrees.first();
            let made = make(
                name,
                commit,
                like,
                &options.how,
                &protocol,
                interrupt,
                &|text| terminal.say(text),
            )?;
            side.program = made.started.as_ref().map(|ran| ran.program.clone());
            started.extend(made.started);
            worktrees.push(made.revision);
            made.side
        } else {
            let here = std::env::current_dir();
            let here = here.map_err(CliError::because("the current folder cannot be read"))?;
            comparison::Side::Command(side.name.clone(), here)
        });
    }
    let [base, change] = &prepared[..] else {
        unreachable!("there are two sides");
    };
    let programs = about_programs(&started, worktrees.len());
    if options.layouts.is_some() && started.len() < worktrees.len() {
        return Err(CliError::invalid(
            "--layouts needs a system that tells which program runs, such as Linux",
        ));
    }
    let started = RefCell::new(started);
    let rebuild = |round: u32| -> Result<(), ComparisonError> {
        for (revision, started) in worktrees.iter().zip(&mut *started.borrow_mut()) {
            revision.rebuild(round, started, interrupt)?;
        }
        Ok(())
    };
    let comparison = comparison::Comparison {
        base: base.clone(),
        change: change.clone(),
        builds: options.layouts.map(|rounds| Builds {
            rounds,
            make: &rebuild,
        }),
        ready: options.how.ready.as_deref(),
        ready_within: Duration::from_secs_f64(options.how.ready_within),
        protocol: &protocol,
        traffic: traffic.clone(),
        login: login.as_ref(),
        how: requests::how(&options.how.sent),
        counters: &options.root_cause,
        metrics_path: &options.metrics,
        is_metrics_on_admin: has_admin_port(base) && has_admin_port(change),
        with_profiles: options.profiles,
        deciding: setting.deciding,
        goal: goal(options),
        enough: None,
        at_most: Duration::from_secs_f64(options.at_most),
        placement: setting.placement,
        generator: setting.generator,
        interrupt,
        observer: &|event| terminal.show(event),
    };
    let compared = compare(&comparison).map_err(|error| explained(error, interrupt))?;
    Ok((compared, notes(options, programs)))
}

fn notes(options: &Compare, programs: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut notes = Vec::new();
    if options.layouts.is_some() {
        notes.push(
            "both were built anew for each round, so the interval covers what the layout of the code does."
                .to_owned(),
        );
    }
    notes.extend(programs);
    if options.how.sent.insecure {
        notes.push(requests::UNCHECKED.to_owned());
    }
    notes
}

/// Returns the side of a server that runs already, once it accepts a connection.
fn running(url: &str, sent: &Sent) -> Result<comparison::Side, CliError> {
    let target = Target::of("--running", url, sent)?.server;
    let within = Duration::from_secs(5);
    match std::net::TcpStream::connect_timeout(&target.address, within) {
        Ok(_) => Ok(comparison::Side::Running(target)),
        Err(error) => Err(CliError::invalid(format!(
            "no server answers at {url}: {error}"
        ))),
    }
}

/// Returns whether a command listens on a second port.
fn has_admin_port(side: &comparison::Side) -> bool {
    match side {
        comparison::Side::Command(command, _) => command.contains("{admin_port}"),
        comparison::Side::Running(_) => false,
    }
}

/// Revision that was built and started once.
pub(super) struct Made<'a> {
    /// The revision; dropping it removes its worktree.
    pub(super) revision: Revision<'a>,
    pub(super) started: Option<Started>,
    pub(super) side: comparison::Side,
}

/// Builds `commit` for the side `name`, and checks that it starts. The first build of a side begins with a copy of the
/// build of `like`.
pub(super) fn make<'a>(
    name: &'a str,
    commit: &Commit,
    like: Option<&Revision<'a>>,
    how: &Comparing,
    protocol: &Protocol,
    interrupt: &Interrupt,
    say: &dyn Fn(&str),
) -> Result<Made<'a>, CliError> {
    let revision = Revision::build(name, commit, &how.build, like, interrupt, say)?;
    let command = revision.command(how.run.as_deref().unwrap_or_default());
    let launch = Launch {
        name,
        start: Start::Shell {
            command: &command,
            folder: revision.folder(),
            ready: how.ready.as_deref(),
            protocol,
        },
        ready_within: Duration::from_secs_f64(how.ready_within),
        cpus: &[],
    };
    Ok(Made {
        started: revision.started(&launch, interrupt)?,
        side: comparison::Side::Command(command.clone(), revision.folder().to_owned()),
        revision,
    })
}

/// Returns a note on the programs of `revisions` revisions, if readers of the result need one.
fn about_programs(started: &[Started], revisions: usize) -> Option<String> {
    if started.len() < revisions {
        return Some(
            "this system does not tell which program runs, so it may not be the one that was built."
                .to_owned(),
        );
    }
    let [base, change] = started else {
        return None;
    };
    let is_same = base.program.sha256 == change.program.sha256;
    match &change.run_by {
        None if is_same => Some(
            "base and change are the same program, byte for byte: their builds do not differ."
                .to_owned(),
        ),
        None => None,
        Some(by) => Some(format!(
            "{by}, which no build made, ran {} of each revision{}: they differ by what is in the checkouts.",
            change.program.file,
            if is_same {
                ", the same byte for byte"
            } else {
                ""
            }
        )),
    }
}

/// Returns the protocol of a service that is started here. Its certificate is for the `host` of the requests, or for
/// `localhost`.
pub(super) fn protocol(sent: &Sent, traffic: &Traffic) -> Result<Protocol, CliError> {
    // All requests have the same headers.
    for (name, host) in &traffic.routes[0].requests[0].headers {
        if name.eq_ignore_ascii_case("host") {
            return requests::protocol(sent, host);
        }
    }
    requests::protocol(sent, "localhost")
}

pub(super) fn explained(error: ComparisonError, interrupt: &Interrupt) -> CliError {
    if error.is_interrupt() || interrupt.is_set() {
        return CliError::interrupted();
    }
    match error {
        // The generator's own message is about chapters.
        ComparisonError::Generator(GeneratorError::Unreachable { target, reason }) => {
            let sentence = format!("the server at {target} takes no connections: {reason}");
            CliError::new(Exit::Invalid, sentence)
        }
        ComparisonError::Answer(AnswerError::Status(_)) | ComparisonError::NoCounter(_) => {
            CliError::usage(error)
        }
        other => CliError::new(Exit::Invalid, other),
    }
}

fn invalid(error: &CliError, took: Duration) -> Compared {
    Compared {
        verdict: Verdict {
            kind: Speed::Invalid,
            is_good: false,
            reason: error.to_string(),
        },
        rounds: Vec::new(),
        left_out: LeftOut::default(),
        notes: Vec::new(),
        profiles: Vec::new(),
        seconds: took.as_secs_f64(),
        slice_s: 0.0,
        generator_cpu: None,
    }
}

fn load_in_words(how: &Comparing, traffic: &Traffic, compared: &Compared) -> String {
    let arrivals = match how.rate {
        Some(rate) => {
            let spaced = match how.sent.arrivals {
                Spacing::Poisson => format!("at random moments (Poisson, --seed {})", traffic.seed),
                Spacing::Even => "at even steps".to_owned(),
            };
            format!("{} requests per second {spaced}", figures::count(rate))
        }
        None if how.think > 0.0 => {
            format!("who think for {} s", figures::count(how.think))
        }
        None => "who ask again at once".to_owned(),
    };
    let routes: Vec<&str> = traffic.routes.iter().map(|route| &*route.name).collect();
    let generator = match compared.generator_cpu {
        Some(share) => format!(
            " The generator used at most {} of its CPU time.",
            figures::percent(share)
        ),
        None => String::new(),
    };
    format!(
        "{}, {arrivals}: {}; slices of {} s.{generator}",
        figures::things(traffic.users.into(), "user"),
        routes.join(", "),
        figures::ratio(compared.slice_s),
    )
}

/// Returns the command line, quoted so that it can be typed again.
pub(super) fn typed() -> String {
    let mut line = program::running().name.clone();
    let words = std::env::args().skip(1);
    for word in words.skip_while(|word| word == "workshop") {
        line.push(' ');
        let mut letters = word.chars();
        if !word.is_empty()
            && letters.all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c))
        {
            line += &word;
        } else {
            let _ = write!(line, "'{}'", word.replace('\'', r"'\''"));
        }
    }
    line
}
