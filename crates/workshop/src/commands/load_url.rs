//! `cargo workshop load --url URL`: a load on a reader's own service.

use std::fmt::Write as _;
use std::thread;

use bench::answers::{self, AnswerError, Asked};
use bench::placement::Placement;
use bench::rounds::Event;
use loadgen::interrupt::Interrupt;
use loadgen::{GeneratorError, TrafficOutcome};
use measurement::figures;
use measurement::outcome::{Latency, Outcome};
use measurement::traffic::Traffic;
use serde::Serialize;

use super::{load, look};
use crate::by_locust::{self, ByLocust};
use crate::cli::{Format, Load};
use crate::exit::{CliError, Exit};
use crate::requests::{self, Spec, Target};
use crate::terminal::Terminal;
use crate::{ctrl_c, files, json, scripts};

/// Users, where nobody says how many.
const USERS: u32 = 50;

/// What `--format json` prints: the outcome of all routes, and each of them.
#[derive(Debug, Serialize)]
struct Loaded {
    #[serde(flatten)]
    outcome: Outcome,
    routes: Vec<Told>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Told {
    name: String,
    completed: u64,
    latency: Latency,
}

pub(crate) fn run(url: &str, options: &Load) -> Result<Exit, CliError> {
    let target = Target::of("--url", url, options.sent.cacert.as_deref())?;
    let specs = specs(&target, options)?;
    let users = options.users.unwrap_or(USERS);
    let think = options.think.unwrap_or(0.0);
    let mut traffic = requests::traffic(
        &options.sent,
        &specs,
        users,
        (options.rate, think),
        options.seconds,
    )?;
    let interrupt = ctrl_c::watch();
    let placement = Placement::apart();
    let by_locust = ByLocust::of(
        (options.with, &options.workers),
        (&options.sent, &specs),
        &traffic,
        think,
        &placement.generator,
        &interrupt,
    )?;
    let terminal = Terminal::new();
    terminal.show(Event::Begins(1, 1, "the answers are learnt"));
    let mut notes = learn(&target, &mut traffic, options, &interrupt)?;
    write_scripts(&target, &specs, &traffic, options)?;
    terminal.show(Event::Begins(1, 1, url));
    let (look_at, seconds) = (options.look.clone(), options.seconds);
    let looking = look_at.map(|url| thread::spawn(move || look::ask(&url, seconds, true)));
    let outcome = if let Some(locust) = by_locust {
        notes.push(by_locust::NOTE.to_owned());
        locust.announce(&terminal);
        locust.run(&target.origin(), &traffic)?
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
    let mut loaded = Loaded::of(outcome, &traffic, notes);
    if let Some(looking) = looking {
        let said = looking
            .join()
            .unwrap_or_else(|_| Err(CliError::bad("the look panicked")))?;
        loaded
            .notes
            .extend(look::inside(&said, loaded.outcome.latency.mean_ms));
    }
    match options.output.format {
        Format::Json => json::print(&loaded)?,
        Format::Human => print!("{}", table(&loaded)),
    }
    Ok(load::exit(&loaded.outcome))
}

fn embedded(
    target: &Target,
    traffic: &Traffic,
    cpus: &[usize],
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Result<TrafficOutcome, CliError> {
    let show = |progress| terminal.show(Event::Runs(progress));
    let settings = loadgen::Settings {
        cpus,
        interrupt,
        progress: Some(&show),
    };
    let outcome = loadgen::run_traffic(target.server.clone(), traffic, &settings);
    outcome.map_err(|error| match error {
        GeneratorError::Interrupted => CliError::interrupted(),
        GeneratorError::Unreachable { target, reason } => CliError::new(
            Exit::Invalid,
            format!("the service at {target} takes no connections any more: {reason}"),
        ),
        other => CliError::new(Exit::Invalid, other),
    })
}

/// What the options ask for, with the URL's own host in every request.
fn specs(target: &Target, options: &Load) -> Result<Vec<Spec>, CliError> {
    let sent = &options.sent;
    let is_named = !sent.get.is_empty() || !sent.request.is_empty();
    if let Some(path) = target.path.as_ref().filter(|_| is_named) {
        return Err(CliError::usage(format!(
            "--url ends in {path}, and --get or --request name paths: leave out the URL's"
        )));
    }
    if options.locust.is_some() && options.rate.is_some() {
        return Err(CliError::usage(
            "--locust cannot keep a --rate: Locust knows closed loops only; give --think",
        ));
    }
    let mut specs = requests::specs(sent, Some(target.path.as_deref().unwrap_or("/")))?;
    let has_host = |(name, _): &(String, String)| name.eq_ignore_ascii_case("host");
    for spec in &mut specs {
        if !spec.headers.iter().any(has_host) {
            spec.headers.push(("host".to_owned(), target.host.clone()));
        }
    }
    Ok(specs)
}

/// Completes `traffic` by what answers it rightly; yields what is compared.
fn learn(
    target: &Target,
    traffic: &mut Traffic,
    options: &Load,
    interrupt: &Interrupt,
) -> Result<Vec<String>, CliError> {
    let asked = Asked {
        who: "the service",
        target: &target.server,
        time_out: traffic.time_out,
        interrupt,
    };
    let learnt = answers::learn(&asked, traffic, options.sent.expect_status);
    let learnt = learnt.map_err(|error| match error {
        AnswerError::Interrupted => CliError::interrupted(),
        other => CliError::usage(other),
    })?;
    learnt.complete(traffic);
    Ok(learnt.notes)
}

fn write_scripts(
    target: &Target,
    specs: &[Spec],
    traffic: &Traffic,
    options: &Load,
) -> Result<(), CliError> {
    let about = scripts::About {
        host: target.origin(),
        cacert: options.sent.cacert.as_deref(),
        users: traffic.users,
        think: options.think.unwrap_or(0.0),
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

impl Loaded {
    fn of(outcome: TrafficOutcome, traffic: &Traffic, notes: Vec<String>) -> Self {
        let all = outcome.users.all();
        let told = traffic.routes.iter().zip(&outcome.users.routes);
        let routes = told
            .map(|(route, seen)| Told {
                name: route.name.clone(),
                completed: seen.latency.count(),
                latency: seen.latency.summary(),
            })
            .collect();
        let mut outcome = Outcome::from(outcome);
        if traffic.routes.len() > 1 {
            // A chapter's second route are its writes; here all routes count alike.
            outcome.latency = all.map(|all| all.summary()).unwrap_or_default();
            outcome.service_latency = None;
            outcome.writes = 0;
        }
        Self {
            outcome,
            routes,
            notes,
        }
    }
}

/// The figures for people.
fn table(loaded: &Loaded) -> String {
    // Writing to a String cannot fail.
    let mut text = load::table(&loaded.outcome);
    for route in loaded.routes.iter().filter(|_| loaded.routes.len() > 1) {
        let at = |quantile| {
            let found = route.latency.point(quantile);
            found.map_or("-".to_owned(), |found| {
                let over = figures::over(found.is_lower_bound);
                format!("{over}{}", figures::milliseconds(found.ms))
            })
        };
        let _ = writeln!(
            text,
            "{}: {}, median {}, 90 % {}, 99 % {}",
            route.name,
            figures::things(route.completed, "answer"),
            at(0.5),
            at(0.9),
            at(0.99)
        );
    }
    for note in &loaded.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}
