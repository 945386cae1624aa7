//! `duel load URL`: a load on one service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;

use children::{Interrupt, environment};
use engine::answers::{self, AnswerError, Asked, Learnt};
use engine::event::Event;
use engine::load::TrafficOutcome;
use engine::outcome::Outcome;
use engine::placement::Placement;
use engine::traffic::Traffic;
use statistics::condition::{Condition, Figure};
use statistics::figures;

use super::{find, scripts};
use crate::cli::by_locust::{self, ByLocust};
use crate::cli::compare::typed;
use crate::cli::options::{Format, Load, With};
use crate::cli::requests::{self, Target};
use crate::cli::spec::Spec;
use crate::report::load::Report;
use look_client as look;
use terminal::exit::{CliError, Exit};
use terminal::outcome::exit_of;
use terminal::progress::Terminal;
use terminal::{ctrl_c, files, json};

/// Users of a load, unless the options say.
const USERS: u32 = 50;

/// Sends the load to the service, and prints the outcome; or searches for the service's capacity.
pub(crate) fn run(options: &Load) -> Result<Exit, CliError> {
    let mut target = Target::of("URL", &options.url, &options.sent)?;
    let (specs, of_log) = specs(&target, options)?;
    let mut traffic = requests::traffic(
        &options.sent,
        &specs,
        options.users.unwrap_or(USERS),
        (options.rate, options.think),
        options.seconds,
    )?;
    traffic.has_pieces = options.stream;
    if options.stream && options.with != With::Embedded {
        return Err(CliError::usage(
            "--stream is measured by the embedded generator alone: leave out --with",
        ));
    }
    if let Some(folder) = &options.report {
        files::writable(folder)?;
    }
    let interrupt = ctrl_c::watch();
    let placement = Placement::apart();
    let by_locust = ByLocust::of(
        (options.with, &options.workers),
        (&options.sent, &specs),
        &traffic,
        options.think,
        &placement.generator,
        &interrupt,
    )?;
    let terminal = Terminal::new();
    if let Some(mut login) = requests::login(&options.sent)? {
        with_host(&mut login.request.headers, &target);
        let asked = asked("the service", &target, &traffic, &interrupt);
        target.server.headers = login.at(&asked).map_err(unanswered)?.into();
    }
    terminal.show(Event::Begins(1, 1, "the answers are learnt"));
    let learnt = learn(&target, &mut traffic, options, &interrupt)?;
    for sentence in &learnt.advice {
        terminal.say(sentence);
    }
    let mut notes = [of_log, learnt.notes()].concat();
    if options.sent.insecure {
        notes.push(requests::UNCHECKED.to_owned());
    }
    let of_search = (!options.find.is_empty()).then_some(options.sent.arrivals);
    notes.extend(requests::repeats(&traffic, of_search));
    if !options.find.is_empty() {
        drop(terminal);
        return find::run(options, &target.server, &traffic, notes, &interrupt);
    }
    write_scripts(&target, &specs, &traffic, options)?;
    terminal.show(Event::Begins(1, 1, &options.url));
    let (look_at, seconds) = (options.look.clone(), options.seconds);
    let looking = look_at.map(|url| thread::spawn(move || look::ask(&url, seconds, true)));
    let outcome = if let Some(locust) = by_locust {
        notes.push(by_locust::NOTE.to_owned());
        locust.announce(&terminal);
        locust.run(&target.origin.clone(), &traffic)?
    } else {
        embedded(
            &target,
            &traffic,
            &placement.generator,
            &interrupt,
            &terminal,
        )?
    };
    drop(terminal);
    let mut is_right = true;
    if options.sent.judge.is_some() {
        let asked = asked("service after the load", &target, &traffic, &interrupt);
        if let Err(fault) = learnt.compare(&asked) {
            notes.push(fault.to_string());
            is_right = false;
        }
    }
    let mut report = Report::new(outcome, &traffic, notes);
    if let Some(looking) = looking {
        let Ok(said) = looking.join() else {
            return Err(CliError::bad("the look panicked"));
        };
        let said = said?;
        report
            .notes
            .extend(look::inside(&said, report.outcome.latency.mean_ms));
    }
    for condition in &options.fail_if {
        if let Some(failure) = failure(condition, &report.outcome) {
            is_right = false;
            report.failed_if.push(failure);
        }
    }
    let exit = exit_of(&report.outcome);
    let exit = if is_right { exit } else { exit.max(Exit::Bad) };
    let file = page(options, &report, exit)?;
    print(options.output.format, &report, file.as_deref())?;
    Ok(exit)
}

/// Writes the report as a page if that is asked for, and returns its file.
fn page(options: &Load, report: &Report, exit: Exit) -> Result<Option<PathBuf>, CliError> {
    let Some(folder) = &options.report else {
        return Ok(None);
    };
    let file = folder.join("load.html");
    let machine = environment::observe(true, "", BTreeMap::new()).in_a_line();
    files::replace(&file, report.page(exit, &machine, &typed()))?;
    Ok(Some(file))
}

fn print(format: Format, report: &Report, file: Option<&Path>) -> Result<(), CliError> {
    match format {
        Format::Json => json::print_as("load", report)?,
        Format::Human => {
            print!("{}", report.text());
            if let Some(file) = file {
                println!("report: {}", file.display());
            }
        }
    }
    Ok(())
}

fn embedded(
    target: &Target,
    traffic: &Traffic,
    cpus: &[usize],
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Result<TrafficOutcome, CliError> {
    let show = |progress| terminal.show(Event::Runs(progress));
    let settings = engine::load::Settings {
        cpus,
        interrupt,
        progress: Some(&show),
    };
    let outcome = engine::load::run(target.server.clone(), traffic, &settings);
    outcome.map_err(find::failed)
}

/// Returns the requests that the options name, each with the URL's host, and notes on those of an access log.
fn specs(target: &Target, options: &Load) -> Result<(Vec<Spec>, Vec<String>), CliError> {
    let sent = &options.sent;
    let is_named = !sent.get.is_empty() || !sent.request.is_empty() || sent.access_log.is_some();
    if let (Some(path), true) = (&target.path, is_named) {
        return Err(CliError::usage(format!(
            "the URL ends in {path}, and --get, --request or --access-log name paths: leave out the URL's"
        )));
    }
    if options.locust.is_some() && options.rate.is_some() {
        return Err(CliError::usage(
            "--locust cannot keep a --rate: Locust knows closed loops only; give --think",
        ));
    }
    let (mut specs, of_log) = requests::specs(sent, Some(target.path.as_deref().unwrap_or("/")))?;
    for (script, option) in [(&options.k6, "--k6"), (&options.locust, "--locust")] {
        if script.is_some() {
            scripts::sendable(option, sent, &specs)?;
        }
    }
    for spec in &mut specs {
        with_host(&mut spec.headers, target);
    }
    Ok((specs, of_log))
}

fn with_host(headers: &mut Vec<(String, String)>, target: &Target) {
    if !requests::has(headers, "host") {
        headers.push(("host".to_owned(), target.host.clone()));
    }
}

fn asked<'a>(
    who: &'a str,
    target: &'a Target,
    traffic: &Traffic,
    interrupt: &'a Interrupt,
) -> Asked<'a> {
    Asked {
        who,
        target: &target.server,
        time_out: traffic.time_out,
        interrupt,
    }
}

/// Learns the right answers from the service, and adds them to `traffic`.
fn learn(
    target: &Target,
    traffic: &mut Traffic,
    options: &Load,
    interrupt: &Interrupt,
) -> Result<Learnt, CliError> {
    let asked = asked("the service", target, traffic, interrupt);
    answers::learn(&asked, traffic, &requests::how(&options.sent)).map_err(unanswered)
}

/// Converts an error of learning the answers. An unexpected status means that the command line is wrong. A service
/// that does not answer cannot be measured.
pub(super) fn unanswered(error: AnswerError) -> CliError {
    match error {
        AnswerError::Interrupted => CliError::interrupted(),
        AnswerError::Status(_) => CliError::usage(error),
        AnswerError::Other(_) => CliError::invalid(error),
    }
}

fn write_scripts(
    target: &Target,
    specs: &[Spec],
    traffic: &Traffic,
    options: &Load,
) -> Result<(), CliError> {
    let login = requests::login(&options.sent)?;
    let about = scripts::About {
        login: login.as_ref(),
        host: target.origin.clone(),
        cacert: options.sent.cacert.as_deref(),
        insecure: options.sent.insecure,
        users: traffic.users,
        think: options.think,
        rate: options.rate,
        seconds: options.seconds,
    };
    let statuses = scripts::statuses(traffic);
    if let Some(file) = &options.k6 {
        files::replace(file, scripts::k6(&about, specs, &statuses))?;
    }
    if let Some(file) = &options.locust {
        files::replace(file, scripts::locust(&about, specs, &statuses))?;
    }
    Ok(())
}

/// Says how the outcome meets a condition under which the load fails; `None` if it does not. A latency that is only known
/// to be longer than some time fails if it may meet the condition.
fn failure(condition: &Condition, outcome: &Outcome) -> Option<String> {
    let faults = outcome.error_count() + outcome.wrong_answers;
    // Faults of the warm-up count, so its right answers do.
    let right = match &outcome.in_all {
        Some(in_all) => in_all.reads + in_all.writes,
        None => outcome.completed,
    };
    let all = right + outcome.unfinished + faults;
    let (value, is_lower_bound) = match condition.figure() {
        Figure::Latency(quantile) => match outcome.latency.point(quantile) {
            Some(point) => (point.ms, point.is_lower_bound),
            None => return Some(format!("{condition}: it was not measured")),
        },
        Figure::Errors => (faults as f64 / all.max(1) as f64, false),
        Figure::Rate => (outcome.completed as f64 / outcome.seconds, false),
    };
    let fails = if is_lower_bound {
        condition.may_be_met_from(value)
    } else {
        condition.is_met_by(value)
    };
    if !fails {
        return None;
    }
    Some(format!(
        "{condition}: it is {}{}",
        figures::over(is_lower_bound),
        condition.value(value)
    ))
}
